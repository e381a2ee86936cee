//! The sink: publishes record batches.
//!
//! A [`SinkTask`] writes the record batches of one task as frames directly into term buffers, in runs of whole
//! messages. It waits while subscribers lag behind. [`SharedPublications`] owns the clients and publications, which
//! stay open after the end of the task. The sink drops no row without an error, and the error says which rows were
//! published.

mod drain;
mod error;
mod offer;
mod patience;
mod publication;
mod publications;
mod stream;
mod task;

pub use error::{SinkError, SinkProgress};
pub use publication::Sharing;
pub use publications::{MAX_STREAMS, SharedPublications};
pub use stream::StreamReceipt;
pub use task::{Receipt, SinkSettings, SinkTask};
