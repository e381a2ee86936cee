//! The sink: record batches into publications.
//!
//! A [`SinkTask`] takes the record batches of one task and frames their values straight into term buffers, in runs of whole
//! messages, waiting while subscribers are behind. What it publishes through belongs to [`Publications`], which outlive the
//! task. Nothing is dropped without an error, and an error says what was published and what was not.

mod drain;
mod error;
mod offer;
mod patience;
mod publications;
mod stream;
mod task;

pub use error::{Progress, SinkError};
pub use publications::{MAX_STREAMS, Publications};
pub use stream::StreamReceipt;
pub use task::{Receipt, SinkSettings, SinkTask, Typed};
