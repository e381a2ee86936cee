//! Recordings in Aeron's own archive format: catalog, segment files, mark file, recording, reading, purging and recovery.
//!
//! State machines without I/O of their own: files are reached through the [`storage::Storage`] trait, by `pread` and `pwrite` and
//! never mapped, so that a full disk is an error instead of a signal and a simulated disk can fail at any step.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod channel;
pub mod checksum;
pub mod client;
mod damage;
pub mod frame;
pub mod mark_file;
#[cfg(any(test, feature = "memory-storage"))]
pub mod memory_storage;
pub mod ownership;
pub mod purge;
pub mod reader;
pub mod recorder;
pub mod recovery;
pub mod segments;
pub mod server;
pub mod storage;
pub mod store;
pub mod stream;
pub mod tool;
mod window;

pub use damage::Damage;
