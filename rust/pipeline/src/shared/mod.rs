//! Reads the recordings of a running archive server, for streaming queries and for batches.
//!
//! Nothing is recorded here: the archive records, and any number of queries read. [`SharedSource`] implements Spark's
//! hooks, and [`plan_shared`] plans a batch read. A worker reads a [`SharedPartition`] with a
//! [`SharedPartitionReader`]: from the segment files if it sees the archive's directory, else by a replay.
//!
//! **Offsets.** A query's start and each of its batch ends are positions in recordings, which Spark logs. A batch reads
//! only ranges between two logged positions, so that it reads the same rows whenever it runs. Therefore the first batch
//! has no rows: it logs where the query starts. A recording that appears later is logged with its start position before
//! a batch reads it.
//!
//! **Messages.** Each logged position is between two messages. A message never extends over the end of a term, so each
//! begin of a term is such a position.

mod batch;
mod connection;
mod files;
mod messages;
mod partition;
mod positions;
mod reader;
mod reader_position;
mod recordings;
mod replay;
mod source;
mod times;

pub use self::batch::{SharedBatch, plan_shared};
pub use self::connection::{ArchiveAccess, ArchiveConnections};
pub use self::partition::SharedPartition;
pub use self::positions::{PositionsError, ReadPositions};
pub use self::reader::SharedPartitionReader;
pub use self::reader_position::QueryReader;
pub use self::recordings::{ChannelSelection, SharedSelection};
pub use self::source::{SharedSettings, SharedSource};

/// Check that waiting calls make. `true` ends the wait with
/// [`LiveCode::Interrupted`](crate::error::LiveCode::Interrupted).
pub type ReadInterrupted = fn() -> bool;
