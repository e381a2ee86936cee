//! Name resolution, interfaces and sockets of a simulated machine.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aeron_driver::DriverError;
use aeron_driver::media::address::Family;
use aeron_driver::media::interfaces::{InterfaceAddress, Interfaces};
use aeron_driver::media::transport::{Network, Poller, Socket, SocketSpec};
use aeron_driver::names::NameResolver;
use aeron_protocol::ErrorCode;

use crate::conductor::media::testing::MemoryNetwork;

/// Resolves `localhost`, addresses, and the names that the test sets. Clones share the names.
#[derive(Clone, Default)]
pub struct TestNames {
    known: Arc<Mutex<HashMap<String, IpAddr>>>,
    slow: Arc<Mutex<HashSet<String>>>,
    lookups: Arc<AtomicUsize>,
}

impl TestNames {
    /// Sets the address of `host`; `None` makes the host unknown.
    pub fn set(&self, host: &str, address: Option<&str>) {
        self.slow.lock().unwrap().remove(host);
        let mut known = self.known.lock().unwrap();
        match address {
            Some(address) => known.insert(host.into(), address.parse().unwrap()),
            None => known.remove(host),
        };
    }

    /// Delays the result of each lookup of `host` until [`set`](Self::set) is called for this host.
    pub fn set_slow(&self, host: &str) {
        self.slow.lock().unwrap().insert(host.into());
    }

    /// Returns the number of lookups.
    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }
}

impl NameResolver for TestNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        if self.slow.lock().unwrap().contains(host) {
            let code = ErrorCode::ResourceTemporarilyUnavailable;
            return Err(DriverError::coded(code, "being looked up"));
        }
        let known = self.known.lock().unwrap().get(host).copied();
        let address = match (host, family) {
            ("localhost", Family::V4) => Some(Ipv4Addr::LOCALHOST.into()),
            ("localhost", Family::V6) => Some(Ipv6Addr::LOCALHOST.into()),
            (host, _) => known.or_else(|| host.parse().ok()),
        };
        address
            .filter(|address| Family::of(*address) == family)
            .ok_or_else(|| {
                let text = format!("Unable to resolve host=({host})");
                DriverError::coded(ErrorCode::UnknownHost, text)
            })
    }
}

/// The loopback interface.
pub struct TestInterfaces;

impl Interfaces for TestInterfaces {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let loopback = |address: IpAddr, prefix_length| InterfaceAddress {
            name: "lo".into(),
            index: 1,
            address,
            prefix_length,
            is_up: true,
            is_loopback: true,
            is_multicast: true,
        };
        Ok(vec![
            loopback(Ipv4Addr::LOCALHOST.into(), 8),
            loopback(Ipv6Addr::LOCALHOST.into(), 128),
        ])
    }
}

/// Sockets of the loopback interface. Clones share the network.
#[derive(Clone)]
pub struct TestNetwork {
    pub memory: MemoryNetwork,
    opened: Arc<Mutex<Vec<SocketSpec>>>,
}

impl TestNetwork {
    pub fn new() -> Self {
        Self {
            memory: MemoryNetwork::new(),
            opened: Arc::default(),
        }
    }

    /// Returns the specifications of all opened sockets, in order.
    pub fn opened(&self) -> Vec<SocketSpec> {
        self.opened.lock().unwrap().clone()
    }
}

impl Network for TestNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        const ADDRESS_NOT_AVAILABLE: i32 = 99;
        let ip = spec.bind.ip();
        if !ip.is_loopback() && !ip.is_unspecified() && spec.multicast.is_none() {
            return Err(io::Error::from_raw_os_error(ADDRESS_NOT_AVAILABLE));
        }
        let socket = self.memory.open(spec)?;
        self.opened.lock().unwrap().push(spec.clone());
        Ok(socket)
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        self.memory.poller()
    }
}
