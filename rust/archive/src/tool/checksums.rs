//! Writes new checksums into the frames and catalog entries of recordings, for the checksum command of `ArchiveTool`.

use std::ops::ControlFlow;

use super::{ArchiveFiles, ToolError};
use crate::catalog::RecordingState;
use crate::checksum::Checksum;
use crate::frame::FrameFault;
use crate::index::note_checksum;
use crate::reader::{ReadError, RecordingReader};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;

/// A block is written when it has at least this number of bytes.
const BLOCK_LENGTH: usize = 1024 * 1024;

/// Number of frames of a segment that are read to find its checksum.
const FRAMES_TO_KNOW: usize = 16;

/// Numbers of segment files and frames of a recording that got a new checksum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChecksumReport {
    /// Number of segment files.
    pub segments: usize,
    /// Number of data frames in these files.
    pub frames: u64,
}

/// Consecutive frames of a segment file that were not written yet.
struct Block<'a, F> {
    file: &'a F,
    checksum: Checksum,
    offset: u64,
    bytes: Vec<u8>,
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Writes the checksum of each data frame of a recording, in the last segment file or in all segment files. Then
    /// writes the checksum of the recording's catalog entry.
    ///
    /// For a deleted recording, only the checksum of the entry is written. A recording without a
    /// stop position ends after its last whole frame. `on_progress` is called after each segment
    /// file with the length of the file in bytes, and may stop the work.
    ///
    /// # Errors
    /// The recording is unknown, its frames cannot be read, or the file system returns an error.
    /// Then some of the checksums may already be written.
    pub fn write_checksums(
        &mut self,
        recording_id: i64,
        checksum: Checksum,
        all_segments: bool,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ChecksumReport, ToolError> {
        let report = self.stamp_segments(recording_id, checksum, all_segments, on_progress)?;
        self.catalog.set_checksum(Some(checksum));
        self.catalog.update_checksum(recording_id)?;
        Ok(report)
    }

    /// Returns the checksum of the frames in the last segments of a recording, or `None` in the inner option if they
    /// have session ids. Returns `None` if no data frame can be read.
    ///
    /// # Errors
    /// The recording is unknown, or its values are not valid.
    pub fn frame_checksum(&self, recording_id: i64) -> Result<Option<Option<Checksum>>, ToolError> {
        let descriptor = &self.entry(recording_id)?.descriptor;
        let stream = RecordedStream::of_recording(descriptor)?;
        let mut found = None;
        // The last segment may have no frames yet.
        for &base in self.segments(descriptor).iter().rev().take(2) {
            let from = base.max(stream.start_position());
            let mut to = base.saturating_add(stream.segment_length());
            if !descriptor.is_unfinished() {
                to = to.min(descriptor.stop_position);
            }
            let Ok(reader) = RecordingReader::new(self.storage.clone(), stream, from, to) else {
                continue;
            };
            let mut reader = reader.verifying();
            for _ in 0..FRAMES_TO_KNOW {
                match reader.next_frame() {
                    Ok(Some(frame)) if frame.is_padding() => {}
                    Ok(Some(_)) => found = Some(None),
                    Err(ReadError::Frame {
                        fault: FrameFault::Checksum { checksum, .. },
                        ..
                    }) => return Ok(Some(Some(checksum))),
                    Ok(None) | Err(_) => break,
                }
                if let Some(checksum) = reader.checksum() {
                    return Ok(Some(Some(checksum)));
                }
            }
        }
        Ok(found)
    }

    fn stamp_segments(
        &self,
        recording_id: i64,
        checksum: Checksum,
        all_segments: bool,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ChecksumReport, ToolError> {
        let mut report = ChecksumReport::default();
        let entry = self.entry(recording_id)?;
        if entry.state == RecordingState::Deleted {
            return Ok(report);
        }
        let descriptor = &entry.descriptor;
        let stream = RecordedStream::of_recording(descriptor)?;
        let end = self.end_of(descriptor, &stream)?;
        let segments = self.segments(descriptor);
        let skipped = match all_segments {
            true => 0,
            false => segments.len().saturating_sub(1),
        };
        for &base in &segments[skipped..] {
            report.frames += self.stamp_segment(&stream, base, end, checksum)?;
            report.segments += 1;
            if on_progress(stream.segment_length() as u64).is_break() {
                return Err(ToolError::Interrupted);
            }
        }
        Ok(report)
    }

    fn stamp_segment(
        &self,
        stream: &RecordedStream,
        base: i64,
        end: i64,
        checksum: Checksum,
    ) -> Result<u64, ToolError> {
        let name = stream.segment_name(base);
        let from = base.max(stream.start_position());
        let to = end.min(base.saturating_add(stream.segment_length()));
        if from >= to {
            return Ok(0);
        }
        let file = self
            .storage
            .open(&name, Access::Write)
            .map_err(|source| ToolError::storage(name.clone(), source))?;
        let mut block = Block {
            file: &file,
            checksum,
            offset: 0,
            bytes: Vec::new(),
        };
        let mut frames = 0;
        let mut reader = RecordingReader::new(self.storage.clone(), *stream, from, to)?;
        let flushed = |block: &mut Block<'_, S::File>| {
            block
                .write()
                .map_err(|source| ToolError::storage(name.clone(), source))
        };
        while let Some(frame) = reader.next_frame()? {
            if frame.is_padding() || block.bytes.len() >= BLOCK_LENGTH {
                flushed(&mut block)?;
            }
            if frame.is_padding() {
                continue;
            }
            if block.bytes.is_empty() {
                block.offset = (frame.position() - base) as u64;
            }
            block.bytes.extend(frame.bytes());
            frames += 1;
        }
        flushed(&mut block)?;
        if frames > 0 {
            note_checksum(&self.storage, stream.recording_id(), base, checksum)
                .map_err(|source| ToolError::storage(name, source))?;
        }
        Ok(frames)
    }
}

impl<F: StorageFile> Block<'_, F> {
    /// Writes the frames with their checksums, and empties the block.
    fn write(&mut self) -> std::io::Result<()> {
        self.checksum.stamp(&mut self.bytes);
        self.file.write_all_at(&self.bytes, self.offset)?;
        self.bytes.clear();
        Ok(())
    }
}
