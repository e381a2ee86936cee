//! Plans the reading of recordings: finds the archive of a directory, selects the recordings, and cuts them into pieces
//! that workers read.
//!
//! Planning changes nothing in the directory. It accepts the private archive of a query that ended or was killed, and
//! any other Aeron archive. A recording without a stop position is read up to the end that recovery would find. Each
//! message of the plan belongs to exactly one piece: the piece that contains its first frame.
//!
//! If another process still writes the archive, [`plan`] refuses the archive. [`plan_range`] plans a part of one
//! recording. It accepts an active recording and reads it up to the recorded position.

mod archive;
mod cutting;
mod range;

pub use archive::find_archive;
pub use cutting::RecordingCutting;
pub use range::{PositionRange, RecordingRange, plan_range};

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aeron_archive::catalog::{Catalog, CatalogError, RecordingDescriptor, RecordingState};
use aeron_archive::reader::ReadError;
use aeron_archive::stream::{RecordedStream, StreamError};
use aeron_objects::reading::CopiedDirectory;
use thiserror::Error;

use crate::machine;
use crate::partition::{ArchiveLocation, Partition, RecordingPiece};
use crate::private::{PrivateError, check_unused, end_of_recording};

/// Selects recordings; `None` in a field selects all.
#[derive(Debug, Clone, Default)]
pub struct RecordingSelection {
    /// Stream ids.
    pub stream_ids: Option<Vec<i32>>,
    /// Recording ids, as inclusive ranges of first and last id.
    pub recording_ids: Option<Vec<(i64, i64)>>,
}

/// Reason why recordings cannot be read.
#[derive(Debug, Error)]
pub enum RecordingsError {
    /// The directory contains no archive.
    #[error("no archive at {0}: it has no archive.catalog, and no private archive is below it")]
    NoArchive(PathBuf),
    /// The directory contains several private archives.
    #[error("{directory} holds {count} private archives: set archiveDir to one of them: {list}")]
    SeveralArchives {
        /// The directory.
        directory: PathBuf,
        /// Number of archives.
        count: usize,
        /// Paths of the newest archives, each with the time since its last write.
        list: String,
    },
    /// A recording that was requested by its id does not exist.
    #[error("no recording {recording_id} in {directory}; it has {existing}")]
    UnknownRecording {
        /// The requested id.
        recording_id: i64,
        /// The archive.
        directory: PathBuf,
        /// Ids that exist in the archive.
        existing: String,
    },
    /// The recording is marked invalid in the catalog.
    #[error(
        "recording {recording_id} in {directory} is marked invalid in the catalog: leave it out by its id, or repair it with `aeron archive verify --repair`"
    )]
    InvalidRecording {
        /// Recording id.
        recording_id: i64,
        /// The archive.
        directory: PathBuf,
    },
    /// The range does not lie within the recording.
    #[error(
        "{name}={position} is not within {low} to {high} of recording {recording_id} in {directory}"
    )]
    Range {
        /// Name of the bound of the range.
        name: &'static str,
        /// The bound.
        position: i64,
        /// Recording id.
        recording_id: i64,
        /// The archive.
        directory: PathBuf,
        /// Lowest valid position.
        low: i64,
        /// Highest valid position.
        high: i64,
    },
    /// Another process writes the recording, and this process cannot find the recorded position.
    #[error(
        "recording {recording_id} in {directory} is active, and its recorded position is not known here: its archive has no index, and no counter in {aeron_directory}: set an end position, or wait until the recording has stopped"
    )]
    UnknownEnd {
        /// Recording id.
        recording_id: i64,
        /// The archive.
        directory: PathBuf,
        /// Directory of the archive's driver.
        aeron_directory: String,
    },
    /// The options would cut the recordings into too many partitions.
    #[error(
        "maxRowsPerPartition={max_rows} cuts the recordings into more than {limit} partitions; raise it"
    )]
    TooManyPartitions {
        /// Value of `maxRowsPerPartition`.
        max_rows: u64,
        /// Maximum number of partitions.
        limit: usize,
    },
    /// The recordings have more segments than the maximum number of partitions.
    #[error(
        "the recordings in {directory} have {count} segments by the catalog, more than {limit} partitions: set minPartitions, or leave some out by recordingId"
    )]
    TooManySegments {
        /// The archive.
        directory: PathBuf,
        /// Number of segments of all recordings, computed from the start and end positions in the catalog.
        count: i128,
        /// Maximum number of partitions.
        limit: usize,
    },
    /// The catalog cannot be read.
    #[error("{directory}: {source}")]
    Catalog {
        /// The archive.
        directory: PathBuf,
        /// Cause.
        source: CatalogError,
    },
    /// The catalog describes an impossible recording.
    #[error("{directory}: {source}")]
    Stream {
        /// The archive.
        directory: PathBuf,
        /// Cause.
        source: StreamError,
    },
    /// A segment cannot be read.
    #[error("{directory}: {source}")]
    Read {
        /// The archive.
        directory: PathBuf,
        /// Cause.
        source: ReadError,
    },
    /// The private archive is in use, or damaged.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// A file-system operation failed.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// A recording, and the position up to which it can be read.
#[derive(Debug, Clone)]
struct SelectedRecording {
    descriptor: RecordingDescriptor,
    stream: RecordedStream,
    end: i64,
}

/// Returns the partitions of the `wanted` recordings in the archive of `directory`, ordered by recording id and
/// position.
///
/// # Errors
/// The archive or a recording cannot be read, a requested recording does not exist, or there would be too many
/// partitions. Each [`RecordingsError`] names the cause, and most of them a remedy.
pub fn plan(
    directory: &Path,
    wanted: &RecordingSelection,
    cutting: &RecordingCutting,
) -> Result<Vec<Partition>, RecordingsError> {
    let directory = find_archive(directory)?;
    let lock = check_unused(&directory, now_ms())?;
    let storage = CopiedDirectory::new(&directory);
    let catalog = open_catalog(&storage)?;
    let recorded = selected(&catalog, wanted, &directory)?
        .into_iter()
        .map(|descriptor| recorded(&storage, whole(&storage, descriptor)?, lock.is_some()))
        .collect::<Result<Vec<_>, _>>()?;
    let location = location(&directory, lock.map(|lock| lock.nonce.to_string()))?;
    let pieces = cutting::cut(&storage, &recorded, cutting)?;
    Ok(pieces
        .into_iter()
        .map(|piece| partition(&location, &recorded[piece.recording], piece.from, piece.to))
        .collect())
}

fn open_catalog(storage: &CopiedDirectory) -> Result<Catalog<CopiedDirectory>, RecordingsError> {
    Catalog::open_read_only(storage).map_err(|source| RecordingsError::Catalog {
        directory: storage.path().to_owned(),
        source,
    })
}

fn selected(
    catalog: &Catalog<CopiedDirectory>,
    wanted: &RecordingSelection,
    directory: &Path,
) -> Result<Vec<RecordingDescriptor>, RecordingsError> {
    if let Some(ranges) = &wanted.recording_ids {
        let exists = |id: i64| {
            catalog
                .entry(id)
                .is_some_and(|entry| entry.state != RecordingState::Deleted)
        };
        // Only the first id of a range must exist, so that a range may end after the last recording.
        if let Some(&(recording_id, _)) = ranges.iter().find(|&&(first, _)| !exists(first)) {
            return Err(RecordingsError::UnknownRecording {
                recording_id,
                directory: directory.to_owned(),
                existing: existing(catalog),
            });
        }
    }
    let by_id = |id: i64| {
        let ranges = wanted.recording_ids.as_ref();
        ranges.is_none_or(|ranges| {
            ranges
                .iter()
                .any(|&(first, last)| (first..=last).contains(&id))
        })
    };
    let by_stream = |id: i32| {
        wanted
            .stream_ids
            .as_ref()
            .is_none_or(|ids| ids.contains(&id))
    };
    let entries = catalog.entries().iter().filter(|entry| {
        entry.state != RecordingState::Deleted
            && by_id(entry.descriptor.recording_id)
            && by_stream(entry.descriptor.stream_id)
    });
    entries
        .map(|entry| match entry.state {
            RecordingState::Invalid => Err(RecordingsError::InvalidRecording {
                recording_id: entry.descriptor.recording_id,
                directory: directory.to_owned(),
            }),
            _ => Ok(entry.descriptor.clone()),
        })
        .collect()
}

/// Returns the ids of all recordings, in the form `0-3, 7`.
fn existing(catalog: &Catalog<CopiedDirectory>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for entry in catalog.entries() {
        let id = entry.descriptor.recording_id;
        match ranges.last_mut() {
            _ if entry.state == RecordingState::Deleted => {}
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    if ranges.is_empty() {
        return "none".to_owned();
    }
    let mut text = String::new();
    for (first, last) in ranges {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = if first == last {
            write!(text, "{separator}{first}")
        } else {
            write!(text, "{separator}{first}-{last}")
        };
    }
    text
}

/// Returns the recording with the start position of its copies in object storage, if it has such copies.
fn whole(
    storage: &CopiedDirectory,
    descriptor: RecordingDescriptor,
) -> Result<RecordingDescriptor, RecordingsError> {
    let whole = storage.whole(descriptor);
    whole.map_err(|source| RecordingsError::Io {
        path: storage.path().to_owned(),
        source,
    })
}

fn recorded(
    storage: &CopiedDirectory,
    descriptor: RecordingDescriptor,
    is_private: bool,
) -> Result<SelectedRecording, RecordingsError> {
    let end = end_of_recording(storage, &descriptor)?;
    recorded_up_to(storage, descriptor, end, is_private)
}

fn recorded_up_to(
    storage: &CopiedDirectory,
    descriptor: RecordingDescriptor,
    end: i64,
    is_private: bool,
) -> Result<SelectedRecording, RecordingsError> {
    let stream =
        RecordedStream::new(&(&descriptor).into()).map_err(|source| RecordingsError::Stream {
            directory: storage.path().to_owned(),
            source,
        })?;
    Ok(SelectedRecording {
        end,
        // An archive with checksums stores them in the session-id field of the frames.
        stream: if is_private {
            stream
        } else {
            stream.any_session()
        },
        descriptor,
    })
}

fn location(directory: &Path, nonce: Option<String>) -> Result<ArchiveLocation, RecordingsError> {
    let boot_id = machine::boot_id().map_err(|source| RecordingsError::Io {
        path: "the boot id of this machine".into(),
        source,
    })?;
    Ok(ArchiveLocation {
        path: directory.to_string_lossy().into_owned(),
        nonce,
        boot_id,
        host: machine::host_name(),
    })
}

fn partition(
    location: &ArchiveLocation,
    recorded: &SelectedRecording,
    from: i64,
    to: i64,
) -> Partition {
    let descriptor = &recorded.descriptor;
    Partition {
        archive: location.clone(),
        recording: RecordingPiece {
            id: descriptor.recording_id,
            stream_id: descriptor.stream_id,
            session_id: descriptor.session_id,
            initial_term_id: descriptor.initial_term_id,
            term_length: descriptor.term_length,
            segment_length: descriptor.segment_length,
            start_position: descriptor.start_position,
            channel: Some(descriptor.original_channel.to_string()),
        },
        from,
        to,
        end: recorded.end,
        index_hint: None,
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as i64
}
