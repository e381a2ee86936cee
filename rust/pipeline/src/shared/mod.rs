//! Reads the recordings of a running archive server, for streaming queries and for batches.
//!
//! The archive records, and any number of queries read the recordings. [`SharedSource`] implements Spark's hooks, and
//! [`plan_shared`] plans a batch read. A worker reads a [`SharedPartition`] with a [`SharedPartitionReader`]. If the
//! worker sees the archive's directory, it reads the segment files. Otherwise it reads a replay.
//!
//! **Offsets.** The start of a query and the end of each batch are positions in recordings. Spark logs these positions.
//! A batch reads only ranges between two logged positions, so that a repeated batch reads the same rows. Therefore the
//! first batch has no rows: it only logs the positions at which the query starts. If a recording appears later, its
//! start position is logged first, and the next batch reads the recording.
//!
//! **Links.** A recording that continues an earlier one after a gap is read like any other recording. The positions
//! that were not recorded in between are reported as lost.
//!
//! **Messages.** Each logged position is between two messages. A message never crosses the end of a term, so the start
//! of each term is between two messages too.

mod batch;
mod connection;
mod files;
mod filter;
mod links;
mod messages;
mod partition;
mod positions;
mod range;
mod reader;
mod reader_position;
mod recordings;
mod replay;
mod source;
mod times;

pub use self::batch::{SharedBatch, SharedPlan, plan_shared};
pub use self::connection::{ArchiveAccess, ArchiveConnections};
pub use self::filter::{RowFilter, ValueRanges};
pub use self::partition::SharedPartition;
pub use self::positions::{PositionsError, ReadPositions};
pub use self::reader::SharedPartitionReader;
pub use self::reader_position::QueryReader;
pub use self::recordings::{ChannelSelection, SharedSelection};
pub use self::source::{SharedSettings, SharedSource};

/// Interrupt check of a waiting call. `true` ends the wait with
/// [`LiveCode::Interrupted`](crate::error::LiveCode::Interrupted).
pub type ReadInterrupted = fn() -> bool;
