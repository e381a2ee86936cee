//! Removes the last frames of active recordings, as the recovery of an archive may do after a kill.
//!
//! The recovery of Aeron's archive removes a last frame that crosses the end of a page. If the archive forces nothing
//! to the disk, the machine may lose any of the last frames. The recorded position may already have included them.
//! Complete messages stay here: a publisher that has dropped them cannot send them again.

use aeron_archive::catalog::{Catalog, RecordingDescriptor};
use aeron_archive::memory_storage::{MemoryStorage, PAGE_LENGTH};
use aeron_archive::reader::RecordingReader;
use aeron_archive::recovery::find_end;
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};
use aeron_archive::storage::{Access, Storage, StorageFile};
use aeron_archive::stream::RecordedStream;
use fastrand::Rng;

/// A frame after the last complete message of a recording.
#[derive(Clone, Copy, Debug)]
struct LastFrame {
    begin: i64,
    end: i64,
    is_padding: bool,
}

/// Numbers of frames that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutFrames {
    /// Frames of padding.
    pub padding: u64,
    /// Fragments of messages.
    pub fragments: u64,
}

/// Removes frames after the last complete message of each active recording. With `is_synced`, only the last frame is
/// removed, and only if it crosses the end of a page. No process of the archive may run.
///
/// Frames of an earlier session stay: the publisher of the current session did not send them.
pub fn cut_last_frames(disk: &MemoryStorage, is_synced: bool, random: &mut Rng) -> CutFrames {
    let mut cut = CutFrames::default();
    let Ok(catalog) = Catalog::open_read_only(disk) else {
        return cut;
    };
    for recording in catalog.recordings().filter(|it| it.is_unfinished()) {
        let Some(frames) = last_frames(disk, recording) else {
            continue;
        };
        let count = match frames.last() {
            None => continue,
            Some(_) if !is_synced => random.usize(1..=frames.len()),
            Some(last) => {
                usize::from(crosses_page(last) && !has_next_segment(disk, recording, last))
            }
        };
        let removed = &frames[frames.len() - count..];
        if let Some(first) = removed.first() {
            remove_from(disk, recording, first.begin);
        }
        for frame in removed {
            match frame.is_padding {
                true => cut.padding += 1,
                false => cut.fragments += 1,
            }
        }
    }
    cut
}

/// Returns the frames of the current session after the last complete message; `None` if the files cannot be read.
fn last_frames(disk: &MemoryStorage, recording: &RecordingDescriptor) -> Option<Vec<LastFrame>> {
    let stream = RecordedStream::of_recording(recording).ok()?;
    let start = recording.start_position;
    let end = find_end(disk, &stream, start).ok()?.kept_position;
    let mut reader = RecordingReader::new(disk.clone(), stream, start, end).ok()?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().ok()? {
        let is_whole_message = frame.is_end() && !frame.is_padding();
        if is_whole_message || frame.session_id() != recording.session_id {
            frames.clear();
            continue;
        }
        frames.push(LastFrame {
            begin: frame.position(),
            end: frame.end_position(),
            is_padding: frame.is_padding(),
        });
    }
    Some(frames)
}

fn crosses_page(frame: &LastFrame) -> bool {
    let page = PAGE_LENGTH as i64;
    frame.begin / page != (frame.end - 1) / page
}

/// Returns whether the archive has created the segment after a frame. A recovery reads only the last segment.
fn has_next_segment(
    disk: &MemoryStorage,
    recording: &RecordingDescriptor,
    frame: &LastFrame,
) -> bool {
    segments(disk, recording).any(|base| base >= frame.end)
}

/// Removes all bytes of a recording from a position on.
fn remove_from(disk: &MemoryStorage, recording: &RecordingDescriptor, position: i64) {
    let Ok(stream) = RecordedStream::of_recording(recording) else {
        return;
    };
    let base = stream.segment_base(position);
    for later in segments(disk, recording).filter(|it| *it > base) {
        // If the disk fails here, the empty segment stays, and the frames before it stay too.
        let _ = disk.remove(&stream.segment_name(later));
    }
    let zeros = vec![0; (base + stream.segment_length() - position) as usize];
    // If the disk fails here, it has kept some of the frames.
    let _ = disk
        .open(&stream.segment_name(base), Access::Write)
        .and_then(|file| file.write_at(&zeros, (position - base) as u64));
}

fn segments(
    disk: &MemoryStorage,
    recording: &RecordingDescriptor,
) -> impl Iterator<Item = i64> + use<> {
    let id = recording.recording_id;
    let names = disk.names().unwrap_or_default();
    names.into_iter().filter_map(move |name| {
        let file = SegmentFileName::parse(&name)?;
        (file.recording_id == id && file.extension == SEGMENT_EXTENSION).then_some(file.base)
    })
}
