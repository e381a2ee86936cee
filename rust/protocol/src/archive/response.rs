//! Responses and announcements of an archive, on the response stream of a control session.

use aeron_layout::archive_message::request::SessionLayout;
use aeron_layout::archive_message::response::{
    ChallengeLayout, ControlResponseLayout, RecordingSignalLayout, RecordingSubscriptionLayout,
};
use aeron_layout::catalog::{ENTRY_ALIGNMENT, EntryHeaderLayout, RecordingLayout};

use super::body::{ArchiveMessage, Body, write_block};
use super::declare::{archive_message, archive_message_set};
use super::{
    ArchiveDecodeError, ArchiveErrorCode, ControlResponseCode, MessageHeader, RecordingSignal,
};
use crate::codec::{Encode, Writer};

archive_message! {
    /// Response to a request.
    pub struct ControlResponse<'a>(ControlResponseLayout) = 1 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request; for a replication, the replication id.
        pub correlation_id: i64,
        /// Result of the request, or an [`ArchiveErrorCode`], depending on `code`.
        pub relevant_id: i64,
        /// Kind of the response.
        pub code: ControlResponseCode,
        /// Protocol version of the archive as a semantic version; 0 if the archive has no version.
        pub version: i32 = 0 since 4,
        data {
            /// Text of the error, for display; empty if there was no error.
            error_message,
        }
    }
}

impl ControlResponse<'_> {
    /// Returns the reason of a failure; `None` for other responses, and for a code that this version does not know.
    #[must_use]
    pub fn error_code(&self) -> Option<ArchiveErrorCode> {
        if self.code != ControlResponseCode::Error {
            return None;
        }
        ArchiveErrorCode::from_value(i32::try_from(self.relevant_id).ok()?)
    }
}

/// Requests a challenge response from a client before its session is accepted.
///
/// The message also has a version, which archives leave undefined. The decoder ignores the version, and the encoder
/// writes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// Id of the control session.
    pub control_session_id: i64,
    /// Correlation id of the connect request.
    pub correlation_id: i64,
    /// Challenge for the client's credentials supplier.
    pub encoded_challenge: &'a [u8],
}

impl<'a> ArchiveMessage<'a> for Challenge<'a> {
    const TEMPLATE_ID: u16 = 59;

    fn read(body: Body<'a>) -> Result<Self, ArchiveDecodeError> {
        let mut parts = body.split::<ChallengeLayout>(&[])?;
        Ok(Self {
            control_session_id: parts.layout.control_session_id.get(),
            correlation_id: parts.layout.correlation_id.get(),
            encoded_challenge: parts.next_data("encoded_challenge", 0)?,
        })
    }
}

impl Encode for Challenge<'_> {
    fn write(&self, writer: &mut Writer<'_>) {
        write_block(
            writer,
            Self::TEMPLATE_ID,
            &ChallengeLayout {
                control_session_id: self.control_session_id.into(),
                correlation_id: self.correlation_id.into(),
                version: 0.into(),
            },
        );
        writer.data(self.encoded_challenge);
    }
}

archive_message! {
    /// Describes a recording. Positions are bytes of the stream, timestamps epoch milliseconds.
    ///
    /// An archive copies the descriptor from the catalog, including the padding of the catalog entry. The encoder
    /// writes this padding too.
    pub struct RecordingDescriptorMessage<'a>(RecordingLayout) = 22 padded by pad_as_catalog_entry {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Recording id.
        pub recording_id: i64,
        /// Time at which the recording began.
        pub start_timestamp_ms: i64,
        /// Time at which the recording ended; [`NULL_VALUE`](super::NULL_VALUE) while the recording is active.
        pub stop_timestamp_ms: i64,
        /// Position of the first byte.
        pub start_position: i64,
        /// Position after the last byte; [`NULL_VALUE`](super::NULL_VALUE) while the recording is active.
        pub stop_position: i64,
        /// Term id of the stream's first term.
        pub initial_term_id: i32,
        /// Length of a segment file in bytes.
        pub segment_length: i32,
        /// Length of the stream's terms in bytes.
        pub term_length: i32,
        /// Maximum length of a frame of the stream in bytes.
        pub mtu_length: i32,
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        data {
            /// Channel with only the parameters that identify the channel.
            stripped_channel,
            /// Channel as it was requested.
            original_channel,
            /// Source of the image: `aeron:ipc`, or address and port.
            source_identity,
        }
    }
}

/// Pads a descriptor to the end of its catalog entry.
fn pad_as_catalog_entry(writer: &mut Writer<'_>) {
    const ENTRY_HEADER_SURPLUS: usize = EntryHeaderLayout::LENGTH - MessageHeader::LENGTH;
    let entry_length = writer.length() + ENTRY_HEADER_SURPLUS;
    writer.pad_to(entry_length.next_multiple_of(ENTRY_ALIGNMENT) - ENTRY_HEADER_SURPLUS);
}

archive_message! {
    /// Describes a subscription of the archive.
    pub struct RecordingSubscriptionDescriptor<'a>(RecordingSubscriptionLayout) = 23 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Registration id of the subscription.
        pub subscription_id: i64,
        /// Stream id.
        pub stream_id: i32,
        data {
            /// Channel of the subscription.
            stripped_channel,
        }
    }
}

archive_message! {
    /// Announces an event of a recording to the control session that caused the event.
    pub struct RecordingSignalEvent(RecordingSignalLayout) = 24 {
        /// Id of the control session.
        pub control_session_id: i64,
        /// Correlation id of the request; for a replication, the replication id.
        pub correlation_id: i64,
        /// Recording id; [`NULL_VALUE`](super::NULL_VALUE) if a replication ends before it has a recording.
        pub recording_id: i64,
        /// Registration id of the archive's subscription; [`NULL_VALUE`](super::NULL_VALUE) if there is no
        /// subscription.
        pub subscription_id: i64,
        /// Position in the recording; [`NULL_VALUE`](super::NULL_VALUE) with `Delete` and `ReplicateEnd`.
        pub position: i64,
        /// The event.
        pub signal: RecordingSignal,
    }
}

archive_message! {
    /// Shows once per second that the archive serves the session. There is no response.
    pub struct Ping(SessionLayout) = 106 {
        /// Id of the control session.
        pub control_session_id: i64,
    }
}

archive_message_set! {
    /// A message of an archive to one client.
    pub enum ArchiveResponse {
        /// A request was executed or refused.
        ControlResponse(ControlResponse<'a>),
        /// The client must respond to a challenge.
        Challenge(Challenge<'a>),
        /// A recording of a listing.
        RecordingDescriptor(RecordingDescriptorMessage<'a>),
        /// A subscription of a listing.
        RecordingSubscriptionDescriptor(RecordingSubscriptionDescriptor<'a>),
        /// An event of a recording.
        RecordingSignal(RecordingSignalEvent),
        /// The session is alive.
        Ping(Ping),
    }
}
