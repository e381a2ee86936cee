//! [`LiveSource`]: what Spark asks of a live stream, answered from recordings.
//!
//! The hooks are Spark's own, with offsets and partitions as text. Nothing is opened before Spark has logged the archive's id:
//! what is recorded before cannot be found after a kill.

mod batch;
mod messages;
mod source;

pub use crate::recorder::MakeContext;
pub use source::{LiveSettings, LiveSource};

use std::time::Duration;

/// How long a question for the latest offset waits for data.
pub const POLL_TIMEOUT_MS: u64 = 100;
/// How often a waiting hook asks whether it is to go on: a process that is told to end does so within 100 ms.
const SLICE: Duration = Duration::from_millis(50);

/// Asked by a hook that waits; `true` ends the wait with [`LiveCode::Interrupted`](crate::error::LiveCode::Interrupted).
pub type Interrupt<'a> = &'a mut dyn FnMut() -> bool;
