//! Tests of SETUP frames: when they are sent, and their content.

use super::rig::*;
use crate::sender::{DestinationControl, Destinations, Peer, Response};

fn setups(rig: &Rig) -> usize {
    rig.seen().iter().filter(|it| is_setup(it)).count()
}

/// 02-9, 04-91
#[test]
fn a_setup_is_sent_at_once_and_every_100_ms_until_the_first_status_message() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    assert_eq!(setups(&rig), 1);
    assert_eq!(rig.times_ms(350, is_setup), [101, 202, 303]);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    assert_eq!(rig.times_ms(1_000, is_setup), []);
}

#[test]
fn a_setup_request_does_not_stop_the_repeated_setups_04_91() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    rig.hear(&publication, &publication.setup_request(RECEIVER));
    rig.sent();
    assert_eq!(rig.times_ms(350, is_setup), [101, 202, 303]);
}

/// 04-198
#[test]
fn with_backoff_the_time_between_setups_doubles_until_the_first_status_message() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        backs_off_setups: true,
        ..Options::default()
    };
    let publication = rig.publication_with(endpoint, options);
    assert_eq!(setups(&rig), 1);
    let times = rig.times_ms(20_000, is_setup);
    assert_eq!(times, [101, 202, 403, 804, 1_605, 3_206]);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    assert_eq!(rig.times_ms(10_000, is_setup), []);
    rig.hear(&publication, &publication.setup_request(RECEIVER + 1));
    assert_eq!(rig.times_ms(250, is_setup), [0]);
}

/// 04-171, 04-198: the address of a response publication comes from a datagram, which may be forged.
#[test]
fn a_response_publication_sends_few_setups_to_an_address_that_only_asked_for_one() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(Destinations::PerPublication, None);
    let options = Options {
        backs_off_setups: true,
        response: Response::Given {
            response_correlation_id: 9,
        },
        ..Options::default()
    };
    let publication = rig.publication_with(endpoint, options);
    rig.run(5_000 * MS);
    assert_eq!(setups(&rig), 0, "no address is known");
    for forged in ["127.0.0.1:7001", "127.0.0.1:7002"] {
        let request = publication.setup_request(RECEIVER);
        rig.now_ns += 101 * MS;
        rig.hear_from(address(forged), publication.control, &request);
        let times = rig.times_ms(10_000, is_setup);
        assert_eq!(times, [0, 101, 202, 403, 804, 1_605, 3_206]);
        // The receiver may have missed all of them.
        rig.hear_from(address(forged), publication.control, &request);
        assert_eq!(rig.times_ms(2_000, is_setup), [0]);
    }
}

#[test]
fn a_setup_contains_the_sender_position_and_not_the_publisher_position_02_10() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    for _ in 0..100 {
        publication.offer(992);
    }
    rig.settle();
    let sent_to = publication.position();
    assert!(sent_to < publication.appender.position());
    rig.now_ns += 101 * MS;
    rig.hear(&publication, &publication.setup_request(RECEIVER + 1));
    rig.sent();
    rig.cycle();
    let Some(Seen::Setup(setup)) = rig.seen().into_iter().find(is_setup) else {
        panic!("no SETUP was sent for the request");
    };
    assert_eq!(setup.initial_term_id, INITIAL_TERM);
    assert_eq!(
        i64::from(setup.active_term_id - INITIAL_TERM),
        sent_to / TERM
    );
    assert_eq!(i64::from(setup.term_offset), sent_to % TERM);
    assert_eq!((setup.session_id, setup.stream_id), (SESSION, STREAM));
    assert_eq!(i64::from(setup.term_length), TERM);
    assert_eq!(i64::from(setup.mtu_length), MTU);
}

#[test]
fn a_setup_of_a_stream_with_a_start_position_contains_the_start_position_02_10() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    rig.publication_with(
        endpoint,
        Options {
            start_position: 2 * TERM + 96,
            ..Options::default()
        },
    );
    let Some(Seen::Setup(setup)) = rig.seen().pop() else {
        panic!("the first setup comes at once");
    };
    assert_eq!(
        (setup.active_term_id, setup.term_offset),
        (INITIAL_TERM + 2, 96)
    );
}

/// 02-11, 04-93
#[test]
fn the_flags_of_a_setup_show_groups_and_requested_responses() {
    let requested = Response::Requested {
        response_correlation_id: 9,
    };
    for (has_group_semantics, response) in [
        (false, Response::None),
        (true, Response::None),
        (false, requested),
        (true, requested),
    ] {
        let mut rig = Rig::new();
        let endpoint = rig.unicast();
        let options = Options {
            has_group_semantics,
            response,
            ..Options::default()
        };
        rig.publication_with(endpoint, options);
        let flags = rig.sent()[0].bytes[5];
        assert_eq!(flags & 0x40 != 0, has_group_semantics);
        assert_eq!(flags & 0x80 != 0, response == requested);
        assert_eq!(flags & 0x3f, 0);
    }
}

#[test]
fn a_setup_contains_the_ttl_of_the_channel_02_12() {
    for ttl in [0, 9, 255] {
        let mut rig = Rig::new();
        let group = Peer {
            name: None,
            address: address("224.20.30.39:5000"),
            is_multicast: true,
            is_connected: true,
        };
        let endpoint = rig.endpoint(Destinations::One(group), None);
        let options = Options {
            ttl,
            ..Options::default()
        };
        rig.publication_with(endpoint, options);
        let sent = rig.sent();
        assert_eq!(sent[0].to, address("224.20.30.39:5000"));
        assert_eq!(sent[0].bytes[36..40], i32::from(ttl).to_le_bytes());
    }
}

/// 02-14, 04-92
#[test]
fn a_request_causes_a_setup_in_the_next_duty_cycle_or_100_ms_after_the_last_setup() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.run(200 * MS);
    rig.sent();
    rig.hear(&publication, &publication.setup_request(RECEIVER + 1));
    assert_eq!(
        setups(&rig),
        0,
        "no SETUP is sent while control frames are handled"
    );
    rig.cycle();
    assert_eq!(setups(&rig), 1);
    // The next request arrives less than 100 ms after the last SETUP.
    rig.run(50 * MS);
    rig.hear(&publication, &publication.setup_request(RECEIVER + 2));
    let times = rig.times_ms(200, is_setup);
    assert_eq!(times, [51]);
}

#[test]
fn requested_setups_are_repeated_until_there_is_a_live_receiver_02_15() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.run(5_200 * MS);
    assert!(!publication.status.has_receivers());
    rig.sent();
    rig.hear(&publication, &publication.setup_request(RECEIVER));
    assert_eq!(rig.times_ms(250, is_setup), [0, 101, 202]);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    // The publication has a receiver now, but the request is still open. The next SETUP ends the request.
    assert_eq!(rig.times_ms(500, is_setup).len(), 1);
}

/// 02-16, 04-92
#[test]
fn requests_after_the_end_of_the_stream_are_ignored() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    publication.status.set_end_of_stream();
    rig.run(200 * MS);
    rig.sent();
    rig.hear(&publication, &publication.setup_request(RECEIVER + 1));
    assert_eq!(rig.times_ms(500, is_setup), []);
}

#[test]
fn a_setup_request_changes_neither_the_limit_nor_the_connection_02_17() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    let mut request = publication.setup_request(RECEIVER);
    request.receiver_window = WINDOW;
    rig.hear(&publication, &request);
    rig.run(200 * MS);
    assert_eq!(publication.limit(), 0);
    assert!(!publication.status.has_receivers());
    assert!(!publication.is_connected());
    assert!(!rig.seen().iter().any(is_heartbeat));
}

#[test]
fn a_publication_that_lost_its_receivers_sends_no_setup_without_a_request_02_33() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.run(5_100 * MS);
    assert!(!publication.status.has_receivers());
    rig.sent();
    assert_eq!(rig.times_ms(1_000, is_setup), []);
    let mut rig = Rig::new();
    rig.connected();
    rig.run(5_100 * MS);
    rig.sent();
    assert_eq!(
        rig.times_ms(310, is_heartbeat).len(),
        3,
        "heartbeats continue"
    );
}

#[test]
fn a_dynamic_endpoint_without_destinations_sends_no_setups() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Dynamic);
    rig.publication(endpoint);
    rig.run(500 * MS);
    assert_eq!(rig.sent(), []);
    assert_eq!(
        rig.count(aeron_memory::counters::system::SystemCounter::ShortSends),
        0
    );
}
