//! Tests of sessions without an image: when a SETUP is requested, when an image is created, and which sessions are
//! ignored.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::frame::{DataHeader, Setup, StatusMessage};

use super::rig::*;
use crate::receiver::*;

fn request() -> Seen {
    Seen::SetupRequest(SESSION, STREAM)
}

/// 02-48, 04-141, 04-142
#[test]
fn a_setup_creates_an_image_at_its_position_and_a_status_message_follows_at_once() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let at = 3 * TERM as i64 + 640;
    rig.deliver(&endpoint, &encoded(|out| setup_at(at).encode(out)));
    let requests = rig.image_requests();
    let expected = ImageRequest {
        endpoint: endpoint.id,
        destination: endpoint.destination,
        setup: setup_at(at),
        source_address: sender(),
    };
    assert_eq!(requests, [expected]);
    assert_eq!(rig.sent(), []);
    let image = rig.create_image(&requests[0], Options::default());
    let status = Seen::Status(at, WINDOW as i32, false);
    assert_eq!(rig.sent_to(), [(sender(), status)]);
    assert_eq!(image.high_water_mark(), at);
    assert_eq!(rig.count(SystemCounter::StatusMessagesSent), 1);
}

/// 04-135
#[test]
fn a_second_setup_during_the_creation_requests_no_second_image() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    for _ in 0..3 {
        rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    }
    assert_eq!(rig.image_requests().len(), 1);
}

/// 04-139
#[test]
fn the_next_setup_after_a_failed_creation_requests_an_image_again() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    for _ in 0..3 {
        rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
        assert_eq!(rig.image_requests().len(), 1);
        rig.command(ReceiverCommand::RemoveState {
            endpoint: endpoint.id,
            session: session(SESSION),
            state: ForgettableState::InitInProgress,
        });
    }
}

/// 02-49, 02-50, 04-132
#[test]
fn data_of_an_unknown_session_makes_the_receiver_request_a_setup_once_a_second() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(rig.sent_to(), [(sender(), request())]);
    for _ in 0..10 {
        rig.after(100 * MS);
        rig.deliver(&endpoint, &data(0, 64));
    }
    assert_eq!(rig.sent(), []);
    rig.after(1);
    rig.deliver(&endpoint, &heartbeat(64));
    assert_eq!(rig.sent(), [request()]);
    assert_eq!(rig.count(SystemCounter::StatusMessagesSent), 0);
}

/// 02-51
#[test]
fn a_heartbeat_that_ends_an_unknown_session_is_ignored() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.deliver(&endpoint, &heartbeat_with(0, 0xE0));
    assert_eq!(rig.sent(), []);
    rig.deliver(&endpoint, &heartbeat(0));
    assert_eq!(rig.sent(), [request()]);
}

/// 02-52, 04-134
#[test]
fn a_subscription_to_one_session_ignores_other_sessions() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(UNICAST, None);
    rig.command(ReceiverCommand::AddSubscriptionBySession {
        endpoint: endpoint.id,
        session: session(SESSION + 1),
    });
    rig.deliver(&endpoint, &data(0, 64));
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    assert_eq!(rig.sent(), []);
    assert!(rig.image_requests().is_empty());
    let other = Setup {
        session_id: SESSION + 1,
        ..setup()
    };
    rig.deliver(&endpoint, &encoded(|out| other.encode(out)));
    assert_eq!(rig.image_requests().len(), 1);
}

/// 04-131
#[test]
fn a_stream_without_a_subscription_is_ignored() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(UNICAST, None);
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM + 1,
    });
    rig.deliver(&endpoint, &data(0, 64));
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    assert_eq!(rig.sent(), []);
    assert!(rig.events().is_empty());
    assert_eq!(rig.count(SystemCounter::InvalidPackets), 0);
}

/// 04-133
#[test]
fn a_session_is_ignored_until_a_subscription_matches() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(UNICAST, None);
    rig.command(ReceiverCommand::AddSubscriptionBySession {
        endpoint: endpoint.id,
        session: session(SESSION + 1),
    });
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    rig.command(ReceiverCommand::AddSubscriptionBySession {
        endpoint: endpoint.id,
        session: session(SESSION + 2),
    });
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    assert!(rig.image_requests().is_empty());
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    assert_eq!(rig.image_requests().len(), 1);
}

/// 02-56, 04-136
#[test]
fn a_stream_has_no_more_images_than_the_limit() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint_with_limit(UNICAST, None, 1);
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.image(&endpoint, setup());
    for session_id in [SESSION + 1, SESSION] {
        let another = Setup {
            session_id,
            ..setup()
        };
        rig.deliver(&endpoint, &encoded(|out| another.encode(out)));
    }
    assert!(rig.image_requests().is_empty());
    let text = "(22) Invalid argument\nexceeded session limit, stream-id=1001\n";
    assert_eq!(rig.errors(), [(text.to_owned(), 2)]);
    assert_eq!(rig.count(SystemCounter::Errors), 2);
}

/// 02-88, 04-137
#[test]
fn a_known_control_address_is_sent_a_request_at_once_and_every_second_while_subscribed() {
    let mut rig = Rig::new();
    let control = address("127.0.0.1:24004");
    let any = [(control, Seen::SetupRequest(0, 0))];
    let endpoint = rig.endpoint(EXPLICIT, None);
    assert_eq!(
        rig.sent_to(),
        any,
        "one request at first, even without a subscription"
    );
    rig.run(2_500 * MS);
    assert_eq!(rig.sent_to(), []);
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.run(SECOND);
    assert_eq!(rig.sent_to(), any);
    rig.image(&endpoint, setup());
    rig.run(10 * SECOND);
    let requests = rig.sent().into_iter();
    let requests = requests.filter(|seen| *seen == any[0].1).count();
    assert!(
        (9..=10).contains(&requests),
        "requests continue while there is an image: {requests}"
    );
}

#[test]
fn a_known_control_address_is_sent_a_request_for_a_single_session_of_interest() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(EXPLICIT, None);
    let other = rig.endpoint(UNICAST, None);
    rig.sent();
    for endpoint in [endpoint.id, other.id] {
        rig.command(ReceiverCommand::AddSubscriptionBySession {
            endpoint,
            session: session(SESSION),
        });
        rig.command(ReceiverCommand::RequestSetup {
            endpoint,
            session: session(SESSION),
        });
    }
    let request = (address("127.0.0.1:24004"), request());
    assert_eq!(rig.sent_to(), [request.clone(), request]);
}

/// 04-138
#[test]
fn control_frames_of_a_multicast_channel_are_sent_to_the_control_group() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(MULTICAST);
    let group = address("224.20.30.42:24002");
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(rig.sent_to(), [(group, request())]);
    let image = rig.image(&endpoint, setup());
    image.status.report_missing(INITIAL_TERM, 0, 64);
    rig.after(201 * MS);
    let told: Vec<_> = rig.sent_to().into_iter().map(|(to, _)| to).collect();
    assert_eq!(told, [group, group]);
}

#[test]
fn a_requested_setup_with_a_larger_ttl_than_the_channel_is_counted() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(MULTICAST);
    let mut arrive = |session_id, ttl, is_asked_for| {
        let setup = Setup {
            session_id,
            ttl,
            ..setup()
        };
        if is_asked_for {
            let header = DataHeader {
                session_id,
                ..header_at(0)
            };
            rig.deliver(&endpoint, &data_of(header, 64));
        }
        rig.deliver(&endpoint, &encoded(|out| setup.encode(out)));
        rig.count(SystemCounter::PossibleTtlAsymmetry)
    };
    assert_eq!(arrive(1, 4, false), 0);
    assert_eq!(arrive(2, 3, true), 0);
    assert_eq!(arrive(3, 4, true), 1);
}

/// 02-63
#[test]
fn every_frame_has_the_receiver_id_of_its_endpoint() {
    let mut rig = Rig::new();
    let endpoints = [rig.subscribed(UNICAST), rig.subscribed(MULTICAST)];
    let mut ids = Vec::new();
    for endpoint in &endpoints {
        rig.deliver(endpoint, &data(0, 64));
        rig.deliver(endpoint, &encoded(|out| setup().encode(out)));
        let request = rig.image_requests().remove(0);
        rig.create_image(&request, Options::default());
        for sent in rig.network.take_sent() {
            assert_eq!(
                status_message(&sent.bytes).receiver_id,
                endpoint.receiver_id
            );
            ids.push(endpoint.receiver_id);
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 2);
}

/// 02-62
#[test]
fn every_status_message_of_a_tagged_endpoint_has_the_tag() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(EXPLICIT, Some(-77));
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.deliver(&endpoint, &data(0, 64));
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    let request = rig.image_requests().remove(0);
    rig.create_image(&request, Options::default());
    let sent = rig.network.take_sent();
    assert_eq!(sent.len(), 3);
    for sent in sent {
        assert_eq!(sent.bytes.len(), StatusMessage::MAX_LENGTH);
        assert_eq!(status_message(&sent.bytes).group_tag(), Some(-77));
    }
}
