//! Ends recordings: takes the events of the recorder, and stores the stop positions.

use aeron_client::Image;
use aeron_protocol::archive::RecordingSignal;

use super::super::blocked::ArrivedImage;
use super::super::recorder::{EndedRecording, RecorderEvent};
use super::super::refusals::report_unnoted;
use super::failure::RecordingFailure;
use super::{Active, ActiveParts, Recordings};
use crate::server::ArchiveError;
use crate::server::outlets::{ArchiveOutlets, SignalPlace};
use crate::storage::Storage;
use crate::store::ArchiveStore;

impl<S: Storage + Clone> Recordings<S> {
    pub(super) fn take_events(
        &mut self,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        let mut work = 0;
        while let Ok(event) = self.events.try_recv() {
            work += 1;
            match event {
                RecorderEvent::Ended(ended) => self.end(store, ended, outlets),
                RecorderEvent::NewSegment => self.has_new_segment = true,
                RecorderEvent::IndexLost {
                    recording_id,
                    error,
                } => outlets.report(&format!(
                    "recording {recording_id} continues without an index until it is extended: {error}"
                )),
            }
        }
        work
    }

    pub(super) fn end(
        &mut self,
        store: &mut ArchiveStore<S>,
        ended: EndedRecording,
        outlets: &mut ArchiveOutlets,
    ) {
        let EndedRecording {
            recording_id,
            position,
            error,
        } = ended;
        let Some(active) = self.active.remove(&recording_id) else {
            return;
        };
        debug_assert!(
            !self.is_starting(recording_id),
            "recording {recording_id} must not end while it starts"
        );
        self.has_new_segment = true;
        let Active {
            parts,
            image,
            position: counter,
        } = active;
        let has_failed = error.is_some();
        self.stop(store, &parts, (image, position), error, outlets);
        let place = SignalPlace {
            recording_id,
            subscription_id: parts.subscription.registration_id(),
            position,
        };
        outlets.signal(parts.requester, RecordingSignal::Stop, place);
        // Closed after the stop position is stored, because a client without a counter asks for the stop position.
        counter.close();
        if parts.is_auto_stop {
            self.stop_subscription(parts.subscription_number);
        } else if !has_failed {
            self.note_end_of_image(parts.subscription_number);
        }
    }

    /// Stores the stop position of a recording that has ended or failed.
    pub(super) fn stop(
        &mut self,
        store: &mut ArchiveStore<S>,
        parts: &ActiveParts,
        (image, position): (Image, i64),
        error: Option<ArchiveError>,
        outlets: &mut ArchiveOutlets,
    ) {
        let (recording_id, number) = (parts.recording_id, parts.subscription_number);
        debug_assert!(
            !self.active.contains_key(&recording_id),
            "recording {recording_id} must not get a stop position while its recorder still writes"
        );
        let stopped = store.stop_recording(recording_id, position, outlets.now_ms());
        match error {
            // If the subscription stays open for its other recordings, an unread image would block its publisher.
            None => self.unrecorded.add(image),
            Some(error) => {
                let arrived = ArrivedImage {
                    number,
                    image,
                    failed_id: Some(recording_id),
                    is_reported: parts.failed_position == Some(position),
                };
                let failure = RecordingFailure {
                    error,
                    requester: parts.requester,
                    ends_subscription: parts.is_auto_stop,
                };
                self.fail(store, arrived, failure, outlets);
            }
        }
        if let Err(error) = stopped {
            self.unnoted.add(recording_id, position, outlets.now_ms());
            report_unnoted(outlets, recording_id, parts.requester, error.into());
        }
    }

    pub(super) fn note_end_of_image(&mut self, number: u64) {
        let is_recorded = self
            .all_parts()
            .any(|parts| parts.subscription_number == number);
        if let Some(entry) = self
            .subscriptions
            .by_number(number)
            .filter(|_| !is_recorded)
        {
            self.memory.note_end_of_images(entry);
        }
    }
}
