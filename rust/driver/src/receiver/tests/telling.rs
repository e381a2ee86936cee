//! Tests of the control frames that an image sends to its sources.

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::frame;
use aeron_protocol::frame::{ErrorFrame, Nak, ResponseSetup, Rttm};

use super::rig::*;
use crate::congestion::{RttMeter, RttShared};
use crate::receiver::*;

fn status(position: i64) -> Seen {
    Seen::Status(position, WINDOW as i32, false)
}

fn nak(term_offset: i32, length: i32) -> Seen {
    Seen::Nak(Nak {
        session_id: SESSION,
        stream_id: STREAM,
        term_id: INITIAL_TERM,
        term_offset,
        length,
    })
}

/// 04-142: the receiver's part of 02-57.
#[test]
fn a_status_message_is_sent_when_it_is_scheduled_and_repeated_after_200_ms() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.after(200 * MS);
    assert_eq!(rig.sent(), []);
    rig.after(1);
    assert_eq!(rig.sent(), [status(0)]);
    rig.after(MS);
    image.status.schedule_status_message(640, WINDOW);
    rig.after(MS);
    assert_eq!(rig.sent(), [status(640)]);
    rig.after(200 * MS);
    assert_eq!(rig.sent(), []);
    rig.after(1);
    assert_eq!(rig.sent(), [status(640)], "the scheduled position again");
    assert_eq!(rig.count(SystemCounter::StatusMessagesSent), 4);
}

/// 02-59
#[test]
fn status_messages_come_from_the_socket_that_receives_the_data() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.image(&endpoint, setup());
    rig.after(201 * MS);
    let sent = rig.network.take_sent();
    assert_eq!((sent[0].from, sent[0].to), (endpoint.address, sender()));
}

/// 02-60: the receiver only stops the control frames. The conductor decides whether the image ends.
#[test]
fn a_source_that_is_silent_for_five_seconds_is_sent_no_control_frames() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.run(5 * SECOND - MS);
    assert_eq!(rig.sent().len(), 24);
    image.status.report_missing(INITIAL_TERM, 0, 64);
    rig.run(SECOND);
    assert_eq!(rig.sent(), []);
    rig.deliver(&endpoint, &heartbeat(0));
    rig.run(SECOND);
    assert!(rig.sent().len() >= 4);
}

/// 02-61, 04-152: the conductor decides for how long the receiver announces the end.
#[test]
fn the_status_messages_of_an_ending_image_announce_that_the_receiver_leaves() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    image.status.begin_ending();
    rig.run(1_100 * MS);
    let ending = Seen::Status(0, WINDOW as i32, true);
    assert_eq!(rig.sent(), vec![ending; 5]);
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    assert!(matches!(
        rig.events()[..],
        [ReceiverEvent::ImageReleased(id)] if id == image.correlation_id
    ));
    rig.run(SECOND);
    assert_eq!(rig.sent(), []);
}

#[test]
fn a_requested_status_message_is_sent_once_in_the_next_duty_cycle() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    image.status.request_status_message();
    rig.cycle();
    rig.cycle();
    assert_eq!(rig.sent(), [status(0)]);
}

/// A message that the socket cannot accept now is counted. Other failures go to the error log.
#[test]
fn a_status_message_that_is_not_sent_is_counted_or_recorded_as_an_error() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.image(&endpoint, setup());
    rig.network.set_room(Some(0));
    rig.after(201 * MS);
    assert_eq!(rig.count(SystemCounter::ShortSends), 1);
    assert_eq!(rig.errors(), []);
    rig.network
        .fail_sends(Some(std::io::ErrorKind::PermissionDenied));
    rig.after(201 * MS);
    rig.after(201 * MS);
    let errors = rig.errors();
    assert_eq!(errors.len(), 1);
    let text = "failed to send to the source of a datagram";
    assert!(errors[0].0.contains(text), "{errors:?}");
    assert_eq!(errors[0].1, 2);
}

/// 04-147: the receiver's part.
#[test]
fn each_report_of_missing_bytes_causes_one_nak() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &data(640, 64));
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.cycle();
    rig.cycle();
    assert_eq!(rig.sent(), [nak(0, 640)]);
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.cycle();
    assert_eq!(rig.sent(), [nak(0, 640)]);
    assert_eq!(rig.count(SystemCounter::NaksSent), 2);
    assert_eq!(image.naks_sent.get(), 2);
}

/// 02-81, 04-149
#[test]
fn missing_bytes_of_an_unreliable_stream_are_replaced_by_padding() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let options = Options {
        is_reliable: false,
        ..Options::default()
    };
    let image = rig.image_with(&endpoint, setup(), options);
    rig.deliver(&endpoint, &data(640, 64));
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.cycle();
    assert_eq!(rig.sent(), []);
    assert_eq!(rig.count(SystemCounter::LossGapFills), 1);
    let header = image.bytes(0, 32);
    assert_eq!(header[..4], 640i32.to_le_bytes());
    assert_eq!(header[6..8], frame::frame_type::PADDING.to_le_bytes());
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(
        image.bytes(0, 32),
        header,
        "data for a filled gap is ignored"
    );
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.cycle();
    assert_eq!(rig.count(SystemCounter::LossGapFills), 1);
}

/// 02-71. 04-160: the receiver's part.
#[test]
fn the_sources_of_a_rejected_image_get_only_error_frames() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(UNICAST, Some(5));
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    let image = rig.image(&endpoint, setup());
    let begin_ns = image.status.time_of_last_packet_ns();
    rig.command(ReceiverCommand::RejectImage {
        correlation_id: image.correlation_id,
        reason: b"no".as_slice().into(),
    });
    rig.deliver(&endpoint, &data(0, 64));
    image.status.schedule_status_message(640, WINDOW);
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.run(1_010 * MS);
    let sent = rig.network.take_sent();
    assert_eq!(sent.len(), 5);
    let expected = ErrorFrame {
        session_id: SESSION,
        stream_id: STREAM,
        receiver_id: endpoint.receiver_id,
        group_tag: Some(5),
        error_code: 13,
        error_text: b"no",
    };
    for sent in &sent {
        assert_eq!(ErrorFrame::decode(&sent.bytes), Ok(expected));
    }
    assert_eq!(rig.count(SystemCounter::ErrorFramesSent), 5);
    assert!(image.is_empty());
    assert_eq!(image.status.time_of_last_packet_ns(), begin_ns);
    rig.run(10 * SECOND);
    assert!(
        !rig.sent().is_empty(),
        "a silent source gets error frames too"
    );
}

/// 02-91, 04-168: the receiver's part.
#[test]
fn the_session_of_a_response_is_sent_with_every_repeated_status_message() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let response = Seen::ResponseSetup(ResponseSetup {
        session_id: SESSION,
        stream_id: STREAM,
        response_session_id: -5,
    });
    image.status.set_response_session_id(Some(-5));
    image.status.schedule_status_message(64, WINDOW);
    rig.cycle();
    assert_eq!(rig.sent(), [status(64)]);
    for _ in 0..2 {
        rig.after(201 * MS);
        assert_eq!(rig.sent(), [response.clone(), status(64)]);
    }
    image.status.set_response_session_id(None);
    rig.after(201 * MS);
    assert_eq!(rig.sent(), [status(64)]);
}

fn measurement(is_request: bool, receiver_id: i64, echo_timestamp_ns: i64) -> Rttm {
    Rttm {
        is_request,
        session_id: SESSION,
        stream_id: STREAM,
        echo_timestamp_ns,
        reception_delta_ns: 0,
        receiver_id,
    }
}

/// 02-73
#[test]
fn an_rtt_measurement_for_this_receiver_or_for_any_receiver_gets_a_reply() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.image(&endpoint, setup());
    for receiver_id in [endpoint.receiver_id, 0] {
        let request = measurement(true, receiver_id, 99);
        rig.deliver(&endpoint, &encoded(|out| request.encode(out)));
        let answer = measurement(false, endpoint.receiver_id, 99);
        assert_eq!(rig.sent_to(), [(sender(), Seen::Rttm(answer))]);
    }
    let for_another = measurement(true, endpoint.receiver_id + 1, 99);
    let of_another = Rttm {
        session_id: SESSION + 1,
        ..measurement(true, 0, 99)
    };
    let answer = measurement(false, 0, 99);
    for ignored in [for_another, of_another, answer] {
        rig.deliver(&endpoint, &encoded(|out| ignored.encode(out)));
    }
    assert_eq!(rig.sent(), []);
    assert_eq!(rig.count(SystemCounter::InvalidPackets), 0);
}

/// 02-74; 04-166: the receiver's part.
#[test]
fn round_trips_are_measured_if_congestion_control_uses_them() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let (rtt, shown) = (RttShared::new(100_000), rig.counter());
    let options = Options {
        rtt_meter: Some(RttMeter::new(rtt.clone(), shown.clone(), rig.now_ns)),
        ..Options::default()
    };
    rig.image_with(&endpoint, setup(), options);
    rig.after(400_001);
    let request = measurement(true, endpoint.receiver_id, rig.now_ns);
    assert_eq!(rig.sent_to(), [(sender(), Seen::Rttm(request))]);
    let answer = Rttm {
        is_request: false,
        ..request
    };
    rig.now_ns += 300_000;
    rig.deliver(&endpoint, &encoded(|out| answer.encode(out)));
    assert_eq!((rtt.get_ns(), shown.get()), (300_000, 300_000));
    rig.after(1_200_000);
    assert_eq!(rig.sent(), []);
    rig.after(1);
    assert_eq!(rig.sent().len(), 1);
}

/// 02-74
#[test]
fn round_trips_are_not_measured_if_congestion_control_does_not_use_them() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.image(&endpoint, setup());
    rig.run(150 * MS);
    assert_eq!(rig.sent(), []);
}
