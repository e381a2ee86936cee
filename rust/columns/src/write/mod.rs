//! Columns as messages: what a record batch says is sent where, and its values as the messages of a publication without a copy.

mod key;
mod messages;
mod packing;
mod rows;

pub use key::{MAX_MESSAGES, MAX_PARTITIONS, MessageKey};
pub use messages::{ArrowMessages, Payloads, Reserved, ReservedValue};
pub use packing::Packing;
pub use rows::{
    Headers, RESERVED_VALUE, RowError, Rows, RowsOfStream, STREAM_ID, VALUE, by_stream,
};
