//! Bytes that travel: between clients and the media driver commands, events and channel URIs, between drivers frames,
//! between clients and archives messages.
//!
//! Nothing here does I/O, keeps state or allocates while decoding. Every parser is total: whatever the bytes are, it
//! answers a value or a precise error and never panics, because the bytes come from other processes.
//!
//! * [`command`]: what a client asks of the driver.
//! * [`event`]: what the driver answers and announces.
//! * [`ErrorCode`]: the codes that travel in answers.
//! * [`frame`]: what drivers send each other in UDP datagrams.
//! * [`archive`]: what clients and archives send each other.
//! * [`uri`]: channels, and what a driver takes out of them.
//!
//! Sizes and durations in channels are those of all configuration, so the crate uses `aeron_agent::value` for them and
//! nothing else of that crate.
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

/// Version of the control protocol spoken here, as a semantic version (1.0.0): major << 16 | minor << 8 | patch.
///
/// A driver publishes it in system counter 43; clients send newer commands only to a driver that shows at least the
/// version that introduced them.
pub const CONTROL_PROTOCOL_VERSION: i32 = 0x0001_0000;
