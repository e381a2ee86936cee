//! Reports a recording that fails, and chooses how the archive treats the rest of its image.

use std::fmt;

use aeron_protocol::archive::{ArchiveErrorCode, RequestIds};

use super::super::blocked::ArrivedImage;
use super::super::overlap::consume_recorded;
use super::super::refusals::{NOBODY, can_never_extend};
use super::Recordings;
use crate::server::ArchiveError;
use crate::server::context::OnFailure;
use crate::server::outlets::ArchiveOutlets;
use crate::storage::Storage;
use crate::store::ArchiveStore;
use crate::text::truncated;

/// Maximum length of a channel in an entry of the error log, in bytes.
const MAX_SHOWN_CHANNEL: usize = 200;

/// The failure of a recording, or of its begin.
pub(super) struct RecordingFailure {
    pub error: ArchiveError,
    /// Request of the recording. Its session gets the error.
    pub requester: RequestIds,
    /// Whether the failure ends the subscription.
    pub ends_subscription: bool,
}

/// How the archive treats the rest of an image after its recording has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureEffect {
    /// The image is not read. The archive tries again to record it.
    Retried,
    /// The image is not read until its subscription is stopped.
    Blocked,
    /// The image is read and not recorded.
    Dropped,
    /// The subscription of the image ends.
    Ended,
}

impl fmt::Display for FailureEffect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Retried => {
                "its publisher is blocked, and the archive tries again each second: make room"
            }
            Self::Blocked => {
                "its publisher is blocked until the recording is stopped or the archive starts again"
            }
            Self::Dropped => "the rest of the stream is read and not recorded",
            Self::Ended => "its subscription ends, because it was requested with auto-stop",
        })
    }
}

impl<S: Storage + Clone> Recordings<S> {
    /// Handles the failure of a recording, or of its begin. The failure is reported to the operator and to the session
    /// of the request, unless it was already reported.
    pub(super) fn fail(
        &mut self,
        store: &ArchiveStore<S>,
        arrived: ArrivedImage,
        failure: RecordingFailure,
        outlets: &mut ArchiveOutlets,
    ) {
        let number = arrived.number;
        let now_ms = outlets.now_ms();
        let effect = self.effect(number, &failure);
        if !arrived.is_reported || effect != FailureEffect::Retried {
            self.note_failure(store, &arrived, &failure, effect, outlets);
            if failure.requester != NOBODY {
                outlets.refuse(failure.requester, failure.error);
            }
        }
        let arrived = ArrivedImage {
            is_reported: true,
            ..arrived
        };
        match effect {
            FailureEffect::Retried => self.blocked.add(arrived, true, now_ms),
            FailureEffect::Blocked => self.blocked.add(arrived, false, now_ms),
            FailureEffect::Dropped | FailureEffect::Ended => {
                // Bytes that the recording already has are not lost.
                if let Some(failed_id) = arrived.failed_id {
                    Self::skip_recorded(store, failed_id, &arrived);
                }
                self.unrecorded.add_lost(arrived.image);
            }
        }
        if effect == FailureEffect::Ended {
            self.stop_subscription(number);
        }
    }

    fn effect(&self, number: u64, failure: &RecordingFailure) -> FailureEffect {
        if failure.ends_subscription {
            return FailureEffect::Ended;
        }
        // A subscription that was stopped in the meantime has no entry.
        let entry = self.subscriptions.by_number(number);
        match entry.map(|entry| entry.on_failure) {
            Some(OnFailure::Block) if !can_never_extend(&failure.error) => {
                match failure.error.code == ArchiveErrorCode::StorageSpace {
                    true => FailureEffect::Retried,
                    false => FailureEffect::Blocked,
                }
            }
            _ => FailureEffect::Dropped,
        }
    }

    fn note_failure(
        &self,
        store: &ArchiveStore<S>,
        arrived: &ArrivedImage,
        failure: &RecordingFailure,
        effect: FailureEffect,
        outlets: &mut ArchiveOutlets,
    ) {
        let stream_id = arrived.image.stream_id();
        let reason = &failure.error.message;
        let failed = arrived.failed_id.and_then(|id| store.recording(id).ok());
        let entry = self.subscriptions.by_number(arrived.number);
        let subscribed = entry.map(|entry| entry.original_channel.as_str());
        let recorded = failed.map(|recording| &*recording.original_channel);
        let is_refused = can_never_extend(&failure.error);
        let channel = match is_refused {
            true => subscribed.or(recorded),
            false => recorded.or(subscribed),
        };
        let channel = truncated(channel.unwrap_or_default(), MAX_SHOWN_CHANNEL);
        let text = match arrived.failed_id {
            Some(id) if is_refused => format!(
                "recording {id} is not extended by stream {stream_id}, {channel}: {reason}; {effect}"
            ),
            Some(id) => format!(
                "recording {id} of stream {stream_id}, {channel}, has failed: {reason}; {effect}"
            ),
            None => {
                format!("stream {stream_id}, {channel}, is not recorded: {reason}; {effect}")
            }
        };
        match is_refused && failure.requester != NOBODY {
            // A client may request any number of extensions that do not fit.
            true => outlets.report_client(&text),
            false => outlets.report(&text),
        }
    }

    /// Consumes the bytes of an image that its failed recording already has: the recorder may have written a block and
    /// failed before it released the block to the publisher. Returns whether the image continues the recording.
    pub(super) fn skip_recorded(
        store: &ArchiveStore<S>,
        recording_id: i64,
        arrived: &ArrivedImage,
    ) -> bool {
        let (image, storage) = (&arrived.image, store.storage());
        store.recording(recording_id).is_ok_and(|recording| {
            image.position() == recording.stop_position
                || (image.position() < recording.stop_position
                    && consume_recorded(image, storage, recording))
        })
    }

    /// Reads the blocked images of a stopped subscription from now on. If other recordings keep the subscription open,
    /// an unread image would block its publisher.
    pub(super) fn release_blocked(&mut self, number: u64) {
        for arrived in self.blocked.take_of(number) {
            self.unrecorded.add(arrived.image);
        }
    }
}
