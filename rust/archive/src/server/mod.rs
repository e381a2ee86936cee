//! The archive of Aeron's protocol, which clients reach over channels.

pub mod context;
pub mod startup;

pub use startup::ArchiveStartError;
