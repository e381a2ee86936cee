//! The endpoints: sockets that publications or subscriptions share. The sender and the receiver have the sockets; what is here says
//! who uses them.

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
pub use receive::{Interest, ReceiveEndpointRecord};

/// See the [module](self).
pub struct Endpoints {
    context: Arc<Context>,
    system_socket_buffers: SocketBufferLengths,
    network: Box<dyn Network>,
    sender_ports: PortManager,
    receiver_ports: PortManager,
    send: Vec<SendEndpointRecord>,
    receive: Vec<ReceiveEndpointRecord>,
    re_resolutions: Vec<ReResolution>,
    /// Names endpoints and destinations.
    last_object_id: u64,
    next_receiver_id: i64,
}

impl Endpoints {
    /// No endpoints; the first one that receives has the id `next_receiver_id`.
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

    /// A name for an endpoint or a destination.
    fn next_object_id(&mut self) -> u64 {
        self.last_object_id += 1;
        self.last_object_id
    }
}
