//! [`RecordingEvents`]: publishes the start, the progress and the end of recordings.

use aeron_client::{AppendError, ExclusivePublication, OfferError};
use aeron_protocol::archive::{
    RecordingEvent, RecordingProgress, RecordingStarted, RecordingStopped,
};

/// Number of attempts to offer a started or stopped event.
const OFFER_ATTEMPTS: usize = 3;

/// The stream of recording events. Events are dropped if the stream is not enabled or has no
/// subscriber.
#[derive(Debug, Default)]
pub(in crate::server) struct RecordingEvents {
    publication: Option<ExclusivePublication>,
    buffer: Vec<u8>,
}

/// The values of a started event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedImage {
    pub recording_id: i64,
    /// Position at which the archive joined the image.
    pub join_position: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub original_channel: String,
    pub source_identity: String,
}

impl RecordingEvents {
    /// Creates the stream of events. Without `publication`, all events are dropped.
    pub fn new(publication: Option<ExclusivePublication>) -> Self {
        Self {
            publication,
            buffer: Vec::new(),
        }
    }

    /// Publishes that a recording has started.
    pub(super) fn started(&mut self, image: &RecordedImage) {
        self.send(
            &RecordingEvent::Started(RecordingStarted {
                recording_id: image.recording_id,
                start_position: image.join_position,
                session_id: image.session_id,
                stream_id: image.stream_id,
                channel: image.original_channel.as_bytes(),
                source_identity: image.source_identity.as_bytes(),
            }),
            OFFER_ATTEMPTS,
        );
    }

    /// Publishes the position of a recording. Returns `false` if the event must be sent again
    /// later.
    pub(super) fn progress(&mut self, image: &RecordedImage, position: i64) -> bool {
        debug_assert!(
            position > image.join_position,
            "recording {} has made no progress from {} to {position}",
            image.recording_id,
            image.join_position
        );
        self.send(
            &RecordingEvent::Progress(RecordingProgress {
                recording_id: image.recording_id,
                start_position: image.join_position,
                position,
            }),
            1,
        )
    }

    /// Publishes that a recording has stopped.
    pub(super) fn stopped(&mut self, image: &RecordedImage, stop_position: i64) {
        debug_assert!(
            stop_position >= image.join_position,
            "recording {} starts at {} and stops at {stop_position}",
            image.recording_id,
            image.join_position
        );
        self.send(
            &RecordingEvent::Stopped(RecordingStopped {
                recording_id: image.recording_id,
                start_position: image.join_position,
                stop_position,
            }),
            OFFER_ATTEMPTS,
        );
    }

    fn send(&mut self, event: &RecordingEvent<'_>, attempts: usize) -> bool {
        let Some(publication) = &self.publication else {
            return true;
        };
        self.buffer.resize(event.encoded_length(), 0);
        event
            .encode(&mut self.buffer)
            .expect("the buffer has the length of the event");
        for _ in 0..attempts {
            match publication.offer(&self.buffer) {
                Err(OfferError::Append(AppendError::BackPressured | AppendError::AdminAction)) => {}
                // Without subscribers, the event need not be sent again.
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }
}
