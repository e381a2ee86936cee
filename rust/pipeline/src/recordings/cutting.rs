//! Cuts the recordings of a batch read into partitions.

use std::num::NonZeroUsize;
use std::ops::Range;

use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_objects::reading::CopiedDirectory;

use super::{RecordingsError, SelectedRecording};

/// Limit for the number of partitions. A greater number indicates a mistake in the options.
pub(super) const MAX_PARTITIONS: usize = 100_000;

/// Rules by which recordings are cut into partitions. If all fields are `None`, each segment is a partition.
#[derive(Debug, Clone, Copy)]
pub struct RecordingCutting {
    /// Wanted number of partitions. Segments are joined or split to come close to this number. `max_rows` may lead to
    /// more partitions.
    pub min_partitions: Option<usize>,
    /// Maximum number of rows of a partition. A single message may have more rows.
    pub max_rows: Option<u64>,
    /// Length of a record in bytes, if each record is a row; `None` if each message is a row.
    pub record_length: Option<NonZeroUsize>,
}

/// A piece of one of the recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutPiece {
    pub recording: usize,
    pub from: i64,
    pub to: i64,
}

pub(super) fn cut(
    storage: &CopiedDirectory,
    recorded: &[SelectedRecording],
    cutting: &RecordingCutting,
) -> Result<Vec<CutPiece>, RecordingsError> {
    let scan = |source| RecordingsError::Read {
        directory: storage.path().to_owned(),
        source,
    };
    if cutting.min_partitions.is_none() {
        check_segments(storage, recorded)?;
    }
    let lengths = recorded
        .iter()
        .map(|recorded| i128::from(recorded.length()));
    let total: i128 = lengths.sum();
    let mut pieces = Vec::new();
    for (recording, recorded) in recorded.iter().enumerate() {
        let cuts = match cutting.min_partitions {
            None => recorded.segment_bases(),
            Some(count) => recorded
                .cuts(storage, share(count, recorded.length(), total))
                .map_err(scan)?,
        };
        for (from, to) in between(recorded, cuts) {
            let Some(max_rows) = cutting.max_rows else {
                pieces.push(CutPiece {
                    recording,
                    from,
                    to,
                });
                continue;
            };
            let starts = recorded
                .starts(storage, from..to, cutting.record_length, max_rows)
                .map_err(scan)?;
            let ends = starts.iter().skip(1).copied().chain([to]);
            pieces.extend(starts.iter().zip(ends).map(|(&from, to)| CutPiece {
                recording,
                from,
                to,
            }));
            if pieces.len() > MAX_PARTITIONS {
                let limit = MAX_PARTITIONS;
                return Err(RecordingsError::TooManyPartitions { max_rows, limit });
            }
        }
    }
    Ok(pieces)
}

/// Returns an error if the recordings have more segments than [`MAX_PARTITIONS`], for example because the catalog is
/// damaged.
fn check_segments(
    storage: &CopiedDirectory,
    recorded: &[SelectedRecording],
) -> Result<(), RecordingsError> {
    let counts = recorded
        .iter()
        .map(|recorded| i128::from(recorded.segment_count()));
    let count: i128 = counts.sum();
    if count <= MAX_PARTITIONS as i128 {
        return Ok(());
    }
    Err(RecordingsError::TooManySegments {
        directory: storage.path().to_owned(),
        count,
        limit: MAX_PARTITIONS,
    })
}

/// Returns the recording's share of `count` pieces: in proportion to its length, and at least one piece. `total` is the
/// length of all recordings. It is 0 if all recordings are empty.
fn share(count: usize, length: i64, total: i128) -> usize {
    let total = total.max(1);
    let part = (count as i128 * i128::from(length) + total - 1) / total;
    (part as usize).max(1)
}

/// Returns the ranges of a recording between its start, the ascending `cuts`, and its end.
fn between(recorded: &SelectedRecording, cuts: Vec<i64>) -> Vec<(i64, i64)> {
    let (start, end) = (recorded.stream.start_position(), recorded.end);
    let mut bounds = vec![start];
    bounds.extend(cuts.into_iter().filter(|&cut| start < cut && cut < end));
    bounds.push(end);
    bounds.dedup();
    bounds.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

impl SelectedRecording {
    fn length(&self) -> i64 {
        self.end - self.stream.start_position()
    }

    /// Returns the number of segments according to the catalog; the files are not checked yet.
    fn segment_count(&self) -> i64 {
        let first = self.stream.segment_base(self.stream.start_position());
        let length = self.stream.segment_length();
        (self.end - first + length - 1) / length
    }

    /// Returns the base positions of the segments.
    fn segment_bases(&self) -> Vec<i64> {
        let first = self.stream.segment_base(self.stream.start_position());
        let length = self.stream.segment_length();
        let bases = (0..self.segment_count()).map(|number| first + number * length);
        bases.collect()
    }

    /// Returns the positions that cut the recording into `count` pieces of similar length. The positions are segment
    /// bases, or starts of frames if there are too few segments.
    fn cuts(&self, storage: &CopiedDirectory, count: usize) -> Result<Vec<i64>, ReadError> {
        let start = self.stream.start_position();
        let is_by_segment = self.segment_count() >= count as i64;
        let near = |number: usize| {
            let offset = i128::from(self.length()) * number as i128 / count as i128;
            let position = start + offset as i64;
            if is_by_segment {
                Ok(self.stream.segment_base(position))
            } else {
                self.frame_from(storage, position)
            }
        };
        let mut cuts = (1..count).map(near).collect::<Result<Vec<_>, _>>()?;
        cuts.dedup();
        Ok(cuts)
    }

    /// Returns the start of the first frame at or after `position`. A term begins with a frame, so the search is short.
    pub(super) fn frame_from(
        &self,
        storage: &CopiedDirectory,
        position: i64,
    ) -> Result<i64, ReadError> {
        let start = self.stream.start_position();
        let term = self.stream.positions().term_begin(position).max(start);
        let mut reader = RecordingReader::new(storage.clone(), self.stream, term, self.end)?;
        while reader.position() < position && reader.next_frame()?.is_some() {}
        Ok(reader.position())
    }

    /// Returns the start positions of the pieces of a range. A piece has at most `max_rows` rows, or a single message.
    /// The first piece begins at the start of the range.
    fn starts(
        &self,
        storage: &CopiedDirectory,
        range: Range<i64>,
        record_length: Option<NonZeroUsize>,
        max_rows: u64,
    ) -> Result<Vec<i64>, ReadError> {
        let mut reader = RecordingReader::new(storage.clone(), self.stream, range.start, self.end)?;
        let (mut starts, mut taken) = (vec![range.start], 0);
        let mut message = None;
        while let Some(frame) = reader.next_frame()? {
            if frame.is_padding() {
                continue;
            }
            if frame.position() >= range.end && (frame.is_begin() || message.is_none()) {
                break;
            }
            if frame.is_begin() {
                message = Some((frame.position(), 0));
            }
            // A frame before the first start of a message belongs to a message of the previous piece.
            let Some((begin, length)) = &mut message else {
                continue;
            };
            *length += frame.payload().len();
            if frame.is_end() {
                let count = record_length.map_or(1, |record| *length / record) as u64;
                if taken > 0 && taken + count > max_rows {
                    starts.push(*begin);
                    taken = 0;
                }
                taken += count;
                message = None;
            }
        }
        Ok(starts)
    }
}
