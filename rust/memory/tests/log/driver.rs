//! Tests of the driver's operations on logs: unblocking, cleaning, scanning, rebuilding.

use aeron_memory::log::clean::clean;
use aeron_memory::log::gap::{self, Gap, Scanned};
use aeron_memory::log::rebuild::insert;
use aeron_memory::log::scan::{Available, scan};
use aeron_memory::log::unblock::unblock;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender, LogBuffers, RawTail};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

use crate::log::common::*;

#[test]
fn unblocking_changes_the_captured_term_as_the_real_driver_does_01_74() {
    let memory = SharedBuffer::heap(3 * TERM + 4096);
    memory.copy_in(0, &vector("unblock-term0-before.bin"));
    memory.copy_in(3 * TERM, &vector("unblock-meta.bin"));
    let log = LogBuffers::attach(&memory).unwrap();
    assert!(!unblock(&log, 0));
    assert!(unblock(&log, 64));
    assert!(!unblock(&log, 128));
    assert!(unblock(&log, 192));
    assert_eq!(bytes_of(&memory, 0, 512), vector("unblock-term0-after.bin"));
}

#[test]
fn cleaning_zeroes_up_to_the_target_and_at_most_one_term_01_75() {
    let log = log();
    for partition in 0..3 {
        log.term(partition).copy_in(0, &[0xFF; TERM]);
    }
    assert_eq!(clean(&log, 0, 0), 0);
    assert_eq!(clean(&log, 0, 96), 96);
    assert_eq!(bytes_of(log.term(0), 0, 96), [0; 96]);
    assert_eq!(bytes_of(log.term(0), 96, TERM - 96), [0xFF; TERM - 96]);
    assert_eq!(clean(&log, 96, 2 * TERM as i64), TERM as i64);
    assert_eq!(bytes_of(log.term(0), 0, TERM), [0; TERM]);
    assert_eq!(bytes_of(log.term(1), 0, TERM), [0xFF; TERM]);
    assert_eq!(clean(&log, 96, 64), 96);
}

/// The target position may come from another process, so it may have any value.
#[test]
fn cleaning_stops_at_a_frame_boundary_for_any_target() {
    let log = log();
    assert_eq!(clean(&log, 0, 1), 0);
    assert_eq!(clean(&log, 0, 33), 32);
    assert_eq!(clean(&log, 32, i64::MAX), TERM as i64);
    assert_eq!(clean(&log, 32, i64::MIN), 32);
}

#[test]
fn the_last_claim_is_not_unblocked_however_long_it_takes_01_74() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    appender.offer(NO_LIMIT, b"a").unwrap();
    claim_and_die(&log, 128);
    assert!(
        !unblock(&log, 64),
        "a claim that reaches the tail may belong to a slow publisher"
    );
    appender.offer(NO_LIMIT, b"b").unwrap();
    assert!(
        unblock(&log, 64),
        "a later frame shows where the claim ends"
    );
    let payloads = vec![b"a".to_vec(), b"b".to_vec()];
    assert_eq!(read_all(&log, 0), (payloads, 256));
    assert!(!unblock(&log, 256), "nothing is claimed at the tail");
}

/// Simulates a publisher that dies directly after it claimed `length` bytes.
fn claim_and_die(log: &Log, length: usize) {
    let appender = ConcurrentAppender::new(log.clone());
    let claim = appender.try_claim(NO_LIMIT, length - 32).unwrap();
    let offset = claim.payload_offset() - 32;
    let term = claim.term().clone();
    let _ = claim.detach();
    term.fill_zero(offset, 32);
}

#[test]
fn the_end_of_a_term_that_a_dead_publisher_claimed_is_padded_and_the_log_rotates_01_74() {
    let start = TERM as i64 - 128;
    let log = log_of(&description(), start);
    claim_and_die(&log, 128);
    assert!(unblock(&log, start));
    assert_eq!(read_all(&log, start), (vec![], TERM as i64));
    assert_eq!(log.metadata().active_term_count(), 1);
    assert_eq!(log.metadata().tail(1), RawTail::new(INITIAL_TERM + 1, 0));
    assert_eq!(
        ConcurrentAppender::new(log).offer(NO_LIMIT, b"x"),
        Ok(TERM as i64 + 64)
    );
}

#[test]
fn unblocking_completes_the_rotation_of_a_dead_publisher_01_74() {
    let (memory, log) = log_in_memory();
    let appender = ConcurrentAppender::new(log.clone());
    let mut last = Ok(0);
    while last.is_ok() {
        last = appender.offer(NO_LIMIT, &[1; 1000]);
    }
    assert_eq!(last, Err(AppendError::AdminAction));
    // Undo the rotation: the publisher only padded its term.
    memory.store_i64_relaxed(3 * TERM + 8, RawTail::new(INITIAL_TERM - 2, 0).0);
    memory.store_i32_relaxed(3 * TERM + 24, 0);
    assert!(
        !unblock(&log, TERM as i64 + 32),
        "only the start of the next term is a blocked position"
    );
    assert!(unblock(&log, TERM as i64));
    assert_eq!(log.metadata().active_term_count(), 1);
    assert_eq!(log.metadata().tail(1), RawTail::new(INITIAL_TERM + 1, 0));
    assert!(!unblock(&log, TERM as i64));

    // Second case: the publisher died between the two steps of the rotation.
    memory.store_i32_relaxed(3 * TERM + 24, 0);
    assert!(unblock(&log, TERM as i64));
    assert_eq!(log.metadata().active_term_count(), 1);
    assert_eq!(log.metadata().tail(1), RawTail::new(INITIAL_TERM + 1, 0));
    assert_eq!(appender.offer(NO_LIMIT, b"x"), Ok(TERM as i64 + 64));
}

#[test]
fn a_scan_returns_whole_frames_up_to_the_limit_01_71() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    for _ in 0..4 {
        appender.offer(NO_LIMIT, &[0; 100]).unwrap();
    }
    let frames = |length, is_full| {
        Ok(Available::Frames {
            length,
            padding: 0,
            is_full,
        })
    };
    assert_eq!(scan(&log, 0, 1408), frames(640, false));
    assert_eq!(scan(&log, 0, 640), frames(640, true));
    assert_eq!(scan(&log, 0, 639), frames(480, true));
    assert_eq!(scan(&log, 160, 160), frames(160, true));
    assert_eq!(scan(&log, 0, 159), Ok(Available::TooLong(160)));
    assert_eq!(scan(&log, 0, 0), frames(0, true));
    assert_eq!(scan(&log, 640, 1408), frames(0, false));
    let claim = appender.try_claim(NO_LIMIT, 10).unwrap();
    assert_eq!(scan(&log, 480, 1408), frames(160, false));
    claim.commit();
    assert_eq!(scan(&log, 480, 1408), frames(224, false));
}

#[test]
fn a_scan_returns_only_the_header_of_padding_and_ends_there_01_71() {
    let start = TERM as i64 - 256;
    let log = log_of(&description(), start);
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.offer(NO_LIMIT, &[0; 32]).unwrap();
    let _ = appender.offer(NO_LIMIT, &[0; 1000]);
    appender.offer(NO_LIMIT, &[0; 1000]).unwrap();
    let frames = |length, padding, is_full| {
        Ok(Available::Frames {
            length,
            padding,
            is_full,
        })
    };
    assert_eq!(scan(&log, start, 1408), frames(96, 160, true));
    assert_eq!(scan(&log, start, 96), frames(96, 160, true));
    assert_eq!(scan(&log, start, 95), frames(64, 0, true));
    assert_eq!(scan(&log, start + 64, 32), frames(32, 160, true));
    assert_eq!(scan(&log, start + 64, 31), Ok(Available::TooLong(32)));
    assert_eq!(scan(&log, TERM as i64, 1408), frames(1056, 0, false));
}

#[test]
fn a_scan_of_an_impossible_length_is_an_error() {
    let log = log();
    for wrong in [5, TERM as i32 + 32, i32::MAX] {
        log.term(0).store_i32_relaxed(0, wrong);
        assert_eq!(scan(&log, 0, 1408).unwrap_err().value, i64::from(wrong));
        assert_eq!(
            gap::scan(log.term(0), 0, 0, TERM).unwrap_err().value,
            i64::from(wrong)
        );
    }
}

#[test]
fn a_datagram_is_inserted_once_01_72() {
    let sent = log();
    let appender = ConcurrentAppender::new(sent.clone());
    appender.offer(NO_LIMIT, b"one").unwrap();
    appender.offer(NO_LIMIT, b"two").unwrap();
    let datagram = bytes_of(sent.term(0), 0, 128);

    let image = log();
    assert!(insert(image.term(0), 0, &datagram));
    assert_eq!(bytes_of(image.term(0), 0, 128), datagram);
    let mut other = datagram.clone();
    other[32] = b'X';
    assert!(
        !insert(image.term(0), 0, &other),
        "a frame already begins at this offset"
    );
    assert_eq!(bytes_of(image.term(0), 0, 128), datagram);
    assert_eq!(read_all(&image, 0).0, [b"one", b"two"]);

    let image = log();
    assert!(insert(image.term(0), 64, &datagram[64..]));
    assert!(insert(image.term(0), 0, &datagram[..64]));
    assert_eq!(read_all(&image, 0).0, [b"one", b"two"]);
}

#[test]
fn a_datagram_that_cannot_be_inserted_is_ignored_01_72() {
    let image = log();
    let mut frame = [0; 64];
    frame[0] = 40;
    let term = image.term(0);
    assert!(!insert(term, 0, &frame[..31]), "shorter than a header");
    assert!(!insert(term, 0, &[0; 32]), "a heartbeat");
    assert!(!insert(term, 16, &frame), "not on a boundary");
    assert!(!insert(term, TERM - 32, &frame), "beyond the end");
    assert!(!insert(term, TERM + 32, &frame), "after the end");
    assert!(
        !insert(term, usize::MAX - 31, &frame),
        "an offset far outside the term"
    );
    frame[0..4].copy_from_slice(&(-40i32).to_le_bytes());
    assert!(!insert(term, 0, &frame), "a negative frame length");
    assert!(terms_of(&image).iter().all(|byte| *byte == 0));
}

/// Returns a log whose first term has the captured bytes of an image.
fn captured_image(name: &str) -> Log {
    let log = log();
    log.term(0).copy_in(0, &vector(name));
    log
}

#[test]
fn the_first_gap_of_the_capture_is_found_01_73() {
    let expected = &expectation("image-reliable.json")["gap_scan"];
    let image = captured_image("image-reliable-term0.bin");
    let at = |key: &str| int(&expected[key]) as usize;
    let scanned = gap::scan(image.term(0), 0, at("scan_from"), at("limit")).unwrap();
    let gap = Gap {
        offset: at("gap_offset"),
        length: at("gap_length"),
    };
    let complete = gap.offset;
    assert_eq!(
        scanned,
        Scanned {
            complete,
            gap: Some(gap)
        }
    );
}

#[test]
fn a_scan_without_a_gap_may_end_beyond_its_limit_01_73() {
    let log = log();
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    appender.offer(NO_LIMIT, b"a").unwrap();
    appender.append_padding(NO_LIMIT, 1000).unwrap();
    let complete = |complete| {
        Ok(Scanned {
            complete,
            gap: None,
        })
    };
    assert_eq!(gap::scan(log.term(0), 0, 0, 64), complete(64));
    assert_eq!(gap::scan(log.term(0), 0, 0, 96), complete(1120));
    let missing = |offset, length| Scanned {
        complete: offset,
        gap: Some(Gap { offset, length }),
    };
    assert_eq!(gap::scan(log.term(0), 0, 0, 1152), Ok(missing(1120, 32)));
    let all = gap::scan(log.term(0), 0, 0, usize::MAX).unwrap();
    assert_eq!(all, missing(1120, TERM - 1120));
}

#[test]
fn filling_the_captured_gaps_writes_the_captured_padding_01_73() {
    let expected = expectation("image-unreliable.json");
    let filled = vector("image-unreliable-term0.bin");
    let meta = captured_image("image-unreliable-term0.bin");
    // The ids that the driver used. Every frame of the capture has them, so the first frame is enough.
    let mut ids = description();
    ids.session_id = meta.term(0).load_i32_relaxed(12);
    ids.stream_id = meta.term(0).load_i32_relaxed(16);
    ids.initial_term_id = meta.term(0).load_i32_relaxed(20);
    let image = log_of(&ids, 0);
    image.term(0).copy_in(0, &filled);
    let slots = expected["slots"].as_array().unwrap();
    let mut gaps = 0;
    for slot in slots.iter().filter(|slot| int(&slot["type"]) == 0) {
        let (offset, length) = (
            int(&slot["offset"]) as usize,
            int(&slot["frame_length"]) as usize,
        );
        if length == 0 {
            continue;
        }
        image.term(0).fill_zero(offset, 32);
        let gap = Gap { offset, length };
        assert!(gap::fill(&image, ids.initial_term_id, gap));
        assert!(
            !gap::fill(&image, ids.initial_term_id, gap),
            "a filled gap must not be filled again"
        );
        gaps += 1;
    }
    assert!(gaps > 1);
    assert_eq!(bytes_of(image.term(0), 0, filled.len()), filled);
    let delivered = int(&expected["messages_delivered_to_the_subscriber"]) as usize;
    assert_eq!(read_all(&image, 0).0.len(), delivered);
}

#[test]
fn a_gap_in_which_data_arrived_is_not_filled_01_73() {
    let log = log();
    let gap = Gap {
        offset: 64,
        length: 256,
    };
    for arrived in [64, 160, 288] {
        log.term(0).store_i32_relaxed(arrived, 40);
        assert!(!gap::fill(&log, INITIAL_TERM, gap));
        log.term(0).store_i32_relaxed(arrived, 0);
    }
    for (offset, length) in [
        (32, 0),
        (16, 32),
        (32, 16),
        (TERM - 32, 64),
        (32, usize::MAX - 31),
    ] {
        assert!(!gap::fill(&log, INITIAL_TERM, Gap { offset, length }));
    }
    assert!(terms_of(&log).iter().all(|byte| *byte == 0));
    assert!(gap::fill(&log, INITIAL_TERM, gap));
}

/// A piece of a term: a frame with a payload of this many bytes, or a hole of this many bytes.
#[derive(Debug, Clone)]
enum Piece {
    Frame(usize),
    Hole(usize),
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        3 => (0usize..200).prop_map(Piece::Frame),
        1 => (1usize..8).prop_map(|slots| Piece::Hole(32 * slots)),
    ];
    prop::collection::vec(piece, 0..40)
}

proptest! {
    #[test]
    fn a_gap_scan_finds_the_first_hole_and_its_length_01_73(pieces in pieces()) {
        let log = log();
        let (mut at, mut hole, mut hole_ended) = (0usize, None::<Gap>, false);
        for piece in &pieces {
            match piece {
                Piece::Frame(length) => {
                    let mut frame = vec![0; 32 + length];
                    frame[..4].copy_from_slice(&(32 + *length as i32).to_le_bytes());
                    prop_assert!(insert(log.term(0), at, &frame));
                    at += frame.len().next_multiple_of(32);
                    hole_ended |= hole.is_some();
                }
                Piece::Hole(length) => {
                    if !hole_ended {
                        let gap = hole.get_or_insert(Gap { offset: at, length: 0 });
                        gap.length += length;
                    }
                    at += length;
                }
            }
        }
        let scanned = gap::scan(log.term(0), 0, 0, at).unwrap();
        prop_assert_eq!(scanned.gap, hole);
        prop_assert_eq!(scanned.complete, hole.map_or(at, |gap| gap.offset));
        if let Some(gap) = hole {
            prop_assert!(gap::fill(&log, INITIAL_TERM, gap));
            let scanned = gap::scan(log.term(0), 0, 0, at).unwrap();
            prop_assert!(scanned.complete >= gap.offset + gap.length);
        }
    }

    /// Publishers claim one after the other, and some die. The driver unblocks at the subscriber's position until all
    /// claims are readable.
    #[test]
    fn unblocking_makes_all_messages_of_living_publishers_readable_01_74(
        claims in prop::collection::vec((0usize..300, 0..3u8), 1..60),
    ) {
        let log = log();
        let appender = ConcurrentAppender::new(log.clone());
        let mut expected = Vec::new();
        for (index, (length, fate)) in claims.iter().enumerate() {
            let message = vec![index as u8 + 1; *length];
            match fate {
                0 => claim_and_die(&log, (length + 32).next_multiple_of(32)),
                1 => {
                    let claim = appender.try_claim(NO_LIMIT, *length).unwrap();
                    claim.put(0, &message);
                    let _ = claim.detach();
                }
                _ => {
                    appender.offer(NO_LIMIT, &message).unwrap();
                    expected.push(message);
                }
            }
        }
        // A living publisher appends last, so that no dead claim reaches the tail.
        appender.offer(NO_LIMIT, b"end").unwrap();
        expected.push(b"end".to_vec());
        let (mut payloads, mut position) = (Vec::new(), 0);
        for _ in 0..=claims.len() {
            let (more, end) = read_all(&log, position);
            payloads.extend(more);
            position = end;
            unblock(&log, position);
        }
        prop_assert_eq!(payloads, expected);
        prop_assert_eq!(position, log.producer_position());
        prop_assert!(!unblock(&log, position));
    }

    /// For any bytes in the log, the driver's operations return and do not leave the log.
    #[test]
    fn no_bytes_make_the_driver_panic(
        words in prop::collection::vec((0usize..TERM / 4, prop_oneof![any::<i32>(), -5000..5000i32]), 0..200),
        tails in prop::array::uniform3(any::<i64>()),
        count in any::<i32>(),
        position in prop_oneof![any::<i64>(), 0i64..4 * TERM as i64],
    ) {
        let (memory, log) = log_in_memory();
        for (word, value) in &words {
            for partition in 0..3 {
                log.term(partition).store_i32_relaxed(4 * word, *value);
            }
        }
        for (partition, tail) in tails.into_iter().enumerate() {
            memory.store_i64_relaxed(3 * TERM + 8 * partition, tail);
        }
        memory.store_i32_relaxed(3 * TERM + 24, count);
        let _ = log.producer_position();
        let _ = unblock(&log, position);
        let _ = scan(&log, position, 1408);
        let _ = gap::scan(log.term(0), 0, log.positions().term_offset(position) & !31, TERM);
        let _ = ConcurrentAppender::new(log.clone()).offer(position, b"x");
        if let Ok(mut appender) = ExclusiveAppender::new(log.clone()) {
            let _ = appender.offer(position, b"x");
        }
        let clean_position = position & (4 * TERM as i64 - 1) & !31;
        prop_assert!(clean(&log, clean_position, position) >= clean_position);
    }

    #[test]
    fn cleaning_in_steps_equals_cleaning_at_once_01_75(targets in prop::collection::vec(0i64..2000, 1..20)) {
        let log = log();
        for partition in 0..3 {
            log.term(partition).copy_in(0, &[0xEE; TERM]);
        }
        let (mut cleaned, mut target) = (0, 0);
        for step in targets {
            target += 32 * step;
            let target = target.min(3 * TERM as i64);
            while cleaned < target {
                let before = cleaned;
                cleaned = clean(&log, cleaned, target);
                prop_assert!(cleaned > before && cleaned <= target);
                prop_assert_eq!(before / TERM as i64, (cleaned - 1) / TERM as i64, "one call cleaned two terms");
            }
            let (clean, dirty) = (cleaned as usize, 3 * TERM - cleaned as usize);
            let expected = [vec![0; clean], vec![0xEE; dirty]].concat();
            prop_assert!(terms_of(&log) == expected);
        }
    }
}
