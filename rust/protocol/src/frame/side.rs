//! Decodes the datagrams that a receiver's socket or a sender's socket receives.

use super::{
    DataHeader, ErrorFrame, FrameError, FrameHeader, FrameType, Nak, ResponseSetup, Rttm, Setup,
    StatusMessage,
};

/// Frames that senders send to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFrame {
    /// Header of the first frame in a datagram of data frames, padding or a heartbeat. [`walk`](super::walk) validates
    /// the other frames.
    Data(DataHeader),
    /// The properties of a stream, already validated.
    Setup(Setup),
    /// A measurement of the round-trip time, or the response to a measurement.
    Rttm(Rttm),
}

/// Frames that receivers send to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame<'a> {
    /// A request to send bytes again; validate it with [`Nak::check`].
    Nak(Nak),
    /// The progress of a receiver; validate it with [`StatusMessage::check`].
    StatusMessage(StatusMessage<'a>),
    /// A receiver has rejected the stream.
    Error(ErrorFrame<'a>),
    /// A measurement of the round-trip time, or the response to a measurement.
    Rttm(Rttm),
    /// The session id of the response stream that belongs to a request stream.
    ResponseSetup(ResponseSetup),
}

impl DataFrame {
    /// Decodes a datagram that a receiver's socket received. Returns `None` if the datagram must be dropped without
    /// being counted.
    ///
    /// # Errors
    /// [`FrameError`] for an invalid packet, including an empty one.
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
    /// Decodes a datagram that a sender's socket received. Returns `None` if the datagram must be dropped without being
    /// counted, for example if it is empty.
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
