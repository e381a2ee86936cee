//! Frames in UDP datagrams: data, the messages of receivers to senders, and name resolution between drivers.
//!
//! Every frame begins with a header of 8 bytes, and all numbers are little-endian. A datagram contains either a slice
//! of a term (consecutive [`DataHeader`] frames) or one frame of any other type, which is not aligned to 32 bytes.
//! Nothing on the wire is authenticated, so any bytes are possible. Decoding never panics, and each value is validated
//! before it is used in computations.
//!
//! Each side decodes only the frames that are sent to it: a receiver decodes a [`DataFrame`], a sender a
//! [`ControlFrame`]. There are three results. `Ok(Some(frame))` is a frame. `Ok(None)` means that the datagram is
//! dropped without being counted, for example a frame of the other direction, which multicast delivers to all. `Err`
//! means that the datagram is dropped and counted as an invalid packet. Checks that need the stream's term length are
//! separate: [`walk`], [`StatusMessage::check`], [`Nak::check`].
//!
//! ```
//! use aeron_protocol::frame::{ControlFrame, Nak};
//!
//! let nak = Nak { session_id: 7, stream_id: 1001, term_id: 3, term_offset: 64, length: 1408 };
//! let mut datagram = [0; Nak::LENGTH];
//! assert_eq!(nak.encode(&mut datagram), 28);
//!
//! assert_eq!(ControlFrame::decode(&datagram), Ok(Some(ControlFrame::Nak(nak))));
//! ```

pub mod resolution;

mod data;
mod error;
mod error_frame;
mod fixed;
mod header;
mod nak;
mod rttm;
mod setup;
mod side;
mod status_message;

pub use aeron_layout::frame::{
    FRAME_ALIGNMENT, MAX_TERM_LENGTH, MAX_UDP_PAYLOAD_LENGTH, MIN_TERM_LENGTH, flags,
};

pub use data::{DataHeader, Walk, walk, walk_from};
pub use error::FrameError;
pub use error_frame::{ErrorFrame, MAX_CONTROL_FRAME_LENGTH, MAX_ERROR_TEXT_LENGTH};
pub use header::{FrameHeader, FrameType};
pub use nak::Nak;
pub use rttm::Rttm;
pub use setup::{ResponseSetup, Setup};
pub use side::{ControlFrame, DataFrame};
pub use status_message::StatusMessage;

/// Length of the header before the payload of a data frame, in bytes.
pub const DATA_HEADER_LENGTH: usize = DataHeader::LENGTH;
