//! Recordings in Aeron's own archive format: the archive server, its client, the command line tools, and the files that
//! they share.
//!
//! All files are accessed through the [`storage::Storage`] trait, by `pread` and `pwrite`, and
//! never memory-mapped. So a full disk causes an error and not a signal that ends the process. In
//! tests, a simulated disk can fail at any step.
//!
//! * Files: [`catalog`] (list of recordings), [`segments`] (names of segment files), [`frame`] and [`stream`] (checks
//!   of the frames in them), [`index`] (arrival times and message counts of a segment), [`mark_file`] and [`ownership`]
//!   (one process per directory), [`storage`] (file access), [`extensions`] (named readers, retention policies,
//!   metadata).
//! * Operations on one recording: [`recorder`] (writing), [`reader`] (reading), [`recovery`] (end after a crash).
//! * Deletion of old data: [`retention`]. Copies in object storage: [`objects`].
//! * Operations on a directory: [`store`] (catalog and segment files together), [`tool`] (`ArchiveTool`).
//! * Processes: [`server`] (the archive), [`client`] (`AeronArchive`, and the types that use it).
//!
//! Numbers such as `07-nn` in tests and comments name rule nn of document 07 in `docs/spec`.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod channel;
pub mod checksum;
pub mod client;
mod damage;
pub mod extensions;
pub mod frame;
pub mod index;
pub mod mark_file;
#[cfg(any(test, feature = "memory-storage"))]
pub mod memory_storage;
pub mod objects;
pub mod ownership;
pub mod pause;
pub mod reader;
pub mod recorder;
pub mod recovery;
pub mod retention;
pub mod segments;
pub mod server;
pub mod storage;
pub mod store;
pub mod stream;
#[cfg(test)]
mod tests;
mod text;
pub mod tool;
mod verifier;
mod window;

pub use damage::{Damage, NewerVersion};
pub use verifier::SessionField;
