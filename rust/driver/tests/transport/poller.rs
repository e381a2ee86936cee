//! Tests of the poller, which reports the sockets that can be read.

use aeron_driver::media::transport::{Network, Poller, Socket, SocketKey};
use aeron_driver::media::udp::UdpNetwork;

use super::support::{FULL, open, payloads, receiver};

fn ready(poller: &mut dyn Poller) -> Vec<SocketKey> {
    let mut keys = Vec::new();
    poller.ready(&mut |key| keys.push(key)).unwrap();
    keys.sort_unstable();
    keys
}

/// Reads from the sockets that are ready. Returns the received datagrams.
fn poll(poller: &mut dyn Poller, sockets: &mut [Box<dyn Socket>]) -> Vec<(SocketKey, Vec<u8>)> {
    let mut received = Vec::new();
    for key in ready(poller) {
        let take = &mut |datagram: aeron_driver::media::transport::Datagram<'_>| {
            received.push((key, datagram.bytes.to_vec()));
        };
        sockets[key as usize].receive(4, take).unwrap();
    }
    received
}

/// 04-181
#[test]
fn up_to_five_sockets_are_all_reported_and_more_sockets_only_if_readable() {
    for count in [1, 5, 6, 70] {
        let mut poller = UdpNetwork::new(FULL, 1408).poller();
        let mut sockets: Vec<Box<dyn Socket>> =
            (0..count).map(|_| open(&receiver("127.0.0.1:0"))).collect();
        for (key, socket) in sockets.iter().enumerate() {
            poller.add(key as SocketKey, socket.as_ref()).unwrap();
        }
        let tried = ready(poller.as_mut()).len();
        assert_eq!(tried, if count <= 5 { count } else { 0 });
        let mut from = open(&receiver("127.0.0.1:0"));
        for (number, socket) in sockets.iter().enumerate() {
            from.send(Some(socket.local_address()), &[number as u8])
                .unwrap();
        }
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(poll(poller.as_mut(), &mut sockets));
        }
        received.sort();
        let expected: Vec<_> = (0..count)
            .map(|i| (i as SocketKey, vec![i as u8]))
            .collect();
        assert_eq!(received, expected);
    }
}

#[test]
fn a_removed_socket_is_not_reported_as_ready() {
    let mut poller = UdpNetwork::new(FULL, 1408).poller();
    let mut sockets: Vec<_> = (0..7).map(|_| open(&receiver("127.0.0.1:0"))).collect();
    for (key, socket) in sockets.iter().enumerate() {
        poller.add(key as SocketKey, socket.as_ref()).unwrap();
    }
    let mut from = open(&receiver("127.0.0.1:0"));
    from.send(Some(sockets[0].local_address()), b"x").unwrap();
    from.send(Some(sockets[6].local_address()), b"x").unwrap();
    while ready(poller.as_mut()) != [0, 6] {}
    poller.remove(6, sockets[6].as_ref());
    assert_eq!(ready(poller.as_mut()), [0]);
    poller.remove(5, sockets[5].as_ref());
    assert_eq!(ready(poller.as_mut()), [0, 1, 2, 3, 4]);
    assert_eq!(payloads(sockets[6].as_mut(), 1), [b"x"]);
}
