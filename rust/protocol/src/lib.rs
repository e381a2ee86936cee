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
//! Sizes and durations in channels have the same syntax as in all configuration. The crate uses `aeron_agent::value`
//! for them, and nothing else of that crate.
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
/// A driver publishes it in system counter 43. Clients send a newer command only to a driver with at least the version
/// that introduced it.
pub const CONTROL_PROTOCOL_VERSION: i32 = 0x0001_0000;
