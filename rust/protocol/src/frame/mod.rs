//! What travels in UDP datagrams: data, what receivers say about it, and what drivers tell each other about names.
//!
//! Every frame begins with the same 8 bytes and is little-endian throughout. [`DataHeader`] frames fill a datagram in a row,
//! being a slice of a term; every other frame travels alone, without padding. Nothing on the wire is authenticated, so all
//! bytes are hostile: decoding is total, and a value is checked before anybody computes with it.
//!
//! A socket's owner asks for the frames of its direction, [`DataFrame`] at a receiver and [`ControlFrame`] at a sender, and
//! gets one of three answers: `Ok(Some(frame))`; `Ok(None)` for what is to be dropped without a trace, such as a frame of
//! the other direction, which multicast brings to everybody; `Err` for what is dropped and counted as an invalid packet.
//! What depends on the stream's term length is checked once the stream is known: [`walk`], [`StatusMessage::check`],
//! [`Nak::check`].
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

/// Bytes before the payload of a frame of data.
pub const DATA_HEADER_LENGTH: usize = DataHeader::LENGTH;
