//! Byte layouts of frames, messages and files, each declared once.
//!
//! A layout is a `#[repr(C)]` struct of little-endian fields without alignment. Its declaration states the offset of
//! each field and the length as numbers, and does not compile if they are wrong. Constants that belong to the bytes
//! (flags, alignments, lengths) are declared next to the struct.
//!
//! The crate only defines where bytes are. The crates that use a layout define the meaning of the values, and check
//! them.
//!
//! There are two ways to use a layout:
//!
//! * **Owned bytes** (a datagram, a file that was read, a command that was copied): a reference to the struct, by
//!   [`Layout::first_in`], or a struct that is filled and written by its [`as_bytes`](IntoBytes::as_bytes).
//! * **Shared memory**: only offsets, by [`offset!`], with the load or store of the field's width. A reference into
//!   memory that another process writes is never made.
//!
//! ```
//! use aeron_layout::frame::{DataHeaderLayout, FrameHeaderLayout};
//! use aeron_layout::{I32, I64, IntoBytes, Layout, offset};
//!
//! let mut datagram = [0; 64];
//! datagram[12..16].copy_from_slice(&7_i32.to_le_bytes());
//! let header = DataHeaderLayout::first_in(&datagram).expect("64 bytes hold a header");
//! assert_eq!(header.session_id.get(), 7);
//! assert_eq!(header.as_bytes().len(), DataHeaderLayout::LENGTH);
//!
//! const SESSION_ID: usize = offset!(DataHeaderLayout, session_id: I32);
//! assert_eq!(SESSION_ID, 12);
//! ```
#![forbid(unsafe_code)]

mod declare;

pub mod archive_message;
pub mod buffers;
pub mod catalog;
pub mod cnc;
pub mod command;
pub mod counters;
pub mod event;
pub mod frame;
pub mod log;
pub mod mark_file;
pub mod private_archive;
pub mod reports;
pub mod sbe;

pub use declare::{Field, Layout};
pub use zerocopy::little_endian::{I16, I32, I64, U16, U32, U64};
pub use zerocopy::{FromBytes, FromZeros, IntoBytes};
