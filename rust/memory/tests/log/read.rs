//! Tests of reading: fragments, bounded reads, blocks, and logs with arbitrary bytes.

use aeron_memory::Words;
use aeron_memory::log::{ConcurrentAppender, ExclusiveAppender};
use proptest::prelude::*;

use crate::log::common::*;

/// Creates a log with the frames "a", padding, "b", an aborted claim, "c".
fn log_with_padding() -> Log {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.offer(NO_LIMIT, b"a").unwrap();
    appender.append_padding(NO_LIMIT, 100).unwrap();
    appender.offer(NO_LIMIT, b"b").unwrap();
    appender.try_claim(NO_LIMIT, 10).unwrap().abort();
    appender.offer(NO_LIMIT, b"c").unwrap();
    log
}

#[test]
fn padding_is_skipped_and_is_not_a_fragment_01_69() {
    let log = log_with_padding();
    let mut cursor = log.cursor(0).unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let fragment = cursor.next_fragment().unwrap().unwrap();
        seen.push((
            fragment.to_vec(),
            fragment.begin_position(),
            fragment.position(),
        ));
    }
    assert_eq!(seen, [(b"a".to_vec(), 0, 64), (b"b".to_vec(), 224, 288)]);
    // Reading stopped after the second fragment, before the padding.
    assert_eq!(cursor.position(), 288);
    assert!(cursor.next_fragment().unwrap().is_some());
    assert!(cursor.next_fragment().unwrap().is_none());
    assert_eq!(cursor.position(), 416);
}

#[test]
fn a_poll_of_padding_alone_advances_the_position_01_69() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.append_padding(NO_LIMIT, 10).unwrap();
    let mut cursor = log.cursor(0).unwrap();
    assert!(cursor.next_fragment().unwrap().is_none());
    assert_eq!(cursor.position(), 64);
}

#[test]
fn reading_stops_at_an_incomplete_frame_and_at_the_term_end_01_69() {
    let log = log_of(&description(), TERM as i64 - 128);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.offer(NO_LIMIT, b"a").unwrap();
    let claim = appender.try_claim(NO_LIMIT, 1).unwrap();
    let mut cursor = log.cursor(TERM as i64 - 128).unwrap();
    assert!(cursor.next_fragment().unwrap().is_some());
    assert!(cursor.next_fragment().unwrap().is_none());
    assert_eq!(cursor.position(), TERM as i64 - 64);
    claim.commit();
    assert!(cursor.next_fragment().unwrap().is_some());
    assert_eq!(
        appender.offer(NO_LIMIT, b"c").unwrap_err().code(),
        -3,
        "the term is full"
    );
    appender.offer(NO_LIMIT, b"c").unwrap();
    assert!(cursor.next_fragment().unwrap().is_none());
    assert_eq!(cursor.position(), TERM as i64);
    let mut next = log.cursor(cursor.position()).unwrap();
    assert_eq!(next.next_fragment().unwrap().unwrap().to_vec(), b"c");
}

/// 01-69: if a handler fails, the fragments that it received are consumed, including the last one.
#[test]
fn the_position_is_after_a_fragment_as_soon_as_the_fragment_is_delivered() {
    let log = log_with_padding();
    let mut cursor = log.cursor(0).unwrap();
    let failing = std::panic::AssertUnwindSafe(|| {
        while let Some(fragment) = cursor.next_fragment().unwrap() {
            assert_ne!(
                fragment.to_vec(),
                b"b",
                "this assertion is the failing handler"
            );
        }
    });
    std::panic::catch_unwind(failing).unwrap_err();
    assert_eq!(cursor.position(), 288);
}

#[test]
fn similar_fragments_are_read_until_one_differs() {
    let log = log_of(&description(), TERM as i64 - 256);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    for message in [&b"one"[..], b"two", b"four"] {
        appender.offer(NO_LIMIT, message).unwrap();
    }
    let mut cursor = log.cursor(TERM as i64 - 256).unwrap();
    let first = cursor.next_fragment().unwrap().unwrap();
    assert_eq!(cursor.next_alike(&first).unwrap().to_vec(), b"two");
    assert!(
        cursor.next_alike(&first).is_none(),
        "the next frame has another length"
    );
    let fourth = cursor.next_fragment().unwrap().unwrap();
    assert_eq!(fourth.to_vec(), b"four");
    assert!(cursor.next_alike(&fourth).is_none(), "no frame follows yet");
    appender.offer(NO_LIMIT, b"five").unwrap();
    let fifth = cursor.next_alike(&fourth).unwrap();
    assert_eq!(fifth.to_vec(), b"five");
    assert_eq!(fifth.position(), TERM as i64);
    assert!(cursor.next_alike(&fifth).is_none(), "the term ends");
}

#[test]
fn an_aborted_fragment_is_returned_again_01_70() {
    let log = log_with_padding();
    let mut cursor = log.cursor(64).unwrap();
    let fragment = cursor.next_fragment().unwrap().unwrap();
    assert_eq!(fragment.to_vec(), b"b");
    cursor.return_to(&fragment);
    // The padding before the fragment stays consumed.
    assert_eq!(cursor.position(), 224);
    let again = cursor.next_fragment().unwrap().unwrap();
    assert_eq!(again.to_vec(), b"b");
}

#[test]
fn a_bounded_read_ends_with_the_frame_that_begins_before_the_bound_01_70() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    for _ in 0..5 {
        appender.offer(NO_LIMIT, &[0; 32]).unwrap();
    }
    let read = |limit: i64| {
        let mut cursor = log.cursor(64).unwrap().bounded(limit);
        while cursor.next_fragment().unwrap().is_some() {}
        cursor.position()
    };
    for (limit, end) in [
        (i64::MIN, 64),
        (0, 64),
        (64, 64),
        (65, 128),
        (128, 128),
        (129, 192),
        (i64::MAX, 320),
    ] {
        assert_eq!(read(limit), end, "{limit}");
    }
}

#[test]
fn padding_is_a_separate_block_and_other_blocks_have_whole_frames_01_70() {
    let log = log_with_padding();
    let block_at = |position: i64, limit: usize| {
        let mut cursor = log.cursor(position).unwrap();
        let block = cursor.next_block(limit).unwrap();
        block.map(|block| {
            assert_eq!(block.begin_position(), position);
            let ids = (block.session_id(), block.term_id());
            assert_eq!(ids, (SESSION, INITIAL_TERM));
            assert_eq!(block.offset() as i64, position);
            assert_eq!(block.term().load_i32_relaxed(8) as i64, 0);
            (block.length(), cursor.position())
        })
    };
    assert_eq!(block_at(0, 4096), Some((64, 64)), "up to the padding");
    assert_eq!(
        block_at(64, 4096),
        Some((160, 224)),
        "padding is a block of its own"
    );
    assert_eq!(
        block_at(64, 32),
        Some((160, 224)),
        "the limit does not apply to padding"
    );
    assert_eq!(block_at(224, 4096), Some((64, 288)));
    assert_eq!(
        block_at(224, 63),
        None,
        "a block contains no part of a frame"
    );
    assert_eq!(block_at(416, 4096), None, "no frame follows yet");

    let log = self::log();
    let appender = ConcurrentAppender::new(log.clone());
    for _ in 0..4 {
        appender.offer(NO_LIMIT, &[0; 32]).unwrap();
    }
    for (limit, length) in [
        (64, 64),
        (127, 64),
        (128, 128),
        (300, 256),
        (usize::MAX, 256),
    ] {
        let mut cursor = log.cursor(0).unwrap();
        let block = cursor.next_block(limit).unwrap().unwrap();
        assert_eq!(block.length(), length, "{limit}");
    }
}

#[test]
fn an_impossible_length_is_an_error_and_ends_the_read() {
    for wrong in [1, 31, TERM as i32 - 32, TERM as i32, i32::MAX] {
        let log = log();
        let appender = ConcurrentAppender::new(log.clone());
        appender.offer(NO_LIMIT, b"a").unwrap();
        log.term(0).store_i32_release(64, wrong);
        let mut cursor = log.cursor(0).unwrap();
        assert!(cursor.next_fragment().unwrap().is_some());
        let error = cursor.next_fragment().unwrap_err();
        assert_eq!((error.position, error.value), (64, wrong.into()));
        assert!(error.to_string().contains("at position 64"), "{error}");
        assert_eq!(cursor.position(), 64);
        assert_eq!(cursor.next_block(4096).unwrap_err(), error);
    }
}

#[test]
fn a_cursor_off_the_frame_boundaries_or_before_the_stream_is_refused() {
    for wrong in [-32, i64::MIN, 1, 31, 33] {
        let error = log().cursor(wrong).unwrap_err();
        assert_eq!(error.position, wrong);
    }
}

#[test]
fn a_stream_has_ended_from_its_end_of_stream_position_on_01_77() {
    let log = log();
    assert!(!log.metadata().is_end_of_stream(i64::MAX - 1));
    log.metadata().set_end_of_stream_position(128);
    assert!(!log.metadata().is_end_of_stream(96));
    assert!(log.metadata().is_end_of_stream(128));
}

proptest! {
    /// For any words in a term, a read returns frames within the term, `None`, or an error.
    #[test]
    fn any_bytes_are_read_without_leaving_the_term(
        words in prop::collection::vec(
            (0usize..TERM / 4, prop_oneof![any::<i32>(), 0..5000i32]), 0..300
        ),
        position in 0i64..3 * TERM as i64,
        limit in 0usize..100_000,
    ) {
        let log = log();
        for partition in 0..3 {
            for (word, value) in &words {
                log.term(partition).store_i32_relaxed(4 * word, *value);
            }
        }
        if let Ok(mut cursor) = log.cursor(position & !31) {
            while let Ok(Some(fragment)) = cursor.next_fragment() {
                let end = fragment.payload_offset() + fragment.payload_length();
                prop_assert!(end <= TERM);
                fragment.to_vec();
            }
            prop_assert!(cursor.offset() <= TERM);
        }
        let mut cursor = log.cursor(position & !31).unwrap();
        while let Ok(Some(block)) = cursor.next_block(limit) {
            prop_assert!(block.offset() + block.length() <= TERM);
        }
    }
}
