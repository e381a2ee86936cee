//! The media layer: channels with their addresses, and the sockets that carry datagrams to other drivers.

pub mod address;
pub mod channel;
pub mod destination;
pub mod interceptors;
pub mod interfaces;
pub mod ports;
pub mod resolver;
pub mod timestamps;
pub mod transport;
pub mod udp;

#[cfg(test)]
pub(crate) mod malformed;
#[cfg(test)]
pub(crate) mod testing;

pub use channel::{ChannelRole, DataAddresses, NamedAddress, UdpChannel};
pub use interfaces::Interface;
pub use ports::PortManager;
pub use resolver::ChannelResolver;

use crate::config::Context;
use transport::Network;
use udp::{Offload, UdpNetwork};

/// Returns the network of the operating system with the options in `context`, and warnings for the operator.
pub fn network(context: &Context) -> (Box<dyn Network>, Vec<String>) {
    let offload = match context.udp_gso || context.udp_gro {
        true => Offload::probe().limited_to(context.udp_gso, context.udp_gro),
        false => Offload::NONE,
    };
    let network = UdpNetwork::new(offload, context.mtu_length);
    interceptors::intercept(Box::new(network), context)
}
