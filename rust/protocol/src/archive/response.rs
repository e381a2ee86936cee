//! What an archive answers and announces, on the response stream of a control session.

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
    /// Answers a request.
    pub struct ControlResponse<'a>(ControlResponseLayout) = 1 {
        /// Control session.
        pub control_session_id: i64,
        /// Correlation id of the request; of a replication its id.
        pub correlation_id: i64,
        /// Result of the request, or an [`ArchiveErrorCode`], as `code` says.
        pub relevant_id: i64,
        /// Kind of the answer.
        pub code: ControlResponseCode,
        /// Protocol of the archive as a semantic version; 0 if the archive has none.
        pub version: i32 = 0 since 4,
        data {
            /// What went wrong, for people; empty if nothing did.
            error_message,
        }
    }
}

impl ControlResponse<'_> {
    /// The reason of a failure. Returns `None` for other answers, and for a code that this version does not know.
    #[must_use]
    pub fn error_code(&self) -> Option<ArchiveErrorCode> {
        if self.code != ControlResponseCode::Error {
            return None;
        }
        ArchiveErrorCode::from_value(i32::try_from(self.relevant_id).ok()?)
    }
}

/// Asks a client for an answer before its session is accepted.
///
/// The message has a version as well, which archives leave undefined: it is ignored here, and written as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// Control session.
    pub control_session_id: i64,
    /// Correlation id of the connect request.
    pub correlation_id: i64,
    /// For the client's supplier of credentials.
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
    /// An archive copies it from the catalog with the padding of the entry, which is written here too.
    pub struct RecordingDescriptorMessage<'a>(RecordingLayout) = 22 padded by pad_as_catalog_entry {
        /// Control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// The recording.
        pub recording_id: i64,
        /// Time at which the recording began.
        pub start_timestamp_ms: i64,
        /// Time at which the recording ended; [`NULL_VALUE`](super::NULL_VALUE) while it is active.
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
        /// Longest frame of the stream in bytes.
        pub mtu_length: i32,
        /// Session of the stream.
        pub session_id: i32,
        /// Stream.
        pub stream_id: i32,
        data {
            /// Channel with the parameters that identify it.
            stripped_channel,
            /// Channel as it was requested.
            original_channel,
            /// Source of the image: `aeron:ipc`, or address and port.
            source_identity,
        }
    }
}

/// Ends a descriptor where its entry in the catalog would end.
fn pad_as_catalog_entry(writer: &mut Writer<'_>) {
    const ENTRY_HEADER_SURPLUS: usize = EntryHeaderLayout::LENGTH - MessageHeader::LENGTH;
    let entry_length = writer.length() + ENTRY_HEADER_SURPLUS;
    writer.pad_to(entry_length.next_multiple_of(ENTRY_ALIGNMENT) - ENTRY_HEADER_SURPLUS);
}

archive_message! {
    /// Describes a subscription of the archive.
    pub struct RecordingSubscriptionDescriptor<'a>(RecordingSubscriptionLayout) = 23 {
        /// Control session.
        pub control_session_id: i64,
        /// Correlation id of the request.
        pub correlation_id: i64,
        /// Registration id of the subscription.
        pub subscription_id: i64,
        /// Stream.
        pub stream_id: i32,
        data {
            /// Channel of the subscription.
            stripped_channel,
        }
    }
}

archive_message! {
    /// Announces what happened to a recording, to the session that caused it.
    pub struct RecordingSignalEvent(RecordingSignalLayout) = 24 {
        /// Control session.
        pub control_session_id: i64,
        /// Correlation id of the request; of a replication its id.
        pub correlation_id: i64,
        /// The recording; [`NULL_VALUE`](super::NULL_VALUE) if a replication ends before it has one.
        pub recording_id: i64,
        /// Registration id of the archive's subscription; [`NULL_VALUE`](super::NULL_VALUE) without one.
        pub subscription_id: i64,
        /// Position of the recording; [`NULL_VALUE`](super::NULL_VALUE) with `Delete` and `ReplicateEnd`.
        pub position: i64,
        /// What happened.
        pub signal: RecordingSignal,
    }
}

archive_message! {
    /// Shows once per second that the archive serves the session. It is not answered.
    pub struct Ping(SessionLayout) = 106 {
        /// Control session.
        pub control_session_id: i64,
    }
}

archive_message_set! {
    /// A message of an archive to one client.
    pub enum ArchiveResponse {
        /// A request was executed or refused.
        ControlResponse(ControlResponse<'a>),
        /// The client must answer a challenge.
        Challenge(Challenge<'a>),
        /// A recording of a listing.
        RecordingDescriptor(RecordingDescriptorMessage<'a>),
        /// A subscription of a listing.
        RecordingSubscriptionDescriptor(RecordingSubscriptionDescriptor<'a>),
        /// Something happened to a recording.
        RecordingSignal(RecordingSignalEvent),
        /// The session lives.
        Ping(Ping),
    }
}
