//! Messages of the archive's control protocol: the blocks of fixed length. A message header precedes each block. Items
//! of variable length follow the block without alignment. Each item is a u32 length and the bytes.

pub mod event;
pub mod extension;
pub mod request;
pub mod response;
