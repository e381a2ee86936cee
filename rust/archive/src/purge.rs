//! Deletes whole segments from the start of a recording, or the whole recording.
//!
//! The catalog is changed first. Then the files are deleted, one per step, so that each duty cycle of the
//! caller is short. If the process is killed before all files are deleted, some files belong to no recording.
//! [`remove_orphans`] deletes these files when the archive is opened again.
//!
//! A segment may have sidecars: files of the same name with other extensions, which the archive does not read or write.
//! A deletion also deletes the sidecars whose extensions the caller names.

use std::io;

use crate::catalog::{Catalog, CatalogError, RecordingDescriptor, RecordingState};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, sidecar_name};
use crate::storage::Storage;

/// Maximum number of segments of one deletion: far more than any file system has.
const MAX_SEGMENTS: i64 = 1 << 24;

/// Why nothing was purged, or why the deletion of files stopped.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The new start is not the first position of a segment.
    #[error("invalid segment start: newStartPosition={new_start}")]
    NotASegmentBase {
        /// Requested start position.
        new_start: i64,
    },
    /// Not even the first segment ends before the new start.
    #[error("invalid detach: newStartPosition={new_start} lowerBound={lower_bound}")]
    BelowFirstSegment {
        /// Requested start position.
        new_start: i64,
        /// Lowest start position that removes a segment.
        lower_bound: i64,
    },
    /// The new start is after the segment with the end of the recording. This segment must not be deleted.
    #[error("invalid detach: in use, newStartPosition={new_start} upperBound={upper_bound}")]
    InUse {
        /// Requested start position.
        new_start: i64,
        /// Highest start position for which the segment with the end of the recording is not deleted.
        upper_bound: i64,
    },
    /// The recording has no stop position yet.
    #[error("recording {recording_id} is active: stop it before it is purged")]
    Active {
        /// Recording id.
        recording_id: i64,
    },
    /// The positions of the catalog entry span more segments than a recording can have.
    #[error("recording {recording_id} spans {count} segments, more than {MAX_SEGMENTS}")]
    TooManySegments {
        /// Recording id.
        recording_id: i64,
        /// Number of segments between the start and stop positions.
        count: i64,
    },
    /// The catalog has no such recording, or could not be changed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The file system could not delete a file.
    #[error("unable to delete segment file: {name}: {source}")]
    Delete {
        /// Name of the file.
        name: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file system could not list the files.
    #[error("unable to list segment files: {0}")]
    List(#[source] io::Error),
}

/// Deletes segment files one by one, the lowest first. If the deletion is dropped before all files are deleted, the
/// remaining files are orphans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    recording_id: i64,
    next_base: i64,
    /// Base of the first segment that is not deleted.
    end_base: i64,
    segment_length: i64,
}

/// Removes all segments before `new_start` from the recording: `new_start` becomes its start position.
///
/// `end_position` is the stop position of the recording. If the recording is active, `end_position` is the recorded
/// position.
///
/// # Errors
/// The recording does not exist, or the catalog could not be written. Or `new_start` is not the base of a segment after
/// the first segment and up to the segment of `end_position`. Then nothing has changed.
pub fn purge_segments<S: Storage>(
    catalog: &mut Catalog<S>,
    recording_id: i64,
    new_start: i64,
    end_position: i64,
) -> Result<Deletion, PurgeError> {
    let recording = catalog.recording(recording_id)?;
    check_new_start(recording, new_start, end_position)?;
    let deletion = Deletion::new(recording, new_start)?;
    catalog.set_start_position(recording_id, new_start)?;
    Ok(deletion)
}

/// Deletes a whole recording that has ended. One write sets its state to deleted and its stop position to
/// `stop_position`, which may be [`NULL_VALUE`](crate::catalog::NULL_VALUE).
///
/// # Errors
/// The recording does not exist, has not ended, or the catalog could not be written. Then nothing has changed.
pub fn purge_recording<S: Storage>(
    catalog: &mut Catalog<S>,
    recording_id: i64,
    stop_position: i64,
) -> Result<Deletion, PurgeError> {
    let recording = catalog.recording(recording_id)?;
    if recording.is_unfinished() {
        return Err(PurgeError::Active { recording_id });
    }
    let last = recording.segment_base(recording.stop_position);
    let deletion = Deletion::new(recording, last + i64::from(recording.segment_length))?;
    catalog.delete(recording_id, stop_position)?;
    Ok(deletion)
}

/// Deletes the files that remain after an interrupted purge: the files of deleted recordings, and segments before the
/// first segment of existing recordings. Files without an entry in the catalog are not deleted. Returns the number of
/// deleted files.
///
/// # Errors
/// The file system cannot list or remove files.
pub fn remove_orphans<S: Storage>(
    storage: &S,
    catalog: &Catalog<S>,
    sidecars: &[&str],
) -> Result<usize, PurgeError> {
    let mut removed = 0;
    for name in storage.names().map_err(PurgeError::List)? {
        if is_orphan(&name, catalog, sidecars) {
            remove(storage, name)?;
            removed += 1;
        }
    }
    Ok(removed)
}

impl Deletion {
    /// Creates the deletion of all segments of `recording` below `end_base`.
    fn new(recording: &RecordingDescriptor, end_base: i64) -> Result<Self, PurgeError> {
        let first = recording.first_segment_base();
        let segment_length = i64::from(recording.segment_length);
        let recording_id = recording.recording_id;
        let count = (end_base - first) / segment_length;
        if count > MAX_SEGMENTS {
            return Err(PurgeError::TooManySegments {
                recording_id,
                count,
            });
        }
        Ok(Self {
            recording_id,
            next_base: first,
            end_base,
            segment_length,
        })
    }

    /// Deletes the next segment, and its sidecars with these extensions. Returns `false` if no segment remained.
    /// A missing file is not an error.
    ///
    /// # Errors
    /// The file system returns an error; the next step tries the same segment again.
    pub fn step<S: Storage>(&mut self, storage: &S, sidecars: &[&str]) -> Result<bool, PurgeError> {
        if self.next_base >= self.end_base {
            return Ok(false);
        }
        for extension in [SEGMENT_EXTENSION].iter().chain(sidecars) {
            let name = sidecar_name(self.recording_id, self.next_base, extension);
            remove(storage, name)?;
        }
        self.next_base += self.segment_length;
        Ok(true)
    }
}

/// Checks that a recording that ends at `end_position` can start at `new_start`.
pub(crate) fn check_new_start(
    recording: &RecordingDescriptor,
    new_start: i64,
    end_position: i64,
) -> Result<(), PurgeError> {
    let first = recording.first_segment_base();
    let lower_bound = first + i64::from(recording.segment_length);
    let upper_bound = recording.segment_base(end_position.max(first));
    if new_start < lower_bound {
        return Err(PurgeError::BelowFirstSegment {
            new_start,
            lower_bound,
        });
    }
    if recording.segment_base(new_start) != new_start {
        return Err(PurgeError::NotASegmentBase { new_start });
    }
    if new_start > upper_bound {
        return Err(PurgeError::InUse {
            new_start,
            upper_bound,
        });
    }
    Ok(())
}

fn is_orphan<S: Storage>(name: &str, catalog: &Catalog<S>, sidecars: &[&str]) -> bool {
    let Some(file) = SegmentFileName::parse(name) else {
        return false;
    };
    if file.extension != SEGMENT_EXTENSION && !sidecars.contains(&file.extension) {
        return false;
    }
    catalog
        .entry(file.recording_id)
        .is_some_and(|entry| match entry.state {
            RecordingState::Deleted => true,
            RecordingState::Valid => file.base < entry.descriptor.first_segment_base(),
            RecordingState::Invalid => false,
        })
}

/// Removes a file. A missing file is not an error.
pub(crate) fn remove<S: Storage>(storage: &S, name: String) -> Result<(), PurgeError> {
    match storage.remove(&name) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(PurgeError::Delete { name, source })
        }
        _ => Ok(()),
    }
}
