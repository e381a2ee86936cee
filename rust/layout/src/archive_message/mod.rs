//! Messages of the archive's control protocol: the blocks of fixed length. A message header stands before a block, variable data follow
//! it: for each an u32 length and its bytes, without alignment.

pub mod event;
pub mod request;
pub mod response;
