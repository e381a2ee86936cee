//! Messages of the archive's control protocol: the blocks of fixed length. A message header precedes each block.
//! Variable data follow it, each as an u32 length and its bytes, without alignment.

pub mod event;
pub mod extension;
pub mod request;
pub mod response;
