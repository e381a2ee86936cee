//! Copies of an archive's sealed segments in S3-compatible storage or in a local directory.
//!
//! [`open_objects`] starts the *object thread* of an archive. In the archive, only this thread has an async runtime.
//! The thread copies segments, reads each copy back, and fetches segments for replays. The archive's conductor and
//! replayer send requests to the thread over bounded queues, and receive its events and the outcomes of fetches. They
//! wait for the thread only when the archive closes.
//!
//! * Stored data: [`key`] (names of objects), [`manifest`] (copies of a recording), [`location`] (URL and settings).
//! * State machines without I/O: [`queue`] (order of the copies, and when a failed copy is tried again), [`cache`]
//!   (files of fetched segments).
//! * Work: `copy`, `throttle` (limit of the bytes per second), `fetch`, `check` (objects that no manifest names),
//!   `local` (files of the archive directory), `thread` (the loop), `link` (the queues).
//! * Other processes: [`reading`] reads copied segments without the archive.
//!
//! Without the default feature `storage`, the crate has only the stored data and the state machines.
#![forbid(unsafe_code)]

pub mod cache;
pub mod key;
pub mod manifest;
pub mod queue;

#[cfg(feature = "storage")]
mod check;
#[cfg(feature = "storage")]
mod copy;
#[cfg(feature = "storage")]
mod error;
#[cfg(feature = "storage")]
mod fetch;
#[cfg(feature = "storage")]
mod link;
#[cfg(feature = "storage")]
mod local;
#[cfg(feature = "storage")]
pub mod location;
#[cfg(feature = "storage")]
pub mod reading;
#[cfg(feature = "storage")]
mod thread;
#[cfg(feature = "storage")]
mod throttle;

#[cfg(feature = "storage")]
pub use error::ObjectError;
#[cfg(feature = "storage")]
pub use link::{open_objects, open_with};
