//! Runs log buffers in the model checker. Subscribers read only complete messages, a batch becomes visible at once, and
//! publishers rotate the log once. An unblocked range is exactly one claim, and no old data follows the last frame.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p aeron-memory --release --test loom_log`.
#![cfg(loom)]

#[path = "loom_support/mod.rs"]
mod support;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_layout::frame::{FirstWord, place_word, stream_word};
use aeron_memory::Words;
use aeron_memory::log::append::FilledBlock;
use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::{flags, frame_type};
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_memory::log::rebuild::insert;
use aeron_memory::log::scan::{Available, scan};
use aeron_memory::log::unblock::unblock;
use aeron_memory::log::{
    AppendError, ConcurrentAppender, ExclusiveAppender, Framing, LogBuffers, Positions, RawTail,
};
use aeron_memory::loom_words::{LoomWords, ModelLayout, Weakness};
use loom::thread;

use support::{check, check_fails};

/// A term has room for four frames with a payload of up to 32 bytes.
const TERM: usize = 256;
const METADATA: usize = 3 * TERM;
const ACTIVE_TERM_COUNT: usize = METADATA + 24;
const TAILS_AND_COUNT: Range<usize> = METADATA..ACTIVE_TERM_COUNT + 4;
/// Location of the publishers' limit in the model: an unused part of the metadata.
const LIMIT: usize = METADATA + 1024;

const NO_LIMIT: i64 = i64::MAX;

type Log = LogBuffers<LoomWords>;

/// Creates the memory of a log that starts at `start`. The model contains the first `terms` partitions and a part of
/// the metadata.
fn words(terms: usize, start: i64) -> LoomWords {
    let words = ModelLayout::new(METADATA + METADATA_LENGTH)
        .narrow(0..terms * TERM)
        .wide(METADATA)
        .wide(METADATA + 8)
        .wide(METADATA + 16)
        .narrow(ACTIVE_TERM_COUNT..ACTIVE_TERM_COUNT + 4)
        .wide(LIMIT)
        .build();
    let count = (start / TERM as i64) as i32;
    for (partition, tail) in [
        (count, RawTail::new(count, start as usize % TERM)),
        (count + 1, RawTail::new(count - 2, 0)),
        (count + 2, RawTail::new(count - 1, 0)),
    ] {
        words.store_i64_relaxed(METADATA + 8 * (partition as usize % 3), tail.0);
    }
    words.store_i32_relaxed(ACTIVE_TERM_COUNT, count);
    words
}

fn log(words: &LoomWords) -> Log {
    let framing = Framing::new(128, 8 * TERM).unwrap();
    LogBuffers::model(words, Positions::model(8), framing)
}

/// Opens the log for a thread, with one access weakened if requested.
fn log_with(words: &LoomWords, weakness: &Option<Weakness>) -> Log {
    match weakness {
        Some(weakness) => log(&words.weakened(weakness.clone())),
        None => log(words),
    }
}

/// Returns the payload of message k: all its bytes are k.
fn message(k: u8, length: usize) -> Vec<u8> {
    vec![k; length]
}

/// Returns the first bytes of the messages from `position` to the current end of the log. Checks that the messages are
/// complete.
fn read(log: &Log, position: &mut i64) -> Vec<u8> {
    let mut read = Vec::new();
    let mut cursor = log.cursor(*position).unwrap();
    while let Some(fragment) = cursor.next_fragment().expect("a frame is not whole") {
        let payload = fragment.to_vec();
        let header = (
            fragment.flags(),
            fragment.session_id(),
            fragment.stream_id(),
        );
        let is_whole = header == (0xC0, 1, 2)
            && !payload.is_empty()
            && payload.iter().all(|byte| *byte == payload[0] && *byte > 0);
        assert!(is_whole, "a message is not whole: {header:?} {payload:?}");
        read.push(payload[0]);
    }
    *position = cursor.position();
    read
}

/// A publisher offers a message while a subscriber reads.
fn publisher_and_subscriber(publishing: Option<Weakness>, reading: Option<Weakness>) {
    let words = words(1, 0);
    let subscriber = log_with(&words, &reading);
    let subscription = thread::spawn(move || read(&subscriber, &mut 0));
    let publisher = ConcurrentAppender::new(log_with(&words, &publishing));
    publisher.offer(NO_LIMIT, &message(1, 8)).unwrap();
    let read = subscription.join().unwrap();
    assert!(read.is_empty() || read == [1]);
}

#[test]
fn a_subscriber_sees_a_message_whole_or_not_at_all() {
    check(|| publisher_and_subscriber(None, None));
}

#[test]
fn without_the_release_of_its_length_a_message_is_not_whole() {
    check_fails("not whole", || {
        publisher_and_subscriber(Some(Weakness::Release(0..4)), None);
    });
}

#[test]
fn without_the_acquire_of_its_length_a_message_is_not_whole() {
    check_fails("not whole", || {
        publisher_and_subscriber(None, Some(Weakness::Acquire(0..4)));
    });
}

/// A publisher appends two messages as one run while a subscriber reads.
fn batch_and_subscriber(publishing: Option<Weakness>, reading: Option<Weakness>) {
    let words = words(1, 0);
    let subscriber = log_with(&words, &reading);
    let subscription = thread::spawn(move || read(&subscriber, &mut 0));
    let mut publisher = ExclusiveAppender::new(log_with(&words, &publishing)).unwrap();
    let messages = [message(1, 4), message(2, 4)];
    let appended = publisher.offer_batch(NO_LIMIT, &messages[..], 0).unwrap();
    assert_eq!(appended.messages, 2);
    let read = subscription.join().unwrap();
    assert!(read.is_empty() || read == [1, 2], "half a run is visible");
}

#[test]
fn a_run_of_messages_is_visible_whole_or_not_at_all() {
    check(|| batch_and_subscriber(None, None));
}

#[test]
fn without_the_release_of_its_first_length_a_message_of_a_run_is_not_whole() {
    check_fails("not whole", || {
        batch_and_subscriber(Some(Weakness::Release(0..4)), None);
    });
}

#[test]
fn without_the_acquire_of_its_first_length_a_message_of_a_run_is_not_whole() {
    check_fails("not whole", || {
        batch_and_subscriber(None, Some(Weakness::Acquire(0..4)));
    });
}

/// A publisher writes a block of two frames into the term while a subscriber reads.
fn filled_block_and_subscriber(publishing: Option<Weakness>) {
    let words = words(1, 0);
    let subscriber = log_with(&words, &None);
    let subscription = thread::spawn(move || read(&subscriber, &mut 0));
    let mut publisher = ExclusiveAppender::new(log_with(&words, &publishing)).unwrap();
    let first_word = FirstWord::new(36, flags::UNFRAGMENTED, frame_type::DATA);
    let end = publisher.fill_block(NO_LIMIT, 192, |space| {
        let term = space.term();
        for (at, value) in [(0, 1), (64, 2)] {
            term.store_i64_relaxed(at + 8, place_word(at, 1) as i64);
            term.store_i64_relaxed(at + 16, stream_word(2, 0) as i64);
            term.copy_in(at + 32, &message(value, 4));
        }
        term.store_i64_relaxed(64, first_word.0);
        // The start of a frame that the block does not contain completely.
        term.store_i64_relaxed(128, first_word.0);
        Ok::<_, ()>(FilledBlock {
            length: 128,
            first_word,
        })
    });
    assert_eq!(end, Ok(128));
    let read = subscription.join().unwrap();
    assert!(read.is_empty() || read == [1, 2], "half a block is visible");
}

#[test]
fn a_filled_block_is_visible_whole_or_not_at_all() {
    check(|| filled_block_and_subscriber(None));
}

#[test]
fn without_the_release_of_its_first_word_a_filled_block_is_not_whole() {
    check_fails("not whole", || {
        filled_block_and_subscriber(Some(Weakness::Release(0..8)));
    });
}

/// A publisher offers a message while `look` reads the term in another way than a subscriber.
fn publisher_and(look: fn(&Log) -> Option<Vec<u8>>, looking: Option<Weakness>) {
    let words = words(1, 0);
    let looker = log_with(&words, &looking);
    let looks = thread::spawn(move || {
        if let Some(frame) = look(&looker) {
            let payload = frame.get(32..40);
            assert_eq!(payload, Some(&[1; 8][..]), "a frame is not whole");
        }
    });
    let publisher = ConcurrentAppender::new(log(&words));
    publisher.offer(NO_LIMIT, &message(1, 8)).unwrap();
    looks.join().unwrap();
}

/// The sender's scan for frames to send.
fn scan_to_send(log: &Log) -> Option<Vec<u8>> {
    match scan(log, 0, 128).expect("a frame is not whole") {
        Available::Frames { length: 0, .. } => None,
        Available::Frames { length, .. } => {
            let mut frame = vec![0; length];
            log.term(0).copy_out(0, &mut frame);
            Some(frame)
        }
        Available::TooLong(length) => panic!("a frame is not whole: {length}"),
    }
}

/// The block that a recorder copies.
fn read_block(log: &Log) -> Option<Vec<u8>> {
    let mut cursor = log.cursor(0).unwrap();
    let block = cursor.next_block(128).expect("a frame is not whole")?;
    let mut frames = vec![0; block.length()];
    block.term().copy_out(block.offset(), &mut frames);
    Some(frames)
}

#[test]
fn the_sender_sees_a_frame_whole_or_not_at_all() {
    check(|| publisher_and(scan_to_send, None));
}

#[test]
fn without_the_acquire_of_its_length_a_sent_frame_is_not_whole() {
    check_fails("not whole", || {
        publisher_and(scan_to_send, Some(Weakness::Acquire(0..4)));
    });
}

#[test]
fn a_recorder_sees_a_frame_whole_or_not_at_all() {
    check(|| publisher_and(read_block, None));
}

#[test]
fn without_the_acquire_of_its_length_a_recorded_frame_is_not_whole() {
    check_fails("not whole", || {
        publisher_and(read_block, Some(Weakness::Acquire(0..4)));
    });
}

/// A receiver stores a datagram of one frame while a subscriber reads.
fn datagram_and_subscriber(receiving: Option<Weakness>) {
    let words = words(1, 0);
    let subscriber = log(&words);
    let subscription = thread::spawn(move || read(&subscriber, &mut 0));
    let mut datagram = vec![0; 40];
    let first_word = FirstWord::new(40, flags::UNFRAGMENTED, frame_type::DATA);
    datagram[..8].copy_from_slice(&first_word.0.to_le_bytes());
    datagram[8..16].copy_from_slice(&place_word(0, 1).to_le_bytes());
    datagram[16..24].copy_from_slice(&stream_word(2, 0).to_le_bytes());
    datagram[32..].copy_from_slice(&message(1, 8));
    assert!(insert(log_with(&words, &receiving).term(0), 0, &datagram));
    let read = subscription.join().unwrap();
    assert!(read.is_empty() || read == [1]);
}

/// 01-72
#[test]
fn a_received_datagram_is_visible_whole_or_not_at_all() {
    check(|| datagram_and_subscriber(None));
}

#[test]
fn without_the_release_of_its_first_word_a_datagram_is_not_whole() {
    check_fails("not whole", || {
        datagram_and_subscriber(Some(Weakness::Release(0..8)));
    });
}

/// A receiver fills a gap with padding while a subscriber reads.
fn filled_gap_and_subscriber(receiving: Option<Weakness>) {
    let words = words(1, 0);
    let subscriber = log(&words);
    let subscription = thread::spawn(move || {
        let mut position = 0;
        assert!(read(&subscriber, &mut position).is_empty());
        if position == 96 {
            let session_id = subscriber.term(0).load_i32_relaxed(12);
            assert_eq!(session_id, 1, "a frame is not whole");
        }
    });
    let gap = Gap {
        offset: 0,
        length: 96,
    };
    assert!(gap::fill(&log_with(&words, &receiving), 0, gap));
    subscription.join().unwrap();
}

/// 01-73
#[test]
fn a_filled_gap_is_visible_whole_or_not_at_all() {
    check(|| filled_gap_and_subscriber(None));
}

#[test]
fn without_the_release_of_its_first_word_a_filled_gap_is_not_whole() {
    check_fails("not whole", || {
        filled_gap_and_subscriber(Some(Weakness::Release(0..8)));
    });
}

/// Offers until the message is appended.
fn offer_until_done(publisher: &ConcurrentAppender<LoomWords>, message: &[u8]) -> i64 {
    loop {
        match publisher.offer(NO_LIMIT, message) {
            Ok(position) => return position,
            Err(AppendError::AdminAction) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Two publishers each append a message near the end of a term, which has `room` free bytes. Returns whether the second
/// publisher's message comes first.
fn publishers_at_term_end(room: usize) -> bool {
    let start = (TERM - room) as i64;
    let words = words(2, start);
    let second = ConcurrentAppender::new(log(&words));
    let second = thread::spawn(move || offer_until_done(&second, &message(2, 4)));
    let first = ConcurrentAppender::new(log(&words));
    let first = offer_until_done(&first, &message(1, 4));
    let second = second.join().unwrap();

    let term = TERM as i64;
    let end = if room == 64 { term } else { term + 64 };
    assert_eq!([first.min(second), first.max(second)], [end, end + 64]);
    let log = log(&words);
    assert_eq!(log.metadata().active_term_count(), 1, "rotated twice");
    assert_eq!(log.metadata().tail(1).term_id(), 1);
    let mut position = start;
    let mut messages = read(&log, &mut position);
    messages.extend(read(&log, &mut position));
    messages.sort();
    assert_eq!(messages, [1, 2], "a message is lost or doubled");
    second < first
}

/// Explores the race, and checks that each publisher's message comes first in some execution.
fn check_race(room: usize, ahead: &'static [AtomicUsize; 2]) {
    check(move || {
        ahead[usize::from(publishers_at_term_end(room))].fetch_add(1, Ordering::Relaxed);
    });
    let ahead = ahead.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(ahead.into_iter().all(|count| count > 0), "{ahead:?}");
}

/// 01-64: one publisher pads, both must try again, and the log rotates once.
#[test]
fn publishers_that_race_beyond_a_term_end_rotate_once() {
    static AHEAD: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    check_race(32, &AHEAD);
}

/// 01-64
#[test]
fn publishers_that_race_for_the_last_place_rotate_once() {
    static AHEAD: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    check_race(64, &AHEAD);
}

/// A publisher rotates the log while the driver reads the producer position.
fn rotation(
    offer: fn(Log) -> Result<i64, AppendError>,
    publishing: Option<Weakness>,
    looking: Option<Weakness>,
) {
    let start = (TERM - 32) as i64;
    let words = words(2, start);
    let driver = log_with(&words, &looking);
    let look = thread::spawn(move || {
        let mut last = start;
        for _ in 0..2 {
            let position = driver.producer_position();
            assert!(position >= last, "the position ran backwards");
            last = position;
        }
    });
    let result = offer(log_with(&words, &publishing));
    assert_eq!(result, Err(AppendError::AdminAction));
    look.join().unwrap();
}

fn offer_concurrently(log: Log) -> Result<i64, AppendError> {
    ConcurrentAppender::new(log).offer(NO_LIMIT, &message(1, 4))
}

fn offer_exclusively(log: Log) -> Result<i64, AppendError> {
    let mut publisher = ExclusiveAppender::new(log).unwrap();
    publisher.offer(NO_LIMIT, &message(1, 4))
}

#[test]
fn the_position_of_publishers_never_runs_backwards() {
    check(|| rotation(offer_concurrently, None, None));
}

#[test]
fn without_the_order_of_rotation_the_position_runs_backwards() {
    check_fails("ran backwards", || {
        let weakness = Weakness::ReadModifyWrite(TAILS_AND_COUNT);
        rotation(offer_concurrently, Some(weakness), None);
    });
}

/// 01-65
#[test]
fn the_position_of_an_exclusive_publisher_never_runs_backwards() {
    check(|| rotation(offer_exclusively, None, None));
}

#[test]
fn without_the_release_of_the_term_count_the_position_runs_backwards() {
    check_fails("ran backwards", || {
        let weakness = Weakness::Release(TAILS_AND_COUNT);
        rotation(offer_exclusively, Some(weakness), None);
    });
}

#[test]
fn without_the_acquire_of_the_term_count_the_position_runs_backwards() {
    check_fails("ran backwards", || {
        let weakness = Weakness::Acquire(TAILS_AND_COUNT);
        rotation(offer_exclusively, None, Some(weakness));
    });
}

/// The driver unblocks the start of the log while a publisher appends there.
fn unblocking(
    append: fn(&ConcurrentAppender<LoomWords>),
    publishing: Option<Weakness>,
    unblocking: Option<Weakness>,
) {
    let words = words(1, 0);
    let driver = log_with(&words, &unblocking);
    let unblocked = thread::spawn(move || unblock(&driver, 0));
    append(&ConcurrentAppender::new(log_with(&words, &publishing)));
    let unblocked = unblocked.join().unwrap();
    let log = log(&words);
    let mut position = 0;
    let messages = read(&log, &mut position);
    let tail = log.metadata().tail(0).unclamped_offset();
    assert_eq!(position, tail as i64, "the claimed range is not whole");
    // If the driver unblocks a message while its publisher still appends it, the message may become padding.
    assert!(unblocked || !messages.is_empty());
}

fn append_long_message(publisher: &ConcurrentAppender<LoomWords>) {
    publisher.offer(NO_LIMIT, &message(1, 64)).unwrap();
}

fn append_run(publisher: &ConcurrentAppender<LoomWords>) {
    let messages = [message(1, 4), message(2, 4)];
    publisher.offer_batch(NO_LIMIT, &messages[..], 0).unwrap();
}

fn commit_claim(publisher: &ConcurrentAppender<LoomWords>) {
    let claim = publisher.try_claim(NO_LIMIT, 64).unwrap();
    claim.put(0, &message(1, 64));
    claim.commit();
}

/// 01-74
#[test]
fn a_message_is_unblocked_as_one_range() {
    check(|| unblocking(append_long_message, None, None));
}

#[test]
fn a_run_is_unblocked_as_one_range() {
    check(|| unblocking(append_run, None, None));
}

#[test]
fn a_claim_is_unblocked_as_one_range() {
    check(|| unblocking(commit_claim, None, None));
}

#[test]
fn without_the_fence_after_its_claim_a_part_of_a_run_is_unblocked() {
    check_fails("not whole", || {
        unblocking(append_run, Some(Weakness::ReleaseFence), None);
    });
}

#[test]
fn without_the_fence_after_its_claim_a_part_of_a_message_is_unblocked() {
    check_fails("not whole", || {
        unblocking(append_long_message, Some(Weakness::ReleaseFence), None);
    });
}

#[test]
fn without_the_acquire_of_the_found_length_a_part_of_a_message_is_unblocked() {
    check_fails("not whole", || {
        unblocking(append_long_message, None, Some(Weakness::Acquire(0..TERM)));
    });
}

/// The driver cleans a used term. Another thread checks: if the first word is clean, the rest must be clean too.
fn cleaning(driving: Option<Weakness>, looking: Option<Weakness>) {
    let words = words(1, 0);
    words.store_i32_relaxed(0, 32);
    words.store_i32_relaxed(32, 32);
    let looker = log_with(&words, &looking);
    let look = thread::spawn(move || {
        let term = looker.term(0);
        if term.load_i32_acquire(0) == 0 {
            assert_eq!(term.load_i32_relaxed(32), 0, "a stale frame follows");
        }
    });
    assert_eq!(
        clean(&log_with(&words, &driving), 0, TERM as i64),
        TERM as i64
    );
    look.join().unwrap();
}

/// 01-75
#[test]
fn bytes_after_a_cleaned_first_word_are_clean() {
    check(|| cleaning(None, None));
}

#[test]
fn without_the_release_of_the_first_word_a_stale_frame_follows() {
    check_fails("a stale frame", || {
        cleaning(Some(Weakness::Release(0..8)), None)
    });
}

#[test]
fn without_the_acquire_of_the_first_word_a_stale_frame_follows() {
    check_fails("a stale frame", || {
        cleaning(None, Some(Weakness::Acquire(0..8)))
    });
}

/// The log is in its fourth term, so partition 0 is used again. The driver cleans the old frame at offset 64 and raises
/// the limit. A publisher appends a message up to the limit. A subscriber reads this message and tries to read the next
/// one.
fn clean_append_and_read(driving: Option<Weakness>, publishing: Option<Weakness>) {
    let start = 3 * TERM as i64;
    let words = words(1, start);
    words.store_i64_relaxed(LIMIT, start);
    words.store_i64_relaxed(64, 64 | 1 << 48);
    let (limit, publisher) = match &publishing {
        Some(weakness) => (
            words.weakened(weakness.clone()),
            log_with(&words, &publishing),
        ),
        None => (words.clone(), log(&words)),
    };
    let publication = thread::spawn(move || {
        let limit = limit.load_i64_acquire(LIMIT);
        if limit > start {
            let publisher = ConcurrentAppender::new(publisher);
            publisher.offer(limit, &message(1, 4)).unwrap();
        }
    });
    let subscriber = log(&words);
    let subscription = thread::spawn(move || read(&subscriber, &mut start.clone()));
    let driver = log_with(&words, &driving);
    clean(&driver, 64, 128);
    let limit = driving.map_or(words.clone(), |weakness| words.weakened(weakness));
    limit.store_i64_release(LIMIT, start + 64);
    publication.join().unwrap();
    let read = subscription.join().unwrap();
    assert!(read.is_empty() || read == [1]);
}

/// 01-76
#[test]
fn no_stale_data_is_read_after_a_message_in_a_cleaned_term() {
    check(|| clean_append_and_read(None, None));
}

#[test]
fn without_the_release_of_the_limit_a_stale_frame_is_read() {
    check_fails("not whole", || {
        clean_append_and_read(Some(Weakness::Release(LIMIT..LIMIT + 8)), None);
    });
}

#[test]
fn without_the_acquire_of_the_limit_a_stale_frame_is_read() {
    check_fails("not whole", || {
        clean_append_and_read(None, Some(Weakness::Acquire(LIMIT..LIMIT + 8)));
    });
}
