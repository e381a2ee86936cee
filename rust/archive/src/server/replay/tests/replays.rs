//! Tests of the replays of an archive, from the request to the end, with a driver in heap memory.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use aeron_client::Aeron;
use aeron_protocol::archive::{ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, RequestIds};

use super::kit::{FILE_IO_MAX_LENGTH, RECORDING_ID, Recording, descriptor};
use crate::catalog::RecordingDescriptor;
use crate::memory_storage::MemoryStorage;
use crate::server::ArchiveError;
use crate::server::replay::{
    ReplayEvent, ReplayOrder, ReplayRange, ReplayRequested, ReplaySettings, Replayer, Replays,
    RequestedPace,
};
use crate::tests::driver::{
    FIRST_CONNECTED_STREAM_ID, FIRST_SESSION_ID, REFUSED_STREAM_ID, TestDriver,
};

const CONNECTED: i32 = FIRST_CONNECTED_STREAM_ID;
const UNCONNECTED: i32 = CONNECTED - 1;
const CONNECT_TIMEOUT_NS: i64 = 5_000;

/// The replays of an archive with one recording. The archive permits two replays at the same time.
struct Archive {
    driver: Arc<TestDriver>,
    aeron: Aeron,
    replays: Replays,
    replayer: Replayer<MemoryStorage>,
    reads: Arc<Mutex<Vec<(usize, i64)>>>,
    recording: RecordingDescriptor,
    requests: i64,
}

impl Archive {
    fn new() -> Self {
        let mut recording = Recording::new(0);
        (0..10).for_each(|_| recording.message(100));
        let driver = TestDriver::new();
        let reads = Arc::<Mutex<Vec<_>>>::default();
        let noted = Arc::clone(&reads);
        let ((commands, received), (sender, events)) = (channel(), channel());
        let settings = ReplaySettings {
            max_concurrent_replays: 2,
            connect_timeout_ns: CONNECT_TIMEOUT_NS,
            linger_timeout_ns: 7,
            file_io_max_length: FILE_IO_MAX_LENGTH,
            checksum: None,
        };
        Self {
            aeron: driver.connect(),
            replays: Replays::new(settings, commands, events, Box::new(|| 70)),
            replayer: Replayer::new(recording.storage.clone(), received, sender)
                .measure_reads(driver.nano_clock(), move |bytes, duration_ns| {
                    noted.lock().unwrap().push((bytes, duration_ns))
                }),
            reads,
            driver,
            recording: descriptor(0, recording.position()),
            requests: 0,
        }
    }

    fn request(
        &mut self,
        change: impl FnOnce(&mut ReplayOrder, &mut Option<&RecordingDescriptor>),
    ) -> Result<(), ArchiveError> {
        self.requests += 1;
        let mut order = order();
        let mut recording = Some(&self.recording);
        change(&mut order, &mut recording);
        let request = ReplayRequested {
            requester: requester(self.requests),
            owner: &[],
            order: &order,
            recording,
            local_start: self.recording.start_position,
            active_position: None,
        };
        self.replays.request(&self.aeron, &request)
    }

    /// Runs the driver and the client's conductor until the replayer has all replays.
    fn begin(&mut self) -> Vec<ReplayEvent> {
        self.driver.step();
        self.aeron.do_work();
        self.poll()
    }

    fn poll(&mut self) -> Vec<ReplayEvent> {
        let mut events = Vec::new();
        let now_ns = self.driver.now_ns();
        self.replays
            .poll_publications(now_ns, |event| events.push(event));
        self.replays.poll(now_ns, |event| events.push(event));
        self.driver.step();
        events
    }

    /// Runs all replays until none of them has more work.
    fn replay(&mut self) -> Vec<ReplayEvent> {
        while self.replayer.do_work(self.driver.now_ns()) > 0 {}
        self.poll()
    }

    fn refusal(
        &mut self,
        change: impl FnOnce(&mut ReplayOrder, &mut Option<&RecordingDescriptor>),
    ) -> (ArchiveErrorCode, String) {
        let error = self.request(change).unwrap_err();
        (error.code, error.message)
    }
}

/// Returns the request for the replay of the whole recording.
fn order() -> ReplayOrder {
    ReplayOrder {
        recording_id: RECORDING_ID,
        limit_counter_id: None,
        range: ReplayRange {
            position: NULL_VALUE,
            length: REPLAY_ALL_AND_FOLLOW,
            file_io_max_length: -1,
        },
        pace: RequestedPace::default(),
        channel: "aeron:ipc".to_owned(),
        stream_id: CONNECTED,
        response_correlation_id: None,
    }
}

fn requester(correlation_id: i64) -> RequestIds {
    RequestIds {
        control_session_id: 1,
        correlation_id,
    }
}

fn started(correlation_id: i64, replay_session_id: i64) -> ReplayEvent {
    ReplayEvent::Started {
        requester: requester(correlation_id),
        replay_session_id,
    }
}

fn failed(correlation_id: i64, message: &str) -> ReplayEvent {
    ReplayEvent::Failed {
        requester: requester(correlation_id),
        error: ArchiveError::generic(message),
        damage: None,
    }
}

const ENDED: ReplayEvent = ReplayEvent::Ended {
    recording_id: RECORDING_ID,
};

fn replay_session_id(number: i64, session_id: i32) -> i64 {
    (number << 32) | i64::from(session_id as u32)
}

/// 07-88
#[test]
fn the_started_event_precedes_the_end_and_the_publication_ends_after_the_last_frame() {
    let mut archive = Archive::new();
    archive.request(|_, _| {}).unwrap();
    assert_eq!(archive.begin(), []);
    assert_eq!(archive.replays.count(), 1);
    let id = replay_session_id(1, FIRST_SESSION_ID);
    assert_eq!(archive.replay(), [started(1, id), ENDED]);
    assert_eq!(archive.replays.count(), 0);
    let publication = &archive.driver.publications()[0];
    assert_eq!(
        publication.log.producer_position(),
        archive.recording.stop_position
    );
    assert_eq!(publication.revoked, Some(false));
    assert_eq!(*archive.reads.lock().unwrap(), [(1600, 0)]);
    archive.request(|_, _| {}).unwrap();
    archive.begin();
    let id = replay_session_id(2, FIRST_SESSION_ID + 1);
    assert_eq!(archive.replay(), [started(2, id), ENDED]);
}

/// 07-86, 07-87
#[test]
fn the_publication_begins_at_the_first_position_and_has_the_session_id_of_the_request() {
    let mut archive = Archive::new();
    let asked = archive.request(|order, _| {
        order.channel = "aeron:ipc?session-id=9|alias=a|mtu=4k".to_owned();
        order.range.position = 160;
    });
    asked.unwrap();
    archive.begin();
    assert_eq!(
        archive.driver.publications()[0].channel,
        "aeron:ipc?mtu=1408|term-length=64k|init-term-id=-5|term-id=-5|term-offset=160|session-id=9|linger=7ns|alias=a"
    );
    assert_eq!(archive.replay()[0], started(1, replay_session_id(1, 9)));
}

/// 07-101
#[test]
fn a_replay_by_token_is_sent_to_the_response_channel_of_the_image_of_its_request() {
    let mut archive = Archive::new();
    let token = archive.replays.issue_token(4, RECORDING_ID, 0);
    assert_eq!(
        archive.replays.token_session(token, RECORDING_ID, 1),
        Some(4)
    );
    archive
        .request(|order, _| {
            order.channel = "aeron:udp?control-mode=response|control=localhost:1".to_owned();
            order.response_correlation_id = Some(55);
        })
        .unwrap();
    archive.begin();
    let channel = &archive.driver.publications()[0].channel;
    assert!(channel.contains("response-correlation-id=55"));
    archive.replays.on_control_session_ended(4);
    assert_eq!(archive.replays.token_session(token, RECORDING_ID, 1), None);
}

/// 07-97
#[test]
fn a_replay_counts_against_the_limit_from_its_request_to_its_end() {
    let mut archive = Archive::new();
    archive
        .request(|order, _| order.stream_id = UNCONNECTED)
        .unwrap();
    archive.begin();
    archive.request(|_, _| {}).unwrap();
    assert_eq!(archive.replays.count(), 2);
    let expected = (
        ArchiveErrorCode::MaxReplays,
        "max concurrent replays reached 2".to_owned(),
    );
    assert_eq!(archive.refusal(|_, _| {}), expected);
    archive.begin();
    archive.replay();
    assert_eq!(archive.replays.count(), 1);
    assert!(archive.request(|_, _| {}).is_ok());
}

/// 07-92
#[test]
fn the_counter_is_checked_first_then_the_recording_then_the_channel() {
    let mut archive = Archive::new();
    assert_eq!(
        archive.refusal(|order, recording| {
            order.limit_counter_id = Some(-1);
            *recording = None;
        }),
        (
            ArchiveErrorCode::Generic,
            "unable to create replay limit counter id= -1 because of: there is no such counter"
                .to_owned()
        )
    );
    assert_eq!(
        archive.refusal(|order, recording| {
            *recording = None;
            order.channel = "?".to_owned();
        }),
        (
            ArchiveErrorCode::UnknownRecording,
            "unknown recording id: 3".to_owned()
        )
    );
    let (code, text) = archive.refusal(|order, _| order.channel = "?".to_owned());
    assert_eq!(code, ArchiveErrorCode::Generic);
    assert!(text.starts_with("failed to process replayChannel - "));
}

#[test]
fn a_refusal_of_the_driver_fails_the_replay() {
    let mut archive = Archive::new();
    archive
        .request(|order, _| order.stream_id = REFUSED_STREAM_ID)
        .unwrap();
    let events = archive.begin();
    let [
        ReplayEvent::Failed {
            requester: of,
            error,
            damage: None,
        },
        ENDED,
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(*of, requester(1));
    assert!(
        error
            .message
            .starts_with("failed to create replay publication: ")
    );
    assert!(error.message.contains("refused by the driver"));
    assert_eq!(archive.replays.count(), 0);
}

/// 07-93
#[test]
fn a_replay_without_a_subscriber_fails_after_its_started_event() {
    let mut archive = Archive::new();
    archive
        .request(|order, _| order.stream_id = UNCONNECTED)
        .unwrap();
    archive.begin();
    let id = replay_session_id(1, FIRST_SESSION_ID);
    assert_eq!(archive.replay(), [started(1, id)]);
    archive.driver.advance_ns(CONNECT_TIMEOUT_NS);
    let channel = &archive.driver.publications()[0].channel;
    let text = format!(
        "no connection established for replayChannel={channel}, replayStreamId={UNCONNECTED}, recordingId=3, \
         replaySessionId={id}, segmentFile=3-0.rec"
    );
    assert_eq!(archive.replay(), [failed(1, &text), ENDED]);
    assert_eq!(archive.driver.publications()[0].revoked, Some(true));
}

/// 07-95
#[test]
fn stopping_a_replay_revokes_its_publication_and_an_unknown_id_is_ignored() {
    let mut archive = Archive::new();
    archive
        .request(|order, _| order.stream_id = UNCONNECTED)
        .unwrap();
    archive.begin();
    let id = replay_session_id(1, FIRST_SESSION_ID);
    assert_eq!(archive.replay(), [started(1, id)]);
    archive.replays.stop(id + 1);
    assert_eq!(archive.replay(), []);
    archive.replays.stop(id);
    assert_eq!(archive.replay(), [ENDED]);
    assert_eq!(archive.driver.publications()[0].revoked, Some(true));
}

/// 07-95
#[test]
fn stop_all_stops_all_replays_of_a_recording_even_before_they_have_started() {
    let mut archive = Archive::new();
    archive.request(|_, _| {}).unwrap();
    archive.begin();
    archive.request(|_, _| {}).unwrap();
    archive.replays.stop_all(Some(RECORDING_ID + 1));
    assert_eq!(archive.poll(), []);
    archive.replays.stop_all(Some(RECORDING_ID));
    let events = archive.replay();
    let text = "replay was stopped before it started, recordingId=3";
    assert!(events.contains(&failed(1, text)), "{events:?}");
    assert_eq!(events.iter().filter(|event| **event == ENDED).count(), 2);
    assert_eq!(archive.replays.count(), 0);
}

/// 07-110, 07-112: a deletion waits for the end of stopped replays. It does not wait for replays
/// that read segments that remain.
#[test]
fn a_recording_is_stopping_until_all_its_stopped_replays_have_ended() {
    let mut archive = Archive::new();
    archive.request(|_, _| {}).unwrap();
    archive.begin();
    archive.request(|_, _| {}).unwrap();
    assert!(!archive.replays.is_stopping(RECORDING_ID));
    archive.replays.stop_all(Some(RECORDING_ID + 1));
    assert!(!archive.replays.is_stopping(RECORDING_ID));
    archive.replays.stop_all(Some(RECORDING_ID));
    assert!(archive.replays.is_stopping(RECORDING_ID));
    assert!(!archive.replays.is_stopping(RECORDING_ID + 1));
    archive.replay();
    assert!(!archive.replays.is_stopping(RECORDING_ID));
}

/// 07-110
#[test]
fn the_lowest_replay_position_is_the_lowest_position_of_all_replays_of_a_recording() {
    let mut archive = Archive::new();
    let lowest = |archive: &Archive| archive.replays.lowest_replay_position(RECORDING_ID);
    assert_eq!(lowest(&archive), None);
    archive
        .request(|order, _| order.range.position = 320)
        .unwrap();
    assert_eq!(lowest(&archive), Some(320));
    archive.begin();
    assert_eq!(lowest(&archive), Some(320));
    let counter = archive.driver.add_counter(900, 480);
    archive
        .request(|order, _| {
            order.range.position = 160;
            order.limit_counter_id = Some(counter.id());
        })
        .unwrap();
    archive.begin();
    assert_eq!(lowest(&archive), Some(160));
    archive.replay();
    assert_eq!(lowest(&archive), Some(480));
    assert_eq!(
        archive.replays.lowest_replay_position(RECORDING_ID + 1),
        None
    );
}

#[test]
fn a_replay_before_the_first_local_segment_holds_no_local_segment() {
    let mut archive = Archive::new();
    for position in [160, 480] {
        archive
            .request(|order, _| order.range.position = position)
            .unwrap();
    }
    let lowest = |first_base| {
        archive
            .replays
            .lowest_local_replay_position(RECORDING_ID, first_base)
    };
    assert_eq!(lowest(160), Some(160));
    assert_eq!(lowest(192), Some(480));
    assert_eq!(lowest(512), None);
}

/// 07-90
#[test]
fn a_replay_of_an_active_recording_is_bounded_by_the_position_of_the_recording() {
    let mut archive = Archive::new();
    let end = archive.recording.stop_position;
    archive.recording.stop_position = NULL_VALUE;
    let mut adding = archive
        .aeron
        .async_add_counter(100, &[], "position")
        .unwrap();
    let position = adding.wait().unwrap();
    position.set(320);
    let recording = archive.recording.clone();
    archive
        .replays
        .request(
            &archive.aeron,
            &ReplayRequested {
                requester: requester(1),
                owner: &[],
                order: &order(),
                recording: Some(&recording),
                local_start: recording.start_position,
                active_position: Some(&position),
            },
        )
        .unwrap();
    archive.begin();
    archive.replay();
    assert_eq!(
        archive.driver.publications()[0].log.producer_position(),
        320
    );
    position.set(end);
    archive.replay();
    assert_eq!(
        archive.driver.publications()[0].log.producer_position(),
        end
    );
    assert_eq!(archive.replays.count(), 1);
}

#[test]
fn close_all_revokes_all_publications() {
    let mut archive = Archive::new();
    archive
        .request(|order, _| order.stream_id = UNCONNECTED)
        .unwrap();
    archive.begin();
    archive.request(|_, _| {}).unwrap();
    archive.replays.close_all();
    assert_eq!(archive.replays.count(), 0);
    assert_eq!(archive.replay(), []);
    assert_eq!(archive.driver.publications()[0].revoked, Some(true));
}
