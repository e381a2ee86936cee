//! Giving up whole segments of a recording, or all of it.
//!
//! The catalog is changed first, then files go, one per step, so that a caller's duty cycle is never held up for long. Whoever is
//! killed in between leaves files that belong to no recording any more; [`remove_orphans`] takes them away at the next open.
//!
//! A segment may have sidecars: files of the same name with other endings, which the archive knows nothing else about. Those named
//! to a deletion go with their segment.

use std::io;

use crate::catalog::{Catalog, CatalogError, RecordingDescriptor, RecordingState};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, sidecar_name};
use crate::storage::Storage;

/// Most segments that one deletion takes away: far more than any file system has.
const MAX_SEGMENTS: i64 = 1 << 24;

/// Why nothing was purged, or no more files go.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The new start is not the first position of a segment.
    #[error("invalid segment start: newStartPosition={new_start}")]
    NotASegmentBase {
        /// What was asked for.
        new_start: i64,
    },
    /// Not even the first segment is wholly behind the new start.
    #[error("invalid detach: newStartPosition={new_start} lowerBound={lower_bound}")]
    BelowFirstSegment {
        /// What was asked for.
        new_start: i64,
        /// The least start that gives up a segment.
        lower_bound: i64,
    },
    /// The segment with the recording's end is to stay.
    #[error("invalid detach: in use, newStartPosition={new_start} upperBound={upper_bound}")]
    InUse {
        /// What was asked for.
        new_start: i64,
        /// The greatest start that keeps the end.
        upper_bound: i64,
    },
    /// It has no stop position yet.
    #[error("recording {recording_id} is active: stop it before it is purged")]
    Active {
        /// The recording.
        recording_id: i64,
    },
    /// The positions of the catalog span more segments than there can be.
    #[error("recording {recording_id} spans {count} segments, more than {MAX_SEGMENTS}")]
    TooManySegments {
        /// The recording.
        recording_id: i64,
        /// Segments between its positions.
        count: i64,
    },
    /// The catalog has no such recording, or could not be changed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The file system refused.
    #[error("unable to delete segment file: {name}: {source}")]
    Delete {
        /// The file.
        name: String,
        /// What the file system answered.
        source: io::Error,
    },
    /// The file system did not tell which files there are.
    #[error("unable to list segment files: {0}")]
    List(#[source] io::Error),
}

/// Segment files on their way out, lowest first. What is dropped before its end leaves orphans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    recording_id: i64,
    next_base: i64,
    /// Base of the first segment that stays.
    end_base: i64,
    segment_length: i64,
}

/// Gives up all segments before `new_start`, which becomes the start position.
///
/// `end_position` is where the recording ends: its stop position, or how far it is recorded by now.
///
/// # Errors
/// The recording does not exist, `new_start` is no base of a segment behind the first and up to the one of `end_position`, or the
/// catalog could not be written; then nothing changed.
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

/// Gives up a whole recording that has ended: in one write its state becomes deleted and its stop position `stop_position`, which
/// may be [`NULL_VALUE`](crate::catalog::NULL_VALUE).
///
/// # Errors
/// The recording does not exist, has not ended, or the catalog could not be written; then it still exists.
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

/// Removes what a kill amid a purge left: files of recordings that are deleted, and segments before the first of those that exist.
/// Files that no entry of the catalog accounts for are not touched. Answers how many went.
///
/// # Errors
/// The file system refuses to list or to remove.
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
    /// All segments of `recording` below `end_base`.
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

    /// Removes the next segment, and its sidecars with these endings; false when there was none left. A file that is gone already is
    /// no error.
    ///
    /// # Errors
    /// The file system refuses; the next step tries the same segment again.
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

/// Checks that a recording that ends at `end_position` can begin at `new_start`.
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

pub(crate) fn remove<S: Storage>(storage: &S, name: String) -> Result<(), PurgeError> {
    match storage.remove(&name) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(PurgeError::Delete { name, source })
        }
        _ => Ok(()),
    }
}
