//! Tests of multicast sockets.

use aeron_driver::media::transport::{MulticastSpec, SocketSpec};
use aeron_memory::SharedBuffer;

use super::support::{address, assert_silent, batch, open, payloads, receive, receiver, sender};

const DATA_GROUP: &str = "224.20.30.39";
const CONTROL_GROUP: &str = "224.20.30.40";

fn group(group: &str, ttl: u8) -> Option<MulticastSpec> {
    Some(MulticastSpec {
        group: group.parse().unwrap(),
        interface: "127.0.0.1".parse().unwrap(),
        interface_index: 0,
        ttl,
    })
}

fn member(group_name: &str, port: u16) -> SocketSpec {
    SocketSpec {
        multicast: group(group_name, 0),
        ..receiver(&format!("{group_name}:{port}"))
    }
}

fn publisher(port: u16) -> SocketSpec {
    let to = address(&format!("{DATA_GROUP}:{port}"));
    SocketSpec {
        multicast: group(CONTROL_GROUP, 0),
        ..sender(&format!("{CONTROL_GROUP}:{port}"), to)
    }
}

/// 02-83: the part about sockets. 04-179: the part about multicast.
#[test]
fn data_reaches_every_member_and_control_frames_reach_the_sender_on_the_same_port() {
    let port = 24_481;
    let mut members = [
        open(&member(DATA_GROUP, port)),
        open(&member(DATA_GROUP, port)),
    ];
    let mut publisher = open(&publisher(port));
    publisher.send(None, b"data").unwrap();
    for member in &mut members {
        let (bytes, source) = receive(member.as_mut(), 1).remove(0);
        assert_eq!(bytes, b"data");
        assert_ne!(
            source.port(),
            port,
            "data is not sent from the socket for control frames"
        );
        let control = address(&format!("{CONTROL_GROUP}:{port}"));
        member.send(Some(control), b"control").unwrap();
        let (bytes, source) = receive(publisher.as_mut(), 1).remove(0);
        assert_eq!((bytes.as_slice(), source.port()), (&b"control"[..], port));
    }
    // Members do not receive the control group, and the publisher does not receive the data group.
    for socket in members.iter_mut().chain([&mut publisher]) {
        assert_silent(socket.as_mut());
    }
}

#[test]
fn a_member_receives_only_from_its_own_group() {
    let port = 24_483;
    let mut member_39 = open(&member("224.20.30.39", port));
    let mut member_41 = open(&member("224.20.30.41", port));
    let mut publisher = open(&publisher(port));
    publisher.send(None, b"to 39").unwrap();
    assert_eq!(payloads(member_39.as_mut(), 1), [b"to 39"]);
    assert_silent(member_41.as_mut());
}

#[test]
fn gso_batches_can_be_sent_to_groups() {
    let port = 24_485;
    let mut member = open(&member(DATA_GROUP, port));
    let mut publisher = open(&publisher(port));
    let memory = SharedBuffer::heap(1 << 16);
    publisher
        .send_gso_batches(None, &[batch(&memory, 30, 1408, 64)])
        .unwrap();
    let lengths: Vec<usize> = payloads(member.as_mut(), 31).iter().map(Vec::len).collect();
    assert_eq!(lengths, [vec![1408; 30], vec![64]].concat());
}

#[cfg(target_os = "linux")]
#[test]
fn the_time_to_live_is_the_configured_value_or_the_systems_default() {
    use rustix::net::sockopt::{ip_multicast_if, ip_multicast_ttl};
    let with_ttl = |ttl| {
        let socket = open(&SocketSpec {
            multicast: group(DATA_GROUP, ttl),
            ..member(DATA_GROUP, 24_487)
        });
        let descriptor = socket.descriptor().unwrap();
        assert_eq!(
            ip_multicast_if(descriptor).unwrap().to_string(),
            "127.0.0.1"
        );
        ip_multicast_ttl(descriptor).unwrap()
    };
    assert_eq!([with_ttl(0), with_ttl(3), with_ttl(255)], [1, 3, 255]);
}
