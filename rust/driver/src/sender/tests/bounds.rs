//! Tests of floods. Memory and traffic stay bounded, and the error log has one entry about each flood.

use aeron_memory::counters::system::SystemCounter;

use super::rig::*;
use crate::flow_control::MAX_RECEIVERS_PER_PUBLICATION;
use crate::queue;
use crate::sender::DestinationControl;
use crate::sender::destinations::MAX_DYNAMIC_DESTINATIONS;

#[test]
fn a_flood_adds_at_most_1024_dynamic_destinations() {
    let mut rig = Rig::new();
    let (endpoint, count) = rig.mdc(DestinationControl::Dynamic);
    let publication = rig.publication(endpoint);
    for i in 0..3_000_u32 {
        let from = std::net::SocketAddr::new([10, 0, (i >> 8) as u8, i as u8].into(), 9_000);
        let message = publication.setup_request(i64::from(i));
        rig.hear_from(from, endpoint.control, &message);
    }
    assert_eq!(count.get(), MAX_DYNAMIC_DESTINATIONS as i64);
    assert_eq!(MAX_DYNAMIC_DESTINATIONS, 1_024);
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].0.contains("1024 dynamic destinations"));
    // A new destination is refused until the known destinations have timed out.
    rig.status(&publication, 5_000, 0, WINDOW);
    assert_eq!(publication.limit(), 0);
    rig.now_ns += 5_001 * MS;
    rig.status(&publication, 5_000, 0, WINDOW);
    assert_eq!((count.get(), publication.limit()), (1, i64::from(WINDOW)));
}

#[test]
fn sixteen_commands_are_executed_in_one_duty_cycle() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    rig.holds_commands = true;
    for session_id in 0..20 {
        let options = Options {
            session_id,
            ..Options::default()
        };
        rig.publication_with(endpoint, options);
    }
    let setups = |rig: &mut Rig| {
        rig.cycle();
        let seen = rig.seen();
        seen.iter()
            .filter(|it| matches!(it, Seen::Setup(_)))
            .count()
    };
    assert_eq!([setups(&mut rig), setups(&mut rig)], [16, 4]);
}

#[test]
fn at_most_4096_receivers_are_tracked_and_their_status_messages_still_count() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    for i in 0..6_000 {
        rig.status(&publication, i, 0, WINDOW);
    }
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].0.contains("4096 receivers"));
    assert_eq!(MAX_RECEIVERS_PER_PUBLICATION, 4_096);
    rig.status(&publication, 5_999, 4_096, WINDOW);
    assert_eq!(
        publication.limit(),
        i64::from(WINDOW),
        "a new receiver is refused"
    );
    rig.status(&publication, 100, 4_096, WINDOW);
    assert_eq!(publication.limit(), 4_096 + i64::from(WINDOW));
    rig.run(5_100 * MS);
    assert!(!publication.status.has_receivers());
    rig.status(&publication, 5_999, 4_096, WINDOW);
    assert!(publication.status.has_receivers());
}

#[test]
fn events_about_rejections_are_dropped_while_the_conductors_queue_is_full() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    let frame = aeron_protocol::frame::ErrorFrame {
        session_id: SESSION,
        stream_id: STREAM,
        receiver_id: RECEIVER,
        group_tag: None,
        error_code: 13,
        error_text: &[b'x'; 1_023],
    };
    let mut datagram = [0; 1_100];
    let length = frame.encode(&mut datagram);
    for _ in 0..2 * queue::CAPACITY {
        rig.status(&publication, RECEIVER, 0, WINDOW);
        rig.datagram(peer(), publication.control, &datagram[..length]);
    }
    assert_eq!(rig.events().len(), queue::CAPACITY);
    rig.cycle();
    assert_eq!(rig.events().len(), 0, "events without room are dropped");
}

#[test]
fn a_flood_of_naks_causes_only_retransmits_within_the_budget() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        term_length: 16 * 1024 * 1024,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.status(&publication, RECEIVER, 0, 1024 * 1024);
    for _ in 0..800 {
        publication.offer(1_000);
    }
    rig.settle();
    rig.sent();
    let new = publication.position();
    let mut at = 0;
    for _ in 0..20_000 {
        rig.nak(&publication, at, 64 * 1_056);
        at = (at + 64 * 1_056) % (768 * 1_056);
        rig.network.take_sent();
    }
    let resent = rig.count(SystemCounter::RetransmittedBytes);
    let allowed = 4 * new.max(1024 * 1024);
    assert!(
        resent > 1024 * 1024 && resent <= allowed,
        "{resent} of {allowed}"
    );
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].0.contains("retransmits"));
}

#[test]
fn a_flood_of_setup_requests_causes_one_setup_every_100_ms() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    rig.run(200 * MS);
    rig.sent();
    let mut setups = 0;
    for i in 0..2_000 {
        rig.hear(&publication, &publication.setup_request(i));
        rig.now_ns += MS / 2;
        setups += rig.seen().iter().filter(|it| is_setup(it)).count();
    }
    assert_eq!(setups, 10);
}
