//! Adds and changes the catalog entries of recordings that a replication copies from another archive.

use super::{ArchiveStore, StoreError};
use crate::catalog::RecordingDescriptor;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Adds an empty recording of the same stream as `source`. The replication then extends it.
    /// Returns the recording id.
    ///
    /// # Errors
    /// The descriptor is not valid, or the file system returns an error.
    pub fn add_replica(&mut self, source: &RecordingDescriptor) -> Result<i64, StoreError> {
        Ok(self.catalog.add(empty_copy(source))?)
    }

    /// Replaces the descriptor of an empty recording by an empty copy of `source`. The replication
    /// then extends the recording.
    ///
    /// # Errors
    /// The recording does not exist, the descriptor is not valid, or the file system returns an error. The catalog is
    /// then unchanged, with one exception: see [`Catalog::replace`](crate::catalog::Catalog::replace).
    pub fn replace_by_replica(
        &mut self,
        recording_id: i64,
        source: &RecordingDescriptor,
    ) -> Result<(), StoreError> {
        self.recording(recording_id)?;
        let replica = empty_copy(source);
        Ok(self.catalog.replace(&self.storage, recording_id, replica)?)
    }
}

/// Returns the descriptor of an empty recording of the same stream.
fn empty_copy(source: &RecordingDescriptor) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        stop_timestamp_ms: source.start_timestamp_ms,
        stop_position: source.start_position,
        ..source.clone()
    }
}
