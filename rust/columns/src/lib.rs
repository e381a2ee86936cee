//! Converts messages to columns and back in one pass: record layouts, frames to Arrow record batches, and record
//! batches to messages.
//!
//! * [`layout`]: fixed-length binary records.
//! * [`read`]: frames to record batches.
//! * [`mod@write`]: record batches to messages.
//! * [`sbe`]: messages of Simple Binary Encoding to columns.
//!
//! The caller passes in frames and arrival times, so this crate does not depend on files, archives, clients or Spark.
//!
//! Numbers such as `08-nn` in tests name rule nn of document 08 in `docs/spec`.
#![forbid(unsafe_code)]

pub mod layout;
pub mod read;
pub mod sbe;
pub mod write;
