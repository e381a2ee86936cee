//! Allocates the counters of endpoints: the status of a channel, its addresses and the number of its destinations.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NewCounter, keys, types};

use crate::conductor::outlets::ConductorOutlets;
use crate::error::DriverError;

/// The direction of an endpoint, for the types and labels of its counters.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChannelKind {
    Send,
    Receive,
}

impl ChannelKind {
    fn status(self) -> (i32, &'static str) {
        match self {
            Self::Send => (types::SEND_CHANNEL_STATUS, "snd-channel"),
            Self::Receive => (types::RECEIVE_CHANNEL_STATUS, "rcv-channel"),
        }
    }

    fn local_address(self) -> &'static str {
        match self {
            Self::Send => "snd-local-sockaddr",
            Self::Receive => "rcv-local-sockaddr",
        }
    }
}

impl ConductorOutlets {
    /// Allocates the counter for the status of a channel. `address` is the bound address, if the channel has only one.
    pub(super) fn allocate_channel_status(
        &mut self,
        kind: ChannelKind,
        channel: &str,
        address: Option<SocketAddr>,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let (type_id, name) = kind.status();
        let address = address.map(|address| address.to_string());
        let label = format!("{name}: {channel} {}", address.unwrap_or_default());
        self.allocate_counter(&NewCounter {
            type_id,
            key: &keys::channel_key(channel),
            label: label.as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: types::CHANNEL_ACTIVE,
        })
    }

    /// Allocates the counter for an address that a channel is bound to.
    pub(super) fn allocate_local_address(
        &mut self,
        kind: ChannelKind,
        channel_status_id: i32,
        address: SocketAddr,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let address = address.to_string();
        let label = keys::local_address_label(kind.local_address(), channel_status_id, &address);
        self.allocate_counter(&NewCounter {
            type_id: types::LOCAL_SOCKET_ADDRESS,
            key: &keys::local_address_key(channel_status_id, &address),
            label: label.as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: types::CHANNEL_ACTIVE,
        })
    }

    /// Allocates the counter for the number of destinations of a channel.
    pub(super) fn allocate_destination_count(
        &mut self,
        channel: &str,
        registration_id: i64,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        self.allocate_counter(&NewCounter {
            type_id: types::MDC_DESTINATIONS,
            key: &keys::channel_key(channel),
            label: format!("mdc-num-dest: {channel}").as_bytes(),
            registration_id,
            owner_id: 0,
            reference_id: 0,
            value: 0,
        })
    }
}
