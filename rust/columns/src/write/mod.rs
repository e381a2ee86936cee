//! Columns as messages: routes the rows of a record batch to streams, and lends their values to a publication without a
//! copy.

mod encoding;
mod key;
mod messages;
mod packing;
mod plain;
mod rows;

pub(crate) use encoding::ENCODED_ROWS;
pub use encoding::{EncodedRows, RecordRows, RowEncoding, ValueColumn};
pub use key::{MAX_MESSAGES, MAX_PARTITIONS, MessageKey};
pub use messages::{ArrowMessages, Payloads, Reserved, ReservedValue};
pub use packing::Packing;
pub use plain::plain;
pub use rows::{
    Headers, RESERVED_VALUE, RowSendError, Rows, RowsOfStream, STREAM_ID, VALUE, by_stream,
};
