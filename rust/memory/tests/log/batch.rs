//! Tests of batches: the log must be the same as after offering the messages one by one.

use aeron_memory::Words;
use aeron_memory::log::append::{Appended, FixedLengthMessages, MessageBatch};
use aeron_memory::log::unblock::unblock;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender};
use proptest::prelude::*;

use crate::log::common::*;

/// Calls `offer_batch` with the index of the next message until all messages are appended or it returns an error. After
/// `AdminAction`, calls it again. Returns the number of appended messages, the error, and the position.
fn append_all(
    count: usize,
    mut offer_batch: impl FnMut(usize) -> Result<Appended, AppendError>,
) -> (usize, Option<AppendError>, i64) {
    let (mut sent, mut position, mut ends_of_term) = (0, 0, 0);
    while sent < count {
        match offer_batch(sent) {
            Ok(appended) => {
                ends_of_term = 0;
                sent += appended.messages;
                position = appended.position;
            }
            Err(AppendError::AdminAction) => {
                ends_of_term += 1;
                assert_eq!(ends_of_term, 1, "the log does not rotate");
            }
            Err(error) => return (sent, Some(error), position),
        }
    }
    (sent, None, position)
}

fn one_by_one(messages: &[Vec<u8>], log: &Log, limit: i64) -> (usize, Option<AppendError>, i64) {
    let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
    append_all(messages.len(), |next| {
        let position = appender.offer(limit, &messages[next])?;
        let messages = 1;
        Ok(Appended { messages, position })
    })
}

proptest! {
    #[test]
    fn a_batch_writes_the_same_log_as_single_offers(
        lengths in prop::collection::vec(
            prop_oneof![4 => 0usize..200, 2 => 1000usize..1500, 1 => 1376usize..8193, 1 => 8193usize..9000],
            0..60,
        ),
        limit in prop_oneof![Just(NO_LIMIT), 0i64..100_000],
    ) {
        let messages: Vec<Vec<u8>> = lengths
            .iter()
            .enumerate()
            .map(|(index, length)| vec![index as u8 + 1; *length])
            .collect();
        let expected = log();
        let outcome = one_by_one(&messages, &expected, limit);

        let exclusive = log();
        let mut appender = ExclusiveAppender::new(exclusive.clone()).unwrap();
        let found = append_all(messages.len(), |next| {
            appender.offer_batch(limit, &messages[..], next)
        });
        prop_assert_eq!(found, outcome);
        prop_assert!(terms_of(&exclusive) == terms_of(&expected));

        let concurrent = log();
        let appender = ConcurrentAppender::new(concurrent.clone());
        let found = append_all(messages.len(), |next| {
            appender.offer_batch(limit, &messages[..], next)
        });
        prop_assert_eq!(found, outcome);
        prop_assert!(terms_of(&concurrent) == terms_of(&expected));
        for partition in 0..3 {
            prop_assert_eq!(concurrent.metadata().tail(partition), expected.metadata().tail(partition));
        }
    }

    /// A batch of fixed-length messages has the same result as offering the messages one by one.
    #[test]
    fn fixed_length_messages_write_the_same_log_as_single_offers(
        length in 0usize..1500,
        gap in 0usize..40,
        count in 0usize..60,
        limit in prop_oneof![Just(NO_LIMIT), 0i64..100_000],
    ) {
        let stride = length + gap;
        let bytes: Vec<u8> = (0..stride * count).map(|i| (i / 3) as u8).collect();
        let records = FixedLengthMessages::new(&bytes, length, stride, count).unwrap();
        let messages: Vec<Vec<u8>> = (0..count)
            .map(|index| bytes[index * stride..][..length].to_vec())
            .collect();
        let (expected, log) = (log(), log());
        let outcome = one_by_one(&messages, &expected, limit);
        let mut appender = ExclusiveAppender::new(log.clone()).unwrap();
        let found = append_all(count, |next| appender.offer_batch(limit, &records, next));
        prop_assert_eq!(found, outcome);
        prop_assert!(terms_of(&log) == terms_of(&expected));
    }
}

/// A batch in which the reserved value of each message depends on its index.
struct Reserved<'a> {
    messages: &'a [Vec<u8>],
    first_value: i64,
}

impl MessageBatch for Reserved<'_> {
    fn count(&self) -> usize {
        self.messages.len()
    }

    fn message(&self, index: usize) -> &[u8] {
        &self.messages[index]
    }

    fn reserved_value(&self, index: usize) -> i64 {
        self.first_value + index as i64
    }
}

proptest! {
    #[test]
    fn each_frame_of_a_batch_has_the_reserved_value_of_its_message(
        lengths in prop::collection::vec(prop_oneof![4 => 0usize..200, 1 => 1376usize..5000], 1..40),
        first_value in prop_oneof![Just(-3), Just(i64::MAX - 40)],
    ) {
        let messages: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
        let batch = Reserved { messages: &messages, first_value };
        let (expected, found) = (log(), log());
        let one_by_one = ConcurrentAppender::new(expected.clone());
        append_all(messages.len(), |next| {
            let value = batch.reserved_value(next);
            let position = one_by_one.offer_with(NO_LIMIT, &messages[next][..], |_| value)?;
            Ok(Appended { messages: 1, position })
        });
        let appender = ConcurrentAppender::new(found.clone());
        append_all(messages.len(), |next| appender.offer_batch(NO_LIMIT, &batch, next));
        prop_assert!(terms_of(&found) == terms_of(&expected));
    }
}

#[test]
fn records_that_do_not_fit_their_memory_are_refused() {
    let bytes = [0; 100];
    assert!(FixedLengthMessages::new(&bytes, 20, 40, 3).is_some());
    assert!(FixedLengthMessages::new(&bytes, 21, 40, 3).is_none());
    assert!(FixedLengthMessages::new(&bytes, 10, 40, 4).is_none());
    assert!(FixedLengthMessages::new(&bytes, 101, 0, 1).is_none());
    assert!(FixedLengthMessages::new(&bytes, 101, 1, 0).is_some());
    assert!(FixedLengthMessages::new(&bytes, 10, 0, usize::MAX).is_some());
    assert!(FixedLengthMessages::new(&bytes, 10, usize::MAX, 3).is_none());
    assert!(FixedLengthMessages::new(&bytes, usize::MAX, 1, 2).is_none());
}

#[test]
fn a_batch_that_fits_in_part_returns_the_number_of_appended_messages() {
    let start = TERM as i64 - 192;
    let log_at = |position| log_of(&description(), position);
    let messages = [[1u8; 32]; 5];

    // Three messages fit into the term.
    let mut appender = ExclusiveAppender::new(log_at(start)).unwrap();
    let appended = appender.offer_batch(NO_LIMIT, &messages[..], 0).unwrap();
    let position = TERM as i64;
    assert_eq!(
        appended,
        Appended {
            messages: 3,
            position
        }
    );
    // For the fourth message, the first call has rotated the log to the next term.
    let appended = appender.offer_batch(NO_LIMIT, &messages[..], 3).unwrap();
    let position = TERM as i64 + 128;
    assert_eq!((appended.messages, appended.position), (2, position));

    // No message fits: the batch returns the same error as a single message.
    let mut appender = ExclusiveAppender::new(log_at(TERM as i64 - 32)).unwrap();
    let refused = appender.offer_batch(NO_LIMIT, &messages[..], 0);
    assert_eq!(refused, Err(AppendError::AdminAction));

    // Two messages begin before the limit.
    let appender = ConcurrentAppender::new(log_at(start));
    let appended = appender.offer_batch(start + 65, &messages[..], 0).unwrap();
    let position = start + 128;
    assert_eq!(
        appended,
        Appended {
            messages: 2,
            position
        }
    );
    let refused = appender.offer_batch(start + 65, &messages[..], 2);
    assert_eq!(refused, Err(AppendError::BackPressured));
}

#[test]
fn a_batch_stops_before_a_message_that_is_too_long() {
    let log = log();
    let appender = ConcurrentAppender::new(log.clone());
    let messages = [vec![1; 10], vec![2; 8193], vec![3; 10]];
    let appended = appender.offer_batch(NO_LIMIT, &messages[..], 0).unwrap();
    assert_eq!(appended.messages, 1);
    let refused = appender
        .offer_batch(NO_LIMIT, &messages[..], 1)
        .unwrap_err();
    let (length, max) = (8193, 8192);
    assert_eq!(refused, AppendError::TooLong { length, max });
    assert_eq!(log.producer_position(), 64);
}

/// An empty batch, or an index after the last message, appends nothing and returns no error.
#[test]
fn an_empty_batch_appends_nothing() {
    let log = log();
    let none: [&[u8]; 0] = [];
    let nothing = Appended {
        messages: 0,
        position: 0,
    };
    let appender = ConcurrentAppender::new(log.clone());
    assert_eq!(appender.offer_batch(0, &none[..], 0), Ok(nothing));
    let mut appender = ExclusiveAppender::new(log).unwrap();
    assert_eq!(appender.offer_batch(0, &[b"a"][..], 1), Ok(nothing));
}

/// A batch whose publisher dies when it writes message `dies_at`: `message` panics.
struct Deadly<'a> {
    messages: &'a [Vec<u8>],
    dies_at: usize,
    asked: std::cell::Cell<usize>,
}

impl MessageBatch for Deadly<'_> {
    fn count(&self) -> usize {
        self.messages.len()
    }

    fn message(&self, index: usize) -> &[u8] {
        // Before the publisher writes the run, it has read each message once to plan the run, and the first message
        // twice more.
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > self.messages.len() + 2 + self.dies_at {
            std::panic::panic_any("the publisher dies");
        }
        &self.messages[index]
    }
}

/// A batch whose publisher dies directly after it wrote the payload of message `dies_behind`: `reserved_value` panics.
struct DeadlyBehind<'a> {
    messages: &'a [Vec<u8>],
    dies_behind: usize,
}

impl MessageBatch for DeadlyBehind<'_> {
    fn count(&self) -> usize {
        self.messages.len()
    }

    fn message(&self, index: usize) -> &[u8] {
        &self.messages[index]
    }

    fn reserved_value(&self, index: usize) -> i64 {
        if index == self.dies_behind {
            std::panic::panic_any("the publisher dies");
        }
        0
    }
}

#[test]
fn a_run_has_at_most_the_maximum_message_length_and_is_padded_as_a_whole_if_its_publisher_dies() {
    // With terms of 64 KiB, a message may have at most 8192 bytes.
    let messages = vec![vec![1; 992]; 40];
    for dies_behind in 0..8 {
        let log = log();
        let appender = ConcurrentAppender::new(log.clone());
        let batch = DeadlyBehind {
            messages: &messages,
            dies_behind,
        };
        let death = std::panic::AssertUnwindSafe(|| appender.offer_batch(NO_LIMIT, &batch, 0));
        std::panic::catch_unwind(death).unwrap_err();
        assert_eq!(log.term(0).load_i32_relaxed(0), -8192);
        appender.offer(NO_LIMIT, b"behind").unwrap();
        assert!(unblock(&log, 0));
        assert_eq!(read_all(&log, 0), (vec![b"behind".to_vec()], 8192 + 64));
    }
}

/// If a publisher dies while it writes a run, unblocking turns the whole run into one padding frame.
#[test]
fn the_whole_run_of_a_dead_publisher_is_padded() {
    let messages: Vec<Vec<u8>> = (0..20).map(|k| vec![k + 1; 40]).collect();
    let run_length = 20 * 96;
    for dies_at in 1..20 {
        let log = log();
        let appender = ConcurrentAppender::new(log.clone());
        appender.offer(NO_LIMIT, b"before").unwrap();
        let batch = Deadly {
            messages: &messages,
            dies_at,
            asked: Default::default(),
        };
        let death = std::panic::AssertUnwindSafe(|| appender.offer_batch(NO_LIMIT, &batch, 0));
        std::panic::catch_unwind(death).unwrap_err();
        assert_eq!(log.term(0).load_i32_relaxed(64), -run_length);
        appender.offer(NO_LIMIT, b"behind").unwrap();
        assert_eq!(read_all(&log, 0).0, [b"before"]);

        assert!(unblock(&log, 64));
        let end = 64 + i64::from(run_length) + 64;
        let payloads = vec![b"before".to_vec(), b"behind".to_vec()];
        assert_eq!(read_all(&log, 0), (payloads, end));
    }
}
