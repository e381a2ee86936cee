//! The conductor's operations that remove, move or attach parts of recordings. Later duty cycles
//! delete the files one by one.

use aeron_protocol::archive::{RecordingSignal, RequestIds};

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::control::Response;
use super::outbox::{Outbox, SignalPlace};
use crate::catalog::RecordingDescriptor;
use crate::storage::Storage;
use crate::store::{ArchiveStore, DeleteOperation, RecordingActivity};

/// Maximum number of catalog entries that a compaction keeps while the archive runs. The conductor writes these entries
/// in one duty cycle. The next start compacts a larger catalog.
const MAX_KEPT_ENTRIES: usize = 10_000;
/// Time from a failed compaction to the next attempt, in nanoseconds.
const COMPACTION_RETRY_NS: i64 = 60_000_000_000;

/// Unfinished deletions. Each deletion only concerns the files of its own recording.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    running: Vec<DeletionRequest>,
    /// Before this time, no compaction is tried; `None` if the last one has not failed.
    next_compaction_ns: Option<i64>,
}

#[derive(Debug)]
struct DeletionRequest {
    /// The request that started the deletion; `None` if no client has requested it.
    requester: Option<RequestIds>,
    operation: DeleteOperation,
}

impl Deletions {
    /// Adds the operation of a request, and responds with the number of its files. The files are
    /// deleted later.
    fn begin(
        &mut self,
        requester: RequestIds,
        count: usize,
        operation: DeleteOperation,
        outbox: &mut Outbox,
    ) {
        outbox.respond(requester, Response::Ok(count as i64));
        if operation.is_done() {
            announce(requester, operation.recording_id(), outbox);
        } else {
            self.running.push(DeletionRequest {
                requester: Some(requester),
                operation,
            });
        }
    }

    /// Adds an operation that no client has requested.
    pub(super) fn begin_unrequested(&mut self, operation: DeleteOperation) {
        if !operation.is_done() {
            self.running.push(DeletionRequest {
                requester: None,
                operation,
            });
        }
    }

    /// Returns whether no deletion is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Deletes one file: the next file of the first operation for which `may_delete` accepts the
    /// recording id. Returns the work count, and the error if the file cannot be deleted.
    fn do_work<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
        may_delete: impl Fn(i64) -> bool,
        outbox: &mut Outbox,
    ) -> (usize, Option<ArchiveError>) {
        let is_next = |deletion: &DeletionRequest| may_delete(deletion.operation.recording_id());
        let Some(at) = self.running.iter().position(is_next) else {
            return (0, None);
        };
        let DeletionRequest {
            requester,
            operation,
        } = &mut self.running[at];
        debug_assert!(
            !operation.is_done(),
            "the finished deletion of recording {} waits for a further step",
            operation.recording_id()
        );
        let error = operation.step(store).err().map(ArchiveError::from);
        if let (Some(error), Some(requester)) = (&error, *requester) {
            outbox.refuse(requester, error.clone());
        }
        if operation.is_done() {
            if let Some(requester) = *requester {
                announce(requester, operation.recording_id(), outbox);
            }
            self.running.remove(at);
        }
        (1, error)
    }
}

fn announce(requester: RequestIds, recording_id: i64, outbox: &mut Outbox) {
    let place = SignalPlace::recording(recording_id);
    outbox.signal(requester, RecordingSignal::Delete, place);
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Truncates a recording at `position`. Replays of the recording end before its files are deleted.
    ///
    /// # Errors
    /// See [`ArchiveStore::truncate`].
    pub fn truncate_recording(
        &mut self,
        requester: RequestIds,
        recording_id: i64,
        position: i64,
    ) -> Result<(), ArchiveError> {
        let operation = self.store.truncate(recording_id, position);
        // After some errors, the catalog has the new stop position nevertheless.
        if let Ok(recording) = self.store.recording(recording_id)
            && recording.stop_position == position
        {
            self.objects.forget(recording, position);
        }
        let operation = operation?;
        self.stop_replays_of(recording_id);
        self.retention.restart();
        self.delete(requester, operation);
        Ok(())
    }

    /// Deletes a recording that is neither active nor being replayed.
    ///
    /// # Errors
    /// See [`ArchiveStore::purge_recording`].
    pub fn purge_recording(
        &mut self,
        requester: RequestIds,
        recording_id: i64,
    ) -> Result<(), ArchiveError> {
        let activity = self.activity(recording_id);
        let operation = self.store.purge_recording(recording_id, &activity)?;
        self.delete(requester, operation);
        Ok(())
    }

    /// Moves the start of a recording. The files before the new start are not deleted.
    ///
    /// # Errors
    /// See [`ArchiveStore::detach_segments`].
    pub fn detach_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
    ) -> Result<i64, ArchiveError> {
        let activity = self.activity(recording_id);
        self.store
            .detach_segments(recording_id, new_start, &activity)?;
        Ok(0)
    }

    /// Moves the start of a recording, and deletes the files before the new start.
    ///
    /// # Errors
    /// See [`ArchiveStore::purge_segments`].
    pub fn purge_segments(
        &mut self,
        requester: RequestIds,
        recording_id: i64,
        new_start: i64,
    ) -> Result<(), ArchiveError> {
        let activity = self.activity(recording_id);
        let operation = self
            .store
            .purge_segments(recording_id, new_start, &activity)?;
        self.delete(requester, operation);
        Ok(())
    }

    /// Deletes the files before the start of a recording.
    ///
    /// # Errors
    /// See [`ArchiveStore::delete_detached_segments`].
    pub fn delete_detached_segments(
        &mut self,
        requester: RequestIds,
        recording_id: i64,
    ) -> Result<(), ArchiveError> {
        let operation = self.store.delete_detached_segments(recording_id)?;
        self.delete(requester, operation);
        Ok(())
    }

    /// Attaches the files before the start of a recording, so that the recording starts earlier.
    /// Returns the number of attached files.
    ///
    /// # Errors
    /// See [`ArchiveStore::attach_segments`].
    pub fn attach_segments(&mut self, recording_id: i64) -> Result<i64, ArchiveError> {
        self.retention.restart();
        Ok(self.store.attach_segments(recording_id)? as i64)
    }

    /// Moves the segment files of a recording to an adjacent recording.
    ///
    /// # Errors
    /// See [`ArchiveStore::migrate_segments`].
    pub fn migrate_segments(
        &mut self,
        requester: RequestIds,
        source_recording_id: i64,
        destination_recording_id: i64,
    ) -> Result<(), ArchiveError> {
        self.retention.restart();
        let source = self.store.recording(source_recording_id)?.clone();
        let destination = self.store.recording(destination_recording_id)?.clone();
        self.objects.check_migration(&source, &destination)?;
        let migration = self
            .store
            .migrate_segments(source_recording_id, destination_recording_id)?;
        self.objects.on_migrated(&source, &destination);
        let count = migration.moved;
        self.deletions
            .begin(requester, count, migration.deletion, &mut self.outbox);
        Ok(())
    }

    /// Deletes the next file of the unfinished deletions. Returns the work count.
    pub(super) fn delete_files(&mut self) -> usize {
        let replays = &self.replays;
        let (work, error) = self.deletions.do_work(
            &mut self.store,
            // Waits until the stopping replays of the recording have ended. Its other replays do not read these files:
            // they begin at or after the start position, and end at the stop position.
            |recording_id| !replays.is_stopping(recording_id),
            &mut self.outbox,
        );
        if let Some(error) = error {
            self.report(&error.message);
        }
        work
    }

    /// Removes the catalog entries of deleted recordings, if a compaction is due and no file is being deleted. Returns
    /// the work count.
    pub(super) fn compact_catalog(&mut self) -> usize {
        let is_too_early = |next_ns| self.now_ns < next_ns;
        match self.store.due_compaction() {
            Some(kept) if kept <= MAX_KEPT_ENTRIES => {}
            _ => return 0,
        }
        if !self.deletions.is_empty() || self.deletions.next_compaction_ns.is_some_and(is_too_early)
        {
            return 0;
        }
        let compacted = self.store.compact(|_| false);
        self.deletions.next_compaction_ns = None;
        if let Err(error) = compacted {
            let next_ns = self.now_ns.saturating_add(COMPACTION_RETRY_NS);
            self.deletions.next_compaction_ns = Some(next_ns);
            self.report(&format!("compaction of the catalog: {error}"));
        }
        1
    }

    fn delete(&mut self, requester: RequestIds, operation: DeleteOperation) {
        self.deletions
            .begin(requester, operation.count(), operation, &mut self.outbox);
    }

    /// Returns the activity that a deletion of copied segments must heed: replays of copies do not count.
    pub(super) fn local_activity(&self, recording: &RecordingDescriptor) -> RecordingActivity {
        let id = recording.recording_id;
        let first_base = recording.first_segment_base();
        RecordingActivity {
            lowest_replay_position: self.replays.lowest_local_replay_position(id, first_base),
            ..self.activity(id)
        }
    }

    pub(super) fn activity(&self, recording_id: i64) -> RecordingActivity {
        RecordingActivity {
            recorded_position: self.recordings.position(recording_id),
            lowest_replay_position: self.replays.lowest_replay_position(recording_id),
        }
    }
}
