//! Messages of bytes that may be malformed.

mod block;
mod malformed;

pub use block::{SbeBlock, SbeBlocks, SbeWireNumber};
pub use malformed::SbeMalformed;
