//! [`written_end`]: the position up to which an active recording is certainly written, according to
//! its sparse index.

use std::io;

use super::IndexFile;
use super::repair::index_bases;
use crate::catalog::RecordingDescriptor;
use crate::storage::{Access, Storage};
use crate::stream::RecordedStream;

/// Returns the end of the last block with an entry in the sparse index of an active recording. The
/// entry was written after the block. So all frames up to the end of the block are whole, even for
/// a reader in another process.
///
/// Returns `None` if there is no index, or if the catalog names another recorder. In the second
/// case, an archive without indexes has continued the recording. That archive may also have
/// truncated the recording before it continued.
///
/// # Errors
/// The file system returns an error.
pub fn written_end<S: Storage>(
    storage: &S,
    descriptor: &RecordingDescriptor,
    stream: &RecordedStream,
) -> io::Result<Option<i64>> {
    let Some(base) = index_bases(storage, stream)?.pop() else {
        return Ok(None);
    };
    let Some(file) = IndexFile::open(storage, stream.recording_id(), base, Access::Read)? else {
        return Ok(None);
    };
    let recorder = file
        .recorder()
        .filter(|recorder| recorder.is_of(descriptor));
    let Some(recorder) = recorder else {
        return Ok(None);
    };
    let last = file.last_entry(base + stream.segment_length())?;
    Ok(Some(last.map_or(recorder.begin_position, |(_, entry)| {
        entry.end_position
    })))
}
