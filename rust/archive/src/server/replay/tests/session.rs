//! Tests of the session of one replay, with a publication in heap memory.

use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP,
};
use proptest::prelude::*;

use super::kit::{
    CONNECT_DEADLINE_NS, Counters, MTU_LENGTH, Recording, SEGMENT_LENGTH, TERM_LENGTH,
};
use crate::checksum::Checksum;
use crate::memory_storage::MemoryStorage;
use crate::objects::{FetchProgress, SegmentFetcher, fetched_name};
use crate::segments::segment_name;
use crate::server::ArchiveError;
use crate::server::replay::plan::ReplayRange;
use crate::server::replay::session::{ReplayEnd, ReplayProgress};
use crate::storage::{Access, Storage, StorageFile};

const ALL: ReplayRange = ReplayRange {
    position: NULL_VALUE,
    length: REPLAY_ALL_AND_FOLLOW,
    file_io_max_length: -1,
};

fn failed(code: ArchiveErrorCode, text: &str, segment_base: i64) -> Option<ReplayEnd> {
    Some(ReplayEnd::Failed(error(code, text, segment_base)))
}

fn error(code: ArchiveErrorCode, text: &str, segment_base: i64) -> ArchiveError {
    ArchiveError::new(
        code,
        format!(
            "{text}, recordingId=3, replaySessionId=4294967373, segmentFile=3-{segment_base}.rec"
        ),
    )
}

/// Returns a recording over three segments that starts within a term.
fn long_recording() -> Recording {
    let start = TERM_LENGTH + 1024;
    let mut recording = Recording::new(start);
    recording.fill_to(start + 2 * SEGMENT_LENGTH, 500);
    recording.message(1000);
    recording
}

/// 07-52, 07-88, 07-99
#[test]
fn all_terms_and_segments_of_a_stopped_recording_are_replayed() {
    let recording = long_recording();
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    let (start, stop) = (TERM_LENGTH + 1024, recording.position());
    assert!(replay.publication.received() == recording.replayed(start, stop));
    assert_eq!(replay.shown_position(), stop);
}

/// Object storage with the segments that were removed from the disk. Each segment comes at the third request for it.
struct ScriptedFetcher {
    storage: MemoryStorage,
    requests: u32,
    /// Reason with which each fetch fails; `None` if the fetches succeed.
    failure: Option<String>,
}

impl ScriptedFetcher {
    /// Moves the segments before `local_start` from the disk to object storage.
    fn new(recording: &Recording, local_start: i64) -> Self {
        for base in (TERM_LENGTH..local_start).step_by(SEGMENT_LENGTH as usize) {
            let copy = format!("{}.copy", segment_name(3, base));
            recording
                .storage
                .rename(&segment_name(3, base), &copy)
                .unwrap();
        }
        Self {
            storage: recording.storage.clone(),
            requests: 0,
            failure: None,
        }
    }
}

impl SegmentFetcher for ScriptedFetcher {
    fn fetch(&mut self, recording_id: i64, base: i64) -> FetchProgress {
        self.requests += 1;
        if !self.requests.is_multiple_of(3) {
            return FetchProgress::Waiting;
        }
        if let Some(reason) = &self.failure {
            return FetchProgress::Failed(reason.clone());
        }
        let copy = format!("{}.copy", segment_name(recording_id, base));
        let fetched = fetched_name(recording_id, base);
        self.storage.rename(&copy, &fetched).unwrap();
        FetchProgress::Ready
    }
}

#[test]
fn a_replay_waits_for_each_segment_that_is_only_in_object_storage() {
    let recording = long_recording();
    let (start, stop) = (TERM_LENGTH + 1024, recording.position());
    let local_start = TERM_LENGTH + 2 * SEGMENT_LENGTH;
    let mut replay = recording.replay_stopped(ALL);
    replay.fetch_by(local_start, ScriptedFetcher::new(&recording, local_start));
    assert_eq!(replay.do_work(), ReplayProgress::Worked(0));
    // The time of the fetch does not count for the deadline of the subscriber.
    replay.now_ns = 2 * CONNECT_DEADLINE_NS;
    assert_eq!(replay.do_work(), ReplayProgress::Worked(0));
    replay.start();
    let end = (0..1_000).find_map(|_| match replay.do_work() {
        ReplayProgress::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(end, Some(ReplayEnd::Complete));
    assert!(replay.publication.received() == recording.replayed(start, stop));
}

#[test]
fn a_replay_of_copies_continues_with_copies_of_segments_that_are_deleted_meanwhile() {
    let recording = long_recording();
    let (start, stop) = (TERM_LENGTH + 1024, recording.position());
    let [first_end, second_end] = [1, 2].map(|count| TERM_LENGTH + count * SEGMENT_LENGTH);
    let mut replay = recording.replay_stopped(ALL);
    replay.fetch_by(first_end, ScriptedFetcher::new(&recording, first_end));
    let is_started = (0..3).any(|_| replay.do_work() == ReplayProgress::Started);
    assert!(is_started);
    // The archive deletes the second segment after it has moved the start.
    replay.move_local_start(second_end);
    let name = segment_name(3, first_end);
    let copy = format!("{name}.copy");
    recording.storage.rename(&name, &copy).unwrap();
    let end = (0..1_000).find_map(|_| match replay.do_work() {
        ReplayProgress::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(end, Some(ReplayEnd::Complete));
    assert!(replay.publication.received() == recording.replayed(start, stop));
}

#[test]
fn a_segment_that_cannot_be_fetched_ends_the_replay_with_the_reason() {
    let recording = long_recording();
    let local_start = TERM_LENGTH + 2 * SEGMENT_LENGTH;
    let mut fetcher = ScriptedFetcher::new(&recording, local_start);
    fetcher.failure = Some("the storage is away".into());
    let mut replay = recording.replay_stopped(ALL);
    replay.fetch_by(local_start, fetcher);
    let end = (0..3).find_map(|_| match replay.do_work() {
        ReplayProgress::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(
        end,
        failed(
            ArchiveErrorCode::Generic,
            "the storage is away",
            TERM_LENGTH
        )
    );
}

#[test]
fn a_read_is_published_as_one_block() {
    let mut recording = Recording::new(0);
    recording.fill_to(TERM_LENGTH / 2, 0);
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(replay.publication.blocks(), 1);
}

/// 07-89
#[test]
fn a_replay_with_a_length_ends_with_the_frame_that_contains_its_limit() {
    let mut recording = Recording::new(0);
    (0..10).for_each(|_| recording.message(100));
    let mut replay = recording.replay_stopped(ReplayRange {
        position: 160,
        length: 200,
        ..ALL
    });
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(replay.publication.received(), recording.replayed(160, 480));
}

#[test]
fn a_replay_of_length_0_ends_when_it_has_a_subscriber() {
    let mut recording = Recording::new(0);
    recording.message(100);
    let mut replay = recording.replay_stopped(ReplayRange { length: 0, ..ALL });
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert!(replay.publication.received().is_empty());
}

/// 07-90
#[test]
fn a_replay_follows_an_active_recording_and_ends_when_the_recording_ends() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    recording.message(100);
    let id = counters.add(recording.position(), 0);
    let mut replay = recording.replay(ALL, None, vec![counters.find(id).unwrap()]);
    replay.start();
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.position(), recording.position());
    // The recording ends at the end of a segment. The next segment file exists and is empty.
    while recording.position() < SEGMENT_LENGTH {
        recording.message(1000);
        if SEGMENT_LENGTH - recording.position() < 1056 {
            recording.padding((SEGMENT_LENGTH - recording.position()) as usize);
        }
        counters.set(id, recording.position());
        assert_eq!(replay.run(), None);
        assert_eq!(replay.publication.position(), recording.position());
    }
    counters.free(id, 0);
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert!(replay.publication.received() == recording.replayed(0, SEGMENT_LENGTH));
}

/// 07-90
#[test]
fn replay_all_and_stop_ends_at_the_recorded_position_at_the_time_of_the_request() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    recording.message(100);
    let id = counters.add(recording.position(), 0);
    let range = ReplayRange {
        length: REPLAY_ALL_AND_STOP,
        ..ALL
    };
    let mut replay = recording.replay(range, None, vec![counters.find(id).unwrap()]);
    recording.message(100);
    counters.set(id, recording.position());
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(replay.publication.received(), recording.replayed(0, 160));
}

/// 07-84
#[test]
fn a_replay_from_the_position_of_an_active_recording_waits_for_the_next_frame() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    recording.message(100);
    let id = counters.add(160, 0);
    let range = ReplayRange {
        position: 160,
        ..ALL
    };
    let mut replay = recording.replay(range, None, vec![counters.find(id).unwrap()]);
    replay.start();
    assert_eq!(replay.run(), None);
    recording.message(30);
    counters.set(id, recording.position());
    assert_eq!(replay.run(), None);
    assert_eq!(replay.publication.received(), recording.replayed(160, 224));
}

/// 07-91
#[test]
fn a_bounded_replay_sends_only_frames_below_the_value_of_its_counter() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    (0..5).for_each(|_| recording.message(100));
    let id = counters.add(0, 0);
    let stop = Some(recording.position());
    let mut replay = recording.replay(ALL, stop, vec![counters.find(id).unwrap()]);
    replay.start();
    for (value, sent) in [(0, 0), (159, 0), (160, 160), (200, 160), (330, 320)] {
        counters.set(id, value);
        assert_eq!(replay.run(), None);
        assert_eq!(replay.publication.position(), sent);
    }
    counters.free(id, 0);
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(replay.publication.received(), recording.replayed(0, 320));
}

/// 07-91
#[test]
fn a_bounded_replay_ends_at_the_end_of_the_recording() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    (0..5).for_each(|_| recording.message(100));
    let id = counters.add(i64::MAX, 0);
    let stop = Some(recording.position());
    let mut replay = recording.replay(ALL, stop, vec![counters.find(id).unwrap()]);
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(replay.publication.position(), recording.position());
}

/// 07-85
#[test]
fn a_position_within_a_frame_is_refused_before_the_replay_starts() {
    let mut recording = Recording::new(0);
    recording.message(100);
    recording.message(100);
    for position in [32, 64, 96, 128, 192] {
        let mut replay = recording.replay_stopped(ReplayRange { position, ..ALL });
        let ReplayProgress::Ended(ReplayEnd::Refused(error)) = replay.do_work() else {
            panic!("the replay from {position} was not refused");
        };
        assert_eq!(error.code, ArchiveErrorCode::InvalidPosition);
        let text = format!("replayPosition={position} does not point to a valid frame, ");
        assert!(error.message.starts_with(&text));
        assert!(
            error
                .message
                .ends_with(", recordingId=3, replaySessionId=4294967373, segmentFile=3-0.rec")
        );
    }
}

#[test]
fn a_replay_can_begin_at_padding() {
    let mut recording = Recording::new(0);
    recording.message(100);
    recording.padding(100);
    recording.message(100);
    let range = ReplayRange {
        position: 160,
        ..ALL
    };
    let mut replay = recording.replay_stopped(range);
    replay.start();
    assert_eq!(replay.run(), Some(ReplayEnd::Complete));
    assert_eq!(
        replay.publication.received(),
        recording.replayed(160, recording.position())
    );
}

/// 07-93
#[test]
fn a_replay_without_a_subscriber_starts_and_fails_at_the_deadline() {
    let mut recording = Recording::new(0);
    recording.message(100);
    let mut replay = recording.replay_stopped(ALL);
    replay.publication.set_connected(false);
    replay.now_ns = CONNECT_DEADLINE_NS - 1;
    assert_eq!(replay.do_work(), ReplayProgress::Started);
    assert_eq!(replay.run(), None);
    replay.now_ns = CONNECT_DEADLINE_NS;
    let text = "no connection established for replayChannel=aeron:ipc, replayStreamId=88";
    let refused = ReplayEnd::Refused(error(ArchiveErrorCode::Generic, text, 0));
    assert_eq!(replay.run(), Some(refused));
}

/// 07-94
#[test]
fn a_replay_that_loses_its_subscriber_is_aborted() {
    let recording = long_recording();
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    replay.do_work();
    replay.publication.set_connected(false);
    assert_eq!(replay.run(), Some(ReplayEnd::Aborted));
}

/// 07-100
#[test]
fn a_replay_of_an_active_recording_waits_for_its_first_segment_file_until_the_deadline() {
    let mut counters = Counters::new();
    let mut recording = Recording::new(0);
    recording.message(100);
    let id = counters.add(recording.position(), 0);
    let active = |recording: &Recording, counters: &Counters| {
        recording.replay(ALL, None, vec![counters.find(id).unwrap()])
    };
    let name = segment_name(3, 0);
    let hidden = "hidden.rec";
    recording.storage.rename(&name, hidden).unwrap();
    let mut replay = active(&recording, &counters);
    assert_eq!(replay.run(), None);
    recording.storage.rename(hidden, &name).unwrap();
    replay.start();

    recording.storage.remove(&name).unwrap();
    let mut replay = active(&recording, &counters);
    replay.now_ns = CONNECT_DEADLINE_NS;
    let text = "recording segment file not created";
    assert_eq!(replay.run(), failed(ArchiveErrorCode::Generic, text, 0));
}

/// 07-100: no recorder creates the file of a stopped recording any more.
#[test]
fn a_replay_of_a_stopped_recording_without_its_segment_file_is_refused_at_once() {
    let recording = Recording::new(0);
    recording.storage.remove(&segment_name(3, 0)).unwrap();
    let text = "the recording is empty";
    let empty = error(ArchiveErrorCode::EmptyRecording, text, 0);
    let mut replay = recording.replay_stopped(ALL);
    assert_eq!(replay.run(), Some(ReplayEnd::Refused(empty)));

    let mut recording = Recording::new(0);
    recording.message(100);
    recording.storage.remove(&segment_name(3, 0)).unwrap();
    let text = "recording segment not found";
    let mut replay = recording.replay_stopped(ALL);
    assert_eq!(replay.run(), failed(ArchiveErrorCode::Generic, text, 0));
}

/// 07-100
#[test]
fn a_segment_file_that_is_missing_later_fails_the_replay() {
    let recording = long_recording();
    let second = TERM_LENGTH + SEGMENT_LENGTH;
    recording.storage.remove(&segment_name(3, second)).unwrap();
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    let text = "recording segment not found";
    assert_eq!(
        replay.run(),
        failed(ArchiveErrorCode::Generic, text, second)
    );
    let sent = recording.replayed(TERM_LENGTH + 1024, second);
    assert!(replay.publication.received() == sent);
}

#[test]
fn bytes_that_are_not_a_frame_fail_the_replay() {
    for (length, text) in [
        (0_i32, "unexpected end of recording at position=160"),
        (-64, "unexpected end of recording at position=160"),
        (
            MTU_LENGTH * 10,
            "unexpected end of recording at position=160",
        ),
        (
            31,
            "unexpected frame at position=160, frame of 31 bytes, at most 65376 are possible",
        ),
    ] {
        let mut recording = Recording::new(0);
        recording.message(100);
        recording.message(100);
        let name = segment_name(3, 0);
        let file = recording.storage.open(&name, Access::Write).unwrap();
        file.write_all_at(&length.to_le_bytes(), 160).unwrap();
        let mut replay = recording.replay_stopped(ReplayRange { position: 0, ..ALL });
        replay.start();
        assert_eq!(replay.run(), failed(ArchiveErrorCode::Generic, text, 0));
    }
}

/// 07-52
#[test]
fn frames_with_checksums_are_verified_and_sent_with_the_session_id_of_the_replay() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let mut recording = Recording::with_checksum(0, Some(checksum));
        recording.fill_to(TERM_LENGTH + 1024, 500);
        let stop = recording.position();
        let mut replay = recording.replay_stopped(ALL);
        replay.start();
        assert_eq!(replay.run(), Some(ReplayEnd::Complete));
        assert!(replay.publication.received() == recording.replayed(0, stop));
    }
}

#[test]
fn a_wrong_checksum_fails_the_replay_before_any_frame_of_the_same_read_is_sent() {
    let mut recording = Recording::with_checksum(0, Some(Checksum::Crc32c));
    recording.message(100);
    recording.message(100);
    let file = recording.storage.open(&segment_name(3, 0), Access::Write);
    // Changes a byte of the second frame's alignment: the checksum covers these bytes too.
    file.unwrap().write_all_at(&[1], 319).unwrap();
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    let text = "CRC checksum mismatch at position=160";
    assert_eq!(replay.run(), failed(ArchiveErrorCode::Generic, text, 0));
    assert!(replay.publication.received().is_empty());
}

#[test]
fn a_segment_file_that_ends_early_fails_the_replay() {
    let mut recording = Recording::new(0);
    recording.message(100);
    recording.message(100);
    let file = recording.storage.open(&segment_name(3, 0), Access::Write);
    file.unwrap().set_length(200).unwrap();
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    let text = "unexpected end of recording at position=0";
    assert_eq!(replay.run(), failed(ArchiveErrorCode::Generic, text, 0));
}

#[test]
fn padding_that_is_longer_than_the_longest_frame_is_sent_as_several_frames() {
    let mut recording = Recording::new(0);
    recording.message(100);
    recording.padding(30_004);
    recording.message(100);
    let mut replay = recording.replay_stopped(ALL);
    replay.start();
    let mut window = 0;
    let end = loop {
        replay.publication.set_limit(window);
        match replay.run() {
            Some(end) => break end,
            None => window += 1000,
        }
    };
    assert_eq!(end, ReplayEnd::Complete);
    assert_eq!(replay.publication.position(), recording.position());
    let (received, sent) = (
        replay.publication.received(),
        recording.replayed(0, recording.position()),
    );
    assert_eq!(received[..160], sent[..160]);
    assert_eq!(received[received.len() - 160..], sent[sent.len() - 160..]);
}

#[derive(Debug, Clone, Copy)]
enum Recorded {
    Message(usize),
    Padding(usize),
}

fn any_recorded() -> impl Strategy<Value = Recorded> {
    prop_oneof![
        8 => (0..=MTU_LENGTH as usize - 32).prop_map(Recorded::Message),
        1 => (32..=8224_usize).prop_map(Recorded::Padding),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// 07-99
    #[test]
    fn recorded_messages_arrive_once_and_in_order(
        recorded in prop::collection::vec(any_recorded(), 1..400),
        start in 0..2 * SEGMENT_LENGTH / 32,
        file_io_max_length in MTU_LENGTH..20_000,
        window_step in 1..50_000_i64,
    ) {
        let start = start * 32;
        let mut recording = Recording::new(start);
        for recorded in recorded {
            let room = (TERM_LENGTH - recording.position() % TERM_LENGTH) as usize;
            match recorded {
                Recorded::Message(length) => recording.message(length),
                Recorded::Padding(length) => recording.padding(length.min(room)),
            }
        }
        let mut replay = recording.replay_stopped(ReplayRange { file_io_max_length, ..ALL });
        replay.start();
        let mut limit = start;
        let end = loop {
            replay.publication.set_limit(limit);
            match replay.run() {
                Some(end) => break end,
                None => limit += window_step,
            }
        };
        prop_assert_eq!(end, ReplayEnd::Complete);
        let received = replay.publication.received();
        let expected = recording.replayed(start, recording.position());
        let differs = received.iter().zip(expected).position(|(a, b)| a != b);
        prop_assert_eq!(differs, None);
        prop_assert_eq!(received.len(), expected.len());
    }
}
