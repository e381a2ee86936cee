//! Tests with two hosts, which are network namespaces with a virtual cable (veth) between them. If the system does not
//! permit namespaces, the tests print a message and do nothing.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

use aeron_driver::media::transport::{MAX_GSO_BATCH_DATAGRAMS, MulticastSpec, Socket, SocketSpec};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::support::{
    assert_silent, batch, distinct_memory, open, payloads, receive_once, receiver, sender,
};

/// Two hosts on one network: 10.77.0.1 with fd77::1, and 10.77.0.2 with fd77::2.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// Creates the hosts. If the system does not permit namespaces, prints a message to stderr and returns `None`.
    fn new(name: &str, mtu: u32) -> Option<Self> {
        let prefix = format!("aeron-{}-{name}", std::process::id());
        let names = [format!("{prefix}-a"), format!("{prefix}-b")];
        if !try_ip(&format!("netns add {}", names[0])) {
            eprintln!("network namespaces are not permitted here: not tested");
            return None;
        }
        let hosts = Hosts { names };
        let [a, b] = &hosts.names;
        ip(&format!("netns add {b}"));
        ip(&format!(
            "-n {a} link add cable type veth peer name cable netns {b}"
        ));
        for (number, host) in [(1, a), (2, b)] {
            ip(&format!("-n {host} addr add 10.77.0.{number}/24 dev cable"));
            ip(&format!(
                "-n {host} addr add fd77::{number}/64 dev cable nodad"
            ));
            ip(&format!("-n {host} link set cable mtu {mtu} up"));
            ip(&format!("-n {host} link set lo up"));
        }
        Some(hosts)
    }

    /// Opens a socket on the first (0) or the second host (1). The socket stays on this host.
    fn open(&self, host: usize, spec: &SocketSpec) -> Box<dyn Socket> {
        let namespace = File::open(format!("/run/netns/{}", self.names[host])).unwrap();
        let spec = spec.clone();
        // A change of the namespace affects one thread, so a new thread changes it and then ends.
        let opening = thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            open(&spec)
        });
        opening.join().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            try_ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) {
    assert!(try_ip(arguments), "ip {arguments}");
}

fn try_ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    status.is_ok_and(|status| status.success())
}

/// The datagrams of this batch are longer than the MTU of the interface.
///
/// The kernel refuses the batch, because it does not fragment the datagrams of a GSO batch. It fragments datagrams that
/// are sent one by one.
#[test]
fn a_datagram_longer_than_the_mtu_turns_segmentation_off_for_its_destination_and_is_not_lost() {
    let Some(hosts) = Hosts::new("mtu", 1400) else {
        return;
    };
    for (bind, to) in [
        ("10.77.0.1:0", "10.77.0.2:4000"),
        ("[fd77::1]:0", "[fd77::2]:4000"),
    ] {
        let spec = SocketSpec {
            receive_buffer_length: 4 << 20,
            ..receiver(to)
        };
        let mut endpoint = hosts.open(1, &spec);
        let mut unconnected = hosts.open(0, &receiver(bind));
        let mut connected = hosts.open(0, &sender(bind, endpoint.local_address()));
        // The kernel queues only a few datagrams until it has resolved the other host's hardware address.
        connected.send(None, b"first datagram").unwrap();
        payloads(endpoint.as_mut(), 1);
        let memory = distinct_memory();
        let batch = batch(&memory, 46, 1408, 96);
        for (socket, to) in [
            (&mut unconnected, Some(endpoint.local_address())),
            (&mut connected, None),
        ] {
            assert_eq!(socket.max_gso_batch_datagrams(to), MAX_GSO_BATCH_DATAGRAMS);
            assert_eq!(socket.send_gso_batches(to, &[batch, batch]).unwrap(), 2);
            let arrived = payloads(endpoint.as_mut(), 94);
            assert!(arrived[..47].concat() == arrived[47..].concat());
            assert!(arrived[..46].iter().all(|datagram| datagram.len() == 1408));
            assert_eq!(socket.max_gso_batch_datagrams(to), 1);
            let elsewhere = Some("10.77.0.2:4001".parse().unwrap());
            assert_eq!(
                socket.max_gso_batch_datagrams(elsewhere),
                MAX_GSO_BATCH_DATAGRAMS
            );
        }
        connected.connect(endpoint.local_address()).unwrap();
        assert_eq!(
            connected.max_gso_batch_datagrams(None),
            MAX_GSO_BATCH_DATAGRAMS
        );
        assert_silent(endpoint.as_mut());
    }
}

#[test]
fn gso_batches_of_datagrams_within_the_mtu_reach_the_other_host() {
    let Some(hosts) = Hosts::new("fit", 1500) else {
        return;
    };
    let mut endpoint = hosts.open(1, &receiver("10.77.0.2:4000"));
    let mut from = hosts.open(0, &sender("10.77.0.1:0", endpoint.local_address()));
    let memory = distinct_memory();
    assert_eq!(
        from.send_gso_batches(None, &[batch(&memory, 46, 1408, 0)])
            .unwrap(),
        1
    );
    assert_eq!(from.max_gso_batch_datagrams(None), MAX_GSO_BATCH_DATAGRAMS);
    let arrived = payloads(endpoint.as_mut(), 46);
    assert!(arrived.iter().all(|datagram| datagram.len() == 1408));
}

#[test]
fn multicast_reaches_the_other_host_over_the_interface_of_the_channel() {
    let Some(hosts) = Hosts::new("group", 1500) else {
        return;
    };
    let index = |host: usize| {
        let path = "/sys/class/net/cable/ifindex";
        let output = Command::new("ip")
            .args(["netns", "exec", &hosts.names[host], "cat", path])
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse::<u32>()
            .unwrap()
    };
    for (data, control, interfaces) in [
        ("224.20.30.39", "224.20.30.40", ["10.77.0.1", "10.77.0.2"]),
        ("ff02::127", "ff02::128", ["fd77::1", "fd77::2"]),
    ] {
        let at = |group: &str| std::net::SocketAddr::new(group.parse().unwrap(), 4000);
        let group = |group: &str, host: usize| MulticastSpec {
            group: group.parse().unwrap(),
            interface: interfaces[host].parse().unwrap(),
            interface_index: index(host),
            ttl: 4,
        };
        let mut member = hosts.open(
            1,
            &SocketSpec {
                bind: at(data),
                multicast: Some(group(data, 1)),
                ..receiver("0.0.0.0:0")
            },
        );
        let mut publisher = hosts.open(
            0,
            &SocketSpec {
                multicast: Some(group(control, 0)),
                bind: at(control),
                ..sender("0.0.0.0:0", at(data))
            },
        );
        // A new veth cable loses the first datagrams.
        while receive_once(member.as_mut()).is_empty() {
            publisher.send(None, b"data").unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        member.send(Some(at(control)), b"control").unwrap();
        assert_eq!(payloads(publisher.as_mut(), 1), [b"control"]);
    }
}
