//! Tests of unicast sockets.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aeron_driver::media::transport::{MAX_GSO_BATCH_DATAGRAMS, Network, SocketSide, SocketSpec};
use aeron_driver::media::udp::UdpNetwork;
use aeron_memory::SharedBuffer;

use super::support::{
    FULL, address, assert_silent, batch, open, payloads, receive, receive_once, receiver, sender,
};

/// 04-179: the part about unicast.
#[test]
fn a_unicast_address_can_be_bound_by_only_one_socket() {
    let first = open(&receiver("127.0.0.1:0"));
    let again = receiver(&first.local_address().to_string());
    let mut network = UdpNetwork::new(FULL, 1408);
    let error = network.open(&again).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    drop(first);
    network.open(&again).unwrap();
}

/// 02-82
#[test]
fn a_connected_sender_receives_only_from_its_endpoint() {
    let mut endpoint = open(&receiver("127.0.0.1:0"));
    let mut sender = open(&sender("127.0.0.1:0", endpoint.local_address()));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(sender.send(None, b"data").unwrap());
    let (bytes, source) = receive(endpoint.as_mut(), 1).remove(0);
    assert_eq!(
        (bytes.as_slice(), source),
        (&b"data"[..], sender.local_address())
    );
    stranger.send_to(b"forged", sender.local_address()).unwrap();
    assert!(endpoint.send(Some(source), b"control").unwrap());
    assert_eq!(payloads(sender.as_mut(), 1), [b"control"]);
    assert_silent(sender.as_mut());
}

/// 04-180: while no socket has the destination port, the kernel refuses some sends. These sends are reported as short
/// and not as errors.
#[test]
fn sends_to_a_closed_port_are_short_but_not_errors() {
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut sender = open(&sender("127.0.0.1:0", closed));
    let memory = SharedBuffer::heap(4096);
    let deadline = Instant::now() + Duration::from_secs(5);
    let (mut short_batches, mut short_datagrams) = (0, 0);
    while (short_batches == 0 || short_datagrams == 0) && Instant::now() < deadline {
        short_batches += 1 - sender
            .send_gso_batches(None, &[batch(&memory, 1, 64, 0)])
            .unwrap();
        short_datagrams += usize::from(!sender.send(None, b"x").unwrap());
        sender.send(None, b"x").unwrap();
        assert_eq!(receive_once(sender.as_mut()), []);
        sender
            .send_gso_batches(None, &[batch(&memory, 4, 64, 0)])
            .unwrap();
    }
    assert!(short_batches > 0 && short_datagrams > 0);
    assert_eq!(
        sender.max_gso_batch_datagrams(None),
        MAX_GSO_BATCH_DATAGRAMS
    );
}

#[test]
fn a_connected_socket_follows_its_peer_to_another_address() {
    let (mut old, mut new) = (
        open(&receiver("127.0.0.1:0")),
        open(&receiver("127.0.0.1:0")),
    );
    let mut sender = open(&sender("127.0.0.1:0", old.local_address()));
    sender.send(None, b"1").unwrap();
    sender.connect(new.local_address()).unwrap();
    sender.send(None, b"2").unwrap();
    assert_eq!(payloads(old.as_mut(), 1), [b"1"]);
    assert_eq!(payloads(new.as_mut(), 1), [b"2"]);
    new.send(Some(sender.local_address()), b"3").unwrap();
    assert_eq!(payloads(sender.as_mut(), 1), [b"3"]);
}

#[test]
fn an_unconnected_sender_can_send_gso_batches_to_any_destination() {
    let (mut a, mut b) = (
        open(&receiver("127.0.0.1:0")),
        open(&receiver("127.0.0.1:0")),
    );
    let mut sender = open(&SocketSpec {
        side: SocketSide::Sender,
        ..receiver("0.0.0.0:0")
    });
    let memory = SharedBuffer::heap(4096);
    let batches = [batch(&memory, 3, 64, 10)];
    for receiver in [&mut a, &mut b] {
        let to = Some(receiver.local_address());
        assert_eq!(sender.send_gso_batches(to, &batches).unwrap(), 1);
        let lengths: Vec<usize> = payloads(receiver.as_mut(), 4)
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(lengths, [64, 64, 64, 10]);
    }
}

#[test]
fn gso_batches_can_be_sent_over_ipv6() {
    let mut endpoint = open(&receiver("[::1]:0"));
    let mut sender = open(&sender("[::1]:0", endpoint.local_address()));
    let memory = SharedBuffer::heap(1 << 16);
    assert_eq!(
        sender
            .send_gso_batches(None, &[batch(&memory, 40, 1408, 0)])
            .unwrap(),
        1
    );
    let arrivals = receive(endpoint.as_mut(), 40);
    assert!(
        arrivals
            .iter()
            .all(|(bytes, source)| bytes.len() == 1408 && *source == sender.local_address())
    );
}

#[test]
fn an_empty_datagram_arrives_as_one_datagram() {
    let mut endpoint = open(&receiver("127.0.0.1:0"));
    let mut sender = open(&sender("127.0.0.1:0", endpoint.local_address()));
    sender.send(None, b"").unwrap();
    sender.send(None, b"x").unwrap();
    assert_eq!(payloads(endpoint.as_mut(), 2), [&b""[..], &b"x"[..]]);
}

/// A sender's socket receives at most one MTU of a datagram. A receiver's socket receives datagrams of any length.
#[test]
fn a_sender_truncates_long_control_frames_and_a_receiver_gets_whole_datagrams() {
    let mut endpoint = open(&receiver("127.0.0.1:0"));
    let mut sender = open(&sender("127.0.0.1:0", endpoint.local_address()));
    let longest = vec![7; 65_507];
    sender.send(None, &longest).unwrap();
    assert_eq!(payloads(endpoint.as_mut(), 1)[0], longest);
    endpoint
        .send(Some(sender.local_address()), &longest)
        .unwrap();
    assert_eq!(payloads(sender.as_mut(), 1), [&longest[..1408]]);
}

#[test]
fn sockets_have_the_requested_buffer_lengths_or_the_systems_default() {
    let system = open(&receiver("127.0.0.1:0")).buffer_lengths();
    assert!(system.send > 0 && system.receive > 0);
    let asking = open(&SocketSpec {
        send_buffer_length: 65_536,
        receive_buffer_length: 98_304,
        ..receiver("127.0.0.1:0")
    });
    let granted = asking.buffer_lengths();
    // Linux doubles the requested length, to have room for its own data.
    assert!([65_536, 131_072].contains(&granted.send), "{granted:?}");
    assert!([98_304, 196_608].contains(&granted.receive), "{granted:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn media_timestamps_come_from_the_kernel_and_datagrams_are_received_one_by_one() {
    let mut endpoint = open(&SocketSpec {
        receive_timestamps: true,
        ..receiver("127.0.0.1:0")
    });
    let mut sender = open(&sender("127.0.0.1:0", endpoint.local_address()));
    let memory = SharedBuffer::heap(4096);
    let before = now_ns();
    sender
        .send_gso_batches(None, &[batch(&memory, 4, 64, 0)])
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut times = Vec::new();
    while times.len() < 4 && Instant::now() < deadline {
        let mut in_batch = 0;
        let on_datagram = &mut |datagram: aeron_driver::media::transport::Datagram<'_>| {
            times.push(datagram.media_timestamp_ns.unwrap());
            in_batch += 1;
        };
        endpoint.receive(1, on_datagram).unwrap();
        assert!(in_batch <= 1);
    }
    assert!(times.iter().all(|time| (before..=now_ns()).contains(time)));
    assert_eq!(times.len(), 4);
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_nanos() as i64
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let spec = receiver("192.0.2.1:0");
    assert_eq!(spec.bind, address("192.0.2.1:0"));
    let error = UdpNetwork::new(FULL, 1408).open(&spec).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
}
