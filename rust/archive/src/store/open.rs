//! Opening a store: the catalog, the end of each recording whose recorder was killed, and what a kill has left of other operations.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::deletion::remove_segment_files_of;
use super::{ArchiveStore, StoreError, StoreOptions};
use crate::catalog::{Catalog, CatalogError, RecordingDescriptor, RecordingState};
use crate::recovery::{FoundEnd, LastSegments, Recovery, RecoveryPolicy};
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// A recording that had no stop position when its store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredRecording {
    /// The recording.
    pub recording_id: i64,
    /// Position at which it ends: its stop position from now on.
    pub stop_position: i64,
    /// Whether a frame that was not whole was cut there.
    pub is_torn: bool,
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Opens the archive in a directory that this process owns, and creates its catalog if there is none. Recordings whose recorder was
    /// killed get the stop position that their segment files have, and the stop timestamp `now_ms`. Files of purged recordings that a kill has
    /// left are deleted, and migrations are finished.
    ///
    /// Returns the store, and the recordings that were stopped in this way.
    ///
    /// # Errors
    /// An option is out of range, the catalog or a segment file is damaged, or the file system refuses. If
    /// [`OnTornFragment::Refuse`](crate::recovery::OnTornFragment::Refuse) is the reason, nothing was changed but the capacity of the catalog.
    pub fn open(
        storage: S,
        options: StoreOptions,
        now_ms: i64,
    ) -> Result<(Self, Vec<RecoveredRecording>), StoreError> {
        options.check()?;
        let mut catalog = open_catalog(&storage, options.catalog_capacity)?;
        catalog.set_sync_level(options.catalog_sync_level);
        catalog.set_checksum(options.record_checksum);
        let policy = RecoveryPolicy {
            on_torn_fragment: options.on_torn_fragment,
            checksum: options.record_checksum,
        };
        // With a hundred thousand recordings each list of the directory takes as long as all else.
        let names = storage
            .names()
            .map_err(|source| StoreError::storage(".", "list its files", source))?;
        let files = LastSegments::of(&names);
        let ends = find_ends(&catalog, &mut Recovery::new(&storage, &files, policy))?;
        catalog.add_missing_checksums()?;
        for (stream, end) in &ends {
            end.cut(&storage, stream)?;
            catalog.stop(stream.recording_id(), end.position, now_ms)?;
        }
        remove_purged(&storage, &catalog, &names)?;
        let mut store = Self {
            storage,
            catalog,
            options,
            deleting: BTreeMap::new(),
            half_migrated: BTreeSet::new(),
        };
        store.finish_migrations(&names)?;
        Ok((store, ends.iter().map(RecoveredRecording::new).collect()))
    }
}

impl RecoveredRecording {
    fn new((stream, end): &(RecordedStream, FoundEnd)) -> Self {
        Self {
            recording_id: stream.recording_id(),
            stop_position: end.position,
            is_torn: end.is_torn,
        }
    }
}

fn open_catalog<S: Storage>(storage: &S, capacity: u64) -> Result<Catalog<S>, CatalogError> {
    match Catalog::open(storage, capacity) {
        Err(CatalogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Catalog::create(storage, capacity)
        }
        opened => opened,
    }
}

/// Ends of the recordings that have no stop position. Changes nothing.
fn find_ends<S: Storage>(
    catalog: &Catalog<S>,
    recovery: &mut Recovery<'_, S>,
) -> Result<Vec<(RecordedStream, FoundEnd)>, StoreError> {
    catalog
        .recordings()
        .filter(|descriptor| descriptor.is_unfinished())
        .map(|descriptor| {
            let stream = recorded_stream(descriptor)?;
            let end = recovery.find_end(&stream, descriptor.start_position)?;
            Ok((stream, end))
        })
        .collect()
}

/// Deletes the files of purged recordings that a kill has left.
fn remove_purged<S: Storage>(
    storage: &S,
    catalog: &Catalog<S>,
    names: &[String],
) -> Result<(), StoreError> {
    let is_purged = |recording_id| {
        catalog
            .entry(recording_id)
            .is_some_and(|entry| entry.state == RecordingState::Deleted)
    };
    remove_segment_files_of(storage, names, is_purged).map(drop)
}

pub(super) fn recorded_stream(
    descriptor: &RecordingDescriptor,
) -> Result<RecordedStream, StoreError> {
    Ok(RecordedStream::of_recording(descriptor)?)
}
