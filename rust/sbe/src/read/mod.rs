//! Messages of bytes that may be malformed.
//!
//! [`SbeHeader`] finds the template, and `open` of the template checks header and block. [`SbeMessage`] then passes
//! groups and data to a visitor, or decodes all values. Blocks at equal distances are [`SbeBlocks`]. An [`SbePlace`]
//! finds the values of a message without a borrow of its bytes.

mod block;
mod fixed;
mod header;
mod malformed;
mod message;
mod place;
mod record;
mod skip;
mod text;
mod value;
mod walk;

pub use block::{SbeBlock, SbeBlocks, SbeWireNumber};
pub use header::SbeHeader;
pub use malformed::SbeMalformed;
pub use message::{SbeMessage, SbeVisitor};
pub use place::{SbeEntries, SbePlace};
