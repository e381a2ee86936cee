//! [`ResponseStream`]: sends messages to one client, in order. The control session of the client
//! uses it. If the publication of the stream is back-pressured, the messages are queued.

use std::collections::VecDeque;

use aeron_client::{AppendError, ExclusivePublication, OfferError};
use aeron_protocol::archive::{
    ARCHIVE_PROTOCOL_VERSION, ArchiveErrorCode, ArchiveResponse, ControlResponse,
    ControlResponseCode, RecordingDescriptorMessage, RecordingSubscriptionDescriptor, RequestIds,
};

use crate::server::ArchiveError;
use crate::server::listing::{ListedEntry, ListingEnd};
use crate::server::outlets::ConductorReply;

/// Number of attempts to offer a message before it is queued.
const OFFER_ATTEMPTS: usize = 3;
/// Maximum number of messages queued for a client. At this number, the client is regarded as not
/// reading: the next message ends the session.
const MAX_QUEUED_MESSAGES: usize = 1024;

/// A response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum Response {
    /// The request succeeded with this result.
    Ok(i64),
    /// The request failed.
    Error(ArchiveError),
    /// The client's protocol version is not supported. The relevant id of this error is the session id.
    WrongVersion(String),
    /// No recording, or no further recording, was found from this id on.
    RecordingUnknown(i64),
    /// No further subscription was found.
    SubscriptionUnknown(i64),
}

impl Response {
    /// Returns the response with a reply of the conductor. A listing has no response of its own: its descriptors are
    /// sent, and then [its end](Self::of_listing).
    pub fn of(reply: Result<ConductorReply, ArchiveError>) -> Self {
        match reply {
            Ok(ConductorReply::Value(value)) => Self::Ok(value),
            Ok(ConductorReply::RecordingUnknown(id)) => Self::RecordingUnknown(id),
            Ok(ConductorReply::Listing(_)) => Self::Ok(0),
            Err(error) => Self::Error(error),
        }
    }

    /// Returns the response at the end of a listing; `None` if the client got as many descriptors as it wanted.
    pub fn of_listing(end: ListingEnd) -> Option<Self> {
        match end {
            ListingEnd::Full => None,
            ListingEnd::RecordingUnknown(id) => Some(Self::RecordingUnknown(id)),
            ListingEnd::SubscriptionUnknown => Some(Self::SubscriptionUnknown(0)),
            ListingEnd::NextIndex(index) => Some(Self::Ok(index)),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Error(error) => &error.message,
            Self::WrongVersion(text) => text,
            Self::Ok(_) | Self::RecordingUnknown(_) | Self::SubscriptionUnknown(_) => "",
        }
    }

    fn message<'a>(
        &self,
        control_session_id: i64,
        correlation_id: i64,
        error_message: &'a str,
    ) -> ArchiveResponse<'a> {
        let (code, relevant_id) = match self {
            Self::Ok(value) => (ControlResponseCode::Ok, *value),
            Self::Error(error) => (ControlResponseCode::Error, error.code.value().into()),
            Self::WrongVersion(_) => (ControlResponseCode::Error, control_session_id),
            Self::RecordingUnknown(id) => (ControlResponseCode::RecordingUnknown, *id),
            Self::SubscriptionUnknown(id) => (ControlResponseCode::SubscriptionUnknown, *id),
        };
        ArchiveResponse::ControlResponse(ControlResponse {
            control_session_id,
            correlation_id,
            relevant_id,
            code,
            version: ARCHIVE_PROTOCOL_VERSION,
            error_message: error_message.as_bytes(),
        })
    }
}

/// The response stream of one client.
#[derive(Debug)]
pub(in crate::server) struct ResponseStream {
    publication: ExclusivePublication,
    queue: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

/// The outcome of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Sent {
    /// The message was sent.
    Now,
    /// The publication does not accept the message now. [`ResponseStream::send`] has queued the message. After
    /// [`ResponseStream::try_send`], the caller sends it again.
    Queued,
    /// The publication is closed or at its last position, or the queue is full. The session must
    /// end.
    Never,
}

impl ResponseStream {
    pub fn new(publication: ExclusivePublication) -> Self {
        Self {
            publication,
            queue: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    pub fn publication(&self) -> &ExclusivePublication {
        &self.publication
    }

    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sends a response, or queues it.
    pub fn respond(
        &mut self,
        control_session_id: i64,
        correlation_id: i64,
        response: &Response,
    ) -> Sent {
        let max_length = self.publication.max_message_length();
        let text = ascii(response.text(), max_length);
        self.send(&response.message(control_session_id, correlation_id, &text))
    }

    /// Sends a response if it can be sent now. Queues nothing.
    pub fn try_respond(
        &mut self,
        control_session_id: i64,
        correlation_id: i64,
        response: &Response,
    ) -> Sent {
        let max_length = self.publication.max_message_length();
        let text = ascii(response.text(), max_length);
        self.try_send(&response.message(control_session_id, correlation_id, &text))
    }

    /// Sends a message. If other messages are queued or the publication is back-pressured, queues
    /// the message.
    pub fn send(&mut self, message: &ArchiveResponse<'_>) -> Sent {
        self.encode(message);
        if self.queue.is_empty() {
            match offer(&self.publication, &self.buffer) {
                Offered::Taken => return Sent::Now,
                Offered::Later => {}
                Offered::Never => return Sent::Never,
            }
        }
        if self.queue.len() >= MAX_QUEUED_MESSAGES {
            return Sent::Never;
        }
        self.queue.push_back(self.buffer.clone());
        Sent::Queued
    }

    /// Sends a message if it can be sent now. Queues nothing: the caller sends it again.
    pub fn try_send(&mut self, message: &ArchiveResponse<'_>) -> Sent {
        if self.has_queued() {
            return Sent::Queued;
        }
        self.encode(message);
        Sent::of(&offer(&self.publication, &self.buffer))
    }

    /// Sends the descriptor of a listed entry like [`try_send`](Self::try_send).
    pub fn try_send_entry(&mut self, ids: RequestIds, entry: &ListedEntry<'_>) -> Sent {
        let RequestIds {
            control_session_id,
            correlation_id,
        } = ids;
        match entry {
            ListedEntry::Recording(recording) => self.try_send(
                &ArchiveResponse::RecordingDescriptor(RecordingDescriptorMessage {
                    control_session_id,
                    correlation_id,
                    recording_id: recording.recording_id,
                    start_timestamp_ms: recording.start_timestamp_ms,
                    stop_timestamp_ms: recording.stop_timestamp_ms,
                    start_position: recording.start_position,
                    stop_position: recording.stop_position,
                    initial_term_id: recording.initial_term_id,
                    segment_length: recording.segment_length,
                    term_length: recording.term_length,
                    mtu_length: recording.mtu_length,
                    session_id: recording.session_id,
                    stream_id: recording.stream_id,
                    stripped_channel: recording.stripped_channel.as_bytes(),
                    original_channel: recording.original_channel.as_bytes(),
                    source_identity: recording.source_identity.as_bytes(),
                }),
            ),
            ListedEntry::Subscription(subscription) => {
                self.try_send(&ArchiveResponse::RecordingSubscriptionDescriptor(
                    RecordingSubscriptionDescriptor {
                        control_session_id,
                        correlation_id,
                        subscription_id: subscription.registration_id,
                        stream_id: subscription.stream_id,
                        stripped_channel: subscription.channel.as_bytes(),
                    },
                ))
            }
            ListedEntry::OfPage(entry) => {
                if self.has_queued() {
                    return Sent::Queued;
                }
                let message = entry.message(ids);
                self.buffer.clear();
                self.buffer.resize(message.encoded_length(), 0);
                message
                    .encode(&mut self.buffer)
                    .expect("the buffer has the length of the message");
                Sent::of(&offer(&self.publication, &self.buffer))
            }
        }
    }

    /// Sends the queued messages. Returns the number of sent messages, and the outcome for the
    /// other messages.
    pub fn flush(&mut self) -> (usize, Sent) {
        let mut count = 0;
        while let Some(message) = self.queue.front() {
            match offer(&self.publication, message) {
                Offered::Taken => drop(self.queue.pop_front()),
                Offered::Later => return (count, Sent::Queued),
                Offered::Never => return (count, Sent::Never),
            }
            count += 1;
        }
        (count, Sent::Now)
    }

    fn encode(&mut self, message: &ArchiveResponse<'_>) {
        self.buffer.clear();
        self.buffer.resize(message.encoded_length(), 0);
        message
            .encode(&mut self.buffer)
            .expect("the buffer has the length of the message");
    }
}

impl Sent {
    /// Converts the result of an offer.
    const fn of(offered: &Offered) -> Self {
        match offered {
            Offered::Taken => Self::Now,
            Offered::Later => Self::Queued,
            Offered::Never => Self::Never,
        }
    }
}

enum Offered {
    Taken,
    Later,
    Never,
}

fn offer(publication: &ExclusivePublication, message: &[u8]) -> Offered {
    for _ in 0..OFFER_ATTEMPTS {
        match publication.offer(message) {
            Ok(_) => return Offered::Taken,
            Err(OfferError::Append(
                AppendError::BackPressured | AppendError::AdminAction | AppendError::NotConnected,
            )) => {}
            Err(_) => return Offered::Never,
        }
    }
    Offered::Later
}

/// Returns the text of a response as ASCII, shortened to fit into the longest message.
fn ascii(text: &str, max_message_length: usize) -> String {
    const BLOCK_AND_HEADERS_LENGTH: usize = 64;
    text.chars()
        .map(|character| if character.is_ascii() { character } else { '?' })
        .take(max_message_length.saturating_sub(BLOCK_AND_HEADERS_LENGTH))
        .collect()
}

/// Returns the response to a session whose credentials were refused.
pub(super) fn authentication_rejected() -> Response {
    Response::Error(ArchiveError::new(
        ArchiveErrorCode::AuthenticationRejected,
        "authentication rejected",
    ))
}
