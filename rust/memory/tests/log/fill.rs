//! Tests of `fill_block`: the caller writes the frames of a block directly into the term of an exclusive publisher.

use aeron_layout::frame::FirstWord;
use aeron_memory::log::append::{BlockSpace, FillBlockError, FilledBlock, InvalidBlock};
use aeron_memory::log::{AppendError, ExclusiveAppender};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

use crate::log::common::*;

/// Returns the frames of messages with these lengths, as a log of the same stream has them at its start.
fn recorded(lengths: &[usize]) -> Vec<u8> {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let mut end = 0;
    for (i, length) in lengths.iter().enumerate() {
        end = appender
            .offer(NO_LIMIT, &vec![i as u8 + 1; *length])
            .unwrap();
    }
    bytes_of(log.term(0), 0, end as usize)
}

/// Writes `bytes` into the space, except the first word, and returns a block that claims to have `length` bytes.
fn write(
    space: &BlockSpace<'_, SharedBuffer>,
    bytes: &[u8],
    length: usize,
) -> Result<FilledBlock, ()> {
    space.term().copy_in(space.offset() + 8, &bytes[8..]);
    let first_word = i64::from_le_bytes(bytes[..8].try_into().unwrap());
    Ok(FilledBlock {
        length,
        first_word: FirstWord(first_word),
    })
}

#[test]
fn a_filled_block_is_readable_at_once_and_only_when_it_is_complete() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.offer(NO_LIMIT, b"before").unwrap();
    let mut block = recorded(&[6, 3000, 5])[64..].to_vec();
    let length = block.len();
    let filled = appender.fill_block(NO_LIMIT, length + 32, |space| {
        assert_eq!((space.offset(), space.length()), (64, length + 32));
        let filled = write(space, &block, length);
        assert_eq!(read_all(&log, 0), (vec![b"before".to_vec()], 64));
        assert_eq!(log.metadata().tail(0).unclamped_offset(), 64);
        filled
    });
    let end = 64 + length as i64;
    assert_eq!(filled, Ok(end));
    assert_eq!(log.metadata().tail(0).unclamped_offset(), end as usize);
    assert_eq!(appender.offer(NO_LIMIT, b"after"), Ok(end + 64));
    block.splice(..0, bytes_of(log.term(0), 0, 64));
    assert_eq!(bytes_of(log.term(0), 0, end as usize), block);
    assert_eq!(read_all(&log, 0).1, end + 64);
}

#[test]
fn bytes_after_a_filled_block_are_cleaned() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let block = recorded(&[5, 700, 9]);
    let filled = appender.fill_block(NO_LIMIT, block.len(), |space| write(space, &block, 64));
    assert_eq!(filled, Ok(64));
    assert!(terms_of(&log)[64..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_block_that_is_refused_leaves_the_term_zero() {
    let log = log();
    let block = recorded(&[5, 700]);
    let length = block.len();
    let refuse = |bytes: Vec<u8>, filled: usize| {
        let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
        let result = appender.fill_block(NO_LIMIT, length, |space| write(space, &bytes, filled));
        assert_eq!(appender.position(), 0);
        assert!(terms_of(&log).iter().all(|byte| *byte == 0));
        result
    };
    assert_eq!(refuse(block.clone(), 0), Ok(0));
    let too_long = InvalidBlock::TooLong {
        length: length + 32,
        remaining: length,
    };
    assert_eq!(
        refuse(block.clone(), length + 32),
        Err(FillBlockError::Append(AppendError::InvalidBlock(too_long)))
    );
    let no_frame = Err(FillBlockError::Append(AppendError::InvalidBlock(
        InvalidBlock::Frames(0),
    )));
    assert_eq!(refuse(block.clone(), 63), no_frame);
    // Length, type, term offset, session, stream and term of the first frame.
    for at in [3, 6, 8, 12, 16, 20] {
        let mut wrong = block.clone();
        wrong[at] ^= 0x40;
        assert_eq!(
            refuse(wrong, length),
            no_frame,
            "changed byte {at} of the first header"
        );
    }

    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let failed = appender.fill_block(NO_LIMIT, length, |space| {
        let _ = write(space, &block, length);
        Err("the disk is gone")
    });
    assert_eq!(failed, Err(FillBlockError::Fill("the disk is gone")));
    assert!(terms_of(&log).iter().all(|byte| *byte == 0));
}

#[test]
fn a_space_ends_with_the_term_and_respects_the_limit() {
    let log = log_of(&description(), TERM as i64 - 64);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let refused = appender.fill_block(TERM as i64 - 64, 4096, |_| -> Result<FilledBlock, ()> {
        panic!("`fill` is called although the limit is reached")
    });
    assert_eq!(
        refused,
        Err(FillBlockError::Append(AppendError::BackPressured))
    );
    let _ = appender.fill_block(NO_LIMIT, 4096, |space| {
        assert_eq!((space.offset(), space.length()), (TERM - 64, 64));
        Err(())
    });

    // At the end of a term the block directly begins the next term.
    appender.offer(NO_LIMIT, &[0; 32]).unwrap();
    let mut block = recorded(&[20]);
    block[20..24].copy_from_slice(&(INITIAL_TERM + 1).to_le_bytes());
    let filled = appender.fill_block(NO_LIMIT, 4096, |space| write(space, &block, 64));
    assert_eq!(filled, Ok(TERM as i64 + 64));
    assert_eq!(log.metadata().active_term_count(), 1);

    let max = log.positions().max_position();
    let mut appender = ExclusiveAppender::new(log_of(&description(), max)).unwrap();
    assert_eq!(
        appender.fill_block(NO_LIMIT, 64, |_| Err(())),
        Err(FillBlockError::Append(AppendError::MaxPositionExceeded))
    );
}

proptest! {
    #[test]
    fn a_filled_block_equals_an_offered_block(lengths in prop::collection::vec(0_usize..2000, 1..20)) {
        let block = recorded(&lengths);
        let (filled, offered) = (log(), log());
        let mut appender = ExclusiveAppender::new(filled.clone()).unwrap();
        let end = appender.fill_block(NO_LIMIT, TERM, |space| write(space, &block, block.len()));
        let mut appender = ExclusiveAppender::new(offered.clone()).unwrap();
        prop_assert_eq!(end.ok(), appender.offer_block(NO_LIMIT, &block).ok());
        prop_assert!(terms_of(&filled) == terms_of(&offered));
    }
}
