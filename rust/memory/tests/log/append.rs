//! Tests of appending messages one by one.

use std::time::{Duration, Instant};

use aeron_memory::Words;
use aeron_memory::log::append::Parts;
use aeron_memory::log::clean::clean;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender, RawTail};
use proptest::prelude::*;

use crate::log::common::*;

const MAX_PAYLOAD: usize = 1408 - 32;
const MAX_MESSAGE: usize = TERM / 8;

/// 01-59, 01-60, 01-61, 01-62: the same operations write the bytes that a real client wrote.
#[test]
fn the_captured_operations_write_the_captured_bytes() {
    let expected = expectation("log-ipc-concurrent.json");
    let log = captured_log("log-ipc-concurrent-meta.bin");
    // The state before the first operation.
    let fresh = log_of(&log.metadata().description(), 0);
    let appender = ConcurrentAppender::new(fresh.clone());
    let operations = expected["operations_in_order"].as_array().unwrap();
    for operation in operations {
        let length = int(&operation["length"]) as usize;
        let payload = match operation["payload_hex"].as_str() {
            Some(hex) => unhex(hex),
            None => (0..length).map(|i| (7 * i + 2) as u8).collect(),
        };
        let position = match operation["op"].as_str().unwrap() {
            "offer" if int(&operation["reserved_value"]) != 0 => {
                let value = int(&operation["reserved_value"]);
                appender
                    .offer_with(NO_LIMIT, &payload[..], |_| value)
                    .unwrap()
            }
            "offer" => appender.offer(NO_LIMIT, &payload).unwrap(),
            "tryClaim+commit" => {
                let claim = appender.try_claim(NO_LIMIT, length).unwrap();
                claim.put(0, &payload);
                claim.commit()
            }
            "tryClaim+abort" => {
                let claim = appender.try_claim(NO_LIMIT, length).unwrap();
                claim.put(0, &payload);
                let position = claim.position();
                claim.abort();
                position
            }
            "offer vectored 10+20" => {
                let (first, second) = payload.split_at(10);
                appender.offer_parts(NO_LIMIT, &[first, second]).unwrap()
            }
            other => panic!("unknown operation {other}"),
        };
        assert_eq!(position, int(&operation["result"]), "{operation}");
    }
    let written = bytes_of(fresh.term(0), 0, 4096);
    assert_eq!(written, vector("log-ipc-concurrent-term0-head.bin"));
}

#[test]
fn a_full_term_is_padded_and_the_next_attempt_goes_to_the_next_term_01_63() {
    let (shared, own) = (log(), log());
    let concurrent = ConcurrentAppender::new(shared.clone());
    let mut exclusive = ExclusiveAppender::new(own.clone()).unwrap();
    let mut messages = Vec::new();
    for count in 0..120u8 {
        let message = vec![count; 1000];
        let result = concurrent.offer(NO_LIMIT, &message);
        assert_eq!(exclusive.offer(NO_LIMIT, &message), result);
        match count {
            61 => assert_eq!(result, Ok(65_472)),
            62 => assert_eq!(result, Err(AppendError::AdminAction)),
            63 => assert_eq!(result, Ok(66_592)),
            _ => assert!(result.is_ok()),
        }
        if result.is_ok() {
            messages.push(message);
        }
    }
    assert!(terms_of(&shared) == terms_of(&own));
    assert_eq!(shared.term(0).load_i32_relaxed(65_472), 64);
    for log in [&shared, &own] {
        assert_eq!(log.metadata().tail(0), RawTail::new(INITIAL_TERM, 66_528));
        assert_eq!(log.metadata().active_term_count(), 1);
        assert_eq!(
            read_all(log, 0),
            (messages.clone(), log.producer_position())
        );
    }
}

#[test]
fn a_term_that_is_exactly_full_gets_no_padding_01_63() {
    let (shared, own) = (log(), log());
    let concurrent = ConcurrentAppender::new(shared.clone());
    let mut exclusive = ExclusiveAppender::new(own.clone()).unwrap();
    for count in 1..=TERM as i64 / 64 {
        assert_eq!(concurrent.offer(NO_LIMIT, &[1; 32]), Ok(64 * count));
        assert_eq!(exclusive.offer(NO_LIMIT, &[1; 32]), Ok(64 * count));
    }
    let before = terms_of(&shared);
    let result = concurrent.offer(NO_LIMIT, &[1; 32]);
    assert_eq!(result, Err(AppendError::AdminAction));
    assert_eq!(exclusive.offer(NO_LIMIT, &[1; 32]), result);
    assert!(before == terms_of(&shared) && before == terms_of(&own));
    assert_eq!(concurrent.offer(NO_LIMIT, &[1; 32]), Ok(TERM as i64 + 64));
}

/// Offset, length and flags of a frame.
type Frame = (usize, usize, u8);

/// Returns the frames of the first term.
fn frames_of(log: &Log) -> Vec<Frame> {
    let mut cursor = log.cursor(0).unwrap();
    let mut frames = Vec::new();
    while let Some(fragment) = cursor.next_fragment().unwrap() {
        frames.push((fragment.offset(), fragment.frame_length(), fragment.flags()));
    }
    frames
}

#[test]
fn messages_longer_than_a_payload_are_divided_into_fragments_01_59() {
    const MTU: usize = 1408;
    let cases: [(usize, &[Frame]); 7] = [
        (0, &[(0, 32, 0xC0)]),
        (1, &[(0, 33, 0xC0)]),
        (MAX_PAYLOAD, &[(0, MTU, 0xC0)]),
        (MAX_PAYLOAD + 1, &[(0, MTU, 0x80), (MTU, 33, 0x40)]),
        (2 * MAX_PAYLOAD, &[(0, MTU, 0x80), (MTU, MTU, 0x40)]),
        (3000, &[(0, MTU, 0x80), (MTU, MTU, 0), (2 * MTU, 280, 0x40)]),
        (
            MAX_MESSAGE,
            &[
                (0, MTU, 0x80),
                (MTU, MTU, 0),
                (2 * MTU, MTU, 0),
                (3 * MTU, MTU, 0),
                (4 * MTU, MTU, 0),
                (5 * MTU, MAX_MESSAGE - 5 * MAX_PAYLOAD + 32, 0x40),
            ],
        ),
    ];
    for (length, frames) in cases {
        let log = log();
        let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let position = ConcurrentAppender::new(log.clone()).offer(NO_LIMIT, &message);
        let (last, last_length, _) = frames[frames.len() - 1];
        let end = (last + last_length).next_multiple_of(32);
        assert_eq!(position, Ok(end as i64), "{length}");
        assert_eq!(frames_of(&log), frames, "{length}");
        assert_eq!(read_all(&log, 0).0.concat(), message);
    }
}

#[test]
fn the_position_limit_is_checked_before_the_maximum_length_of_a_message_01_59() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    let mut exclusive = ExclusiveAppender::new(log.clone()).unwrap();
    let message = vec![0; MAX_MESSAGE + 1];
    let too_long = AppendError::TooLong {
        length: MAX_MESSAGE + 1,
        max: MAX_MESSAGE,
    };
    assert_eq!(appender.offer(NO_LIMIT, &message), Err(too_long));
    assert_eq!(exclusive.offer(NO_LIMIT, &message), Err(too_long));
    let text = too_long.to_string();
    assert!(text.contains("8193") && text.contains("8192"), "{text}");
    assert_eq!(appender.offer(0, &message), Err(AppendError::BackPressured));
    assert_eq!(
        exclusive.offer(0, &message),
        Err(AppendError::BackPressured)
    );
    log.metadata().set_is_connected(false);
    assert_eq!(appender.offer(0, &message), Err(AppendError::NotConnected));
    assert_eq!(exclusive.offer(0, &message), Err(AppendError::NotConnected));
    assert_eq!(log.producer_position(), 0);
}

/// 01-67: the codes -1 and -2. Code -4 comes from the client.
#[test]
fn at_the_limit_the_result_shows_whether_the_publication_is_connected_01_67() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    // Only the start of a message is compared with the limit.
    assert_eq!(appender.offer(1, &[0; 1000]), Ok(1056));
    let refused = appender.offer(1056, &[]).unwrap_err();
    assert_eq!((refused, refused.code()), (AppendError::BackPressured, -2));
    log.metadata().set_is_connected(false);
    let refused = appender.offer(1056, &[]).unwrap_err();
    assert_eq!((refused, refused.code()), (AppendError::NotConnected, -1));
    assert_eq!(appender.offer(1057, &[]), Ok(1088));
    let codes = [
        (AppendError::AdminAction, -3),
        (AppendError::Closed, -4),
        (AppendError::MaxPositionExceeded, -5),
    ];
    assert!(codes.iter().all(|(error, code)| error.code() == *code));
}

#[test]
fn a_claim_longer_than_a_payload_is_refused_before_anything_else_01_60() {
    let log = log();
    log.metadata().set_is_connected(false);
    let max = MAX_PAYLOAD;
    let appender = ConcurrentAppender::new(log.clone());
    let refused = appender.try_claim(0, max + 1).unwrap_err();
    let length = max + 1;
    assert_eq!(refused, AppendError::TooLong { length, max });
    let refused = appender.try_claim(0, max).unwrap_err();
    assert_eq!(refused, AppendError::NotConnected);
    let mut exclusive = ExclusiveAppender::new(log).unwrap();
    let refused = exclusive.try_claim(0, max + 1).unwrap_err();
    assert_eq!(refused, AppendError::TooLong { length, max });
}

#[test]
fn a_claim_is_unreadable_until_it_is_committed_01_60() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    let claim = appender.try_claim(NO_LIMIT, 5).unwrap();
    claim.put(0, b"he");
    claim.put(2, b"llo");
    claim.set_flags(0xC5);
    claim.set_reserved_value(-9);
    claim.set_frame_type(0x77);
    assert_eq!(log.term(0).load_i32_relaxed(0), -37);
    assert!(log.cursor(0).unwrap().next_fragment().unwrap().is_none());
    assert_eq!(claim.commit(), 64);
    let mut cursor = log.cursor(0).unwrap();
    let fragment = cursor.next_fragment().unwrap().unwrap();
    assert_eq!(fragment.to_vec(), b"hello");
    let header = (
        fragment.flags(),
        fragment.frame_type(),
        fragment.reserved_value(),
    );
    assert_eq!(header, (0xC5, 0x77, -9));
    let ids = (
        fragment.session_id(),
        fragment.stream_id(),
        fragment.term_id(),
    );
    assert_eq!(ids, (SESSION, STREAM, INITIAL_TERM));
}

#[test]
fn an_aborted_or_dropped_claim_is_padding_and_a_detached_claim_can_be_committed_01_60() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.try_claim(NO_LIMIT, 50).unwrap().abort();
    drop(appender.try_claim(NO_LIMIT, 1).unwrap());
    let detached = appender.try_claim(NO_LIMIT, 3).unwrap().detach();
    assert_eq!(log.term(0).load_i32_relaxed(96 + 64), -35);
    let claim = detached.attach(&log);
    claim.put(0, b"abc");
    assert_eq!(claim.commit(), 224);
    assert_eq!(frames_of(&log), [(160, 35, 0xC0)]);
    // Type PAD, and the claimed lengths.
    assert_eq!(log.term(0).load_i64_relaxed(0), 0xC0 << 40 | 82);
    assert_eq!(log.term(0).load_i64_relaxed(96), 0xC0 << 40 | 33);
}

#[test]
#[should_panic(expected = "outside a claim of 5 bytes")]
fn bytes_outside_a_claim_are_not_written() {
    let log = log();
    let appender = ConcurrentAppender::new(log);
    appender.try_claim(NO_LIMIT, 5).unwrap().put(3, b"abc");
}

/// The supplier of the reserved value is called for each fragment, after the payload of the fragment was written.
#[test]
fn the_reserved_value_supplier_is_called_for_each_fragment_after_its_payload_is_copied_01_62() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    let message: Vec<u8> = (0..3000).map(|i| (i / 7) as u8).collect();
    let sum = |bytes: Vec<u8>| bytes.into_iter().map(i64::from).sum::<i64>();
    let mut asked = Vec::new();
    let supplier = |fragment: aeron_memory::log::LogFragment<'_, _>| {
        asked.push((fragment.offset(), fragment.frame_length()));
        sum(fragment.to_vec())
    };
    appender
        .offer_with(NO_LIMIT, &message[..], supplier)
        .unwrap();
    assert_eq!(asked, [(0, 1408), (1408, 1408), (2816, 280)]);
    let mut cursor = log.cursor(0).unwrap();
    while let Some(fragment) = cursor.next_fragment().unwrap() {
        assert_eq!(fragment.reserved_value(), sum(fragment.to_vec()));
    }
}

/// Frames can be appended up to the maximum position. Then each offer returns `MaxPositionExceeded`.
#[test]
fn a_frame_may_end_exactly_at_the_maximum_position_and_none_after_it_01_66() {
    let max = log().positions().max_position();
    let end_of_last_term = |offset| RawTail::new(INITIAL_TERM.wrapping_add(i32::MAX), offset);
    let tail = |log: &Log| log.metadata().tail(i32::MAX as usize % 3);

    let own = log_of(&description(), max - 192);
    let mut exclusive = ExclusiveAppender::new(own.clone()).unwrap();
    for left in [128, 64, 0] {
        assert_eq!(exclusive.offer(NO_LIMIT, &[0; 32]), Ok(max - left));
    }
    for _ in 0..3 {
        let refused = exclusive.offer(NO_LIMIT, &[0; 32]);
        assert_eq!(refused, Err(AppendError::MaxPositionExceeded));
        assert_eq!(tail(&own), end_of_last_term(65_600));
    }

    let shared = log_of(&description(), max - 192);
    let concurrent = ConcurrentAppender::new(shared.clone());
    for left in [128, 64, 0] {
        assert_eq!(concurrent.offer(NO_LIMIT, &[0; 32]), Ok(max - left));
    }
    for _ in 0..3 {
        let refused = concurrent.offer(NO_LIMIT, &[0; 32]);
        assert_eq!(refused, Err(AppendError::MaxPositionExceeded));
        assert!(tail(&shared).unclamped_offset() <= 65_600);
        assert_eq!(shared.metadata().active_term_count(), i32::MAX);
    }
}

#[test]
fn a_message_too_long_for_the_maximum_position_pads_the_last_term_01_66() {
    let max = log().positions().max_position();
    let (shared, own) = (
        log_of(&description(), max - 64),
        log_of(&description(), max - 64),
    );
    let concurrent = ConcurrentAppender::new(shared.clone());
    let mut exclusive = ExclusiveAppender::new(own.clone()).unwrap();
    for _ in 0..3 {
        let refused = Err(AppendError::MaxPositionExceeded);
        assert_eq!(concurrent.offer(NO_LIMIT, &[0; 64]), refused);
        assert_eq!(exclusive.offer(NO_LIMIT, &[0; 64]), refused);
        assert_eq!((concurrent.position(), exclusive.position()), (max, max));
    }
    assert!(terms_of(&shared) == terms_of(&own));
    let (payloads, end) = read_all(&own, max - 64);
    assert!(payloads.is_empty());
    assert_eq!(end, max);
}

/// At the limit, a message that would reach the end of the stream gets `MaxPositionExceeded` instead of back pressure.
#[test]
fn near_the_maximum_position_the_error_is_not_back_pressure_01_66() {
    let max = log().positions().max_position();
    let log = log_of(&description(), max - 96);
    let concurrent = ConcurrentAppender::new(log.clone());
    let mut exclusive = ExclusiveAppender::new(log).unwrap();
    let at_limit = max - 96;
    // With header and alignment, 32 bytes of payload use 64 bytes, and 64 bytes use 96. Only 96 bytes are left.
    for (length, error) in [
        (32, AppendError::BackPressured),
        (33, AppendError::MaxPositionExceeded),
        (64, AppendError::MaxPositionExceeded),
    ] {
        let message = vec![0; length];
        assert_eq!(concurrent.offer(at_limit, &message), Err(error), "{length}");
        assert_eq!(exclusive.offer(at_limit, &message), Err(error), "{length}");
    }
}

#[test]
fn an_exclusive_publisher_moves_the_tail_of_a_full_term_past_its_end_01_65() {
    let log = log_of(&description(), TERM as i64 - 64);
    let mut exclusive = ExclusiveAppender::new(log.clone()).unwrap();
    let result = exclusive.offer(NO_LIMIT, &[0; 100]);
    assert_eq!(result, Err(AppendError::AdminAction));
    let tail = |partition| log.metadata().tail(partition);
    assert_eq!(tail(0), RawTail::new(INITIAL_TERM, TERM + 96));
    assert_eq!(tail(1), RawTail::new(INITIAL_TERM + 1, 0));
    assert_eq!(log.metadata().active_term_count(), 1);
    assert_eq!((exclusive.term_id(), exclusive.term_offset()), (8, 0));
    assert_eq!(exclusive.position(), TERM as i64);
}

#[test]
fn a_tail_off_the_frame_boundaries_is_an_error_and_writes_nothing() {
    let (memory, log) = log_in_memory();
    let appender = ConcurrentAppender::new(log.clone());
    let set_tail = |tail: RawTail| memory.store_i64_release(3 * TERM, tail.0);
    set_tail(RawTail::new(INITIAL_TERM, 20));
    let error = appender.offer(NO_LIMIT, &[1; 5]).unwrap_err();
    assert!(matches!(error, AppendError::Corrupt(_)), "{error}");
    assert!(ExclusiveAppender::new(log.clone()).is_err());
    assert!(terms_of(&log).iter().all(|byte| *byte == 0));
}

#[test]
fn a_tail_of_another_term_than_the_active_one_is_an_admin_action() {
    let (memory, log) = log_in_memory();
    let appender = ConcurrentAppender::new(log);
    memory.store_i64_release(3 * TERM, RawTail::new(INITIAL_TERM - 3, 0).0);
    let error = appender.offer(NO_LIMIT, &[1; 5]).unwrap_err();
    assert_eq!(error, AppendError::AdminAction);
}

#[test]
fn many_publishers_lose_and_duplicate_no_message_over_many_rotations_01_64() {
    const EACH: u32 = 20_000;
    let started = Instant::now();
    let check_time = move || assert!(started.elapsed() < Duration::from_secs(60), "stuck");
    let log = log();
    let consumed = std::sync::atomic::AtomicI64::new(0);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for publisher in 0..3u32 {
            let appender = ConcurrentAppender::new(log.clone());
            let consumed = &consumed;
            scope.spawn(move || {
                for count in 0..EACH {
                    let mut message = vec![0; 8 + (count as usize * 37) % 300];
                    message[..4].copy_from_slice(&publisher.to_le_bytes());
                    message[4..8].copy_from_slice(&count.to_le_bytes());
                    let limit = || consumed.load(order) + TERM as i64 / 2;
                    while appender.offer(limit(), &message).is_err() {
                        check_time();
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0u32; 3];
        let (mut position, mut cleaned) = (0, 0);
        while next != [EACH; 3] {
            let mut cursor = log.cursor(position).unwrap();
            while let Some(fragment) = cursor.next_fragment().unwrap() {
                let payload = fragment.to_vec();
                let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().unwrap());
                let (publisher, count) = (word(0) as usize, word(4));
                assert_eq!(count, next[publisher]);
                assert_eq!(payload.len(), 8 + (count as usize * 37) % 300);
                next[publisher] += 1;
            }
            if cursor.position() == position {
                check_time();
                std::thread::yield_now();
            }
            position = cursor.position();
            while cleaned < position {
                cleaned = clean(&log, cleaned, position);
            }
            consumed.store(position, order);
        }
        assert_eq!(position, log.producer_position());
        assert!(position > 4 * TERM as i64);
    });
}

proptest! {
    #[test]
    fn a_message_in_parts_equals_the_message_in_one_piece_01_61(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1500), 0..6),
    ) {
        let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let whole = parts.concat();
        let (in_parts, in_one) = (log(), log());
        let results = (
            ConcurrentAppender::new(in_parts.clone()).offer_parts(NO_LIMIT, &borrowed),
            ConcurrentAppender::new(in_one.clone()).offer(NO_LIMIT, &whole),
        );
        prop_assert_eq!(results.0, results.1);
        prop_assert!(terms_of(&in_parts) == terms_of(&in_one));

        let exclusive = log();
        let mut appender = ExclusiveAppender::new(exclusive.clone()).unwrap();
        let length = |fragment: aeron_memory::log::LogFragment<'_, _>| fragment.frame_length() as i64;
        appender.offer_with(NO_LIMIT, Parts::new(&borrowed), length).unwrap();
        let (payloads, _) = read_all(&exclusive, 0);
        prop_assert_eq!(payloads.concat(), whole);
    }
}
