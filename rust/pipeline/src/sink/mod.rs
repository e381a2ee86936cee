//! The sink: record batches into publications.
//!
//! A [`SinkTask`] takes the record batches of one task and frames their values straight into term buffers, in runs of whole
//! messages, waiting while subscribers are behind. What it publishes through belongs to [`Publications`], which outlive the
//! task. Nothing is dropped without an error, and an error says what was published and what was not.

mod drain;
mod error;
mod key;
mod messages;
mod offer;
mod packing;
mod patience;
mod publications;
mod rows;
mod stream;
mod task;

pub use error::{Progress, SinkError};
pub use key::{MAX_MESSAGES, MAX_PARTITIONS, MessageKey};
pub use messages::{ArrowMessages, Payloads, Reserved, ReservedValue};
pub use publications::{MAX_STREAMS, Publications};
pub use rows::{Headers, RESERVED_VALUE, RowError, Rows, STREAM_ID, VALUE};
pub use stream::StreamReceipt;
pub use task::{Receipt, SinkSettings, SinkTask, Typed};
