//! Messages from values.
//!
//! A template encodes a record, with all of its groups and data. A field writes one value into a block, for callers
//! that have columns.

mod column;
mod error;
mod field;
mod message;
mod number;

pub use error::SbeEncodeError;
