//! [`ReceiveDestination`]: one socket of a receive endpoint, and where its senders are told things.

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_protocol::uri::TimestampOffsets;
use slab::Slab;

use super::ids::DestinationId;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::UdpChannel;
use crate::media::timestamps::{EpochNanos, stamp_received};
use crate::media::transport::{Datagram, Socket};

/// A sender of which nothing came for longer may have moved; it is told nothing until something comes. In ns.
pub const ACTIVITY_TIMEOUT_NS: i64 = 5_000_000_000;

/// Where the senders behind a destination hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Where their frames come from.
    Source,
    /// In the control group of a multicast address.
    Group(SocketAddr),
    /// Where the channel says.
    Explicit { name: String, address: SocketAddr },
}

impl Control {
    /// The address, if it is known without having heard of the sender.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Source => None,
            Self::Group(address) | Self::Explicit { address, .. } => Some(*address),
        }
    }

    /// Where a frame that came from `source` is answered.
    pub fn address_for_answer(&self, source: SocketAddr) -> SocketAddr {
        match self {
            Self::Group(address) => *address,
            Self::Source | Self::Explicit { .. } => source,
        }
    }
}

/// A socket and what is known of its senders.
pub struct ReceiveDestination {
    pub(super) link: Link,
    pub(super) socket: Box<dyn Socket>,
}

/// A destination apart from its socket.
#[derive(Debug)]
pub(super) struct Link {
    pub id: DestinationId,
    /// Key of the endpoint in the receiver.
    pub endpoint: usize,
    pub control: Control,
    /// Hops that the channel gives to multicast datagrams.
    pub multicast_ttl: Option<i32>,
    /// Where times of receiving are written into messages.
    pub timestamp_offsets: TimestampOffsets,
    pub time_of_last_activity_ns: i64,
}

impl ReceiveDestination {
    /// The destination that `channel` names, with the socket that was opened for it.
    ///
    /// `timestamp_offsets` are the subscription's: they say what its images hold, whichever socket a message came by.
    pub fn new(
        id: DestinationId,
        channel: &UdpChannel,
        timestamp_offsets: TimestampOffsets,
        socket: Box<dyn Socket>,
    ) -> Self {
        let control = match &channel.control {
            _ if channel.is_multicast => Control::Group(channel.remote_control),
            Some(control) => Control::Explicit {
                name: control.name.clone(),
                address: control.address,
            },
            None => Control::Source,
        };
        let multicast_ttl = channel
            .is_multicast
            .then(|| channel.params.ttl.unwrap_or_default().into());
        let link = Link {
            id,
            endpoint: usize::MAX,
            control,
            multicast_ttl,
            timestamp_offsets,
            time_of_last_activity_ns: 0,
        };
        Self { link, socket }
    }

    /// The name of the sender's control address when nothing came from it for long; the time then starts anew.
    pub(super) fn take_silent_control(&mut self, now_ns: i64) -> Option<(&str, SocketAddr)> {
        let link = &mut self.link;
        let Control::Explicit { name, address } = &link.control else {
            return None;
        };
        if now_ns <= link.time_of_last_activity_ns + ACTIVITY_TIMEOUT_NS {
            return None;
        }
        link.time_of_last_activity_ns = now_ns;
        Some((name, *address))
    }
}

impl Link {
    /// Writes into the messages of a datagram when it was received, if the channel wants that.
    pub fn stamp(&self, datagram: &mut Datagram<'_>, epoch_nanos: &EpochNanos) {
        if let Some(offset) = self.timestamp_offsets.channel_receive {
            stamp_received(datagram.bytes, offset, epoch_nanos());
        }
        let media = self.timestamp_offsets.media_receive;
        if let Some((offset, time_ns)) = media.zip(datagram.media_timestamp_ns) {
            stamp_received(datagram.bytes, offset, time_ns);
        }
    }
}

/// Sends the receiver's frames, and counts and notes what does not go out.
pub(super) struct Outbound<'a> {
    pub destinations: &'a mut Slab<ReceiveDestination>,
    pub system: &'a SystemCounters<SharedBuffer>,
    pub errors: &'a ErrorRecorder,
}

impl Outbound<'_> {
    /// The control address of a destination, if it is known without having heard of the sender.
    pub fn control_address(&self, destination: usize) -> Option<SocketAddr> {
        self.destinations.get(destination)?.link.control.address()
    }

    /// Sends one frame from the socket of a destination; answers whether it was accepted or only dropped on the way.
    pub fn send(&mut self, destination: usize, to: SocketAddr, frame: &[u8]) -> bool {
        let Some(destination) = self.destinations.get_mut(destination) else {
            return false;
        };
        match destination.socket.send(Some(to), frame) {
            Ok(is_taken) => {
                if !is_taken {
                    self.system.get(SystemCounter::ShortSends).fetch_add(1);
                }
                true
            }
            Err(error) => {
                // The channel's own words do not change; a resolved address or that of a source does, and one entry for each
                // would fill the error log.
                let message = match &destination.link.control {
                    Control::Explicit { name, address } if *address == to => {
                        format!("failed to send to {name}")
                    }
                    Control::Group(group) if *group == to => format!("failed to send to {group}"),
                    _ => "failed to send to the source of a datagram".to_owned(),
                };
                self.errors.record(&DriverError::io(&error, message));
                false
            }
        }
    }
}
