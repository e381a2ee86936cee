//! The sink: publishes record batches.
//!
//! A [`SinkTask`] takes the record batches of one task and frames their values directly into term buffers, in runs of
//! whole messages. It waits while subscribers lag. [`SharedPublications`] owns the clients and publications, which
//! outlive the task. The sink drops nothing without an error; the error says which rows were published.

mod drain;
mod error;
mod offer;
mod patience;
mod publications;
mod stream;
mod task;

pub use error::{SinkError, SinkProgress};
pub use publications::{MAX_STREAMS, SharedPublications};
pub use stream::StreamReceipt;
pub use task::{Receipt, RecordRows, SinkSettings, SinkTask};
