//! Tests of status messages, error frames, RTT measurements and response setups.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::frame::{ErrorFrame, ResponseSetup, Rttm};

use super::rig::*;
use crate::sender::{DestinationControl, Destinations, Response, SenderEvent};

fn encode(length: usize, encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let used = encode(&mut bytes);
    bytes.truncate(used);
    bytes
}

fn rejection(session_id: i32, receiver_id: i64, group_tag: Option<i64>) -> Vec<u8> {
    let frame = ErrorFrame {
        session_id,
        stream_id: STREAM,
        receiver_id,
        group_tag,
        error_code: 13,
        error_text: b"no more",
    };
    encode(128, |bytes| frame.encode(bytes))
}

/// 02-30, 04-104
#[test]
fn status_messages_up_to_half_a_term_behind_and_one_and_a_half_terms_ahead_are_accepted() {
    for (distance, is_accepted) in [
        (3 * TERM / 2, true),
        (3 * TERM / 2 + 32, false),
        (-TERM / 2, true),
        (-TERM / 2 - 32, false),
    ] {
        let mut rig = Rig::new();
        let (endpoint, destinations) = rig.mdc(DestinationControl::Dynamic);
        let options = Options {
            start_position: 2 * TERM,
            ..Options::default()
        };
        let publication = rig.publication_with(endpoint, options);
        let before = publication.limit();
        rig.status(&publication, RECEIVER, before + distance, 4_096);
        let rejected = rig.count(SystemCounter::StatusMessagesRejected);
        assert_eq!(rejected, i64::from(!is_accepted), "{distance}");
        assert_eq!(rig.count(SystemCounter::StatusMessagesReceived), 1);
        assert_eq!(destinations.get(), i64::from(is_accepted));
        assert_eq!(publication.status.has_receivers(), is_accepted);
        let limit = match is_accepted {
            true => before.max(before + distance + 4_096),
            false => before,
        };
        assert_eq!(publication.limit(), limit);
    }
}

/// 02-31, 04-121
#[test]
fn the_sender_limit_is_the_end_of_the_furthest_window_and_never_decreases() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    assert_eq!(publication.limit(), i64::from(WINDOW));
    rig.status(&publication, RECEIVER, 1_024, 1_024);
    assert_eq!(publication.limit(), i64::from(WINDOW));
    rig.status(&publication, RECEIVER + 1, 1_024, WINDOW);
    assert_eq!(publication.limit(), 1_024 + i64::from(WINDOW));
}

/// 02-32, 02-34, 04-105
#[test]
fn a_publication_is_disconnected_when_its_last_receiver_leaves() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.status(&publication, RECEIVER + 1, 0, WINDOW);
    let leaves = |receiver_id| {
        let mut message = publication.status_message(receiver_id, 0, WINDOW);
        message.is_end_of_stream = true;
        message
    };
    rig.hear(&publication, &leaves(RECEIVER));
    assert!(
        publication.is_connected(),
        "the second receiver is still connected"
    );
    rig.hear(&publication, &leaves(RECEIVER + 1));
    assert!(!publication.is_connected());
    rig.status(&publication, RECEIVER, 0, WINDOW);
    assert!(publication.is_connected());
}

/// 02-33, 04-103
#[test]
fn a_receiver_that_is_silent_for_5_s_is_removed() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.after(4_999 * MS + 999_999);
    assert!(publication.status.has_receivers());
    // Now 5 s have passed since the receiver's last message.
    rig.after(1);
    assert!(!publication.status.has_receivers());
    publication
        .status
        .update_connection(publication.log.metadata());
    assert!(!publication.is_connected());
    // A receiver that continues to send status messages keeps the publication connected.
    for _ in 0..40 {
        rig.run(200 * MS);
        rig.status(&publication, RECEIVER, 0, WINDOW);
    }
    assert!(publication.status.has_receivers());
}

/// 02-35, 04-113
#[test]
fn an_rtt_measurement_gets_a_reply_at_once_with_its_timestamp() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    let request = Rttm {
        is_request: true,
        session_id: SESSION,
        stream_id: STREAM,
        echo_timestamp_ns: 0x0102_0304_0506_0708,
        reception_delta_ns: 77,
        receiver_id: RECEIVER,
    };
    let datagram = encode(64, |bytes| request.encode(bytes));
    rig.datagram(peer(), publication.control, &datagram);
    let answer = Rttm {
        is_request: false,
        reception_delta_ns: 0,
        ..request
    };
    assert_eq!(rig.seen(), [Seen::Rttm(answer)]);
    let datagram = encode(64, |bytes| answer.encode(bytes));
    rig.datagram(peer(), publication.control, &datagram);
    assert_eq!(rig.seen(), [], "a reply gets no reply");
}

/// 02-36, 02-37, 04-112
#[test]
fn a_rejection_removes_the_receiver_and_is_reported_once() {
    for group_tag in [None, Some(4)] {
        let mut rig = Rig::new();
        let publication = rig.connected();
        let datagram = rejection(SESSION, RECEIVER, group_tag);
        for _ in 0..3 {
            rig.datagram(peer(), publication.control, &datagram);
        }
        rig.cycle();
        assert_eq!(rig.count(SystemCounter::ErrorFramesReceived), 3);
        assert!(!publication.status.has_receivers());
        let events = rig.events();
        let [SenderEvent::PublicationError(report)] = events.as_slice() else {
            panic!("one event, not {events:?}");
        };
        assert_eq!(report.registration_id, publication.registration_id);
        assert_eq!((report.session_id, report.stream_id), (SESSION, STREAM));
        assert_eq!(report.receiver_id, RECEIVER);
        assert_eq!(report.group_tag, group_tag.unwrap_or(-1));
        assert_eq!(report.destination_registration_id, -1);
        assert_eq!(report.source, peer());
        assert_eq!((report.error_code, &*report.message), (13, &b"no more"[..]));
        // The receiver is alive again, and rejects the publication again.
        rig.status(&publication, RECEIVER, 0, WINDOW);
        rig.datagram(peer(), publication.control, &datagram);
        assert_eq!(rig.events().len(), 1);
    }
}

#[test]
fn a_rejection_by_an_unknown_receiver_or_of_an_unknown_stream_is_only_counted_02_36() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.datagram(peer(), publication.control, &rejection(SESSION, 5, None));
    rig.datagram(peer(), publication.control, &rejection(9, RECEIVER, None));
    assert_eq!(rig.count(SystemCounter::ErrorFramesReceived), 2);
    assert_eq!(rig.events(), []);
    assert!(publication.status.has_receivers());
}

#[test]
fn a_response_setup_is_reported_only_if_the_publication_requests_responses_02_38() {
    let frame = ResponseSetup {
        session_id: SESSION,
        stream_id: STREAM,
        response_session_id: 4711,
    };
    let datagram = encode(64, |bytes| frame.encode(bytes));
    let response_correlation_id = 12;
    for (response, is_told) in [
        (Response::None, false),
        (
            Response::Given {
                response_correlation_id,
            },
            false,
        ),
        (
            Response::Requested {
                response_correlation_id,
            },
            true,
        ),
    ] {
        let mut rig = Rig::new();
        let endpoint = rig.unicast();
        let options = Options {
            response,
            ..Options::default()
        };
        let publication = rig.publication_with(endpoint, options);
        rig.datagram(peer(), publication.control, &datagram);
        let told = SenderEvent::ResponseSetup {
            response_correlation_id,
            response_session_id: 4711,
        };
        let expected = if is_told { vec![told] } else { vec![] };
        assert_eq!(rig.events(), expected);
    }
}

#[test]
fn the_first_receiver_of_a_response_publication_is_reported_02_90() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(Destinations::PerPublication, None);
    let response = Response::Given {
        response_correlation_id: 55,
    };
    let options = Options {
        response,
        ..Options::default()
    };
    let publication = rig.publication_with(endpoint, options);
    rig.hear(&publication, &publication.setup_request(RECEIVER));
    assert_eq!(rig.events(), []);
    for receiver_id in [RECEIVER, RECEIVER, RECEIVER + 1] {
        rig.status(&publication, receiver_id, 0, WINDOW);
    }
    let connected = SenderEvent::ResponseConnected {
        response_correlation_id: 55,
    };
    assert_eq!(rig.events(), [connected]);
}

#[test]
fn a_connected_sender_receives_only_from_its_peer_02_82() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    let message = publication.status_message(RECEIVER, 0, WINDOW);
    rig.hear_from(address("127.0.0.1:5001"), publication.control, &message);
    assert_eq!(rig.count(SystemCounter::StatusMessagesReceived), 0);
    rig.hear_from(peer(), publication.control, &message);
    assert_eq!(rig.count(SystemCounter::StatusMessagesReceived), 1);
}

#[test]
fn control_frames_are_read_every_sixth_duty_cycle_while_data_is_sent() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    rig.status(&publication, RECEIVER, 0, WINDOW);
    let mut cycles = Vec::new();
    for _ in 0..3 {
        let message = publication.status_message(RECEIVER, publication.position(), WINDOW);
        let mut datagram = [0; 64];
        let length = message.encode(&mut datagram);
        rig.network
            .deliver(peer(), publication.control, &datagram[..length]);
        let before = rig.count(SystemCounter::StatusMessagesReceived);
        let mut count = 0;
        while rig.count(SystemCounter::StatusMessagesReceived) == before {
            publication.offer(100);
            rig.cycle();
            count += 1;
        }
        cycles.push(count);
    }
    assert_eq!(cycles[1..], [6, 6], "every sixth cycle, as configured");
    // After half of the status message timeout, the sender polls even if it sends data.
    publication.offer(100);
    let message = publication.status_message(RECEIVER, publication.position(), WINDOW);
    let mut datagram = [0; 64];
    let length = message.encode(&mut datagram);
    rig.network
        .deliver(peer(), publication.control, &datagram[..length]);
    let before = rig.count(SystemCounter::StatusMessagesReceived);
    rig.after(101 * MS);
    assert_eq!(rig.count(SystemCounter::StatusMessagesReceived), before + 1);
}
