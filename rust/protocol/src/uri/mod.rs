//! Channel URIs: `aeron:ipc?term-length=64k`, `aeron:udp?endpoint=localhost:40123|mtu=8k`, `aeron-spy:aeron:udp?…`.
//!
//! * [`ChannelUri`] parses and prints a channel, keeps all parameters in their order, even unknown parameters, and
//!   returns each parameter as a typed value.
//! * [`ChannelUriBuilder`] creates a channel from typed values.
//! * [`PublicationParams`], [`SubscriptionParams`] and [`NetworkParams`] are the parameters that a driver reads from a
//!   channel. If the channel does not set a parameter, the driver's setting applies.
//!
//! This module resolves no names and does no I/O. A [`UriError`] has the code that a driver returns, and the message
//! that Aeron's test suites expect. The caller adds the channel to the message.

pub mod key;

mod builder;
mod channel;
mod edit;
mod error;
mod flow_control;
mod network;
mod publication;
mod subscription;
mod tags;
mod value;

pub use builder::ChannelUriBuilder;
pub use channel::{ChannelUri, Media, SPY_PREFIX, Transport};
pub use error::UriError;
pub use flow_control::{FlowControlParams, FlowControlStrategy};
pub use network::{NetworkParams, RESERVED_VALUE_TIMESTAMP_OFFSET, TimestampOffsets};
pub use publication::{
    ExistingPublication, InitialPosition, PublicationDefaults, PublicationParams, SessionId,
    UntetheredTimeouts,
};
pub use subscription::{ReceiverGroup, SubscriptionDefaults, SubscriptionParams};
pub use tags::{ControlMode, ResponseCorrelation, session_id_tag};
