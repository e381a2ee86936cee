//! Tests of padding and blocks of finished frames that an exclusive publisher appends.

use aeron_memory::Words;
use aeron_memory::log::append::InvalidBlock;
use aeron_memory::log::{AppendError, ExclusiveAppender};

use crate::log::common::*;

#[test]
fn padding_is_a_frame_that_subscribers_skip_01_68() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    assert_eq!(appender.append_padding(NO_LIMIT, 100), Ok(160));
    assert_eq!(appender.append_padding(NO_LIMIT, 0), Ok(192));
    assert_eq!(appender.offer(NO_LIMIT, b"seen"), Ok(256));
    // Type PAD, flags of an unfragmented message, and the length with the header: 132.
    assert_eq!(log.term(0).load_i64_relaxed(0), 0xC0 << 40 | 132);
    assert_eq!(read_all(&log, 0), (vec![b"seen".to_vec()], 256));
}

#[test]
fn padding_has_the_limits_of_a_message_01_68() {
    let log = log_of(&description(), TERM as i64 - 96);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let start = TERM as i64 - 96;
    let max = TERM / 8;
    let length = max + 1;
    let too_long = AppendError::TooLong { length, max };
    assert_eq!(appender.append_padding(0, length), Err(too_long));
    let result = appender.append_padding(start, 0);
    assert_eq!(result, Err(AppendError::BackPressured));
    let result = appender.append_padding(NO_LIMIT, max);
    assert_eq!(result, Err(AppendError::AdminAction));
    let end = (TERM + max + 32) as i64;
    assert_eq!(appender.append_padding(NO_LIMIT, max), Ok(end));
    assert_eq!(read_all(&log, start), (vec![], end));
}

/// Returns the first `length` bytes of term 0 in another log of the same stream.
fn recorded(length: usize) -> Vec<u8> {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    for message in [&b"first"[..], &[2; 3000], b"third"] {
        appender.offer(NO_LIMIT, message).unwrap();
    }
    bytes_of(log.term(0), 0, length)
}

const BLOCK: usize = 64 + 3104 + 64;

#[test]
fn a_block_of_frames_continues_the_stream_01_68() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let block = recorded(BLOCK);
    assert_eq!(appender.offer_block(NO_LIMIT, &block), Ok(BLOCK as i64));
    assert_eq!(bytes_of(log.term(0), 0, BLOCK), block);
    assert_eq!(log.metadata().tail(0).unclamped_offset(), BLOCK);
    assert_eq!(appender.offer(NO_LIMIT, b"x"), Ok(BLOCK as i64 + 64));
    let (payloads, _) = read_all(&log, 0);
    assert_eq!(payloads[0], b"first");
    assert_eq!(payloads[5], b"x");
}

#[test]
fn a_block_with_a_wrong_first_header_is_refused_01_68() {
    let cases = [
        ("term offset", 8, 4),
        ("session id", 12, 4),
        ("stream id", 16, 4),
        ("term id", 20, 4),
        ("type", 6, 2),
    ];
    for (name, at, length) in cases {
        let log = log();
        let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
        let mut block = recorded(BLOCK);
        block[at..at + length].fill(0x55);
        let refused = appender.offer_block(NO_LIMIT, &block).unwrap_err();
        let AppendError::InvalidBlock(InvalidBlock::Field { field, .. }) = refused else {
            panic!("{refused}");
        };
        assert_eq!(field, name);
        assert_eq!(appender.position(), 0);
        assert!(terms_of(&log).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_block_whose_frames_do_not_fill_the_block_is_refused_01_68() {
    let whole = recorded(BLOCK);
    let mut negative = whole.clone();
    negative[64..68].copy_from_slice(&(-1408i32).to_le_bytes());
    let mut short = whole.clone();
    short[0..4].copy_from_slice(&31i32.to_le_bytes());
    let mut huge = whole.clone();
    huge[64..68].copy_from_slice(&i32::MAX.to_le_bytes());
    for (block, at) in [
        (&[][..], 0),
        (&whole[..31], 0),
        (&whole[..63], 0),
        (&whole[..BLOCK - 32], BLOCK - 64),
        (&whole[..72], 64),
        (&negative, 64),
        (&short, 0),
        (&huge, 64),
    ] {
        let mut appender = ExclusiveAppender::new(log()).unwrap();
        let refused = appender.offer_block(NO_LIMIT, block).unwrap_err();
        assert_eq!(refused, AppendError::InvalidBlock(InvalidBlock::Frames(at)));
    }
}

#[test]
fn a_block_must_fit_into_the_term_and_respects_the_limit_01_68() {
    let log = log_of(&description(), TERM as i64 - 64);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    let block = recorded(BLOCK);
    let refused = appender.offer_block(NO_LIMIT, &block).unwrap_err();
    let (length, remaining) = (BLOCK, 64);
    assert_eq!(
        refused,
        AppendError::InvalidBlock(InvalidBlock::TooLong { length, remaining })
    );
    let refused = appender.offer_block(TERM as i64 - 64, &block).unwrap_err();
    assert_eq!(refused, AppendError::BackPressured);

    // At the end of a term the block directly begins the next term.
    appender.offer(NO_LIMIT, &[0; 32]).unwrap();
    let mut block = recorded(64);
    block[20..24].copy_from_slice(&(INITIAL_TERM + 1).to_le_bytes());
    let end = TERM as i64 + 64;
    assert_eq!(appender.offer_block(NO_LIMIT, &block), Ok(end));
    assert_eq!(log.metadata().active_term_count(), 1);
}

#[test]
fn a_block_is_refused_at_the_end_of_the_stream() {
    let max = log().positions().max_position();
    let mut appender = ExclusiveAppender::new(log_of(&description(), max)).unwrap();
    let refused = appender.offer_block(NO_LIMIT, &recorded(64)).unwrap_err();
    assert_eq!(refused, AppendError::MaxPositionExceeded);
}
