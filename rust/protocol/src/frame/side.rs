//! What a datagram is to the socket that it came to.

use super::{
    DataHeader, ErrorFrame, FrameError, FrameHeader, FrameType, Nak, ResponseSetup, Rttm, Setup,
    StatusMessage,
};

/// What senders send to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFrame {
    /// Frames of data, padding or a heartbeat: the first one's header. [`walk`](super::walk) checks the rest.
    Data(DataHeader),
    /// A stream that can be, and where to join it.
    Setup(Setup),
    /// A measurement of the round trip, or its answer.
    Rttm(Rttm),
}

/// What receivers send to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame<'a> {
    /// Bytes to send again, to be [checked](Nak::check).
    Nak(Nak),
    /// How far a receiver is, to be [checked](StatusMessage::check).
    StatusMessage(StatusMessage<'a>),
    /// A receiver has rejected the stream.
    Error(ErrorFrame<'a>),
    /// A measurement of the round trip, or its answer.
    Rttm(Rttm),
    /// The stream that answers another.
    ResponseSetup(ResponseSetup),
}

impl DataFrame {
    /// Understands a datagram that came to a receiver's socket; `None` for one to drop without a trace.
    ///
    /// # Errors
    /// [`FrameError`] for an invalid packet, also when it is empty.
    pub fn decode(datagram: &[u8]) -> Result<Option<Self>, FrameError> {
        Ok(match FrameHeader::decode(datagram)?.frame_type {
            FrameType::Data | FrameType::Pad => Some(Self::Data(DataHeader::decode(datagram)?)),
            FrameType::Setup => {
                let setup = Setup::decode(datagram)?;
                setup.check()?;
                Some(Self::Setup(setup))
            }
            FrameType::Rttm => Some(Self::Rttm(Rttm::decode(datagram)?)),
            FrameType::Nak
            | FrameType::StatusMessage
            | FrameType::Error
            | FrameType::Resolution
            | FrameType::ResponseSetup => None,
        })
    }
}

impl<'a> ControlFrame<'a> {
    /// Understands a datagram that came to a sender's socket; `None` for one to drop without a trace, also when it is empty.
    ///
    /// # Errors
    /// [`FrameError`] for an invalid packet.
    pub fn decode(datagram: &'a [u8]) -> Result<Option<Self>, FrameError> {
        if datagram.is_empty() {
            return Ok(None);
        }
        Ok(match FrameHeader::decode(datagram)?.frame_type {
            FrameType::Nak => Some(Self::Nak(Nak::decode(datagram)?)),
            FrameType::StatusMessage => Some(Self::StatusMessage(StatusMessage::decode(datagram)?)),
            FrameType::Error => Some(Self::Error(ErrorFrame::decode(datagram)?)),
            FrameType::Rttm => Some(Self::Rttm(Rttm::decode(datagram)?)),
            FrameType::ResponseSetup => Some(Self::ResponseSetup(ResponseSetup::decode(datagram)?)),
            FrameType::Pad | FrameType::Data | FrameType::Setup | FrameType::Resolution => None,
        })
    }
}
