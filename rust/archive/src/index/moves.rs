//! Removes, shortens, moves and changes index files together with their segments.

use std::collections::HashSet;
use std::io;

use super::{INDEX_EXTENSION, IndexFile, IndexForm, IndexRecorder, NEW_INDEX_EXTENSION};
use crate::catalog::RecordingDescriptor;
use crate::checksum::Checksum;
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, old_index_name, sidecar_name};
use crate::storage::{Access, Storage};
use crate::verifier::SessionField;

/// Removes the index of a segment, if the file exists.
pub(crate) fn remove_index<S: Storage>(
    storage: &S,
    recording_id: i64,
    base: i64,
) -> io::Result<()> {
    [INDEX_EXTENSION, NEW_INDEX_EXTENSION]
        .into_iter()
        .flat_map(|extension| {
            [sidecar_name, old_index_name].map(|name| name(recording_id, base, extension))
        })
        .try_for_each(|name| remove(storage, &name))
}

/// Gives indexes with the names of older releases their new names, at most `limit` of them. Returns whether all of the
/// chosen indexes have their new names. An index whose name cannot be changed is used under its old name.
pub(crate) fn rename_old<S: Storage>(
    storage: &S,
    files: &[SegmentFileName<'_>],
    is_chosen: impl Fn(i64) -> bool,
    limit: usize,
) -> bool {
    let mut old = files
        .iter()
        .filter(|file| file.is_old_index && file.extension == INDEX_EXTENSION)
        .filter(|file| is_chosen(file.recording_id));
    let mut is_renamed = true;
    for file in old.by_ref().take(limit) {
        is_renamed &= rename_one(storage, file).is_ok();
    }
    is_renamed && old.next().is_none()
}

/// If the segment also has an index with the new name, the one that covers more of the segment stays.
fn rename_one<S: Storage>(storage: &S, file: &SegmentFileName<'_>) -> io::Result<()> {
    let (id, base) = (file.recording_id, file.base);
    let new_name = sidecar_name(id, base, INDEX_EXTENSION);
    let used = IndexFile::open(storage, id, base, Access::Read)?;
    let renamed = match used.is_some_and(|index| index.name() == new_name) {
        true => storage.remove(&file.name()),
        false => storage.rename(&file.name(), &new_name),
    };
    match renamed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes index files without a segment. Such files are left when an archive of other software
/// deletes or renames segments.
///
/// `files` are the files of the directory that belong to segments. Index files for which `is_kept`
/// is true stay.
pub(crate) fn remove_lonely<S: Storage>(
    storage: &S,
    files: &[SegmentFileName<'_>],
    is_kept: impl Fn(&SegmentFileName<'_>) -> bool,
) -> io::Result<()> {
    let is_index = |file: &&SegmentFileName<'_>| {
        [INDEX_EXTENSION, NEW_INDEX_EXTENSION].contains(&file.extension)
    };
    if !files.iter().any(|file| is_index(&file)) {
        return Ok(());
    }
    let segments: HashSet<(i64, i64)> = files
        .iter()
        .filter(|file| file.extension.starts_with(SEGMENT_EXTENSION))
        .map(|file| (file.recording_id, file.base))
        .collect();
    files
        .iter()
        .filter(is_index)
        .filter(|file| !is_kept(file))
        .filter(|file| {
            // The new index file of a killed repair is removed even if its segment exists.
            file.extension == NEW_INDEX_EXTENSION
                || !segments.contains(&(file.recording_id, file.base))
        })
        .try_for_each(|file| {
            match remove(storage, &file.name()) {
                // A directory with such a name is not an index, and the archive can start with it.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(()),
                removed => removed,
            }
        })
}

/// Removes the entries after `position`, the new end of the recording.
pub(crate) fn cut_index<S: Storage>(
    storage: &S,
    recording_id: i64,
    base: i64,
    position: i64,
) -> io::Result<()> {
    let Some(file) = IndexFile::open(storage, recording_id, base, Access::Write)? else {
        return Ok(());
    };
    let count = file
        .last_entry(position)?
        .map_or(0, |(number, _)| number + 1);
    match count < file.entry_count() {
        true => file.keep(count),
        false => Ok(()),
    }
}

/// Moves the index of a segment from the recording `from` to the recording `to`, if the index exists. A dense index is
/// removed instead. If a kill interrupts the move, a second call completes it.
pub(crate) fn hand_over<S: Storage>(
    storage: &S,
    from: &RecordingDescriptor,
    to: &RecordingDescriptor,
    base: i64,
) -> io::Result<()> {
    let Some(file) = IndexFile::open(storage, from.recording_id, base, Access::Write)? else {
        return Ok(());
    };
    if file.header().form != IndexForm::Sparse {
        return remove_index(storage, from.recording_id, base);
    }
    let recorder = file.recorder();
    if let Some(recorder) = recorder.filter(|it| it.is_last_of(from, from.stop_position)) {
        file.set_recorder(&IndexRecorder {
            session_id: to.session_id,
            control_session_id: to.control_session_id,
            correlation_id: to.correlation_id,
            ..*recorder
        })?;
    }
    let name = sidecar_name(to.recording_id, base, INDEX_EXTENSION);
    storage.rename(file.name(), &name)?;
    // Another index of the segment covers less.
    remove_index(storage, from.recording_id, base)
}

/// Notes in the index of a segment, if it exists, that all frames of the segment have this checksum.
pub(crate) fn note_checksum<S: Storage>(
    storage: &S,
    recording_id: i64,
    base: i64,
    checksum: Checksum,
) -> io::Result<()> {
    let Some(file) = IndexFile::open(storage, recording_id, base, Access::Write)? else {
        return Ok(());
    };
    match file.recorder() {
        Some(recorder) => file.set_recorder(&IndexRecorder {
            session_field: SessionField::Checksum(checksum),
            ..*recorder
        }),
        None => Ok(()),
    }
}

fn remove<S: Storage>(storage: &S, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
