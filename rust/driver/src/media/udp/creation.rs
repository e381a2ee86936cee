//! Opens sockets and sets their options. Unicast sockets are exclusive, multicast sockets share their port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

use super::system;
use crate::media::transport::{MulticastSpec, SocketSpec};
use crate::socket_buffers::SocketBufferLengths;

/// The sockets of the operating system for one [`Socket`](crate::media::transport::Socket).
#[derive(Debug)]
pub struct Sockets {
    /// Receives, and also sends if there is no second socket.
    pub receive: UdpSocket,
    /// Sends to a multicast group. A socket that is connected to the group could not receive from the group's members.
    pub send: Option<UdpSocket>,
}

impl Sockets {
    /// Opens the sockets for `spec`.
    pub fn open(spec: &SocketSpec) -> io::Result<Self> {
        let sockets = match &spec.multicast {
            None => open_unicast(spec)?,
            Some(multicast) => open_multicast(spec, multicast)?,
        };
        SocketBufferLengths::request(
            sockets.sending(),
            &sockets.receive,
            spec.send_buffer_length,
            spec.receive_buffer_length,
        );
        if spec.receive_timestamps {
            system::enable_timestamps(&sockets.receive)?;
        }
        Ok(sockets)
    }

    /// Returns the sending socket.
    pub fn sending(&self) -> &UdpSocket {
        self.send.as_ref().unwrap_or(&self.receive)
    }
}

fn open_unicast(spec: &SocketSpec) -> io::Result<Sockets> {
    let receive = new_socket(&spec.bind)?;
    bind(&receive, &spec.bind)?;
    if let Some(peer) = spec.connect {
        connect(&receive, &peer)?;
    }
    Ok(Sockets {
        receive,
        send: None,
    })
}

fn open_multicast(spec: &SocketSpec, multicast: &MulticastSpec) -> io::Result<Sockets> {
    let receive = new_socket(&spec.bind)?;
    sockopt::set_socket_reuseaddr(&receive, true)?;
    sockopt::set_socket_reuseport(&receive, true)?;
    system::receive_joined_groups_only(&receive, &spec.bind);
    bind(&receive, &wildcard_of(&spec.bind))?;
    join(&receive, multicast)?;
    let Some(peer) = spec.connect else {
        choose_way_out(&receive, multicast)?;
        return Ok(Sockets {
            receive,
            send: None,
        });
    };
    let send = new_socket(&peer)?;
    choose_way_out(&send, multicast)?;
    connect(&send, &peer)?;
    Ok(Sockets {
        receive,
        send: Some(send),
    })
}

/// Returns a non-blocking socket of the family of `address`. The socket is closed on `exec`.
fn new_socket(address: &SocketAddr) -> io::Result<UdpSocket> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let descriptor = socket(family, SocketType::DGRAM, None)?;
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    let socket = UdpSocket::from(descriptor);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn wildcard_of(address: &SocketAddr) -> SocketAddr {
    let wildcard: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(wildcard, address.port())
}

fn join(socket: &UdpSocket, multicast: &MulticastSpec) -> io::Result<()> {
    match multicast.group {
        IpAddr::V4(group) => {
            sockopt::set_ip_add_membership(socket, &group, &interface_v4(multicast))?;
        }
        IpAddr::V6(group) => {
            sockopt::set_ipv6_add_membership(socket, &group, multicast.interface_index)?;
        }
    }
    Ok(())
}

/// Sets the interface and the TTL of a multicast sender.
fn choose_way_out(socket: &UdpSocket, multicast: &MulticastSpec) -> io::Result<()> {
    let ttl = u32::from(multicast.ttl);
    match multicast.group {
        IpAddr::V4(_) => {
            sockopt::set_ip_multicast_if(socket, &interface_v4(multicast))?;
            if ttl > 0 {
                sockopt::set_ip_multicast_ttl(socket, ttl)?;
            }
        }
        IpAddr::V6(_) => {
            sockopt::set_ipv6_multicast_if(socket, multicast.interface_index)?;
            if ttl > 0 {
                sockopt::set_ipv6_multicast_hops(socket, ttl)?;
            }
        }
    }
    Ok(())
}

fn interface_v4(multicast: &MulticastSpec) -> Ipv4Addr {
    match multicast.interface {
        IpAddr::V4(interface) => interface,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
