//! A message of any of the three sets: requests, responses and recording events.

use std::fmt::Debug;

use aeron_protocol::EncodeError;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveRequest, ArchiveResponse, RecordingEvent,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decoded<'a> {
    Request(ArchiveRequest<'a>),
    Response(ArchiveResponse<'a>),
    Event(RecordingEvent<'a>),
}

impl<'a> Decoded<'a> {
    /// Decodes a message with the decoder of the set that has its template id.
    pub fn of(message: &'a [u8]) -> Result<Self, ArchiveDecodeError> {
        let is_unknown = |error: &ArchiveDecodeError| {
            matches!(error, ArchiveDecodeError::UnknownTemplateId { .. })
        };
        match ArchiveRequest::decode(message) {
            Err(error) if is_unknown(&error) => (),
            known => return known.map(Self::Request),
        }
        match ArchiveResponse::decode(message) {
            Err(error) if is_unknown(&error) => (),
            known => return known.map(Self::Response),
        }
        RecordingEvent::decode(message).map(Self::Event)
    }

    pub fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        match self {
            Self::Request(message) => message.encode(out),
            Self::Response(message) => message.encode(out),
            Self::Event(message) => message.encode(out),
        }
    }

    pub fn encoded(&self) -> Vec<u8> {
        let length = match self {
            Self::Request(message) => message.encoded_length(),
            Self::Response(message) => message.encoded_length(),
            Self::Event(message) => message.encoded_length(),
        };
        // The buffer is not zero, so a byte that `encode` does not write shows as a difference.
        let mut bytes = vec![0xA5; length];
        assert_eq!(self.encode(&mut bytes), Ok(length));
        bytes
    }

    pub fn template_id(&self) -> u16 {
        match self {
            Self::Request(message) => message.template_id(),
            Self::Response(message) => message.template_id(),
            Self::Event(message) => message.template_id(),
        }
    }

    /// Returns the name and fields of the message: `Ping { control_session_id: 7 }`.
    pub fn text(&self) -> String {
        match self {
            Self::Request(message) => text_within(message),
            Self::Response(message) => text_within(message),
            Self::Event(message) => text_within(message),
        }
    }
}

fn text_within(variant: &impl Debug) -> String {
    let text = format!("{variant:?}");
    let inner = text.split_once('(').expect("a variant").1;
    inner.strip_suffix(')').expect("a variant").to_owned()
}
