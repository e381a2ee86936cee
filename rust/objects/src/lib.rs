//! Copies of an archive's sealed segments in S3-compatible storage or in a local directory.
//!
//! [`open_objects`] starts the *object thread* of an archive. Only this thread has an async runtime. It copies
//! segments, reads each copy back, and fetches segments for replays. Conductor and replayer of the archive exchange
//! requests and events with it over bounded queues, and never wait.
//!
//! * Stored data: [`key`] (names of objects), [`manifest`] (copies of a recording), [`location`] (URL and settings).
//! * State machines without I/O: [`queue`] (order of the copies, and when a failed copy is tried again), [`cache`]
//!   (files of fetched segments).
//! * Work: `copy`, `fetch`, `local` (files of the archive directory), `thread` (the loop), `link` (the queues).
//! * Other processes: [`reading`] reads copied segments without the archive.
#![forbid(unsafe_code)]

pub mod cache;
mod copy;
mod error;
mod fetch;
pub mod key;
mod link;
mod local;
pub mod location;
pub mod manifest;
pub mod queue;
pub mod reading;
mod thread;
mod throttle;

pub use error::ObjectError;
pub use link::{open_objects, open_with};
