//! [`RetentionTurn`]: the parts of the archive that retention reads and changes in a duty cycle.

use super::log::RetentionLog;
use crate::catalog::RecordingDescriptor;
use crate::extensions::{ExtensionChange, NamedReader};
use crate::retention::{Holders, RetentionClock, RetentionOutcome, expiry_of};
use crate::server::ArchiveError;
use crate::server::deletions::Deletions;
use crate::server::objects::ObjectCopies;
use crate::server::outlets::ArchiveOutlets;
use crate::server::recording::Recordings;
use crate::server::replay::Replays;
use crate::server::replication::Replications;
use crate::storage::Storage;
use crate::store::{ArchiveStore, RecordingActivity};

/// The parts of the archive that retention uses in a duty cycle.
pub(in crate::server) struct RetentionTurn<'a, S: Storage + Clone> {
    pub store: &'a mut ArchiveStore<S>,
    pub recordings: &'a Recordings<S>,
    pub replays: &'a Replays,
    pub replications: &'a Replications,
    pub objects: &'a mut ObjectCopies,
    pub deletions: &'a mut Deletions,
    pub outlets: &'a mut ArchiveOutlets,
}

impl<S: Storage + Clone> RetentionTurn<'_, S> {
    /// Returns the readers, replays and operations that still need a part of a recording. Expired
    /// readers are left out. The caller adds what the policy allows without regard to ages.
    pub fn holders(
        &self,
        clock: &RetentionClock,
        recording_id: i64,
        end_position: i64,
    ) -> Holders<'_> {
        let has_expired = |reader: &NamedReader| has_expired(clock, reader, end_position);
        let readers = self.store.extensions().readers_of(recording_id);
        let readers = readers.filter(|reader| !has_expired(reader));
        let readers = readers.map(|reader| (reader.name.as_str(), reader.position));
        let recording = self.store.recording(recording_id).ok();
        let copied_base = recording.and_then(|recording| {
            let end_base = recording.segment_base(end_position);
            self.objects.copied_base(recording, end_base)
        });
        let activity = recording.map(|recording| self.local_activity(recording));
        Holders {
            copied_base,
            doubted: None,
            readers: readers
                .chain(self.arriving_readers(clock, recording_id, end_position))
                .collect(),
            leaving_reader: self.leaving_reader(clock, recording_id, end_position),
            lowest_replay_position: activity.and_then(|it| it.lowest_replay_position),
            is_changing: self.store.is_changing(recording_id)
                || self.recordings.is_starting(recording_id),
            is_to_be_extended: self.recordings.is_to_be_extended(recording_id)
                || self.replications.is_destination(recording_id),
        }
    }

    /// Removes the readers of a recording that have expired.
    pub fn expire_readers(
        &mut self,
        clock: &RetentionClock,
        log: &RetentionLog<S>,
        recording_id: i64,
        end_position: i64,
    ) {
        let readers = self.store.extensions().readers_of(recording_id);
        let expired: Vec<_> = readers
            .filter_map(|reader| {
                let expiry = expiry_of(reader, end_position, clock)?;
                Some((reader.clone(), expiry))
            })
            .collect();
        for (reader, expiry) in expired {
            let name = reader.name.clone();
            let removal = ExtensionChange::ReaderRemoved { recording_id, name };
            match self.store.extensions_mut().apply(vec![removal]) {
                Ok(()) => {
                    self.outlets.counters.retention.expired_readers.fetch_add(1);
                    log.on_expired(self.outlets.now_ms(), &reader, &expiry);
                }
                // An expired reader does not keep data, even if it cannot be removed. The next round tries again.
                Err(error) => self
                    .outlets
                    .report(&ArchiveError::not_stored(error).message),
            }
        }
    }

    /// Executes the outcome of a round for one recording. Later duty cycles delete the files.
    pub fn remove(&mut self, log: &RetentionLog<S>, outcome: &RetentionOutcome, first_base: i64) {
        let id = outcome.recording_id;
        let (activity, segment_length) = match self.store.recording(id) {
            Ok(recording) => (
                self.local_activity(recording),
                i64::from(recording.segment_length),
            ),
            Err(_) => return,
        };
        match self.store.remove(outcome, &activity) {
            Ok(operation) => {
                // Before the first file is deleted: a replay that finds no file compares its position with this start.
                self.replays.set_local_start(id, outcome.new_start_position);
                let bytes = outcome.new_start_position - first_base;
                debug_assert!(
                    bytes >= 0,
                    "recording {id}: retention cannot free {bytes} bytes"
                );
                let counters = &self.outlets.counters.retention;
                counters.freed_bytes.fetch_add(bytes);
                let segments = (bytes + segment_length - 1) / segment_length;
                counters.freed_segments.fetch_add(segments);
                log.on_freed(self.outlets.now_ms(), outcome, bytes);
                self.deletions.begin_unrequested(operation);
            }
            Err(error) => self
                .outlets
                .report(&format!("retention of recording {id}: {error}")),
        }
    }

    fn local_activity(&self, recording: &RecordingDescriptor) -> RecordingActivity {
        let recorded = self.recordings.position(recording.recording_id);
        self.replays.local_activity(recording, recorded)
    }
}

pub(super) fn has_expired(clock: &RetentionClock, reader: &NamedReader, end_position: i64) -> bool {
    expiry_of(reader, end_position, clock).is_some()
}
