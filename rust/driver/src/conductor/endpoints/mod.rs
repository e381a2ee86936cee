//! [`Endpoints`]: the sockets that publications or subscriptions share. The sender and the receiver own the sockets;
//! the conductor records their users.

mod agreement;
mod channel_counters;
mod re_resolution;
mod receive;
mod send;

use std::sync::Arc;

use re_resolution::ReResolution;
use send::SendEndpointRecord;

use crate::config::Context;
use crate::media::PortManager;
use crate::media::transport::Network;
use crate::socket_buffers::SocketBufferLengths;

pub use re_resolution::ReResolvedEndpoint;
pub use receive::{ReceiveEndpointRecord, ReceiveInterest};

/// All send and receive endpoints.
pub struct Endpoints {
    context: Arc<Context>,
    system_socket_buffers: SocketBufferLengths,
    network: Box<dyn Network>,
    sender_ports: PortManager,
    receiver_ports: PortManager,
    send: Vec<SendEndpointRecord>,
    receive: Vec<ReceiveEndpointRecord>,
    re_resolutions: Vec<ReResolution>,
    /// The last id of an endpoint or a destination.
    last_object_id: u64,
    next_receiver_id: i64,
}

impl Endpoints {
    /// Creates an empty set of endpoints. The receiver id of the first receive endpoint is `next_receiver_id`.
    pub fn new(
        context: Arc<Context>,
        system_socket_buffers: SocketBufferLengths,
        network: Box<dyn Network>,
        next_receiver_id: i64,
    ) -> Self {
        Self {
            sender_ports: PortManager::new(context.sender_wildcard_ports()),
            receiver_ports: PortManager::new(context.receiver_wildcard_ports()),
            context,
            system_socket_buffers,
            network,
            send: Vec::new(),
            receive: Vec::new(),
            re_resolutions: Vec::new(),
            last_object_id: 0,
            next_receiver_id,
        }
    }

    /// Returns the number of send endpoints.
    pub fn send_count(&self) -> usize {
        self.send.len()
    }

    /// Returns the number of receive endpoints.
    pub fn receive_count(&self) -> usize {
        self.receive.len()
    }

    /// Returns the number of lookups in progress for names that may have moved.
    pub fn re_resolution_count(&self) -> usize {
        self.re_resolutions.len()
    }

    /// Returns a new id for an endpoint or a destination.
    fn next_object_id(&mut self) -> u64 {
        self.last_object_id += 1;
        self.last_object_id
    }
}
