//! Tests of several destinations, and of names with addresses that change.

use aeron_memory::counters::system::SystemCounter;

use super::rig::*;
use crate::sender::{
    DestinationControl, ManualDestination, SendEndpointId, SenderCommand, SenderEvent,
};

fn receivers(rig: &Rig) -> Vec<u16> {
    rig.sent().iter().map(|sent| sent.to.port()).collect()
}

fn at(port: u16) -> std::net::SocketAddr {
    std::net::SocketAddr::new(peer().ip(), port)
}

fn add(rig: &mut Rig, endpoint: SendEndpointId, registration_id: i64, port: Option<u16>) {
    rig.command(SenderCommand::AddDestination {
        endpoint,
        destination: ManualDestination {
            registration_id,
            name: format!("host:{registration_id}").into(),
            address: port.map(at),
        },
    });
}

/// 02-85, 04-69
#[test]
fn a_receiver_that_sends_a_status_message_is_a_destination_for_5_s() {
    let mut rig = Rig::new();
    let (endpoint, count) = rig.mdc(DestinationControl::Dynamic);
    let mut publication = rig.publication(endpoint);
    let mut unknown = publication.setup_request(1);
    (unknown.session_id, unknown.stream_id) = (0, 0);
    rig.hear_from(at(7001), endpoint.control, &unknown);
    assert_eq!(count.get(), 1, "the request is for any stream");
    let joined = publication.status_message(1, 0, WINDOW);
    rig.hear_from(at(7001), endpoint.control, &joined);
    let message = publication.status_message(2, 0, WINDOW);
    rig.hear_from(at(7002), endpoint.control, &message);
    assert_eq!(count.get(), 2);
    // Both receivers send status messages.
    publication.offer(100);
    rig.cycle();
    for (receiver_id, port) in [(1, 7001), (2, 7002)] {
        let message = publication.status_message(receiver_id, 160, WINDOW);
        rig.hear_from(at(port), endpoint.control, &message);
    }
    rig.cycle();
    rig.sent();
    publication.offer(100);
    rig.cycle();
    assert_eq!(receivers(&rig).len(), 2);
    // One receiver continues to send status messages.
    for _ in 0..26 {
        rig.run(200 * MS);
        rig.hear_from(at(7002), endpoint.control, &message);
    }
    rig.run(200 * MS);
    assert_eq!(count.get(), 1, "the other receiver has timed out");
    rig.sent();
    publication.offer(100);
    rig.cycle();
    assert_eq!(receivers(&rig), [7002]);
    rig.run(5_200 * MS);
    assert_eq!(count.get(), 0);
    publication.offer(100);
    rig.cycle();
    assert_eq!(publication.position(), publication.appender.position());
}

#[test]
fn a_receiver_is_identified_by_its_id_and_port_02_86() {
    let mut rig = Rig::new();
    let (endpoint, count) = rig.mdc(DestinationControl::Dynamic);
    let publication = rig.publication(endpoint);
    let message = publication.status_message(1, 0, WINDOW);
    rig.hear_from(at(7001), endpoint.control, &message);
    rig.hear_from(address("127.0.0.9:7001"), endpoint.control, &message);
    assert_eq!(count.get(), 1, "its IP address may change");
    rig.hear_from(at(7002), endpoint.control, &message);
    assert_eq!(
        count.get(),
        2,
        "a receiver with another port is another destination"
    );
    rig.hear_from(
        at(7001),
        endpoint.control,
        &publication.status_message(2, 0, WINDOW),
    );
    assert_eq!(
        count.get(),
        3,
        "a receiver with another id is another destination"
    );
}

#[test]
fn data_is_sent_only_to_the_destinations_of_clients_02_87() {
    let mut rig = Rig::new();
    let (endpoint, count) = rig.mdc(DestinationControl::Manual);
    let mut publication = rig.publication(endpoint);
    let message = publication.status_message(1, 0, WINDOW);
    rig.hear_from(at(7009), endpoint.control, &message);
    assert_eq!(count.get(), 0);
    assert!(
        publication.is_connected(),
        "a receiver that is not a destination counts"
    );
    publication.offer(100);
    rig.cycle();
    assert_eq!(rig.sent(), []);
    assert_eq!(
        publication.position(),
        160,
        "the stream does not wait for destinations"
    );

    for (registration_id, port) in [(1, Some(7001)), (2, Some(7002)), (3, None)] {
        add(&mut rig, endpoint.id, registration_id, port);
    }
    assert_eq!(count.get(), 3, "destinations without an address count too");
    rig.sent();
    let mut first = Vec::new();
    for _ in 0..6 {
        publication.offer(100);
        rig.cycle();
        let to = receivers(&rig);
        assert_eq!(to.len(), 2);
        first.push(to[0]);
    }
    assert!(
        first.contains(&7001) && first.contains(&7002),
        "each destination is sometimes the first"
    );

    rig.command(SenderCommand::RemoveDestination {
        endpoint: endpoint.id,
        address: Some(at(7001)),
    });
    rig.command(SenderCommand::RemoveDestinationById {
        endpoint: endpoint.id,
        registration_id: 3,
    });
    assert_eq!(count.get(), 1);
    rig.sent();
    publication.offer(100);
    rig.cycle();
    assert_eq!(receivers(&rig), [7002]);
    // A manual destination is not removed, even if its receiver sends nothing.
    rig.run(11_000 * MS);
    assert_eq!(count.get(), 1);
}

#[test]
fn each_destination_gets_every_datagram_04_70() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Manual);
    let mut publication = rig.publication(endpoint);
    for port in 7001..7005 {
        add(&mut rig, endpoint.id, port.into(), Some(port));
    }
    rig.hear_from(
        at(7001),
        endpoint.control,
        &publication.status_message(1, 0, WINDOW),
    );
    rig.settle();
    rig.sent();
    for length in 0..60 {
        publication.offer(10 * length);
    }
    rig.settle();
    let sent = rig.sent();
    let to = |port: u16| -> Vec<&[u8]> {
        let meant = sent.iter().filter(|sent| sent.to.port() == port);
        meant.map(|sent| sent.bytes.as_slice()).collect()
    };
    assert!(to(7001).len() > 10);
    for port in 7002..7005 {
        assert_eq!(to(port), to(7001));
    }
}

#[test]
fn a_socket_error_at_one_destination_stops_the_position_for_all_destinations() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Manual);
    let mut publication = rig.publication(endpoint);
    add(&mut rig, endpoint.id, 1, Some(7001));
    rig.hear_from(
        at(7001),
        endpoint.control,
        &publication.status_message(1, 0, WINDOW),
    );
    publication.offer(100);
    rig.network
        .fail_sends(Some(std::io::ErrorKind::PermissionDenied));
    rig.cycle();
    assert_eq!(publication.position(), 0);
    assert!(rig.count(SystemCounter::ShortSends) > 0);
    // A socket that cannot accept more data now is not an error: the destination loses the data.
    rig.network.fail_sends(None);
    rig.network.set_room(Some(0));
    let before = rig.count(SystemCounter::ShortSends);
    rig.cycle();
    assert_eq!(publication.position(), 160);
    assert_eq!(rig.count(SystemCounter::ShortSends), before);
}

#[test]
fn the_report_of_a_rejection_names_the_command_that_added_the_destination() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Manual);
    let publication = rig.publication(endpoint);
    add(&mut rig, endpoint.id, 31, Some(7001));
    rig.hear_from(
        at(7001),
        endpoint.control,
        &publication.status_message(1, 0, WINDOW),
    );
    let frame = aeron_protocol::frame::ErrorFrame {
        session_id: SESSION,
        stream_id: STREAM,
        receiver_id: 1,
        group_tag: None,
        error_code: 13,
        error_text: b"",
    };
    let mut datagram = [0; 64];
    let length = frame.encode(&mut datagram);
    rig.datagram(at(7001), endpoint.control, &datagram[..length]);
    let events = rig.events();
    let [SenderEvent::PublicationError(report)] = events.as_slice() else {
        panic!("one event, not {events:?}");
    };
    assert_eq!(report.destination_registration_id, 31);
}

#[test]
fn the_name_of_a_peer_that_is_silent_for_5_s_is_looked_up_every_second() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publication = rig.publication(endpoint);
    rig.run(4_900 * MS);
    assert_eq!(rig.events(), []);
    rig.run(2_200 * MS);
    let wanted = SenderEvent::ReResolve {
        endpoint: endpoint.id,
        name: "peer:5000".into(),
        current: Some(peer()),
    };
    assert_eq!(rig.events(), vec![wanted; 3]);
    rig.command(SenderCommand::ResolutionChange {
        endpoint: endpoint.id,
        name: "peer:5000".into(),
        address: at(5001),
    });
    assert_eq!(rig.count(SystemCounter::ResolutionChanges), 1);
    let message = publication.status_message(RECEIVER, 0, WINDOW);
    rig.hear_from(at(5001), publication.control, &message);
    rig.sent();
    publication.offer(100);
    rig.cycle();
    assert_eq!(receivers(&rig), [5001]);
    // A status message for an existing stream restarts the timeout of 5 s.
    rig.run(4_900 * MS);
    assert_eq!(rig.events(), []);
}

#[test]
fn only_silent_manual_destinations_are_looked_up_again() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Manual);
    let publication = rig.publication(endpoint);
    add(&mut rig, endpoint.id, 1, Some(7001));
    add(&mut rig, endpoint.id, 2, None);
    let names = |rig: &mut Rig| -> Vec<String> {
        let events = rig.events();
        let name = |event: &SenderEvent| match event {
            SenderEvent::ReResolve { name, .. } => name.to_string(),
            other => panic!("{other:?}"),
        };
        events.iter().map(name).collect()
    };
    for _ in 0..30 {
        rig.run(200 * MS);
        rig.hear_from(
            at(7001),
            endpoint.control,
            &publication.status_message(1, 0, WINDOW),
        );
    }
    assert_eq!(names(&mut rig), ["host:2"]);
    rig.command(SenderCommand::ResolutionChange {
        endpoint: endpoint.id,
        name: "host:2".into(),
        address: at(7002),
    });
    rig.sent();
    rig.run(101 * MS);
    let mut to = receivers(&rig);
    to.sort();
    assert_eq!(to, [7001, 7002]);
    // After a lookup, the timeout is 5 s again.
    rig.run(3_000 * MS);
    assert_eq!(names(&mut rig), [""; 0]);
}

#[test]
fn no_name_is_looked_up_again_if_re_resolution_is_turned_off() {
    let mut rig = Rig::with(|context| context.re_resolution_check_interval_ns = 0);
    let endpoint = rig.unicast();
    rig.publication(endpoint);
    rig.run(20_000 * MS);
    assert_eq!(rig.events(), []);
}
