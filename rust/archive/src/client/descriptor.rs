//! [`RecordingSubscription`], and the conversion of the archive's descriptor messages to the types that listings
//! return.

use std::borrow::Cow;

use aeron_protocol::archive::{RecordingDescriptorMessage, RecordingSubscriptionDescriptor};

use crate::catalog::RecordingDescriptor;

/// A recording subscription of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSubscription {
    /// Registration id of the subscription.
    pub subscription_id: i64,
    /// Stream id.
    pub stream_id: i32,
    /// Channel of the subscription. It has the prefix `aeron-spy:` if the archive uses a spy.
    pub stripped_channel: String,
}

impl From<&RecordingDescriptorMessage<'_>> for RecordingDescriptor {
    fn from(message: &RecordingDescriptorMessage<'_>) -> Self {
        Self {
            control_session_id: message.control_session_id,
            correlation_id: message.correlation_id,
            recording_id: message.recording_id,
            start_timestamp_ms: message.start_timestamp_ms,
            stop_timestamp_ms: message.stop_timestamp_ms,
            start_position: message.start_position,
            stop_position: message.stop_position,
            initial_term_id: message.initial_term_id,
            segment_length: message.segment_length,
            term_length: message.term_length,
            mtu_length: message.mtu_length,
            session_id: message.session_id,
            stream_id: message.stream_id,
            stripped_channel: text(message.stripped_channel),
            original_channel: text(message.original_channel),
            source_identity: text(message.source_identity),
        }
    }
}

impl From<&RecordingSubscriptionDescriptor<'_>> for RecordingSubscription {
    fn from(message: &RecordingSubscriptionDescriptor<'_>) -> Self {
        Self {
            subscription_id: message.subscription_id,
            stream_id: message.stream_id,
            stripped_channel: text(message.stripped_channel),
        }
    }
}

/// Converts the text in a message of an archive. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn text<'a, T: From<Cow<'a, str>>>(bytes: &'a [u8]) -> T {
    String::from_utf8_lossy(bytes).into()
}
