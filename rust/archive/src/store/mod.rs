//! [`ArchiveStore`]: the recordings of an archive directory, and all operations that change them.
//!
//! The store owns the catalog and manages the segment files. It has no knowledge of messages,
//! sessions or clients. The archive server and the private archive of a Spark query use it.
//! [`StoreOptions`] and [`OpenPolicy`] contain the differences between the two. Errors of the store
//! have the codes and texts of Aeron's archive.
//!
//! If the process is killed at any moment, the directory can still be opened. Before a range is
//! removed from the files, it is removed from the catalog. After a range is added to the files, it
//! is added to the catalog. So every range in the catalog has its bytes in the files.

mod attach;
mod compaction;
mod deletion;
mod error;
mod migrate;
mod open;
mod options;
mod recording;
mod removal;
mod replica;
mod retention;

pub use deletion::DeleteOperation;
pub(crate) use deletion::{remove_segment, remove_segment_files};
pub use error::StoreError;
pub use migrate::Migration;
pub(crate) use migrate::MigrationNote;
pub use open::{OpenPolicy, RecoveredRecording};
pub use options::{DetachedSegments, StoreOptions};
pub use recording::{Continuation, NewRecording};
pub use removal::RecordingActivity;

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, CatalogEntry, RecordingDescriptor, RecordingState};
use crate::extensions::Extensions;
use crate::index::ArrivalClock;
use crate::retention::EarlierTime;
use crate::storage::Storage;

/// The recordings of an archive directory. For one thread; recorder sessions may run on other threads.
#[derive(Debug)]
pub struct ArchiveStore<S: Storage> {
    storage: S,
    catalog: Catalog<S>,
    extensions: Extensions<S>,
    options: StoreOptions,
    /// Recordings with files that are being deleted. The value is the highest base of such a file.
    deleting: BTreeMap<i64, i64>,
    /// Recordings with files that could not be deleted.
    incompletely_deleted: BTreeSet<i64>,
    /// Sources and destinations of migrations that failed before their end.
    half_migrated: BTreeSet<i64>,
    /// The latest time in the catalog and the indexes when the store was opened.
    last_ms: Option<i64>,
    /// Whether indexes may have names of older releases.
    has_old_indexes: bool,
    /// Clock for the arrival times in indexes.
    arrivals: ArrivalClock,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Returns the recordings that exist and can be served, by ascending id.
    pub fn recordings(&self) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.catalog.recordings()
    }

    /// Returns the recordings that exist, can be served, and have at least this id, by ascending id.
    pub fn recordings_from(
        &self,
        recording_id: i64,
    ) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        self.catalog.recordings_from(recording_id)
    }

    /// Returns the recordings that are listed, with at least this id, by ascending id: those that exist, even if they
    /// cannot be served.
    pub fn listed_from(
        &self,
        recording_id: i64,
    ) -> impl DoubleEndedIterator<Item = &RecordingDescriptor> {
        let entries = self.catalog.entries_from(recording_id);
        let listed = entries.filter(|entry| entry.state == RecordingState::Valid);
        listed.map(|entry| &entry.descriptor)
    }

    /// Returns an error for each recording that exists and cannot be served, by ascending id.
    pub fn faults(&self) -> impl Iterator<Item = StoreError> {
        self.catalog.entries().iter().filter_map(unserved)
    }

    /// Returns the descriptor of a recording that exists.
    ///
    /// # Errors
    /// [`StoreError::UnknownRecording`]: the recording never existed, or it is deleted or invalid.
    /// [`StoreError::Unserved`]: the recording exists and cannot be served.
    pub fn recording(&self, recording_id: i64) -> Result<&RecordingDescriptor, StoreError> {
        self.entry(recording_id).map(|entry| &entry.descriptor)
    }

    /// Returns the id of the next new recording.
    #[must_use]
    pub fn next_recording_id(&self) -> i64 {
        self.catalog.next_recording_id()
    }

    /// Returns the catalog entry of a recording that exists.
    ///
    /// # Errors
    /// The same errors as [`recording`](Self::recording).
    pub fn entry(&self, recording_id: i64) -> Result<&CatalogEntry, StoreError> {
        let entry = self
            .catalog
            .entry(recording_id)
            .filter(|entry| entry.state == RecordingState::Valid)
            .ok_or(StoreError::UnknownRecording { recording_id })?;
        unserved(entry).map_or(Ok(entry), Err)
    }

    /// Returns all catalog entries, by ascending id, including the entries of deleted and invalid
    /// recordings.
    #[must_use]
    pub fn entries(&self) -> &[CatalogEntry] {
        self.catalog.entries()
    }

    /// Returns the named readers, the retention policies, and the names, metadata and links of
    /// recordings.
    pub fn extensions(&self) -> &Extensions<S> {
        &self.extensions
    }

    /// Returns mutable access to the same data as [`extensions`](Self::extensions).
    pub fn extensions_mut(&mut self) -> &mut Extensions<S> {
        &mut self.extensions
    }

    /// Returns what the files say about the time before the store was opened: the state of the clock that the previous
    /// run has stored, otherwise the latest time in the catalog, and in the indexes of recordings without a stop
    /// position.
    pub fn earlier_time(&self) -> EarlierTime {
        let clock = self.extensions.clock();
        EarlierTime {
            last_ms: clock.map(|clock| clock.last_ms).or(self.last_ms),
            remaining_ns: clock.map_or(0, |clock| clock.remaining_ms.saturating_mul(1_000_000)),
        }
    }

    /// Returns the directory of the archive.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Sets the clock for the arrival times in indexes; the default is the machine's wall clock.
    pub fn set_arrival_clock(&mut self, clock: ArrivalClock) {
        self.arrivals = clock;
    }

    /// Changes the channels of a recording. The recording may be active.
    ///
    /// # Errors
    /// The recording does not exist, its entry would be too long, or the file system returns an
    /// error. Then nothing has changed.
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

/// Returns an error if the entry's recording exists and cannot be served.
fn unserved(entry: &CatalogEntry) -> Option<StoreError> {
    Some(StoreError::Unserved {
        recording_id: entry.descriptor.recording_id,
        fault: entry.fault()?.into(),
    })
}
