//! Tests of floods: hundreds of thousands of invented sessions use only a bounded amount of memory.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::frame::{DataHeader, Setup};

use super::rig::*;
use crate::receiver::*;

fn data_of_session(session_id: i32) -> Vec<u8> {
    let header = DataHeader {
        session_id,
        ..header_at(0)
    };
    data_of(header, 32)
}

fn setup_of_session(session_id: i32) -> Vec<u8> {
    let setup = Setup {
        session_id,
        ..setup()
    };
    encoded(|out| setup.encode(out))
}

#[test]
fn in_a_flood_of_sessions_the_oldest_are_forgotten_and_the_error_is_recorded_once() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let flood = MAX_REMEMBERED_SESSIONS as i32 + 100;
    for session_id in 0..flood {
        rig.network.deliver(
            sender(),
            endpoint.address,
            &data_of_session(1_000 + session_id),
        );
        if session_id % 4 == 0 {
            rig.cycle();
            rig.network.take_sent();
        }
    }
    rig.cycle();
    let text = "(22) Invalid argument\nmore than 65536 sessions, the oldest are forgotten: \
        channel=aeron:udp?endpoint=127.0.0.1:24001\n";
    assert_eq!(rig.errors(), [(text.to_owned(), 1)]);
    rig.sent();
    rig.deliver(&endpoint, &data_of_session(1_000));
    assert_eq!(
        rig.sent(),
        [Seen::SetupRequest(1_000, STREAM)],
        "the oldest was forgotten"
    );
    rig.deliver(&endpoint, &data_of_session(1_000 + flood - 1));
    assert_eq!(rig.sent(), [], "the newest is still remembered");
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(image.high_water_mark(), 64, "an image stays");
    rig.after(SECOND + 1);
    rig.deliver(&endpoint, &data_of_session(1_000 + flood - 1));
    let request = Seen::SetupRequest(1_000 + flood - 1, STREAM);
    assert!(rig.sent().contains(&request), "requests expire");
}

#[test]
fn a_flood_of_sessions_at_several_endpoints_causes_a_bounded_number_of_requests() {
    let mut rig = Rig::new();
    let endpoints = [rig.subscribed(UNICAST), rig.subscribed(MULTICAST)];
    for session_id in 0..MAX_PENDING_SETUPS as i32 / 2 + 100 {
        let datagram = data_of_session(session_id);
        for endpoint in &endpoints {
            rig.network.deliver(sender(), endpoint.address, &datagram);
        }
        if session_id % 4 == 0 {
            rig.cycle();
            rig.network.take_sent();
        }
    }
    rig.cycle();
    rig.sent();
    let text = "(22) Invalid argument\nmore than 65536 SETUP requests within a second, \
        the oldest are forgotten\n";
    assert_eq!(rig.errors(), [(text.to_owned(), 1)]);
    rig.deliver(&endpoints[0], &data_of_session(0));
    assert_eq!(rig.sent().len(), 1, "the oldest was forgotten");
    rig.deliver(&endpoints[0], &data_of_session(1_000));
    assert_eq!(rig.sent(), [], "a newer request is still pending");
}

#[test]
fn failed_replies_to_many_sources_are_one_entry_in_the_error_log() {
    const SOURCES: i32 = 100;
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.network
        .fail_sends(Some(std::io::ErrorKind::NetworkUnreachable));
    for session_id in 0..SOURCES {
        let source = ([240, 0, 0, session_id as u8], 0).into();
        rig.deliver_from(source, &endpoint, &data_of_session(session_id));
    }
    let errors = rig.errors();
    let [(text, count)] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert!(text.contains("the source of a datagram"), "{text}");
    assert_eq!(*count, SOURCES);
}

#[test]
fn a_flood_of_setups_requests_a_bounded_number_of_images() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let other = rig.subscribed(MULTICAST);
    let mut requests = Vec::new();
    for session_id in 0..2 * MAX_IMAGES as i32 {
        rig.deliver(&endpoint, &setup_of_session(session_id));
        requests.extend(rig.image_requests());
    }
    assert_eq!(requests.len(), MAX_IMAGES);
    let text = "(22) Invalid argument\nexceeded 1024 images: \
        channel=aeron:udp?endpoint=127.0.0.1:24001\n";
    assert_eq!(rig.errors(), [(text.to_owned(), MAX_IMAGES as i32)]);
    rig.deliver(&other, &setup_of_session(0));
    assert_eq!(
        rig.image_requests().len(),
        1,
        "the other endpoint has its own limit"
    );
    let state = ForgettableState::InitInProgress;
    rig.command(ReceiverCommand::RemoveState {
        endpoint: endpoint.id,
        session: session(5),
        state,
    });
    rig.deliver(&endpoint, &setup_of_session(-1));
    assert_eq!(rig.image_requests().len(), 1, "there is room again");
}

#[test]
fn images_without_a_remaining_subscription_count_for_the_limit_until_they_are_removed() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let mut images = Vec::new();
    for session_id in 0..MAX_IMAGES as i32 {
        rig.deliver(&endpoint, &setup_of_session(session_id));
        let request = rig.image_requests().remove(0);
        images.push(rig.create_image(&request, Options::default()));
    }
    for change in [
        ReceiverCommand::RemoveSubscription {
            endpoint: endpoint.id,
            stream_id: STREAM,
        },
        ReceiverCommand::AddSubscription {
            endpoint: endpoint.id,
            stream_id: STREAM,
        },
    ] {
        rig.command(change);
    }
    rig.deliver(&endpoint, &setup_of_session(0));
    assert!(rig.image_requests().is_empty());
    rig.command(ReceiverCommand::RemoveImage(images[7].correlation_id));
    rig.events();
    rig.deliver(&endpoint, &setup_of_session(0));
    assert_eq!(rig.image_requests().len(), 1);
}

#[test]
fn a_setup_is_dropped_and_counted_while_the_conductors_queue_is_full() {
    let mut rig = Rig::new();
    let endpoints = [rig.subscribed(UNICAST), rig.subscribed(MULTICAST)];
    for session_id in 0..MAX_IMAGES as i32 {
        rig.deliver(&endpoints[0], &setup_of_session(session_id));
    }
    rig.deliver(&endpoints[1], &setup_of_session(0));
    assert_eq!(rig.count(SystemCounter::ConductorProxyFails), 1);
    assert_eq!(rig.image_requests().len(), MAX_IMAGES);
    rig.deliver(&endpoints[1], &setup_of_session(0));
    assert_eq!(rig.image_requests().len(), 1);
    assert_eq!(rig.count(SystemCounter::ConductorProxyFails), 1);
}
