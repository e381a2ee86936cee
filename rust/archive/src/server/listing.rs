//! [`Listing`]: sends the descriptors of recordings or subscriptions to a client, a few in each duty cycle.

use aeron_protocol::archive::{
    ArchiveResponse, RecordingDescriptorMessage, RecordingSubscriptionDescriptor,
};

use super::control::{Response, ResponseStream, Sent};
use super::extension::DescriptorPage;
use crate::catalog::RecordingDescriptor;

/// Maximum number of entries that one listing checks in one duty cycle.
const ENTRIES_PER_CYCLE: usize = 64;

/// The recordings and subscriptions that a client may list.
pub(super) trait ListingSource {
    /// Returns the recording with the lowest id that is at least `recording_id`.
    fn next_recording(&self, recording_id: i64) -> Option<&RecordingDescriptor>;

    /// Returns the recording subscription at an index. The order changes only when a subscription is added or removed.
    fn subscription(&self, index: usize) -> Option<SubscriptionEntry<'_>>;
}

/// The values of a recording subscription that are sent to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubscriptionEntry<'a> {
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Stream id.
    pub stream_id: i32,
    /// Channel of the archive's subscription.
    pub channel: &'a str,
}

/// A request for a listing, and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    correlation_id: i64,
    /// Number of descriptors that may still be sent.
    left: i32,
    entries: Entries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entries {
    Recordings {
        next_id: i64,
        /// Id after the last recording that was checked.
        end_id: i64,
        filter: Option<StreamFilter>,
    },
    OneRecording(i64),
    Subscriptions {
        next_index: usize,
        stream_id: Option<i32>,
        fragment: Vec<u8>,
    },
    Descriptors(DescriptorPage),
}

/// Selects recordings with a stream id and a channel that contains a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamFilter {
    /// Stream id.
    pub stream_id: i32,
    /// Part of the original channel; empty for all channels.
    pub channel_fragment: Vec<u8>,
}

/// The outcome of one duty cycle of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListingProgress {
    /// Number of sent messages.
    pub sent: usize,
    /// Whether the listing is complete.
    pub is_over: bool,
}

impl StreamFilter {
    /// Returns whether the recording is selected.
    pub fn matches(&self, recording: &RecordingDescriptor) -> bool {
        recording.stream_id == self.stream_id
            && contains(
                recording.original_channel.as_bytes(),
                &self.channel_fragment,
            )
    }
}

impl Listing {
    /// Lists up to `count` recordings from an id on.
    pub fn recordings(
        correlation_id: i64,
        from_recording_id: i64,
        count: i32,
        filter: Option<StreamFilter>,
    ) -> Self {
        Self {
            correlation_id,
            left: count,
            entries: Entries::Recordings {
                next_id: from_recording_id,
                end_id: from_recording_id,
                filter,
            },
        }
    }

    /// Lists one recording.
    pub fn recording(correlation_id: i64, recording_id: i64) -> Self {
        Self {
            correlation_id,
            left: 1,
            entries: Entries::OneRecording(recording_id),
        }
    }

    /// Lists up to `count` recording subscriptions from an index on. Only subscriptions with a
    /// channel that contains `fragment` are listed, and only those with `stream_id` if it is set.
    pub fn subscriptions(
        correlation_id: i64,
        first_index: i32,
        count: i32,
        stream_id: Option<i32>,
        fragment: Vec<u8>,
    ) -> Self {
        Self {
            correlation_id,
            left: count,
            entries: Entries::Subscriptions {
                // A negative index is out of range, like an index after the last subscription.
                next_index: usize::try_from(first_index).unwrap_or(usize::MAX),
                stream_id,
                fragment,
            },
        }
    }

    /// Sends the descriptors of a page, and then the index of the next entry as the result.
    pub fn descriptors(correlation_id: i64, page: DescriptorPage) -> Self {
        Self {
            correlation_id,
            // The number of descriptors is not limited: the listing ends at the end of the page.
            left: i32::MAX,
            entries: Entries::Descriptors(page),
        }
    }

    /// Sends the next descriptors, until the publication is back-pressured or [`ENTRIES_PER_CYCLE`] entries were
    /// checked.
    pub fn do_work(
        &mut self,
        control_session_id: i64,
        responses: &mut ResponseStream,
        source: &dyn ListingSource,
    ) -> ListingProgress {
        let mut sent = 0;
        for _ in 0..ENTRIES_PER_CYCLE {
            let step = self.step(control_session_id, responses, source);
            match step {
                ListingStep::Sent => {
                    sent += 1;
                    self.left -= 1;
                    if self.left <= 0 {
                        return ListingProgress {
                            sent,
                            is_over: true,
                        };
                    }
                }
                ListingStep::Skipped => {}
                ListingStep::BackPressured => {
                    return ListingProgress {
                        sent,
                        is_over: false,
                    };
                }
                ListingStep::End(response) => {
                    responses.respond(control_session_id, self.correlation_id, &response);
                    return ListingProgress {
                        sent: sent + 1,
                        is_over: true,
                    };
                }
            }
        }
        ListingProgress {
            sent,
            is_over: false,
        }
    }

    fn step(
        &mut self,
        control_session_id: i64,
        responses: &mut ResponseStream,
        source: &dyn ListingSource,
    ) -> ListingStep {
        let (correlation_id, is_empty) = (self.correlation_id, self.left <= 0);
        match &mut self.entries {
            Entries::OneRecording(id) => {
                let found = source.next_recording(*id);
                match found.filter(|recording| recording.recording_id == *id) {
                    Some(recording) => {
                        send_recording(responses, control_session_id, correlation_id, recording)
                    }
                    None => ListingStep::End(Response::RecordingUnknown(*id)),
                }
            }
            Entries::Recordings {
                next_id,
                end_id,
                filter,
            } => {
                let found = source.next_recording(*next_id).filter(|_| !is_empty);
                let Some(recording) = found else {
                    return ListingStep::End(Response::RecordingUnknown(*end_id));
                };
                let step = match filter
                    .as_ref()
                    .is_none_or(|filter| filter.matches(recording))
                {
                    true => {
                        send_recording(responses, control_session_id, correlation_id, recording)
                    }
                    false => ListingStep::Skipped,
                };
                if step != ListingStep::BackPressured {
                    *next_id = recording.recording_id.saturating_add(1);
                    *end_id = *next_id;
                }
                step
            }
            Entries::Subscriptions {
                next_index,
                stream_id,
                fragment,
            } => {
                let found = source.subscription(*next_index).filter(|_| !is_empty);
                let Some(subscription) = found else {
                    return ListingStep::End(Response::SubscriptionUnknown(0));
                };
                let is_selected = stream_id.is_none_or(|id| id == subscription.stream_id)
                    && contains(subscription.channel.as_bytes(), fragment);
                let step = match is_selected {
                    true => {
                        let descriptor = RecordingSubscriptionDescriptor {
                            control_session_id,
                            correlation_id,
                            subscription_id: subscription.registration_id,
                            stream_id: subscription.stream_id,
                            stripped_channel: subscription.channel.as_bytes(),
                        };
                        let message = ArchiveResponse::RecordingSubscriptionDescriptor(descriptor);
                        ListingStep::of(responses.try_send(&message))
                    }
                    false => ListingStep::Skipped,
                };
                if step != ListingStep::BackPressured {
                    *next_index += 1;
                }
                step
            }
            Entries::Descriptors(page) => {
                let Some(message) = page.next() else {
                    return ListingStep::End(Response::Ok(page.next_index()));
                };
                let step = ListingStep::of(responses.try_send_encoded(message));
                if step != ListingStep::BackPressured {
                    page.remove_next();
                }
                step
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ListingStep {
    Sent,
    Skipped,
    BackPressured,
    End(Response),
}

impl ListingStep {
    fn of(sent: Sent) -> Self {
        match sent {
            Sent::Now => Self::Sent,
            // If the publication is closed, the session ends by itself.
            Sent::Queued | Sent::Never => Self::BackPressured,
        }
    }
}

fn send_recording(
    responses: &mut ResponseStream,
    control_session_id: i64,
    correlation_id: i64,
    recording: &RecordingDescriptor,
) -> ListingStep {
    let message = RecordingDescriptorMessage {
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
    };
    ListingStep::of(responses.try_send(&ArchiveResponse::RecordingDescriptor(message)))
}

/// Returns whether `bytes` contain `part`. An empty `part` is always contained.
pub(super) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}
