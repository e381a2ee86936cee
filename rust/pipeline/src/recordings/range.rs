//! [`plan_range`]: plans the reading of one recording, or of a part of it, as one partition. Another process may still
//! write the recording.

use std::ops::RangeInclusive;
use std::path::Path;
use std::thread;
use std::time::Duration;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_objects::reading::CopiedDirectory;

use super::{
    RecordingSelection, RecordingsError, SelectedRecording, location, now_ms, open_catalog,
    partition, recorded_up_to, selected, whole,
};
use crate::partition::Partition;
use crate::private::{ArchiveOwner, end_of_active, end_of_recording};

/// Maximum number of searches for the end of an active recording.
const ATTEMPTS: usize = 20;
/// Time between two searches. Several searches are needed: an archive that stops a recording first removes the counter,
/// and the catalog gets the stop position later.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Bounds of a range. They need not be positions of frames. A message belongs to the range in which the message begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct PositionRange {
    /// First position; `None` for the start of the recording.
    pub from: Option<i64>,
    /// End position; `None` for the end of the recording. The end of an active recording is its recorded position at
    /// the time of the call.
    pub to: Option<i64>,
}

/// A part of a recording.
#[derive(Debug, Clone)]
pub struct RecordingRange {
    /// Descriptor of the recording in the catalog.
    pub descriptor: RecordingDescriptor,
    /// Partition that a reader reads. It begins at the first frame at or after the start of the range.
    pub partition: Partition,
}

/// Plans the reading of all messages that begin in a `range` of a recording. `directory` is the archive's directory.
/// Changes nothing.
///
/// # Errors
/// [`RecordingsError`]: the archive or the recording cannot be read, the range is not within the recording, or the end
/// of an active recording is not known.
pub fn plan_range(
    directory: &Path,
    recording_id: i64,
    range: PositionRange,
) -> Result<RecordingRange, RecordingsError> {
    let storage = CopiedDirectory::new(directory);
    let (recorded, nonce) = readable(&storage, recording_id, range)?;
    let (start, end) = (recorded.stream.start_position(), recorded.end);
    let to = range.to.unwrap_or(end);
    let from = range.from.unwrap_or(start);
    check(&recorded, &storage, ("from_position", from), start..=end)?;
    check(&recorded, &storage, ("to_position", to), from..=end)?;
    let scan = |source| RecordingsError::Read {
        directory: directory.to_owned(),
        source,
    };
    // Frames are aligned, so no frame begins between `to` and its aligned value. The range gets no further message.
    let to = aligned(to);
    let from = recorded.frame_from(&storage, from).map_err(scan)?;
    let location = location(directory, nonce)?;
    Ok(RecordingRange {
        partition: partition(&location, &recorded, from.min(to), to),
        descriptor: recorded.descriptor,
    })
}

/// Returns the recording with the position up to which it can be read. The second value is the nonce if the archive is
/// private and has no living owner.
fn readable(
    storage: &CopiedDirectory,
    recording_id: i64,
    range: PositionRange,
) -> Result<(SelectedRecording, Option<String>), RecordingsError> {
    let mut attempts = 0;
    loop {
        // The owner is read before the catalog. If the archive ends between the two reads, the catalog has the stop
        // position.
        let owner = ArchiveOwner::of(storage.path(), now_ms())?;
        let descriptor = described(storage, recording_id)?;
        let nonce = match &owner {
            ArchiveOwner::Nobody(lock) => lock.as_ref().map(|lock| lock.nonce.to_string()),
            _ => None,
        };
        attempts += 1;
        let end = match &owner {
            _ if !descriptor.is_unfinished() => Some(descriptor.stop_position),
            ArchiveOwner::Nobody(_) => Some(end_of_recording(storage, &descriptor)?),
            owner => end_of_active(storage, &descriptor, owner)?,
        };
        let known = end.or(range.to.filter(|_| attempts == ATTEMPTS).map(aligned));
        if let Some(end) = known {
            let is_private = nonce.is_some();
            let descriptor = whole(storage, descriptor)?;
            return Ok((recorded_up_to(storage, descriptor, end, is_private)?, nonce));
        }
        if attempts == ATTEMPTS {
            return Err(unknown_end(storage, recording_id, owner));
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

fn described(
    storage: &CopiedDirectory,
    recording_id: i64,
) -> Result<RecordingDescriptor, RecordingsError> {
    let wanted = RecordingSelection {
        recording_ids: Some(vec![(recording_id, recording_id)]),
        stream_ids: None,
    };
    let mut found = selected(&open_catalog(storage)?, &wanted, storage.path())?;
    Ok(found.remove(0))
}

/// Checks that a bound of the range is within `valid`.
fn check(
    recorded: &SelectedRecording,
    storage: &CopiedDirectory,
    (name, position): (&'static str, i64),
    valid: RangeInclusive<i64>,
) -> Result<(), RecordingsError> {
    if valid.contains(&position) {
        return Ok(());
    }
    Err(RecordingsError::Range {
        name,
        position,
        recording_id: recorded.descriptor.recording_id,
        directory: storage.path().to_owned(),
        low: *valid.start(),
        high: *valid.end(),
    })
}

/// Returns the first position at or after `position` at which a frame can begin.
fn aligned(position: i64) -> i64 {
    const MASK: i64 = FRAME_ALIGNMENT as i64 - 1;
    position.saturating_add(MASK) & !MASK
}

#[cold]
fn unknown_end(
    storage: &CopiedDirectory,
    recording_id: i64,
    owner: ArchiveOwner,
) -> RecordingsError {
    RecordingsError::UnknownEnd {
        recording_id,
        directory: storage.path().to_owned(),
        aeron_directory: match owner {
            ArchiveOwner::Server(server) => server.aeron_directory,
            _ => "any directory".to_owned(),
        },
    }
}
