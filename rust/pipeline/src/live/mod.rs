//! [`LiveSource`]: implements Spark's streaming-source hooks for a live stream, backed by recordings.
//!
//! The hooks have Spark's signatures; offsets and partitions are passed as text. The source opens nothing before Spark
//! has logged the archive's id: an archive that was made earlier could not be found again after a kill.

mod batch;
mod messages;
mod source;

pub use crate::recorder::MakeContext;
pub use source::{LiveSettings, LiveSource};

use std::time::Duration;

/// Longest time for which a request for the latest offset waits for data, in milliseconds.
pub const POLL_TIMEOUT_MS: u64 = 100;
/// Interval at which a waiting hook calls the interrupt check. If the process must end, the hook returns within about
/// this time.
const SLICE: Duration = Duration::from_millis(50);

/// Interrupt check that a waiting hook calls. `true` ends the wait with
/// [`LiveCode::Interrupted`](crate::error::LiveCode::Interrupted).
pub type Interrupt<'a> = &'a mut dyn FnMut() -> bool;
