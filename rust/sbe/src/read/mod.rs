//! Messages of bytes that may be malformed.
//!
//! [`SbeHeader`] finds the template, and `open` of the template checks header and block. [`SbeMessage`] then passes
//! groups and data to a visitor, or decodes all values. Blocks at equal distances are [`SbeBlocks`].

mod block;
mod header;
mod malformed;
mod message;
mod record;
mod text;
mod value;
mod walk;

pub use block::{SbeBlock, SbeBlocks, SbeWireNumber};
pub use header::SbeHeader;
pub use malformed::SbeMalformed;
pub use message::{SbeMessage, SbeVisitor};
