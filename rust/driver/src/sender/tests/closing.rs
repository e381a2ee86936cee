//! Tests of heartbeats, of the end of a stream, and of control frames at the end.

use aeron_memory::counters::system::SystemCounter;

use super::rig::*;
use crate::sender::{Destinations, Peer, SenderCommand, SenderEvent};

const OPEN: u8 = 0xC0;
const ENDED: u8 = 0xE0;
const REVOKED: u8 = 0xF0;

fn heartbeat_flags(rig: &mut Rig) -> Vec<u8> {
    rig.sent();
    rig.run(210 * MS);
    let flags = |it: Seen| match it {
        Seen::Heartbeat(flags, _) => Some(flags),
        _ => None,
    };
    rig.seen().into_iter().filter_map(flags).collect()
}

/// 02-18, 04-94
#[test]
fn heartbeats_begin_with_the_first_receiver_and_are_sent_after_every_100_ms_without_data() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publication = rig.publication(endpoint);
    assert_eq!(rig.times_ms(500, is_heartbeat), []);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    assert_eq!(rig.times_ms(250, is_heartbeat), [0, 101, 202]);
    publication.offer(100);
    assert_eq!(
        rig.times_ms(150, is_heartbeat),
        [101],
        "data postpones the next heartbeat"
    );
    assert_eq!(rig.count(SystemCounter::HeartbeatsSent), 4);
}

/// 02-19, 04-94
#[test]
fn a_heartbeat_is_a_header_with_length_0_at_the_sender_position() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    publication.offer(100);
    rig.cycle();
    rig.sent();
    rig.run(150 * MS);
    let sent = rig.sent();
    let mut expected = vec![0, 0, 0, 0, 0, OPEN, 1, 0];
    for field in [160, SESSION, STREAM, INITIAL_TERM, 0, 0] {
        expected.extend(field.to_le_bytes());
    }
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].bytes, expected);
}

/// 02-20, 04-95, 04-96
#[test]
fn the_flags_of_a_heartbeat_show_the_end_of_the_stream_and_its_revocation() {
    for (signal_eos, after_end) in [(true, ENDED), (false, OPEN)] {
        let mut rig = Rig::new();
        let endpoint = rig.unicast();
        let options = Options {
            signal_eos,
            ..Options::default()
        };
        let publication = rig.publication_with(endpoint, options);
        rig.connect(&publication);
        assert_eq!(heartbeat_flags(&mut rig), [OPEN, OPEN]);
        publication.status.set_end_of_stream();
        assert_eq!(heartbeat_flags(&mut rig), [after_end, after_end]);
        publication.log.metadata().set_publication_revoked();
        assert_eq!(heartbeat_flags(&mut rig), [REVOKED, REVOKED]);
    }
}

#[test]
fn retransmits_do_not_postpone_heartbeats_02_21() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    publication.offer(1_000);
    rig.cycle();
    let begin = rig.now_ns;
    let mut heartbeats = Vec::new();
    for _ in 0..15 {
        rig.after(15 * MS);
        rig.nak(&publication, 0, 1_056);
        let count = rig.seen().iter().filter(|it| is_heartbeat(it)).count();
        heartbeats.extend(vec![(rig.now_ns - begin) / MS; count]);
    }
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 15);
    assert_eq!(heartbeats, [105, 210]);
}

/// Delivers a status message with the end-of-stream flag: the receiver at [`peer`] leaves the stream.
fn leave(rig: &mut Rig, publication: &Publication) {
    let mut message = publication.status_message(RECEIVER, 0, WINDOW);
    message.is_end_of_stream = true;
    rig.hear(publication, &message);
}

/// 02-22, 02-23, 04-105
#[test]
fn a_receiver_that_leaves_at_the_end_ends_the_linger_of_unicast_but_not_of_multicast() {
    let group = Peer {
        name: None,
        address: address("224.20.30.39:5000"),
        is_multicast: true,
        is_connected: false,
    };
    let mut rig = Rig::new();
    for is_multicast in [false, true] {
        let endpoint = match is_multicast {
            false => rig.unicast(),
            true => rig.endpoint(Destinations::One(group.clone()), None),
        };
        let publication = rig.publication(endpoint);
        rig.connect(&publication);
        assert!(publication.is_connected());
        publication.status.set_end_of_stream();
        rig.run(110 * MS);
        leave(&mut rig, &publication);
        assert!(!publication.status.has_receivers());
        assert!(!publication.is_connected());
        assert_eq!(publication.status.has_received_unicast_eos(), !is_multicast);
    }
}

#[test]
fn if_the_receiver_left_early_the_publication_lingers_until_the_end_of_the_stream_was_sent() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    leave(&mut rig, &publication);
    publication.status.set_end_of_stream();
    rig.cycle();
    assert!(!publication.status.has_received_unicast_eos());
    rig.run(110 * MS);
    assert!(publication.status.has_received_unicast_eos());
}

#[test]
fn a_publication_lingers_for_a_returned_receiver_until_the_receiver_has_the_end() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    leave(&mut rig, &publication);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    publication.status.set_end_of_stream();
    assert_eq!(heartbeat_flags(&mut rig), [ENDED, ENDED]);
    assert!(!publication.status.has_received_unicast_eos());
    leave(&mut rig, &publication);
    assert!(publication.status.has_received_unicast_eos());
}

/// The receiver's new image is being created, so its first status message has not arrived yet.
#[test]
fn a_publication_lingers_for_a_receiver_that_left_and_requests_a_setup() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    leave(&mut rig, &publication);
    rig.hear(&publication, &publication.setup_request(RECEIVER));
    publication.status.set_end_of_stream();
    rig.run(110 * MS);
    assert!(!publication.status.has_received_unicast_eos());
}

/// 02-22, 04-106
#[test]
fn heartbeats_of_an_ended_stream_continue_until_the_publication_is_removed() {
    let mut rig = Rig::new();
    let publication = rig.connected();
    publication.status.set_end_of_stream();
    assert_eq!(heartbeat_flags(&mut rig), [ENDED, ENDED]);
    rig.command(SenderCommand::RemovePublication(
        publication.registration_id,
    ));
    let released = SenderEvent::PublicationReleased(publication.registration_id);
    assert_eq!(rig.events(), [released]);
    assert_eq!(heartbeat_flags(&mut rig), []);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    assert_eq!(rig.seen(), []);
}

#[test]
fn a_new_endpoint_in_the_slot_of_a_removed_endpoint_receives_control_frames() {
    let mut rig = Rig::new();
    let id = rig.unicast().id;
    rig.command(SenderCommand::RemoveEndpoint(id));
    assert_eq!(rig.events(), [SenderEvent::EndpointReleased(id)]);
    // The new endpoint reuses the slot of the removed endpoint.
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    rig.connect(&publication);
    assert!(publication.is_connected());
}

#[test]
fn control_frames_find_the_remaining_publications_after_others_were_removed() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publications: Vec<Publication> = (0..4)
        .map(|i| {
            let options = Options {
                session_id: SESSION + i,
                ..Options::default()
            };
            rig.publication_with(endpoint, options)
        })
        .collect();
    for _ in 0..3 {
        let removed = publications.remove(0);
        rig.command(SenderCommand::RemovePublication(removed.registration_id));
        for publication in &publications {
            let limit = publication.limit() + 1_000;
            rig.status(publication, RECEIVER, 0, limit as i32);
            assert_eq!(publication.limit(), limit);
        }
    }
}
