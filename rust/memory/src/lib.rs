//! Shared memory: mapped files, atomic buffers, ring, broadcast, counters, log buffers, CnC file, error log, loss
//! report and lock files.
//!
//! The layouts are the same as in Aeron 1.52 (CnC version 0.2.0). All bytes may come from another process: readers load
//! each value once, validate it, and never panic.

pub mod broadcast;
pub mod buffer;
pub mod cnc;
pub mod counters;
pub mod date;
pub mod directory;
pub mod error_log;
pub mod loans;
pub mod lock_file;
pub mod log;
#[cfg(loom)]
pub mod loom_words;
pub mod loss_report;
pub mod mapped;
pub mod process_watch;
pub mod regular;
pub mod ring;
pub mod snapshot;
pub mod waiters;
pub mod words;

pub use buffer::SharedBuffer;
pub use loans::Loans;
pub use snapshot::Snapshot;
pub use waiters::Waiters;
pub use words::Words;
