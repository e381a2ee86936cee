//! Tests the exchange with messages that a real archive never sends, or that a test cannot make a real archive send.

use aeron_protocol::archive::{
    ArchiveErrorCode, ArchiveRequest, ArchiveResponse, Challenge, ControlResponse,
    ControlResponseCode, Ping, RecordingDescriptorMessage, RecordingSignal, RecordingSignalEvent,
    RecordingSubscriptionDescriptor, RequestIds,
};
use proptest::prelude::*;

use super::aeron_archive::{AeronArchive, AsyncConnect};
use super::call::{ArchiveCall, Ticket};
use super::error::{ArchiveClientError, Result};
use super::exchange::{Exchange, MAX_QUEUED_SIGNALS, SendOutcome};
use super::operation::ArchiveOperation;
use super::session::ArchiveSession;
use crate::catalog::RecordingDescriptor;

const SESSION: i64 = 77;
const TIMEOUT_NS: i64 = 1_000;

/// An exchange, the requests that it has sent, and the time.
struct Peer {
    exchange: Exchange,
    sent: Vec<i64>,
    now_ns: i64,
    next_id: i64,
}

impl Peer {
    fn new() -> Self {
        Self {
            exchange: Exchange::new(SESSION, TIMEOUT_NS),
            sent: Vec::new(),
            now_ns: 0,
            next_id: 1,
        }
    }

    fn submit<T>(&mut self, call: &ArchiveCall<T>) -> Ticket<T> {
        let correlation_id = self.next_id;
        self.next_id += 1;
        let ids = RequestIds {
            control_session_id: SESSION,
            correlation_id,
        };
        self.exchange.begin(call.request(ids), self.now_ns);
        self.send();
        call.ticket(correlation_id)
    }

    fn send(&mut self) {
        let sent = &mut self.sent;
        self.exchange.send(self.now_ns, |id, _, message| {
            ArchiveRequest::decode(message).unwrap();
            sent.push(id);
            SendOutcome::Sent
        });
    }

    fn receive(&mut self, response: &ArchiveResponse<'_>) {
        self.exchange.on_message(&encoded(response), self.now_ns);
    }

    fn answer(&mut self, correlation_id: i64, code: ControlResponseCode, relevant_id: i64) {
        self.receive(&control_response(
            SESSION,
            correlation_id,
            code,
            relevant_id,
        ));
    }

    fn describe(&mut self, correlation_id: i64, recording_id: i64) {
        self.receive(&recording(correlation_id, recording_id));
    }

    fn take<T>(&mut self, ticket: &Ticket<T>) -> Option<Result<T>> {
        let outcome = self.exchange.take(ticket.correlation_id())?;
        Some(ticket.result(outcome))
    }

    fn wait(&mut self, duration_ns: i64) {
        self.now_ns += duration_ns;
        self.exchange.expire(self.now_ns);
        self.send();
    }
}

fn encoded(response: &ArchiveResponse<'_>) -> Vec<u8> {
    let mut message = vec![0; response.encoded_length()];
    response.encode(&mut message).unwrap();
    message
}

fn control_response(
    control_session_id: i64,
    correlation_id: i64,
    code: ControlResponseCode,
    relevant_id: i64,
) -> ArchiveResponse<'static> {
    ArchiveResponse::ControlResponse(ControlResponse {
        control_session_id,
        correlation_id,
        relevant_id,
        code,
        version: 0,
        error_message: b"words of the archive",
    })
}

fn recording(correlation_id: i64, recording_id: i64) -> ArchiveResponse<'static> {
    ArchiveResponse::RecordingDescriptor(RecordingDescriptorMessage {
        control_session_id: SESSION,
        correlation_id,
        recording_id,
        start_timestamp_ms: 0,
        stop_timestamp_ms: -1,
        start_position: 0,
        stop_position: -1,
        initial_term_id: 0,
        segment_length: 65536,
        term_length: 65536,
        mtu_length: 1408,
        session_id: 1,
        stream_id: 2,
        stripped_channel: b"aeron:ipc",
        original_channel: b"aeron:ipc?alias=\xff",
        source_identity: b"aeron:ipc",
    })
}

fn subscription(correlation_id: i64) -> ArchiveResponse<'static> {
    ArchiveResponse::RecordingSubscriptionDescriptor(RecordingSubscriptionDescriptor {
        control_session_id: SESSION,
        correlation_id,
        subscription_id: 5,
        stream_id: 2,
        stripped_channel: b"aeron:ipc",
    })
}

fn signal(position: i64) -> ArchiveResponse<'static> {
    ArchiveResponse::RecordingSignal(RecordingSignalEvent {
        control_session_id: SESSION,
        correlation_id: 1,
        recording_id: 2,
        subscription_id: 3,
        position,
        signal: RecordingSignal::Start,
    })
}

fn ids(recordings: &[RecordingDescriptor]) -> Vec<i64> {
    recordings.iter().map(|it| it.recording_id).collect()
}

#[test]
fn clients_sessions_and_operations_are_send() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<AeronArchive>();
    assert_sync::<AeronArchive>();
    assert_send::<ArchiveCall<i64>>();
    assert_sync::<ArchiveCall<i64>>();
    assert_send::<AsyncConnect>();
    assert_send::<ArchiveSession>();
    assert_send::<ArchiveOperation<i64>>();
    assert_send::<ArchiveClientError>();
    assert_sync::<ArchiveClientError>();
}

#[test]
fn responses_may_arrive_in_another_order_than_their_requests() {
    let mut peer = Peer::new();
    let start = peer.submit(&ArchiveCall::start_position(1));
    let stop = peer.submit(&ArchiveCall::stop_position(1));
    peer.answer(stop.correlation_id(), ControlResponseCode::Ok, -1);
    assert!(peer.take(&start).is_none());
    assert_eq!(peer.take(&stop).unwrap().unwrap(), None);
    peer.answer(start.correlation_id(), ControlResponseCode::Ok, 4096);
    assert_eq!(peer.take(&start).unwrap().unwrap(), 4096);
    assert!(peer.take(&start).is_none());
}

#[test]
fn messages_of_other_control_sessions_are_ignored() {
    let mut peer = Peer::new();
    let ticket = peer.submit(&ArchiveCall::start_position(1));
    let id = ticket.correlation_id();
    peer.receive(&control_response(
        SESSION + 1,
        id,
        ControlResponseCode::Ok,
        1,
    ));
    peer.receive(&control_response(
        SESSION + 1,
        99,
        ControlResponseCode::Error,
        1,
    ));
    assert!(peer.take(&ticket).is_none());
    assert!(peer.exchange.take_error().is_none());
}

/// 07-125
#[test]
fn the_error_of_a_refused_request_has_the_code_and_the_correlation_id() {
    let mut peer = Peer::new();
    let ticket = peer.submit(&ArchiveCall::purge_recording(9));
    peer.answer(ticket.correlation_id(), ControlResponseCode::Error, 5);
    let error = peer.take(&ticket).unwrap().unwrap_err();
    assert_eq!(
        error.archive_code(),
        Some(ArchiveErrorCode::UnknownRecording)
    );
    assert_eq!(error.correlation_id(), Some(ticket.correlation_id()));
    assert_eq!(
        error.to_string(),
        "purge recording: response for correlationId=1, errorCode=5, error: words of the archive"
    );
}

/// 07-125
#[test]
fn an_error_that_no_request_waits_for_is_queued() {
    let mut peer = Peer::new();
    let replay = peer.submit(&ArchiveCall::start_replay(
        1,
        "aeron:ipc",
        2,
        &Default::default(),
    ));
    let id = replay.correlation_id();
    peer.answer(id, ControlResponseCode::Ok, 1 << 32);
    peer.answer(id, ControlResponseCode::Error, 0);
    assert_eq!(peer.take(&replay).unwrap().unwrap(), 1 << 32);
    let error = peer.exchange.take_error().unwrap();
    assert_eq!(error.correlation_id(), Some(id));
    assert!(error.to_string().starts_with("start replay: "), "{error}");
    assert!(peer.exchange.take_error().is_none());
    let of_replay = peer.exchange.error_of_replay(1 << 32).unwrap();
    assert_eq!(of_replay.correlation_id(), Some(id));
    assert!(peer.exchange.error_of_replay(2 << 32).is_none());
}

/// 11-78
#[test]
fn the_last_error_that_no_request_waits_for_stays_readable_after_the_queue_is_empty() {
    let mut peer = Peer::new();
    peer.answer(90, ControlResponseCode::Error, 5);
    let seen = peer.exchange.unclaimed_refusals().count();
    let last = |peer: &Peer| {
        let error = peer.exchange.unclaimed_refusals().last_after(seen)?;
        error.correlation_id()
    };
    let ticket = peer.submit(&ArchiveCall::purge_recording(9));
    peer.answer(ticket.correlation_id(), ControlResponseCode::Error, 5);
    assert_eq!(last(&peer), None);
    peer.answer(91, ControlResponseCode::Ok, 5);
    assert_eq!(last(&peer), None);
    peer.answer(92, ControlResponseCode::Error, 5);
    assert_eq!(last(&peer), Some(92));
    while peer.exchange.take_error().is_some() {}
    assert_eq!(last(&peer), Some(92));
}

#[test]
fn a_listing_ends_after_its_count_or_with_the_response_recording_unknown() {
    let mut peer = Peer::new();
    let full = peer.submit(&ArchiveCall::list_recordings(0, 2));
    peer.describe(full.correlation_id(), 3);
    assert!(peer.take(&full).is_none());
    peer.describe(full.correlation_id(), 8);
    let recordings = peer.take(&full).unwrap().unwrap();
    assert_eq!(ids(&recordings), [3, 8]);
    assert_eq!(&*recordings[0].original_channel, "aeron:ipc?alias=\u{fffd}");

    let short = peer.submit(&ArchiveCall::list_recordings(0, 2));
    peer.describe(short.correlation_id(), 3);
    peer.answer(
        short.correlation_id(),
        ControlResponseCode::RecordingUnknown,
        9,
    );
    assert_eq!(ids(&peer.take(&short).unwrap().unwrap()), [3]);

    let one = peer.submit(&ArchiveCall::list_recording(4));
    peer.answer(
        one.correlation_id(),
        ControlResponseCode::RecordingUnknown,
        4,
    );
    assert_eq!(peer.take(&one).unwrap().unwrap(), None);
}

#[test]
fn a_listing_with_a_count_of_zero_or_less_is_not_sent() {
    let mut peer = Peer::new();
    for count in [0, -1, i32::MIN] {
        let ticket = peer.submit(&ArchiveCall::list_recordings(0, count));
        assert_eq!(peer.take(&ticket).unwrap().unwrap(), []);
    }
    assert_eq!(peer.sent, []);
}

#[test]
fn descriptors_of_another_kind_than_requested_are_ignored() {
    let mut peer = Peer::new();
    let ticket = peer.submit(&ArchiveCall::list_recording_subscriptions(0, 1, "", None));
    let id = ticket.correlation_id();
    peer.describe(id, 3);
    assert!(peer.take(&ticket).is_none());
    peer.receive(&subscription(id));
    assert_eq!(peer.take(&ticket).unwrap().unwrap()[0].subscription_id, 5);

    let value = peer.submit(&ArchiveCall::start_position(1));
    peer.describe(value.correlation_id(), 3);
    assert!(peer.take(&value).is_none());
}

#[test]
fn listings_are_sent_one_after_the_other_and_other_requests_at_once() {
    let mut peer = Peer::new();
    let first = peer.submit(&ArchiveCall::list_recordings(0, 1));
    let second = peer.submit(&ArchiveCall::update_channel(1, "aeron:ipc"));
    let third = peer.submit(&ArchiveCall::list_recording(1));
    let value = peer.submit(&ArchiveCall::start_position(1));
    assert_eq!(peer.sent, [first.correlation_id(), value.correlation_id()]);
    peer.describe(first.correlation_id(), 3);
    peer.send();
    assert_eq!(peer.sent.last(), Some(&second.correlation_id()));
    peer.answer(second.correlation_id(), ControlResponseCode::Ok, 0);
    peer.send();
    assert_eq!(peer.sent.last(), Some(&third.correlation_id()));
    assert_eq!(peer.sent.len(), 4);
}

#[test]
fn an_abandoned_listing_blocks_other_listings_until_the_archive_has_ended_it() {
    let mut peer = Peer::new();
    let dropped = peer.submit(&ArchiveCall::list_recordings(0, 2));
    let next = peer.submit(&ArchiveCall::list_recordings(0, 2));
    let withdrawn = peer.submit(&ArchiveCall::list_recordings(0, 2));
    peer.exchange.abandon(dropped.correlation_id());
    peer.exchange.abandon(withdrawn.correlation_id());
    peer.describe(dropped.correlation_id(), 1);
    peer.send();
    assert_eq!(peer.sent, [dropped.correlation_id()]);
    peer.describe(dropped.correlation_id(), 2);
    peer.send();
    assert_eq!(peer.sent, [dropped.correlation_id(), next.correlation_id()]);
    assert!(peer.take(&dropped).is_none());
    peer.answer(
        next.correlation_id(),
        ControlResponseCode::RecordingUnknown,
        0,
    );
    peer.send();
    assert_eq!(peer.sent.len(), 2);
}

/// 07-124
#[test]
fn a_request_without_response_fails_after_the_message_timeout() {
    let mut peer = Peer::new();
    let ticket = peer.submit(&ArchiveCall::start_position(1));
    peer.wait(TIMEOUT_NS);
    assert!(peer.take(&ticket).is_none());
    peer.wait(1);
    let error = peer.take(&ticket).unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "start position: awaiting a response for 1µs, correlationId=1"
    );
}

/// 11-20
#[test]
fn a_replay_that_starts_after_its_request_has_expired_is_noticed_once() {
    let mut peer = Peer::new();
    let replay = peer.submit(&ArchiveCall::start_replay(
        1,
        "aeron:ipc",
        2,
        &Default::default(),
    ));
    let id = replay.correlation_id();
    peer.wait(TIMEOUT_NS + 1);
    assert!(peer.take(&replay).unwrap().is_err());
    peer.exchange.await_late_value(id);
    for _ in 0..2 {
        peer.answer(id, ControlResponseCode::Ok, 1 << 32);
    }
    assert_eq!(peer.exchange.take_late_value(), Some(1 << 32));
    assert_eq!(peer.exchange.take_late_value(), None);
}

/// 07-124
#[test]
fn a_back_pressured_request_fails_after_the_message_timeout() {
    let mut peer = Peer::new();
    let ids = RequestIds {
        control_session_id: SESSION,
        correlation_id: 1,
    };
    let call = ArchiveCall::start_position(1);
    peer.exchange.begin(call.request(ids), 0);
    peer.exchange.send(0, |_, _, _| SendOutcome::BackPressured);
    peer.exchange.expire(TIMEOUT_NS + 1);
    let error = peer.take(&call.ticket(1)).unwrap().unwrap_err();
    assert!(error.to_string().contains("room on the request stream"));
    peer.send();
    assert_eq!(peer.sent, []);
}

/// 07-124: the timeout starts again with each descriptor, and when a queued listing is sent.
#[test]
fn the_timeout_restarts_with_each_descriptor_and_when_a_queued_listing_is_sent() {
    let mut peer = Peer::new();
    let first = peer.submit(&ArchiveCall::list_recordings(0, 3));
    let second = peer.submit(&ArchiveCall::list_recordings(0, 3));
    peer.wait(TIMEOUT_NS);
    peer.describe(first.correlation_id(), 1);
    peer.wait(TIMEOUT_NS);
    assert!(peer.take(&first).is_none());
    peer.wait(1);
    let error = peer.take(&first).unwrap().unwrap_err();
    assert!(error.to_string().contains("the next descriptor"), "{error}");
    peer.wait(TIMEOUT_NS);
    assert!(peer.take(&second).is_none());
    peer.wait(1);
    assert!(peer.take(&second).unwrap().is_err());
}

#[test]
fn the_end_of_the_session_fails_outstanding_requests_and_keeps_finished_results() {
    let mut peer = Peer::new();
    let finished = peer.submit(&ArchiveCall::start_position(1));
    let sent = peer.submit(&ArchiveCall::list_recordings(0, 1));
    let queued = peer.submit(&ArchiveCall::list_recordings(0, 1));
    peer.answer(finished.correlation_id(), ControlResponseCode::Ok, 32);
    peer.exchange.fail_all(&ArchiveClientError::Disconnected);
    assert_eq!(peer.take(&finished).unwrap().unwrap(), 32);
    for ticket in [sent, queued] {
        let error = peer.take(&ticket).unwrap().unwrap_err();
        assert!(matches!(error, ArchiveClientError::Disconnected));
    }
}

#[test]
fn a_channel_update_of_an_unknown_recording_is_refused() {
    let mut peer = Peer::new();
    let ticket = peer.submit(&ArchiveCall::update_channel(9, "aeron:ipc"));
    peer.answer(
        ticket.correlation_id(),
        ControlResponseCode::RecordingUnknown,
        9,
    );
    let error = peer.take(&ticket).unwrap().unwrap_err();
    assert_eq!(
        error.archive_code(),
        Some(ArchiveErrorCode::UnknownRecording)
    );
}

#[test]
fn a_response_of_the_wrong_kind_fails_the_request() {
    let mut peer = Peer::new();
    let listing = peer.submit(&ArchiveCall::list_recordings(0, 1));
    peer.answer(listing.correlation_id(), ControlResponseCode::Ok, 0);
    let error = peer.take(&listing).unwrap().unwrap_err();
    assert!(matches!(
        error,
        ArchiveClientError::UnexpectedResponse { .. }
    ));
}

/// If nothing is recorded, `stop_recording` returns an error.
#[test]
fn try_stop_recording_returns_false_if_nothing_is_recorded() {
    let mut peer = Peer::new();
    let unknown_subscription = ArchiveErrorCode::UnknownSubscription.value().into();
    let stop = peer.submit(&ArchiveCall::try_stop_recording("aeron:ipc", 1));
    peer.answer(
        stop.correlation_id(),
        ControlResponseCode::Error,
        unknown_subscription,
    );
    assert!(!peer.take(&stop).unwrap().unwrap());
    let stop = peer.submit(&ArchiveCall::stop_recording("aeron:ipc", 1));
    peer.answer(
        stop.correlation_id(),
        ControlResponseCode::Error,
        unknown_subscription,
    );
    assert!(peer.take(&stop).unwrap().is_err());
}

#[test]
fn a_full_queue_of_signals_drops_the_oldest_signal() {
    let mut peer = Peer::new();
    let count = MAX_QUEUED_SIGNALS as i64 + 2;
    for position in 0..count {
        peer.receive(&signal(position));
    }
    assert_eq!(peer.exchange.lost_signals(), 2);
    assert_eq!(peer.exchange.received_signals(), count as u64);
    assert_eq!(peer.exchange.take_signal().unwrap().position, 2);
}

/// 07-8, 07-9
#[test]
fn an_unknown_message_is_ignored_and_a_message_of_another_schema_is_an_error() {
    let mut peer = Peer::new();
    let mut message = encoded(&ArchiveResponse::Ping(Ping {
        control_session_id: SESSION,
    }));
    peer.exchange.on_message(&message, 0);
    message[2] = 0xff;
    peer.exchange.on_message(&message, 0);
    assert!(peer.exchange.take_error().is_none());
    message[4] = 0xff;
    peer.exchange.on_message(&message, 0);
    let error = peer.exchange.take_error().unwrap();
    assert!(matches!(error, ArchiveClientError::MalformedResponse(_)));
}

fn any_response() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..4_i64, 0..4_i64, -2..20_i64).prop_map(|(id, code, value)| {
            let code = ControlResponseCode::from_value(code as i32).unwrap();
            encoded(&control_response(SESSION, id, code, value))
        }),
        (0..4_i64, any::<i64>())
            .prop_map(|(id, recording_id)| encoded(&recording(id, recording_id))),
        (0..4_i64).prop_map(|id| encoded(&subscription(id))),
        any::<i64>().prop_map(|position| encoded(&signal(position))),
        any::<i64>().prop_map(|id| encoded(&ArchiveResponse::Challenge(Challenge {
            control_session_id: SESSION,
            correlation_id: id,
            encoded_challenge: b"again",
        }))),
    ]
}

proptest! {
    /// 07-11, 07-13
    #[test]
    fn a_damaged_or_short_message_does_not_cause_a_panic(
        messages in prop::collection::vec((any_response(), any::<(usize, usize, u8)>()), 1..40)
    ) {
        let mut peer = Peer::new();
        let listing = peer.submit(&ArchiveCall::list_recordings(0, 3));
        let value = peer.submit(&ArchiveCall::start_position(1));
        let subscriptions = peer.submit(&ArchiveCall::list_recording_subscriptions(0, 2, "", None));
        for (mut message, (end, place, byte)) in messages {
            let length = message.len();
            if end % 3 == 0 {
                message.truncate(end % (length + 1));
            }
            if let Some(changed) = message.get_mut(place % (2 * length)) {
                *changed = byte;
            }
            peer.exchange.on_message(&message, peer.now_ns);
            peer.wait(1);
        }
        peer.wait(10 * TIMEOUT_NS);
        peer.wait(10 * TIMEOUT_NS);
        if let Some(Ok(recordings)) = peer.take(&listing) {
            prop_assert!(recordings.len() <= 3);
        }
        prop_assert!(peer.take(&value).is_some());
        prop_assert!(peer.take(&subscriptions).is_some());
    }
}
