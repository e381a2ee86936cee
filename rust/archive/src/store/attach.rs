//! Attaches detached segment files to their recording.

use std::io;

use super::open::recorded_stream;
use super::removal::header_fault;
use super::{ArchiveStore, StoreError};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;
use aeron_layout::frame::DataHeaderLayout;
use aeron_memory::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH};

/// Number of bytes that one read returns in the search for the first frame of a file.
const CHUNK_LENGTH: usize = 64 * 1024;

impl<S: Storage + Clone> ArchiveStore<S> {
    /// Attaches the segment files before the start position, up to the first missing file, and sets
    /// the new start position. Returns the number of attached segments.
    ///
    /// If a file begins with zeros, its first frame is the start of the recording, and no file at a lower position is
    /// attached.
    ///
    /// # Errors
    /// The recording does not exist, or files of it are being deleted. A file has another length, belongs to another
    /// stream, or has no frame in its first term. The file system returns an error. In all these cases, nothing has
    /// changed.
    pub fn attach_segments(&mut self, recording_id: i64) -> Result<usize, StoreError> {
        let descriptor = self.recording(recording_id)?;
        self.check_not_deleting(recording_id)?;
        let stream = recorded_stream(descriptor)?;
        let mut start = descriptor.start_position;
        let mut base = descriptor.first_segment_base();
        let mut count = 0;
        // If the start position is within a segment, the recording began there, and has no file at a lower position.
        while start == base && base >= stream.segment_length() {
            base -= stream.segment_length();
            let Some(first_frame) = self.first_frame_of(&stream, base)? else {
                break;
            };
            start = first_frame;
            count += 1;
        }
        if count > 0 {
            debug_assert!(
                start < descriptor.start_position,
                "recording {recording_id}: the start {start} after attaching must be before {}",
                descriptor.start_position
            );
            self.catalog.set_start_position(recording_id, start)?;
        }
        Ok(count)
    }

    /// Returns the position of the first frame of a segment file. Returns `None` if the file does
    /// not exist.
    fn first_frame_of(
        &self,
        stream: &RecordedStream,
        base: i64,
    ) -> Result<Option<i64>, StoreError> {
        let name = stream.segment_name(base);
        let reading = |source| StoreError::storage(&name, "read it", source);
        let file = match self.storage.open(&name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(reading)?,
        };
        let file_length = file.length().map_err(reading)?;
        if file_length != stream.segment_length() as u64 {
            return Err(StoreError::SegmentFileLength {
                name,
                file_length,
                segment_length: stream.segment_length(),
            });
        }
        let term_length = stream.positions().term_length();
        let mut chunk = vec![0; CHUNK_LENGTH.min(term_length)];
        for begin in (0..term_length).step_by(chunk.len()) {
            file.read_exact_at(&mut chunk, begin as u64)
                .map_err(reading)?;
            let (headers, _) = chunk.as_chunks::<HEADER_LENGTH>();
            let Some(index) = headers.iter().position(has_length) else {
                continue;
            };
            let position = base + (begin + index * FRAME_ALIGNMENT) as i64;
            return match header_fault(stream, position, &headers[index]) {
                None => Ok(Some(position)),
                Some(fault) => Err(StoreError::ForeignSegmentFile {
                    name,
                    position,
                    fault,
                }),
            };
        }
        Err(StoreError::EmptySegmentFile { name })
    }
}

fn has_length(header: &[u8; HEADER_LENGTH]) -> bool {
    DataHeaderLayout::of(header).header.frame_length.get() != 0
}
