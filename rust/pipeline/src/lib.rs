//! A live stream on its way to columns: the recorder thread, its private archive with index sidecars, what partitions and offsets are,
//! and record batches on their way to publications. Columns themselves are made by `aeron-columns`.
#![forbid(unsafe_code)]

pub mod error;
pub mod live;
pub mod offsets;
pub mod partition;
pub mod planning;
pub mod private;
pub mod recordings;
pub mod rows;
pub mod sink;

mod machine;
mod pause;
mod recorder;
