//! Channel URIs: `aeron:ipc?term-length=64k`, `aeron:udp?endpoint=localhost:40123|mtu=8k`, `aeron-spy:aeron:udp?…`.
//!
//! * [`ChannelUri`] reads and prints one, keeping the order of its parameters and those it does not know, and answers each
//!   parameter by its type.
//! * [`ChannelUriBuilder`] makes one from typed values.
//! * [`PublicationParams`], [`SubscriptionParams`] and [`NetworkParams`] are what a driver takes out of one, with its own
//!   settings where the channel says nothing.
//!
//! Nothing here resolves a name or touches the network. A [`UriError`] carries the code that a driver answers and the
//! message that test suites of Aeron look for; who reports it adds the channel.

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
pub use flow_control::{FlowControl, FlowControlStrategy};
pub use network::{NetworkParams, RESERVED_VALUE_TIMESTAMP_OFFSET, TimestampOffsets};
pub use publication::{
    ExistingPublication, InitialPosition, PublicationDefaults, PublicationParams, SessionId,
    UntetheredTimeouts,
};
pub use subscription::{ReceiverGroup, SubscriptionDefaults, SubscriptionParams};
pub use tags::{ControlMode, ResponseCorrelation, session_id_tag};
