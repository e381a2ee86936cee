//! Moves live streams and recordings into record batches, and record batches into publications.
//!
//! Contains the recorder thread with its private archive, the planning and reading of recordings, the definitions of
//! partitions and offsets, and the sink. The crate `aeron-columns` builds the columns themselves.
#![forbid(unsafe_code)]

pub mod error;
pub mod live;
pub mod offsets;
pub mod partition;
pub mod planning;
pub mod private;
pub mod recordings;
pub mod rows;
pub mod shared;
pub mod sink;

mod machine;
mod recorder;
