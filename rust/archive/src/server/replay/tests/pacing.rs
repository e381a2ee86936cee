//! Tests of paced replays on a virtual clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_agent::EpochClock;
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length};
use aeron_protocol::archive::extension::SPEED_UNIT;
use aeron_protocol::archive::{ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW};
use proptest::prelude::*;

use super::kit::{Counters, MTU_LENGTH, Recording, Replay, SEGMENT_LENGTH, TERM_LENGTH};
use crate::index::{ENTRY_LENGTH, IndexEntry};
use crate::server::replay::pacing::RequestedPace;
use crate::server::replay::plan::ReplayRange;
use crate::server::replay::session::{ReplayEnd, ReplayProgress};
use crate::storage::Storage;

const ALL: ReplayRange = ReplayRange {
    position: NULL_VALUE,
    length: REPLAY_ALL_AND_FOLLOW,
    file_io_max_length: -1,
};
const NS_PER_MS: i64 = 1_000_000;
const FIRST_US: i64 = 1_700_000_000_000_000;

#[derive(Debug)]
struct Clock(AtomicI64);

impl EpochClock for Clock {
    fn time_ms(&self) -> i64 {
        self.time_us() / 1_000
    }

    fn time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(FIRST_US)))
    }

    fn advance(&self, by_us: i64) {
        self.0.fetch_add(by_us, Ordering::Relaxed);
    }
}

fn rate(bytes_per_second: i64) -> RequestedPace {
    RequestedPace::new(bytes_per_second, NULL_VALUE).unwrap()
}

fn speed(millionths: i64) -> RequestedPace {
    RequestedPace::new(NULL_VALUE, millionths).unwrap()
}

/// Records messages of 1000 bytes, each after a pause in microseconds. For each message, also returns
/// its end position and the time from the first message to this message, in microseconds.
fn recorded(pauses_us: &[i64]) -> (Recording, Arc<Clock>, Vec<(i64, i64)>) {
    let clock = Clock::new();
    let mut recording = Recording::indexed(0, clock.clone());
    let mut ends = Vec::new();
    for (number, pause_us) in pauses_us.iter().enumerate() {
        if number > 0 {
            clock.advance(*pause_us);
        }
        recording.message(1_000);
        ends.push((recording.position(), clock.time_us() - FIRST_US));
    }
    (recording, clock, ends)
}

fn stopped_at(mut recording: Recording, pace: RequestedPace) -> Replay {
    recording.finish_index();
    let stop = recording.position();
    recording.replay_at(pace, ALL, Some(stop), Vec::new())
}

/// Runs the replay in steps of time. After each step, calls `check` with the position and the time
/// since the start.
fn run(replay: &mut Replay, step_ns: i64, mut check: impl FnMut(i64, i64)) -> i64 {
    replay.start();
    let begin_ns = replay.now_ns;
    loop {
        let end = replay.run();
        check(replay.publication.position(), replay.now_ns - begin_ns);
        match end {
            Some(ReplayEnd::Complete) => return replay.now_ns - begin_ns,
            Some(end) => panic!("{end:?}"),
            None => replay.now_ns += step_ns,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_replay_with_a_rate_reaches_the_rate_and_does_not_exceed_it(
        count in 20..300_usize,
        bytes_per_second in 50_000..20_000_000_i64,
        step_ns in 1_000..9 * NS_PER_MS,
    ) {
        let (recording, ..) = recorded(&vec![10; count]);
        let total = recording.position();
        let mut replay = stopped_at(recording, rate(bytes_per_second));
        let duration_ns = run(&mut replay, step_ns, |position, elapsed_ns| {
            let allowed = i128::from(elapsed_ns) * i128::from(bytes_per_second) / 1_000_000_000;
            // The last frame may begin just before the allowed position. It may be padding at the end of a term.
            let longest = i128::from(TERM_LENGTH.min(2_200).max(i64::from(MTU_LENGTH)));
            assert!(i128::from(position) <= allowed + longest, "{position} after {elapsed_ns} ns");
        });
        // The last frame is sent at the time at which the rate allows its first byte.
        let expected_ns = i128::from(total - i64::from(MTU_LENGTH) - 32) * 1_000_000_000 / i128::from(bytes_per_second);
        prop_assert!(i128::from(duration_ns) >= expected_ns - 2 * i128::from(step_ns));
        let latest_ns = i128::from(total) * 1_000_000_000 / i128::from(bytes_per_second) + 2 * i128::from(step_ns);
        prop_assert!(i128::from(duration_ns) <= latest_ns, "{duration_ns} {latest_ns}");
    }

    #[test]
    fn a_replay_at_a_speed_sends_each_message_at_its_time(
        pauses_us in prop::collection::vec(prop_oneof![0..900_i64, 1_000..200_000_i64], 1..400),
        speed_millionths in prop_oneof![Just(SPEED_UNIT), 100_000..10_000_000_i64],
        step_ns in 100_000..5 * NS_PER_MS,
    ) {
        let (recording, _, ends) = recorded(&pauses_us);
        let total = recording.position();
        let mut replay = stopped_at(recording, speed(speed_millionths));
        let due_ns = |time_us: i64| {
            i64::try_from(i128::from(time_us) * 1_000 * i128::from(SPEED_UNIT) / i128::from(speed_millionths)).unwrap()
        };
        // Messages that arrived within two milliseconds may share an entry of the index.
        let entry_ns = due_ns(2_000);
        run(&mut replay, step_ns, |position, elapsed_ns| {
            for (end, time_us) in &ends {
                if position >= *end {
                    assert!(due_ns(*time_us) <= elapsed_ns + entry_ns, "{end} too early");
                } else {
                    assert!(due_ns(*time_us) + entry_ns + step_ns > elapsed_ns, "{end} too late");
                }
            }
        });
        prop_assert_eq!(replay.publication.position(), total);
    }
}

#[test]
fn a_delayed_replay_catches_up_at_most_the_bytes_of_a_hundredth_of_a_second() {
    let (recording, ..) = recorded(&[10; 300]);
    let mut replay = stopped_at(recording, rate(1_000_000));
    replay.publication.set_limit(0);
    replay.start();
    assert_eq!(replay.run(), None);
    replay.now_ns += 1_000 * NS_PER_MS;
    assert_eq!(replay.run(), None);
    replay.publication.set_limit(i64::MAX);
    assert_eq!(replay.run(), None);
    let sent = replay.publication.position();
    assert!((10_000..=12_000).contains(&sent), "{sent}");
}

#[test]
fn the_slower_of_rate_and_speed_applies() {
    let both = |bytes_per_second| RequestedPace::new(bytes_per_second, SPEED_UNIT).unwrap();
    // 100 messages of 1056 bytes in 990 ms.
    let duration_ms = |pace| {
        let (recording, ..) = recorded(&[10_000; 100]);
        run(&mut stopped_at(recording, pace), NS_PER_MS, |_, _| {}) / NS_PER_MS
    };
    assert_eq!(duration_ms(both(10_000_000)), 990);
    assert!((2_070..2_120).contains(&duration_ms(both(50_000))));
}

#[test]
fn a_recording_without_an_index_cannot_be_replayed_at_a_speed() {
    let mut recording = Recording::new(0);
    recording.message(100);
    let mut replay = stopped_at(recording, speed(SPEED_UNIT));
    let ReplayProgress::Ended(ReplayEnd::Failed(error)) = replay.do_work() else {
        panic!("the replay did not fail");
    };
    assert_eq!(error.code, ArchiveErrorCode::Generic);
    let expected =
        "the index has no arrival times at position=0: replay without a speed, recordingId=3";
    assert!(error.message.starts_with(expected), "{}", error.message);
}

#[test]
fn a_missing_index_of_a_later_segment_fails_a_replay_at_a_speed() {
    let (recording, ..) = recorded(&[1_000; 300]);
    let storage = recording.storage.clone();
    let mut replay = stopped_at(recording, speed(SPEED_UNIT));
    storage
        .remove(&format!("index-3-{SEGMENT_LENGTH}.idx"))
        .unwrap();
    replay.start();
    let end = loop {
        match replay.run() {
            None => replay.now_ns += NS_PER_MS,
            Some(end) => break end,
        }
    };
    let ReplayEnd::Failed(error) = end else {
        panic!("{end:?}");
    };
    let expected = format!("the index has no arrival times at position={SEGMENT_LENGTH}");
    assert!(error.message.starts_with(&expected), "{}", error.message);
    assert_eq!(replay.publication.position(), SEGMENT_LENGTH);
}

#[test]
fn messages_without_times_are_sent_together_with_the_previous_message() {
    let (mut recording, _, ends) = recorded(&[10_000; 20]);
    recording.finish_index();
    let storage = recording.storage.clone();
    let mut bytes = storage.bytes("index-3-0.idx").unwrap();
    for number in 5..10 {
        let slot: &mut [u8] = &mut bytes[(number + 2) * ENTRY_LENGTH..(number + 3) * ENTRY_LENGTH];
        let slot: &mut [u8; ENTRY_LENGTH] = slot.try_into().unwrap();
        let entry = IndexEntry::decode(slot).unwrap();
        *slot = IndexEntry {
            arrival_us: None,
            ..entry
        }
        .encode();
    }
    storage.put("index-3-0.idx", &bytes);
    let mut replay = stopped_at(recording, speed(SPEED_UNIT));
    run(&mut replay, NS_PER_MS, |position, elapsed_ns| {
        if (40 * NS_PER_MS..100 * NS_PER_MS).contains(&elapsed_ns) {
            assert_eq!(position, ends[9].0);
        }
    });
}

#[test]
fn a_replay_at_a_speed_follows_an_active_recording_to_its_last_message() {
    let (mut recording, clock, ends) = recorded(&[10_000, 10_000, 10]);
    let mut counters = Counters::new();
    let id = counters.add(recording.position(), 0);
    let bound = vec![counters.find(id).unwrap()];
    let mut replay = recording.replay_at(speed(SPEED_UNIT), ALL, None, bound);
    replay.start();
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), ends[0].0);
    replay.now_ns += 10 * NS_PER_MS;
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), ends[1].0);
    // The last message has no entry in the index yet.
    replay.now_ns += NS_PER_MS;
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), ends[2].0);
    clock.advance(50_000);
    recording.message(1_000);
    counters.set(id, recording.position());
    replay.now_ns += 40 * NS_PER_MS;
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), ends[2].0);
    replay.now_ns += 10 * NS_PER_MS;
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), recording.position());
}

#[test]
fn a_replay_at_a_speed_may_begin_within_the_recording() {
    let (mut recording, _, ends) = recorded(&[10_000; 200]);
    recording.finish_index();
    let stop = recording.position();
    let range = ReplayRange {
        position: ends[149].0,
        ..ALL
    };
    let mut replay = recording.replay_at(speed(SPEED_UNIT), range, Some(stop), Vec::new());
    let duration_ns = run(&mut replay, NS_PER_MS, |_, _| {});
    assert_eq!(duration_ns, 49 * 10 * NS_PER_MS);
    assert_eq!(aligned_length(HEADER_LENGTH + 1_000), 1_056);
}

#[test]
fn a_rate_or_a_speed_that_is_not_positive_is_refused() {
    for (rate, speed, field) in [
        (0, -1, "maxBytesPerSecond=0"),
        (-1, -2, "speedMillionths=-2"),
    ] {
        let error = RequestedPace::new(rate, speed).unwrap_err();
        assert!(error.message.starts_with(field), "{}", error.message);
    }
}
