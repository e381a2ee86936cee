//! Positions of recordings by time, and the times of a segment.

use std::io;

use aeron_archive::client::{ArchiveCall, ArchiveClientError};
use aeron_archive::index::{ENTRY_LENGTH, IndexEntry, IndexFile};
use aeron_archive::storage::{Access, Storage};
use aeron_objects::reading::CopiedDirectory;
use aeron_protocol::archive::TimeEdge;

use super::messages::{ArchiveView, RecordedMessages};
use super::recordings::SharedRecording;
use crate::error::{LiveCode, LiveError};

/// Number of entries per read.
const ENTRIES_PER_READ: usize = 256;

/// Asks the archive for the position of a recording at which a range of time begins or ends. `time_us` is in
/// microseconds since the epoch.
///
/// # Errors
/// The archive cannot be reached, or does not support this request.
pub(super) fn position_at(
    archive: &ArchiveView,
    recording: &SharedRecording,
    edge: TimeEdge,
    time_us: i64,
) -> Result<i64, LiveError> {
    let (access, id) = (&archive.access, recording.id());
    let found = archive.connections.with(access, |connection| {
        let found = connection.call(ArchiveCall::find_position(id, edge, time_us));
        found.map_err(|error| {
            let cause = access.error(&error);
            match error {
                ArchiveClientError::NotSupported { .. } => LiveError::new(
                    LiveCode::Option,
                    format!("{cause}; use positions instead of a time"),
                ),
                _ => cause,
            }
        })
    })?;
    if found.position <= recording.end {
        return Ok(found.position.max(recording.start()));
    }
    // The position is beyond the listed end, because messages were recorded after the recordings were listed.
    let messages = RecordedMessages {
        archive,
        recording,
        may_estimate: false,
    };
    messages.head(recording.start(), recording.end)
}

/// The arrival times in the index of a segment, in microseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentTimes {
    pub earliest: i64,
    pub latest: i64,
    /// Position after the last entry. Messages after this position may have any later time, because the recorder writes
    /// an entry after its messages.
    pub indexed_end: i64,
}

impl SegmentTimes {
    /// Returns `times` extended by the next entry of the index.
    pub(super) fn with(times: Option<Self>, entry: &IndexEntry) -> Option<Self> {
        let Some(time) = entry.arrival_us else {
            let indexed_end = entry.end_position;
            return times.map(|times| Self {
                indexed_end,
                ..times
            });
        };
        let (earliest, latest) = times.map_or((time, time), |times| (times.earliest, times.latest));
        Some(Self {
            earliest: earliest.min(time),
            latest: latest.max(time),
            indexed_end: entry.end_position,
        })
    }
}

/// Returns the arrival times in the segment with `position`. Returns `None` if the segment has no index, or no times.
///
/// # Errors
/// The index cannot be read.
pub(super) fn arrival_times(
    directory: &CopiedDirectory,
    recording: &SharedRecording,
    position: i64,
) -> Result<Option<SegmentTimes>, LiveError> {
    let base = recording.stream.segment_base(position);
    in_segment(directory, recording.id(), base).map_err(|error| {
        let text = format!("index of recording {}: {error}", recording.id());
        LiveError::new(LiveCode::Archive, text)
    })
}

fn in_segment(
    directory: &impl Storage,
    recording_id: i64,
    base: i64,
) -> io::Result<Option<SegmentTimes>> {
    let Some(file) = IndexFile::open(directory, recording_id, base, Access::Read)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; ENTRIES_PER_READ * ENTRY_LENGTH];
    let (mut number, mut times) = (0, None);
    loop {
        let count = file.read(number, &mut bytes)?;
        if count == 0 {
            return Ok(times);
        }
        let entries = bytes[..count * ENTRY_LENGTH].chunks_exact(ENTRY_LENGTH);
        let entries = entries.filter_map(|entry| IndexEntry::decode(entry.first_chunk()?));
        times = entries.fold(times, |times, entry| SegmentTimes::with(times, &entry));
        number += count as u64;
    }
}
