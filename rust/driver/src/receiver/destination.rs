//! [`ReceiveDestination`]: one socket of a receive endpoint, and the address for control frames to its senders.

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

/// Time without a frame, in ns, after which a sender is inactive. Only rejections and SETUP requests are sent to an
/// inactive sender. If the channel contains the sender's control name, the name is looked up again.
pub const ACTIVITY_TIMEOUT_NS: i64 = 5_000_000_000;

/// The address to which a destination sends its control frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// The source address of the received frames.
    Source,
    /// The control group of a multicast address.
    Group(SocketAddr),
    /// The control address in the channel.
    Explicit { name: String, address: SocketAddr },
}

impl ControlAddress {
    /// Returns the address; `None` if it is not known before a frame has arrived.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Source => None,
            Self::Group(address) | Self::Explicit { address, .. } => Some(*address),
        }
    }

    /// Returns the address for the reply to a frame from `source`.
    pub fn address_for_answer(&self, source: SocketAddr) -> SocketAddr {
        match self {
            Self::Group(address) => *address,
            Self::Source | Self::Explicit { .. } => source,
        }
    }
}

/// A socket and the state of its senders.
pub struct ReceiveDestination {
    pub(super) link: Link,
    pub(super) socket: Box<dyn Socket>,
}

/// The parts of a destination except its socket.
#[derive(Debug)]
pub(super) struct Link {
    pub id: DestinationId,
    /// Key of the endpoint in the receiver.
    pub endpoint: usize,
    pub control: ControlAddress,
    /// The `ttl` of a multicast channel; 0 if the channel does not set it. `None` for a unicast channel.
    pub multicast_ttl: Option<i32>,
    /// Offsets at which receive times are written into messages.
    pub timestamp_offsets: TimestampOffsets,
    pub time_of_last_activity_ns: i64,
}

impl ReceiveDestination {
    /// Creates the destination for `channel`, with the socket that was opened for it.
    ///
    /// `timestamp_offsets` are the offsets of the subscription. All sockets of an image use the same offsets.
    pub fn new(
        id: DestinationId,
        channel: &UdpChannel,
        timestamp_offsets: TimestampOffsets,
        socket: Box<dyn Socket>,
    ) -> Self {
        let control = match &channel.control {
            _ if channel.is_multicast => ControlAddress::Group(channel.remote_control),
            Some(control) => ControlAddress::Explicit {
                name: control.name.clone(),
                address: control.address,
            },
            None => ControlAddress::Source,
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

    /// Returns the name and address of the explicit control address if no frame has arrived for
    /// [`ACTIVITY_TIMEOUT_NS`]. Then restarts the timeout.
    pub(super) fn take_silent_control(&mut self, now_ns: i64) -> Option<(&str, SocketAddr)> {
        let link = &mut self.link;
        let ControlAddress::Explicit { name, address } = &link.control else {
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
    /// Writes the receive time into the messages of a datagram, if the channel asks for it.
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

/// Sends the receiver's frames, and counts and records failures.
pub(super) struct Outbound<'a> {
    pub destinations: &'a mut Slab<ReceiveDestination>,
    pub system: &'a SystemCounters<SharedBuffer>,
    pub errors: &'a ErrorRecorder,
}

impl Outbound<'_> {
    /// Returns the control address of a destination; `None` if it is not known before a frame has arrived.
    pub fn control_address(&self, destination: usize) -> Option<SocketAddr> {
        self.destinations.get(destination)?.link.control.address()
    }

    /// Sends one frame from the socket of a destination.
    ///
    /// Returns whether the frame counts as sent: the destination exists, and the socket has reported no error. A frame
    /// that the socket cannot accept now is a short send, and also counts as sent.
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
                // The message has no address that may change, because each new address would add an entry to the error
                // log. The resolved address of a name and the address of a source may change.
                let message = match &destination.link.control {
                    ControlAddress::Explicit { name, address } if *address == to => {
                        format!("failed to send to {name}")
                    }
                    ControlAddress::Group(group) if *group == to => {
                        format!("failed to send to {group}")
                    }
                    _ => "failed to send to the source of a datagram".to_owned(),
                };
                self.errors.record(&DriverError::io(&error, message));
                false
            }
        }
    }
}
