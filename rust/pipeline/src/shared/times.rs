//! Finds the position in a recording that belongs to a time, with the index beside its segments.

use std::io;

use aeron_archive::index::{ENTRY_LENGTH, IndexEntry, IndexFile};
use aeron_archive::storage::{Access, Directory};

use super::messages::ArchiveView;
use super::recordings::SharedRecording;
use crate::error::{LiveCode, LiveError};

/// Number of entries per read.
const ENTRIES_PER_READ: usize = 256;

/// Returns the position between the messages that arrived before `time_us` and the later messages. `time_us` is in
/// microseconds since the epoch. If some arrival times are unknown, the position may be too early, but never too late.
///
/// # Errors
/// The archive's directory is not on this machine, the recording has no index, or the index cannot be read.
pub(super) fn position_at(
    archive: &ArchiveView,
    recording: &SharedRecording,
    time_us: i64,
) -> Result<i64, LiveError> {
    let Some(directory) = &archive.directory else {
        let text = "a time as position needs the index in the archive's directory: give archive.dir, and plan on the archive's machine";
        return Err(LiveError::new(LiveCode::Option, text));
    };
    if time_us
        <= recording
            .descriptor
            .start_timestamp_ms
            .saturating_mul(1_000)
    {
        return Ok(recording.start());
    }
    let failed = |error: io::Error| {
        let text = format!("index of recording {}: {error}", recording.id());
        LiveError::new(LiveCode::Archive, text)
    };
    let stream = &recording.stream;
    let first = stream.segment_base(recording.start());
    let mut base = stream.segment_base(recording.end);
    let mut has_index = false;
    while base >= first {
        if let Some(found) = in_segment(directory, recording, base, time_us).map_err(failed)? {
            has_index = true;
            match found {
                Found::NotBefore => {}
                Found::At(position) => return Ok(position.clamp(recording.start(), recording.end)),
                // The next segment was searched before. Its first message is not known to have arrived before the time.
                Found::AllBefore(_) if base < stream.segment_base(recording.end) => {
                    return Ok(base + stream.segment_length());
                }
                Found::AllBefore(head) => return Ok(head),
            }
        }
        base -= stream.segment_length();
    }
    match has_index || recording.start() == recording.end {
        true => Ok(recording.start()),
        false => Err(LiveError::new(
            LiveCode::Option,
            format!(
                "recording {} has no index of arrival times: use positions instead of a time",
                recording.id()
            ),
        )),
    }
}

/// Place of a time relative to the messages of one segment.
enum Found {
    /// No message of the segment is known to have arrived before the time.
    NotBefore,
    /// The time belongs to this position in the segment.
    At(i64),
    /// All messages of the segment with a known time arrived before the time. The last of them ends at this position.
    AllBefore(i64),
}

/// Looks for the time in the index of a segment. Returns `None` if the segment has no index.
fn in_segment(
    directory: &Directory,
    recording: &SharedRecording,
    base: i64,
    time_us: i64,
) -> io::Result<Option<Found>> {
    let Some(file) = IndexFile::open(directory, recording.id(), base, Access::Read)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; ENTRIES_PER_READ * ENTRY_LENGTH];
    let (mut number, mut head) = (0, None);
    loop {
        let count = file.read(number, &mut bytes)?;
        for entry in bytes[..count * ENTRY_LENGTH].chunks_exact(ENTRY_LENGTH) {
            let entry = entry.first_chunk().and_then(IndexEntry::decode);
            let is_before = entry.filter(|entry| entry.arrival_us.is_some_and(|us| us < time_us));
            match (is_before, head) {
                (Some(entry), _) => head = Some(entry.progress.head.unwrap_or(base)),
                (None, Some(head)) => return Ok(Some(Found::At(head.max(base)))),
                (None, None) => return Ok(Some(Found::NotBefore)),
            }
        }
        number += count as u64;
        if count == 0 {
            let found = head.map_or(Found::NotBefore, Found::AllBefore);
            return Ok(Some(found));
        }
    }
}
