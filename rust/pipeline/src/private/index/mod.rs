//! The index of a recording: one sidecar file per segment, which says at the end of every block how far the messages go and
//! when the block came.
//!
//! Rows come from the segments alone. The index says where to cut a range into batches and partitions, and is the only place
//! that knows arrival times. A sidecar is made before its segment and goes with it.

mod arrivals;
mod entry;
mod file;
mod lookup;
mod repair;

pub use arrivals::Arrivals;
pub use entry::{ENTRY_LENGTH, IndexEntry, IndexHeader};
pub use file::{IndexFile, IndexWriter};
pub use lookup::{Cut, Index, IndexError};
pub use repair::{Repair, Tail, indexed_end, repair};

/// Ending of the name of an index file, without its dot.
pub const INDEX_EXTENSION: &str = "idx";
/// Ending of an index file that is being made anew.
pub const NEW_INDEX_EXTENSION: &str = "idx.new";
