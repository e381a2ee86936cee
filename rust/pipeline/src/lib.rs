//! A live stream on its way to columns: the recorder thread, its private archive with index sidecars, record layouts, and frames
//! turned into Arrow columns and back in one pass. Knows Arrow, but not Spark.
#![forbid(unsafe_code)]

pub mod columns;
pub mod error;
pub mod layout;
pub mod live;
pub mod offsets;
pub mod partition;
pub mod planning;
pub mod private;
pub mod recordings;
pub mod sink;

mod machine;
mod pause;
mod recorder;
