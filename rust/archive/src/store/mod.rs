//! [`ArchiveStore`]: the recordings of an archive directory, and all that changes them.
//!
//! The store owns the catalog and knows the segment files. It knows no messages, sessions or clients: the server and the embedded archive
//! use it in the same way. What it refuses, it refuses with the code and the text of Aeron's archive.
//!
//! Each call leaves a directory that opens, if the process is killed at any moment: the catalog changes first where a range is given up, and
//! last where one is added, so that the catalog never promises bytes that no file has.

mod attach;
mod deletion;
mod error;
mod migrate;
mod open;
mod options;
mod recording;
mod removal;
mod replica;

pub use deletion::DeleteOperation;
pub(crate) use deletion::remove_segment_files;
pub use error::StoreError;
pub use migrate::Migration;
pub(crate) use migrate::MigrationNote;
pub use open::RecoveredRecording;
pub use options::StoreOptions;
pub use recording::{Continuation, NewRecording};
pub use removal::RecordingActivity;

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, CatalogEntry, RecordingDescriptor, RecordingState};
use crate::storage::Storage;

/// The recordings of an archive directory. For one thread; its recorder sessions may run on others.
#[derive(Debug)]
pub struct ArchiveStore<S: Storage> {
    storage: S,
    catalog: Catalog<S>,
    options: StoreOptions,
    /// Recordings with files that are being deleted, and the base of the highest of these.
    deleting: BTreeMap<i64, i64>,
    /// Recordings of a migration that failed midway.
    half_migrated: BTreeSet<i64>,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// The recordings that exist, by ascending id.
    pub fn recordings(&self) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.catalog.recordings()
    }

    /// The recordings that exist and have at least this id, by ascending id.
    pub fn recordings_from(
        &self,
        recording_id: i64,
    ) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.catalog.recordings_from(recording_id)
    }

    /// Returns the descriptor of a recording that exists.
    ///
    /// # Errors
    /// [`StoreError::UnknownRecording`]: it never existed, or is deleted or invalid.
    pub fn recording(&self, recording_id: i64) -> Result<&RecordingDescriptor, StoreError> {
        self.entry(recording_id).map(|entry| &entry.descriptor)
    }

    /// Returns the id that the next recording gets.
    #[must_use]
    pub fn next_recording_id(&self) -> i64 {
        self.catalog.next_recording_id()
    }

    /// Returns the catalog entry of a recording that exists.
    ///
    /// # Errors
    /// As [`recording`](Self::recording).
    pub fn entry(&self, recording_id: i64) -> Result<&CatalogEntry, StoreError> {
        self.catalog
            .entry(recording_id)
            .filter(|entry| entry.state == RecordingState::Valid)
            .ok_or(StoreError::UnknownRecording { recording_id })
    }

    /// Directory of the archive.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Gives a recording other channels, also while it is recorded.
    ///
    /// # Errors
    /// The recording does not exist, its entry would be too long, or the file system refuses; then nothing changed.
    pub fn update_channel(
        &mut self,
        recording_id: i64,
        original_channel: &str,
        stripped_channel: &str,
    ) -> Result<(), StoreError> {
        self.recording(recording_id)?;
        self.catalog.update_channel(
            &self.storage,
            recording_id,
            original_channel,
            stripped_channel,
        )?;
        Ok(())
    }
}
