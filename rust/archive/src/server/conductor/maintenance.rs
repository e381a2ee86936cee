//! Removes, moves or attaches parts of recordings. Later duty cycles delete the files one by one.

use super::{ArchiveConductor, Caller, Later};
use crate::server::ArchiveError;
use crate::storage::Storage;
use crate::store::DeleteOperation;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Truncates a recording at `position`. Replays of the recording end before its files are deleted.
    ///
    /// # Errors
    /// See [`ArchiveStore::truncate`](crate::store::ArchiveStore::truncate).
    pub(super) fn truncate_recording(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
        position: i64,
    ) -> Result<Later, ArchiveError> {
        let operation = self.store.truncate(recording_id, position);
        // After some errors, the catalog has the new stop position nevertheless.
        if let Ok(recording) = self.store.recording(recording_id)
            && recording.stop_position == position
        {
            self.objects.forget(recording, position);
        }
        let operation = operation?;
        self.replays.stop_all(Some(recording_id));
        self.retention.restart();
        Ok(self.delete(caller, operation))
    }

    /// Deletes a recording that is neither active nor being replayed.
    ///
    /// # Errors
    /// See [`ArchiveStore::purge_recording`](crate::store::ArchiveStore::purge_recording).
    pub(super) fn purge_recording(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
    ) -> Result<Later, ArchiveError> {
        let activity = self.activity(recording_id);
        let operation = self.store.purge_recording(recording_id, &activity)?;
        Ok(self.delete(caller, operation))
    }

    /// Moves the start of a recording. The files before the new start are not deleted.
    ///
    /// # Errors
    /// See [`ArchiveStore::detach_segments`](crate::store::ArchiveStore::detach_segments).
    pub(super) fn detach_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
    ) -> Result<(), ArchiveError> {
        let activity = self.activity(recording_id);
        self.store
            .detach_segments(recording_id, new_start, &activity)?;
        Ok(())
    }

    /// Moves the start of a recording, and deletes the files before the new start.
    ///
    /// # Errors
    /// See [`ArchiveStore::purge_segments`](crate::store::ArchiveStore::purge_segments).
    pub(super) fn purge_segments(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
        new_start: i64,
    ) -> Result<Later, ArchiveError> {
        let activity = self.activity(recording_id);
        let operation = self
            .store
            .purge_segments(recording_id, new_start, &activity)?;
        Ok(self.delete(caller, operation))
    }

    /// Deletes the files before the start of a recording.
    ///
    /// # Errors
    /// See [`ArchiveStore::delete_detached_segments`](crate::store::ArchiveStore::delete_detached_segments).
    pub(super) fn delete_detached_segments(
        &mut self,
        caller: &Caller<'_>,
        recording_id: i64,
    ) -> Result<Later, ArchiveError> {
        let operation = self.store.delete_detached_segments(recording_id)?;
        Ok(self.delete(caller, operation))
    }

    /// Attaches the files before the start of a recording, so that the recording starts earlier.
    /// Returns the number of attached files.
    ///
    /// # Errors
    /// See [`ArchiveStore::attach_segments`](crate::store::ArchiveStore::attach_segments).
    pub(super) fn attach_segments(&mut self, recording_id: i64) -> Result<i64, ArchiveError> {
        self.retention.restart();
        Ok(self.store.attach_segments(recording_id)? as i64)
    }

    /// Moves the segment files of a recording to an adjacent recording.
    ///
    /// # Errors
    /// See [`ArchiveStore::migrate_segments`](crate::store::ArchiveStore::migrate_segments).
    pub(super) fn migrate_segments(
        &mut self,
        caller: &Caller<'_>,
        source_recording_id: i64,
        destination_recording_id: i64,
    ) -> Result<Later, ArchiveError> {
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
            .begin(caller.ids, count, migration.deletion, &mut self.outlets);
        Ok(Later)
    }

    fn delete(&mut self, caller: &Caller<'_>, operation: DeleteOperation) -> Later {
        let count = operation.count();
        self.deletions
            .begin(caller.ids, count, operation, &mut self.outlets);
        Later
    }
}
