//! Resumes recording subscriptions after a restart of the archive.

use aeron_client::{Aeron, Image};
use aeron_protocol::archive::ArchiveErrorCode;

use super::super::blocked::ArrivedImage;
use super::super::overlap::consume_recorded;
use super::super::refusals::{NOBODY, not_recorded_again};
use super::super::resumption::{JoinedStream, ResumedSubscription, Resumption};
use super::super::subscriptions::RecordingPurpose;
use super::{RecordingRequest, Recordings};
use crate::extensions::{ExtensionChange, RecordingLabels, RecordingLink};
use crate::server::ArchiveError;
use crate::server::outlets::ArchiveOutlets;
use crate::storage::Storage;
use crate::store::ArchiveStore;

impl<S: Storage + Clone> Recordings<S> {
    /// Resumes the stored subscriptions. If the setting `resume` is off, removes them. The limit of
    /// concurrent recordings does not apply, because it may be lower than before the restart, and
    /// no stream may be lost.
    pub fn resume(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) {
        let remembered: Vec<_> = store.extensions().subscriptions().cloned().collect();
        for subscription in remembered {
            if !self.memory.is_on() {
                self.memory.forget_former(subscription);
                continue;
            }
            let request = RecordingRequest {
                channel: subscription.channel.clone(),
                stream_id: subscription.stream_id,
                source_location: subscription.source_location,
                is_auto_stop: false,
            };
            let purpose = RecordingPurpose::Resume {
                recording_id: subscription.recording_id,
            };
            if let Err(error) = self.subscribe(aeron, NOBODY, &request, purpose) {
                let (stream_id, channel) = (subscription.stream_id, &subscription.channel);
                outlets.report(&not_recorded_again(stream_id, channel, &error));
            }
        }
        self.store_memory(store, outlets);
    }

    /// Records an image of a resumed subscription.
    pub(super) fn begin_again(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        arrived: &ArrivedImage,
        outlets: &mut ArchiveOutlets,
    ) -> Result<(), ArchiveError> {
        let (image, now_ms) = (&arrived.image, outlets.now_ms());
        let begin = |recordings: &mut Self, store: &mut _, purpose| {
            recordings.begin_as(purpose, aeron, store, arrived, now_ms)
        };
        let number = arrived.number;
        let link = match self.choose(store, number, image) {
            Resumption::Extend { recording_id, link } => {
                let Err(error) = begin(self, store, RecordingPurpose::Extend { recording_id })
                else {
                    return Ok(());
                };
                if error.code == ArchiveErrorCode::StorageSpace {
                    // A new recording needs space too. When there is space, the image still continues this recording.
                    return Err(error);
                }
                outlets.report(&format!(
                    "recording {recording_id} is not extended: {}",
                    error.message
                ));
                link
            }
            Resumption::Link(link) => link,
            Resumption::Overlap { .. } | Resumption::Unlinked => {
                let purpose = self.purpose_without_link(store, number);
                return begin(self, store, purpose);
            }
        };
        self.begin_linked(store, link, outlets, |recordings, store| {
            begin(recordings, store, RecordingPurpose::New)
        })
    }

    /// Returns the purpose of an image that is recorded without a link. If the subscription extended a recording
    /// before the restart, the image extends this recording. Otherwise the image becomes a new recording.
    fn purpose_without_link(&self, store: &ArchiveStore<S>, number: u64) -> RecordingPurpose {
        match self.former_extension(number) {
            Some(recording_id) if store.recording(recording_id).is_ok() => {
                RecordingPurpose::Extend { recording_id }
            }
            _ => RecordingPurpose::New,
        }
    }

    /// Returns the recording that a subscription extended before the restart.
    fn former_extension(&self, number: u64) -> Option<i64> {
        match self.subscriptions.by_number(number)?.purpose {
            RecordingPurpose::Resume { recording_id } => recording_id,
            RecordingPurpose::New | RecordingPurpose::Extend { .. } => None,
        }
    }

    /// Chooses how an image is recorded. Consumes the bytes of the image that its former recording
    /// already has.
    fn choose(&self, store: &ArchiveStore<S>, number: u64, image: &Image) -> Resumption {
        let Some(entry) = self.subscriptions.by_number(number) else {
            return Resumption::Unlinked;
        };
        let subscription = ResumedSubscription {
            channel: &entry.original_channel,
            recording_id: self.former_extension(number),
        };
        let choose = || match JoinedStream::of(image) {
            Some(stream) => Resumption::choose(store.recordings().rev(), &subscription, &stream),
            None => Resumption::Unlinked,
        };
        match choose() {
            Resumption::Overlap { recording_id } => {
                let former = store.recording(recording_id);
                match former.is_ok_and(|former| consume_recorded(image, store.storage(), former)) {
                    true => choose(),
                    false => Resumption::Unlinked,
                }
            }
            chosen => chosen,
        }
    }

    /// Begins a new recording that is linked to a former recording. The link is stored first. If
    /// the process is killed before the recording begins, the next start removes the link.
    fn begin_linked(
        &mut self,
        store: &mut ArchiveStore<S>,
        link: RecordingLink,
        outlets: &mut ArchiveOutlets,
        begin: impl FnOnce(&mut Self, &mut ArchiveStore<S>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let recording_id = store.next_recording_id();
        debug_assert!(
            link.predecessor_id < recording_id,
            "recording {recording_id} must not continue the later recording {}: links must not form a cycle",
            link.predecessor_id
        );
        debug_assert!(
            link.gap_to.is_none_or(|gap_to| gap_to >= link.gap_from),
            "recording {recording_id} must not continue recording {} before its end at {}",
            link.predecessor_id,
            link.gap_from
        );
        let info = RecordingLabels {
            link: Some(link),
            ..RecordingLabels::default()
        };
        let change = ExtensionChange::Info { recording_id, info };
        if let Err(error) = store.extensions_mut().apply(vec![change]) {
            outlets.report(&format!(
                "the link from recording {recording_id} to {} is not stored: {error}",
                link.predecessor_id
            ));
        }
        let begun = begin(self, store);
        if store.recording(recording_id).is_err() {
            // If this call fails, the next start removes the link.
            let _ = store.extensions_mut().forget(recording_id);
            return begun;
        }
        let gap_to = link.gap_to.unwrap_or(link.gap_from);
        if gap_to > link.gap_from {
            outlets.report(&format!(
                "recording {recording_id} continues recording {}: positions {} to {gap_to} were not recorded",
                link.predecessor_id, link.gap_from
            ));
        }
        begun
    }
}
