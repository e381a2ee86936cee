//! [`plan_shared`]: plans a batch read of an archive's recordings.

use std::path::PathBuf;
use std::sync::Arc;

use aeron_archive::catalog::RecordingDescriptor;

use super::connection::{ArchiveAccess, ArchiveConnections};
use super::files::archive_directory;
use super::filter::RowFilter;
use super::links::gap_lines;
use super::messages::{ArchiveView, RecordedMessages};
use super::positions::{RangeEnd, ReadPositions};
use super::range::SharedRange;
use super::recordings::{SharedSelection, find};
use crate::error::{LiveCode, LiveError};
use crate::planning::{self, MAX_PARTITIONS, Range, RangeCutting, RowKind};

/// A batch read: the selection of recordings, the range to read from each recording, and how to cut the ranges.
pub struct SharedBatch {
    /// Connection settings of the archive.
    pub access: Arc<ArchiveAccess>,
    /// The connections of this process.
    pub connections: ArchiveConnections,
    /// Selection of the recordings to read.
    pub selection: SharedSelection,
    /// Positions at which reading starts.
    pub starting: ReadPositions,
    /// Positions at which reading ends.
    pub ending: ReadPositions,
    /// Minimum number of partitions; `None` for one partition per segment.
    pub min_partitions: Option<usize>,
    /// Maximum number of rows of a partition.
    pub max_rows: Option<u64>,
    /// Unit of a row.
    pub rows: RowKind,
    /// Directory of the archive, if it may be on this machine.
    pub directory: Option<PathBuf>,
    /// Whether rows have their arrival time.
    pub needs_timestamp: bool,
    /// Rows that are wanted. Others may be read too.
    pub filter: RowFilter,
}

/// The plan of a batch read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPlan {
    /// Partitions, ordered by recording id and position, as texts for workers.
    pub partitions: Vec<String>,
    /// Lines for the log, one for each range that was not recorded between two of the recordings.
    pub lines: Vec<String>,
}

/// Plans a batch read.
///
/// # Errors
/// The archive cannot be reached or read, an option names positions that do not exist, or there would be too many
/// partitions.
pub fn plan_shared(batch: &SharedBatch) -> Result<SharedPlan, LiveError> {
    let (access, selection) = (&batch.access, &batch.selection);
    let (archive_id, recordings) = batch.connections.with(access, |connection| {
        Ok((
            connection.archive_id(),
            selection.list(access, &connection)?,
        ))
    })?;
    selection.check_exists(&recordings)?;
    let directory = batch.directory.as_deref();
    let archive = ArchiveView {
        access: Arc::clone(access),
        connections: batch.connections.clone(),
        archive_id,
        directory: directory.and_then(|path| archive_directory(path, archive_id).ok()),
        needs_timestamp: batch.needs_timestamp,
    };
    let starts = batch
        .starting
        .resolve(RangeEnd::Start, &archive, &recordings)?;
    let ends = batch.ending.resolve(RangeEnd::End, &archive, &recordings)?;
    let mut ranges = Vec::new();
    for end in &ends {
        let start = starts
            .iter()
            .find(|start| start.recording_id == end.recording_id);
        let (Some(start), Some(recording)) = (start, find(&recordings, end.recording_id)) else {
            continue;
        };
        if start.position < end.position && batch.filter.selects(recording) {
            let range = SharedRange {
                recording,
                from: start.position,
                to: end.position,
            };
            ranges.extend(batch.filter.parts(&archive, range)?);
        }
    }
    let descriptors = ranges.iter().map(|range| &range.recording.descriptor);
    let mut read: Vec<&RecordingDescriptor> = descriptors.collect();
    read.dedup_by_key(|recording| recording.recording_id);
    let is_read = |id: i64| read.iter().any(|recording| recording.recording_id == id);
    let lines = gap_lines(&batch.connections, access, &read, is_read)?;
    let pieces = match batch.max_rows {
        Some(_) => by_rows(&archive, &ranges, batch.cutting())?,
        None => ranges_of_terms(&ranges, batch.min_partitions)?,
    };
    Ok(SharedPlan {
        partitions: pieces.iter().map(|piece| piece.text(archive_id)).collect(),
        lines,
    })
}

impl SharedBatch {
    fn cutting(&self) -> RangeCutting {
        RangeCutting {
            min_partitions: self.min_partitions.unwrap_or(1),
            max_rows: self.max_rows,
            rows: self.rows,
        }
    }
}

/// Cuts ranges by rows. Reads the messages if the recording has no index on this machine.
pub(super) fn by_rows<'a>(
    archive: &ArchiveView,
    ranges: &[SharedRange<'a>],
    cutting: RangeCutting,
) -> Result<Vec<SharedRange<'a>>, LiveError> {
    let counted: Vec<_> = ranges
        .iter()
        .map(|range| Range {
            messages: RecordedMessages {
                archive,
                recording: range.recording,
                may_estimate: false,
            },
            from: range.from,
            to: range.to,
        })
        .collect();
    let pieces = planning::cut(&counted, cutting).map_err(|error| match error {
        planning::CutError::Messages(error) => error,
        error @ planning::CutError::TooMany { .. } => {
            LiveError::new(LiveCode::Option, error.to_string())
        }
    })?;
    let piece = |piece: &planning::RangePiece| SharedRange {
        recording: ranges[piece.range].recording,
        from: piece.from,
        to: piece.to,
    };
    Ok(pieces.iter().map(piece).collect())
}

/// Cuts ranges at segments. If a range has fewer segments than its share of `min_partitions`, cuts the range at terms.
/// Reads nothing, because each term begins with a message.
///
/// # Errors
/// `min_partitions` is `None`, and the ranges have more segments than [`MAX_PARTITIONS`].
pub(super) fn ranges_of_terms<'a>(
    ranges: &[SharedRange<'a>],
    min_partitions: Option<usize>,
) -> Result<Vec<SharedRange<'a>>, LiveError> {
    let length = |range: &SharedRange<'_>| i128::from(range.to - range.from);
    let total: i128 = ranges.iter().map(length).sum();
    let segments: i64 = ranges.iter().map(SharedRange::segment_count).sum();
    let Some(count) = min_partitions else {
        if segments > MAX_PARTITIONS as i64 {
            let text = format!(
                "the ranges have {segments} segments, more than {MAX_PARTITIONS} partitions: set minPartitions, or read fewer recordings"
            );
            return Err(LiveError::new(LiveCode::Option, text));
        }
        return Ok(ranges.iter().flat_map(SharedRange::by_segments).collect());
    };
    let mut pieces = Vec::new();
    for range in ranges {
        let share = (count as i128 * length(range) + total - 1) / total.max(1);
        let near = |number: i128| {
            let position = range.from + (length(range) * number / share) as i64;
            match i128::from(range.segment_count()) >= share {
                true => range.segment_base(position),
                false => range.recording.term_begin(position),
            }
        };
        pieces.extend(range.cut_at((1..share).map(near)));
    }
    Ok(pieces)
}
