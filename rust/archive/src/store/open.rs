//! Opens a store. If recorders were killed, finds the ends of their recordings. Also finishes other
//! operations that a kill interrupted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use aeron_agent::SystemEpochClock;

use super::deletion::{is_segment, remove_segment};
use super::{ArchiveStore, DetachedSegments, MigrationNote, StoreError, StoreOptions};
use crate::catalog::{CATALOG_FILE, Catalog, CatalogError, RecordingDescriptor, RecordingState};
use crate::extensions::{EXTENSIONS_FILE_NAME, Extensions};
use crate::index::{
    ArrivalClock, INDEX_EXTENSION, IndexForm, IndexProof, last_arrival_ms, remove_lonely,
    rename_old,
};
use crate::objects::manifest_owner;
use crate::recovery::{FoundEnd, LastSegments, Recovery, RecoveryError, RecoveryPolicy};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, sidecar_name};
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// Maximum number of indexes that a start gives their new names. A rename takes about ten microseconds.
const MAX_RENAMED_INDEXES: usize = 1_000;

/// A recording that had no stop position when its store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredRecording {
    /// Recording id.
    pub recording_id: i64,
    /// Position at which the recording ends: its new stop position.
    pub stop_position: i64,
    /// Whether an incomplete frame was removed after this position.
    pub is_torn: bool,
}

/// Functions of an archive's owner that the opening of a store calls. A closure can be used as a
/// policy: it is called for [`keep_alive`](OpenPolicy::keep_alive).
pub trait OpenPolicy<S: Storage> {
    /// Returns a position of a recording without a stop position. All bytes below this position
    /// were certainly recorded and are not checked. The position is at least the start position. If
    /// the segment files end below this position, the search for the end begins at the start
    /// position.
    ///
    /// # Errors
    /// The file system returns an error.
    fn known_position(&mut self, _storage: &S, stream: &RecordedStream) -> Result<i64, StoreError> {
        Ok(stream.start_position())
    }

    /// Called after the files of a recording were cut at its new stop position, and before this position is written
    /// into the catalog. If the process is killed during the call, the next opening calls this function again.
    ///
    /// # Errors
    /// The archive cannot be opened.
    fn recovered(
        &mut self,
        _storage: &S,
        _stream: &RecordedStream,
        _recovered: &RecoveredRecording,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Called after each step of a recovery and after each deleted file, so that the owner can run its client. With a
    /// hundred thousand recordings and a slow disk, opening takes longer than the timeout of a client.
    fn keep_alive(&mut self);
}

impl<S: Storage, F: FnMut() + ?Sized> OpenPolicy<S> for F {
    fn keep_alive(&mut self) {
        self();
    }
}

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Opens the archive in a directory that this process owns, and creates its catalog if the directory has no
    /// catalog.
    ///
    /// If the recorder of a recording was killed, the stop position becomes the end of the last
    /// frame in the segment files, and the stop timestamp becomes `now_ms`, or the last known time of the recording if
    /// that is later. Leftover files of
    /// purged recordings are deleted, and interrupted migrations are finished. Returns the store
    /// and the recordings with a new stop position.
    ///
    /// A recording is not served if its catalog entry and its segment files contradict each other: see
    /// [`faults`](Self::faults). Its entry and files are not changed.
    ///
    /// # Errors
    /// An option is out of range, the catalog or a segment file is damaged, a file has a later version than this
    /// software reads, or the file system returns an error. If opening fails because of
    /// [`OnTornFragment::Refuse`](crate::recovery::OnTornFragment::Refuse), only the capacity of
    /// the catalog may have changed.
    pub fn open(
        storage: S,
        options: StoreOptions,
        now_ms: i64,
    ) -> Result<(Self, Vec<RecoveredRecording>), StoreError> {
        Self::open_with(storage, options, now_ms, &mut || ())
    }

    /// Opens the archive like [`open`](Self::open), with a policy of the owner.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open), and the errors of the policy.
    pub fn open_with(
        storage: S,
        options: StoreOptions,
        now_ms: i64,
        owner: &mut (impl OpenPolicy<S> + ?Sized),
    ) -> Result<(Self, Vec<RecoveredRecording>), StoreError> {
        options.check()?;
        // The directory is listed only once: with a hundred thousand recordings, one list takes as long as the rest of
        // this function.
        let names = storage
            .names()
            .map_err(|source| StoreError::storage(".", "list its files", source))?;
        let files: Vec<_> = SegmentFileName::among(&names).collect();
        // First of all, so that a refused directory does not change.
        Extensions::check_version(&storage)
            .map_err(|source| StoreError::storage(EXTENSIONS_FILE_NAME, "read it", source))?;
        let mut catalog = open_catalog(&storage, options.catalog_capacity, &files)?;
        catalog.set_checksum(options.record_checksum);
        let recovery_policy = RecoveryPolicy {
            on_torn_fragment: options.on_torn_fragment,
            checksum: options.record_checksum,
        };
        let (mut ends, mut faults) = (Vec::new(), Vec::new());
        let times = catalog.recordings();
        let mut last_ms = times.map(RecordingDescriptor::ended_ms).max();
        if catalog.recordings().any(RecordingDescriptor::is_unfinished) {
            let last_segments = LastSegments::of(files.iter().copied());
            let mut recovery = Recovery::new(&storage, &last_segments, recovery_policy);
            for descriptor in catalog.recordings().filter(|found| found.is_unfinished()) {
                let recording_id = descriptor.recording_id;
                let stream = match recorded_stream(descriptor) {
                    Ok(stream) => stream,
                    Err(error) => {
                        faults.push((recording_id, error.to_string()));
                        continue;
                    }
                };
                let known = owner.known_position(&storage, &stream)?;
                let prove = |base| {
                    IndexProof::read(&storage, descriptor, &stream, base, options.boot_id)
                        .map_err(|error| of_index(recording_id, base, &error))
                };
                let end = match recovery.find_end_with(&stream, known, prove) {
                    Err(RecoveryError::Lost { .. }) => {
                        recovery.find_end_with(&stream, stream.start_position(), prove)
                    }
                    end => end,
                };
                match end {
                    Ok(end) => ends.push((stream, end)),
                    Err(error) if error.is_of_entry() => {
                        faults.push((recording_id, error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
                owner.keep_alive();
            }
        }
        for (recording_id, fault) in faults {
            catalog.note_fault(recording_id, &fault);
        }
        catalog.add_missing_checksums()?;
        for (stream, end) in &ends {
            debug_assert!(
                end.position >= stream.start_position(),
                "recording {} starts at {} and stops at {}",
                stream.recording_id(),
                stream.start_position(),
                end.position
            );
            // The files are cut before the entry gets its stop position: after a kill between the two, the next opening
            // repeats both.
            end.cut(&storage, stream)?;
            end.sync(&storage, stream, options.file_sync_level)?;
            owner.recovered(&storage, stream, &RecoveredRecording::new(stream, end))?;
            // The wall clock may have been set back since the recording began.
            let arrival_ms = last_arrival_ms(&storage, stream, end.position);
            last_ms = last_ms.max(arrival_ms);
            let stopped_ms = arrival_ms.map_or(now_ms, |arrival_ms| arrival_ms.max(now_ms));
            catalog.stop(stream.recording_id(), end.position, stopped_ms)?;
            owner.keep_alive();
        }
        // Forces all stop positions to the disk together. A killed process may also have changed the catalog without
        // forcing the change to the disk.
        catalog.set_sync_level(options.catalog_sync_level);
        catalog.sync()?;
        remove_leftovers(&storage, &catalog, &files, &options, owner)?;
        let moving: Vec<i64> = names
            .iter()
            .filter_map(|name| MigrationNote::parse(name))
            .flat_map(|note| note.recordings)
            .collect();
        // A recording with a manifest may have segments in object storage, before its local start. Their indexes stay.
        let copied: HashSet<i64> = names.iter().filter_map(|it| manifest_owner(it)).collect();
        // A dense index stays if its segment is missing: the segment may still be restored from a backup.
        let is_dense = options.index == Some(IndexForm::Dense);
        let is_kept = |file: &SegmentFileName<'_>| {
            moving.contains(&file.recording_id)
                || (is_dense && !is_removed(file, &catalog, &options))
                || (is_before_start(file, &catalog) && copied.contains(&file.recording_id))
        };
        remove_lonely(&storage, &files, is_kept)
            .map_err(|source| StoreError::storage(".", "remove an index", source))?;
        let is_renamed = rename_old(&storage, &files, |_| true, MAX_RENAMED_INDEXES);
        let extensions = open_extensions(&storage, &catalog, &options)?;
        let mut store = Self {
            storage,
            catalog,
            extensions,
            options,
            deleting: BTreeMap::new(),
            incompletely_deleted: BTreeSet::new(),
            half_migrated: BTreeSet::new(),
            last_ms,
            has_old_indexes: !is_renamed,
            arrivals: ArrivalClock::new(Arc::new(SystemEpochClock)),
        };
        store.finish_migrations(&names)?;
        store.finish_deletions(&names)?;
        // A missing sparse index stays missing until the recording is extended. No recording needs its index earlier,
        // and creating a hundred thousand indexes would take half a minute on a disk.
        let indexed = match ends.is_empty() || is_dense {
            true => HashSet::new(),
            false => indexes_among(&files),
        };
        for (stream, end) in &ends {
            let base = stream.segment_base(end.position);
            if !indexed.contains(&(stream.recording_id(), base)) {
                continue;
            }
            // If the repair fails, the index stays too short, and the next recorder of the recording repairs it.
            let _ = store.repair_index(stream, end.position);
            owner.keep_alive();
        }
        let recovered = ends
            .iter()
            .map(|(stream, end)| RecoveredRecording::new(stream, end));
        debug_assert!(
            ends.iter().all(|(stream, _)| {
                let entry = store.catalog.entry(stream.recording_id());
                entry.is_none_or(|entry| !entry.is_served() || !entry.descriptor.is_unfinished())
            }),
            "each recording without a stop position must have one after the store was opened"
        );
        Ok((store, recovered.collect()))
    }
}

impl fmt::Display for RecoveredRecording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            recording_id,
            stop_position,
            is_torn,
        } = self;
        let cut = match is_torn {
            true => "; an incomplete fragment was removed there",
            false => "",
        };
        write!(
            formatter,
            "recording {recording_id} was not stopped: it ends at position {stop_position}{cut}"
        )
    }
}

impl RecoveredRecording {
    fn new(stream: &RecordedStream, end: &FoundEnd) -> Self {
        Self {
            recording_id: stream.recording_id(),
            stop_position: end.position,
            is_torn: end.is_torn,
        }
    }
}

/// Opens the catalog. Creates a new one only in a directory without segment files: without the catalog, an archive
/// would use the names of these files again.
fn open_catalog<S: Storage>(
    storage: &S,
    capacity: u64,
    files: &[SegmentFileName<'_>],
) -> Result<Catalog<S>, StoreError> {
    match Catalog::open(storage, capacity) {
        Err(CatalogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let is_segment = |file: &&SegmentFileName<'_>| file.extension == SEGMENT_EXTENSION;
            match files.iter().filter(is_segment).count() {
                0 => Ok(Catalog::create(storage, capacity)?),
                segments => Err(StoreError::LostCatalog {
                    name: storage.shown_name(CATALOG_FILE),
                    segments,
                }),
            }
        }
        opened => Ok(opened?),
    }
}

/// Opens the file of extensions, and removes all data of recordings that do not exist.
fn open_extensions<S: Storage + Clone>(
    storage: &S,
    catalog: &Catalog<S>,
    options: &StoreOptions,
) -> Result<Extensions<S>, StoreError> {
    let failed = |source| StoreError::storage(EXTENSIONS_FILE_NAME, "read it", source);
    let mut extensions = Extensions::open_with(
        storage.clone(),
        options.catalog_sync_level,
        options.extensions_length,
    )
    .map_err(failed)?;
    let exists = |recording_id| {
        let entry = catalog.entry(recording_id);
        entry.is_some_and(|entry| entry.state == RecordingState::Valid)
    };
    // An error is ignored, so that an archive with a full disk can start. Data of recordings that
    // do not exist have no effect.
    let _ = extensions.retain(exists);
    Ok(extensions)
}

/// Returns the same error with the name of the index file.
fn of_index(recording_id: i64, base: i64, error: &io::Error) -> io::Error {
    let name = sidecar_name(recording_id, base, INDEX_EXTENSION);
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Returns the recording id and the segment base of each index file in `files`.
fn indexes_among(files: &[SegmentFileName<'_>]) -> HashSet<(i64, i64)> {
    files
        .iter()
        .filter(|file| file.extension == INDEX_EXTENSION)
        .map(|file| (file.recording_id, file.base))
        .collect()
}

/// Deletes the segments that interrupted deletions have left.
fn remove_leftovers<S: Storage>(
    storage: &S,
    catalog: &Catalog<S>,
    files: &[SegmentFileName<'_>],
    options: &StoreOptions,
    owner: &mut (impl OpenPolicy<S> + ?Sized),
) -> Result<(), StoreError> {
    for file in files.iter().filter(|file| is_segment(file)) {
        if is_removed(file, catalog, options) {
            let name = sidecar_name(file.recording_id, file.base, file.extension);
            remove_segment(storage, name)?;
            owner.keep_alive();
        }
    }
    Ok(())
}

/// Returns whether an interrupted deletion has left this file: a segment, or a file that belongs to a segment.
fn is_removed<S: Storage>(
    file: &SegmentFileName<'_>,
    catalog: &Catalog<S>,
    options: &StoreOptions,
) -> bool {
    catalog
        .entry(file.recording_id)
        .is_some_and(|entry| match entry.state {
            RecordingState::Deleted => true,
            RecordingState::Valid => {
                options.detached_segments == DetachedSegments::Deleted
                    && entry.is_served()
                    && file.base < entry.descriptor.first_segment_base()
            }
            RecordingState::Invalid => false,
        })
}

/// Returns whether a file belongs to a segment before the start of a recording that exists.
fn is_before_start<S: Storage>(file: &SegmentFileName<'_>, catalog: &Catalog<S>) -> bool {
    catalog
        .entry(file.recording_id)
        .is_some_and(|entry| entry.is_served() && file.base < entry.descriptor.first_segment_base())
}

pub(super) fn recorded_stream(
    descriptor: &RecordingDescriptor,
) -> Result<RecordedStream, StoreError> {
    Ok(RecordedStream::of_recording(descriptor)?)
}
