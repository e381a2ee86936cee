//! Deliberate loss for system tests: interceptors that drop incoming datagrams of every socket.
//!
//! `AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS` lists the interceptors in the order of their execution. Each interceptor
//! has its own variable for arguments. If the kernel delivers several datagrams as one train, the train is split before
//! the interceptors get its datagrams. Each socket has its own interceptors.

mod arguments;
mod data;
mod fixed_loss;
mod loss;
mod multi_gap_loss;

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use super::transport::{Datagram, GsoBatch, Network, Poller, Socket, SocketSpec};
use crate::config::Context;
use crate::socket_buffers::SocketBufferLengths;
use fixed_loss::{FixedLoss, FixedLossArguments};
use loss::{LossArguments, RandomLoss};
use multi_gap_loss::{MultiGapLoss, MultiGapLossArguments};

/// Returns whether `name` is an interceptor for incoming datagrams. No interceptor exists for outgoing datagrams.
pub fn is_incoming(name: &str) -> bool {
    Kind::from_name(name).is_some()
}

/// The kind of an interceptor.
#[derive(Clone, Copy)]
enum Kind {
    Loss,
    FixedLoss,
    MultiGapLoss,
}

impl Kind {
    /// Returns the kind with this name: a short name, or the name of the C driver's function.
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "loss" | "aeron_udp_channel_interceptor_loss_load" => Some(Self::Loss),
            "fixed-loss" | "aeron_udp_channel_interceptor_fixed_loss_load" => Some(Self::FixedLoss),
            "multi-gap-loss" | "aeron_udp_channel_interceptor_multi_gap_loss_load" => {
                Some(Self::MultiGapLoss)
            }
            _ => None,
        }
    }
}

/// Decides for each datagram whether it arrives.
trait Interceptor: Send {
    /// Returns whether the datagram passes.
    fn lets_pass(&mut self, datagram: &[u8]) -> bool;
}

/// Wraps `network` with the interceptors in `context`. Also returns warnings for the operator.
///
/// As in the C driver, missing arguments mean no loss. Arguments that cannot be parsed mean no loss and a warning.
pub fn intercept(network: Box<dyn Network>, context: &Context) -> (Box<dyn Network>, Vec<String>) {
    let mut warnings = Vec::new();
    let specs: Vec<InterceptorSpec> = context
        .udp_channel_incoming_interceptors
        .split(',')
        .filter_map(|name| InterceptorSpec::new(name, context, &mut warnings))
        .collect();
    let network = match specs.is_empty() {
        true => network,
        false => Box::new(InterceptedNetwork { network, specs }),
    };
    (network, warnings)
}

/// An interceptor and its arguments.
#[derive(Clone, Debug)]
enum InterceptorSpec {
    Loss(LossArguments),
    FixedLoss(FixedLossArguments),
    MultiGapLoss(MultiGapLossArguments),
}

impl InterceptorSpec {
    fn new(name: &str, context: &Context, warnings: &mut Vec<String>) -> Option<Self> {
        let mut keep = |warning: Result<Option<Self>, String>| {
            warning.unwrap_or_else(|warning| {
                warnings.push(warning);
                None
            })
        };
        match Kind::from_name(name)? {
            Kind::Loss => keep(
                LossArguments::parse(&context.udp_channel_transport_bindings_loss_args)
                    .map(|arguments| arguments.map(Self::Loss)),
            ),
            Kind::FixedLoss => keep(
                FixedLossArguments::parse(&context.udp_channel_transport_bindings_fixed_loss_args)
                    .map(|arguments| arguments.map(Self::FixedLoss)),
            ),
            Kind::MultiGapLoss => keep(
                MultiGapLossArguments::parse(
                    &context.udp_channel_transport_bindings_multi_gap_loss_args,
                )
                .map(|arguments| arguments.map(Self::MultiGapLoss)),
            ),
        }
    }

    fn build(&self) -> Box<dyn Interceptor> {
        match self {
            Self::Loss(arguments) => Box::new(RandomLoss::new(arguments)),
            Self::FixedLoss(arguments) => Box::new(FixedLoss::new(*arguments)),
            Self::MultiGapLoss(arguments) => Box::new(MultiGapLoss::new(*arguments)),
        }
    }
}

struct InterceptedNetwork {
    network: Box<dyn Network>,
    specs: Vec<InterceptorSpec>,
}

impl Network for InterceptedNetwork {
    fn open(&mut self, spec: &SocketSpec) -> io::Result<Box<dyn Socket>> {
        Ok(Box::new(InterceptedSocket {
            socket: self.network.open(spec)?,
            interceptors: self.specs.iter().map(InterceptorSpec::build).collect(),
        }))
    }

    fn poller(&mut self) -> Box<dyn Poller> {
        self.network.poller()
    }
}

struct InterceptedSocket {
    socket: Box<dyn Socket>,
    interceptors: Vec<Box<dyn Interceptor>>,
}

impl Socket for InterceptedSocket {
    fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    fn buffer_lengths(&self) -> SocketBufferLengths {
        self.socket.buffer_lengths()
    }

    fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize {
        self.socket.max_gso_batch_datagrams(to)
    }

    fn send_gso_batches(
        &mut self,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        self.socket.send_gso_batches(to, batches)
    }

    fn send(&mut self, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<bool> {
        self.socket.send(to, datagram)
    }

    /// Lost bytes count as received, because the socket has received them.
    fn receive(
        &mut self,
        limit: usize,
        on_datagram: &mut dyn FnMut(Datagram<'_>),
    ) -> io::Result<usize> {
        let interceptors = &mut self.interceptors;
        self.socket.receive(limit, &mut |datagram| {
            if interceptors
                .iter_mut()
                .all(|interceptor| interceptor.lets_pass(datagram.bytes))
            {
                on_datagram(datagram);
            }
        })
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.socket.connect(to)
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.descriptor()
    }
}
