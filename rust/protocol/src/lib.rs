//! Encodes and decodes the messages of Aeron: commands, events and channel URIs between clients and the media driver,
//! frames between drivers, and messages between clients and archives.
//!
//! The crate does no I/O and has no state, and decoding does not allocate. The input of a parser may be any bytes,
//! because it comes from other processes. A parser returns a value or a precise error, and never panics.
//!
//! * [`command`]: requests of a client to the driver.
//! * [`event`]: responses and announcements of the driver.
//! * [`ErrorCode`]: the error codes in responses.
//! * [`frame`]: the UDP datagrams between drivers.
//! * [`archive`]: the messages between clients and archives.
//! * [`uri`]: channels, and the parameters that a driver reads from them.
//!
//! Sizes and durations in channels have the same syntax as in the configuration. `aeron_agent::value` parses them. It
//! is the only part of `aeron_agent` that this crate uses.
#![forbid(unsafe_code)]

pub mod archive;
pub mod command;
pub mod event;
pub mod frame;
pub mod uri;

mod codec;
mod error_code;

pub use codec::{DecodeError, EncodeError};
pub use error_code::ErrorCode;

/// Version of the control protocol that this crate implements, as a semantic version (1.0.0): major << 16 | minor << 8
/// | patch.
///
/// A driver publishes its version in system counter 43. If a later version introduced a command, clients send the
/// command only to drivers of at least that version.
pub const CONTROL_PROTOCOL_VERSION: i32 = 0x0001_0000;
