//! [`SubscriptionMemory`]: remembers recording subscriptions, and takes them up again after a restart of the archive.
//!
//! The file of extensions has each subscription from the response to its request until it is stopped. A subscription
//! with auto-stop ends with its recording, so it is not remembered.

use aeron_client::{Aeron, Image};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::recordings::{RecordingRequest, Recordings};
use super::resumption::{JoinedStream, ResumedSubscription, Resumption};
use super::subscriptions::{RecordingPurpose, ServedSubscription};
use crate::extensions::{ExtensionChange, RecordingLabels, RecordingLink, ResumableSubscription};
use crate::server::ArchiveError;
use crate::server::outbox::Outbox;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// The requester of a subscription that the archive takes up by itself.
const NOBODY: RequestIds = RequestIds {
    control_session_id: NULL_VALUE,
    correlation_id: NULL_VALUE,
};

/// Changes of the remembered subscriptions, until they are stored.
#[derive(Debug)]
pub(super) struct SubscriptionMemory {
    is_on: bool,
    changes: Vec<ExtensionChange>,
}

impl SubscriptionMemory {
    /// Creates the memory. If it is not `is_on`, nothing is remembered.
    pub(super) const fn new(is_on: bool) -> Self {
        Self {
            is_on,
            changes: Vec::new(),
        }
    }

    /// Notes a subscription that the driver has added.
    pub(super) fn remember(&mut self, entry: &ServedSubscription) {
        // A subscription that was taken up again is remembered already.
        if !self.is_on || entry.is_auto_stop || entry.requester == NOBODY {
            return;
        }
        self.changes
            .push(ExtensionChange::Subscription(ResumableSubscription {
                channel: entry.original_channel.clone(),
                stream_id: entry.stream_id,
                source_location: entry.source_location,
                recording_id: match entry.purpose {
                    RecordingPurpose::Extend { recording_id } => Some(recording_id),
                    RecordingPurpose::New | RecordingPurpose::Resume { .. } => None,
                },
            }));
    }

    /// Notes that a subscription was stopped.
    pub(super) fn forget(&mut self, removed: Option<&ServedSubscription>) {
        let Some(entry) = removed.filter(|entry| self.is_on && !entry.is_auto_stop) else {
            return;
        };
        self.changes.push(ExtensionChange::SubscriptionStopped {
            channel: entry.original_channel.clone(),
            stream_id: entry.stream_id,
        });
    }
}

impl<S: Storage + Clone> Recordings<S> {
    /// Stores what has changed. Runs before the responses to the requests are sent.
    pub fn store_memory(&mut self, store: &mut ArchiveStore<S>) {
        let changes = std::mem::take(&mut self.memory.changes);
        if let Err(error) = store.extensions_mut().apply(changes) {
            self.notes.push(format!(
                "a recording subscription that was added or stopped is not stored, so the next start does not know it: {error}"
            ));
        }
    }

    /// Takes up the remembered subscriptions, or forgets them if the archive is not to resume.
    pub fn resume(&mut self, aeron: &Aeron, store: &mut ArchiveStore<S>) {
        let remembered: Vec<_> = store.extensions().subscriptions().cloned().collect();
        for subscription in remembered {
            let ResumableSubscription {
                channel,
                stream_id,
                source_location,
                recording_id,
            } = subscription;
            if !self.memory.is_on {
                let stopped = ExtensionChange::SubscriptionStopped { channel, stream_id };
                self.memory.changes.push(stopped);
                continue;
            }
            let request = RecordingRequest {
                requester: NOBODY,
                channel: &channel,
                stream_id,
                source_location,
                is_auto_stop: false,
            };
            let purpose = RecordingPurpose::Resume { recording_id };
            if let Err(error) = self.subscribe(aeron, &request, purpose) {
                self.notes.push(format!(
                    "stream {stream_id} of {channel} is not recorded again: {}",
                    error.message
                ));
            }
        }
        self.store_memory(store);
    }

    /// Records an image of a subscription that was taken up again.
    pub(super) fn begin_again(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        number: u64,
        image: &Image,
        now_ms: i64,
    ) -> Result<(), ArchiveError> {
        let chosen = self.choose(store, number, image);
        let (purpose, link) = match chosen {
            Resumption::Extend { recording_id, link } => {
                (RecordingPurpose::Extend { recording_id }, Some(link))
            }
            Resumption::Link(link) => (RecordingPurpose::New, Some(link)),
            Resumption::Unlinked => (self.purpose_without_link(store, number), None),
        };
        let begin = |recordings: &mut Self, store: &mut _, purpose| {
            recordings.begin_as(purpose, aeron, store, number, image.clone(), now_ms)
        };
        match (purpose, link) {
            (RecordingPurpose::Extend { recording_id }, Some(link)) => {
                let Err(error) = begin(self, store, purpose) else {
                    return Ok(());
                };
                self.notes.push(format!(
                    "recording {recording_id} is not extended: {}",
                    error.message
                ));
                self.begin_linked(store, link, |recordings, store| {
                    begin(recordings, store, RecordingPurpose::New)
                })
            }
            (purpose, None) => begin(self, store, purpose),
            (purpose, Some(link)) => self.begin_linked(store, link, |recordings, store| {
                begin(recordings, store, purpose)
            }),
        }
    }

    /// Returns the purpose for an image of which no former recording is known.
    fn purpose_without_link(&self, store: &ArchiveStore<S>, number: u64) -> RecordingPurpose {
        let entry = self.subscriptions.by_number(number);
        match entry.map(|entry| entry.purpose) {
            Some(RecordingPurpose::Resume {
                recording_id: Some(recording_id),
            }) if store.recording(recording_id).is_ok() => {
                RecordingPurpose::Extend { recording_id }
            }
            _ => RecordingPurpose::New,
        }
    }

    fn choose(&self, store: &ArchiveStore<S>, number: u64, image: &Image) -> Resumption {
        let (Some(entry), Some(stream)) = (
            self.subscriptions.by_number(number),
            JoinedStream::of(image),
        ) else {
            return Resumption::Unlinked;
        };
        let subscription = ResumedSubscription {
            channel: &entry.original_channel,
            recording_id: match entry.purpose {
                RecordingPurpose::Resume { recording_id } => recording_id,
                RecordingPurpose::New | RecordingPurpose::Extend { .. } => None,
            },
        };
        Resumption::choose(store.recordings().rev(), &subscription, &stream)
    }

    /// Begins a new recording that is linked to a former one. The link is stored first: if the process is killed in
    /// between, the next start removes it.
    fn begin_linked(
        &mut self,
        store: &mut ArchiveStore<S>,
        link: RecordingLink,
        begin: impl FnOnce(&mut Self, &mut ArchiveStore<S>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let recording_id = store.next_recording_id();
        let info = RecordingLabels {
            link: Some(link),
            ..RecordingLabels::default()
        };
        let change = ExtensionChange::Info { recording_id, info };
        if let Err(error) = store.extensions_mut().apply(vec![change]) {
            self.notes.push(format!(
                "the link from recording {recording_id} to {} is not stored: {error}",
                link.predecessor_id
            ));
        }
        let begun = begin(self, store);
        if store.recording(recording_id).is_err() {
            // If it fails, the next start removes the link.
            let _ = store.extensions_mut().forget(recording_id);
            return begun;
        }
        let gap_to = link.gap_to.unwrap_or(link.gap_from);
        if gap_to > link.gap_from {
            self.notes.push(format!(
                "recording {recording_id} continues recording {}: positions {} to {gap_to} were not recorded",
                link.predecessor_id, link.gap_from
            ));
        }
        begun
    }
}

/// Refuses a request. The archive's own request is refused by a note.
pub(super) fn refuse(
    notes: &mut Vec<String>,
    outbox: &mut Outbox,
    requester: RequestIds,
    error: ArchiveError,
) {
    match requester == NOBODY {
        true => notes.push(format!(
            "a recording that was taken up again: {}",
            error.message
        )),
        false => outbox.refuse(requester, error),
    }
}
