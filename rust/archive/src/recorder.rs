//! [`RecorderSession`]: writes one stream into segment files, block by block.
//!
//! A block is recorded in two steps. *Append* checks its frames and writes them after the recorded position. *Publish*
//! forces them to the disk at the session's [`SyncLevel`] and moves the recorded position to their end. Between the
//! two steps, the owner of the session writes all other data that must be on disk before the recorded position moves.
//! A session [with an index](RecorderSession::with_index) writes the index entry of a block between the two steps.
//!
//! Except between these steps, all bytes after the recorded position are zeros. Otherwise tools
//! would regard a whole frame there as recorded. So a failed or incomplete write is undone.
//!
//! A session [with a checksum](RecorderSession::with_checksum) writes a copy of each block, in which the session ids of
//! data frames are replaced by checksums.

use crate::checksum::Checksum;
use crate::frame::{CheckedFrame, FrameFault};
use crate::index::{BlockFrames, ENTRY_LENGTH, HeadTracker, SegmentIndex};
use crate::pause::{self, Point};
use crate::storage::{Access, Storage, StorageFile, SyncLevel};
use crate::stream::RecordedStream;
use aeron_memory::log::frame::frame_type;
use std::io;
use thiserror::Error;

/// Records one image. The recorded position begins at the start of the recording, or at the position of an extension.
#[derive(Debug)]
pub struct RecorderSession<S: Storage> {
    storage: S,
    stream: RecordedStream,
    sync_level: SyncLevel,
    segment: S::File,
    segment_base: i64,
    recorded_position: i64,
    appended_position: i64,
    checksums: Option<StampedBlock>,
    index: Option<SessionIndex<S>>,
    /// Reason why the session has no index any more, until the owner calls `take_index_error`.
    index_error: Option<RecorderError>,
}

/// The index of a session, and the frames that are appended and not published.
#[derive(Debug)]
struct SessionIndex<S: Storage> {
    index: SegmentIndex<S>,
    appended: BlockFrames,
}

/// A copy of a block, with checksums. All blocks of a session use the same memory.
#[derive(Debug)]
struct StampedBlock {
    checksum: Checksum,
    bytes: Vec<u8>,
}

/// Why a recording ends before its image, or continues without an index. If the recording ends, the
/// bytes up to the recorded position stay, and no further block can be appended.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// The next segment file cannot be created, for example because a file with its name exists.
    #[error("segment file {name} cannot be created: {source}")]
    Create {
        /// Name of the file.
        name: String,
        /// Error of the storage.
        source: io::Error,
    },
    /// The segment file in which a recording should continue cannot be opened.
    #[error("segment file {name} cannot be opened at position {position}: {source}")]
    Open {
        /// Name of the file.
        name: String,
        /// Position at which the recording should continue.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// The file system is full.
    #[error("no space for {needed} bytes in {name} at position {position}, {free} are free")]
    Full {
        /// Name of the file.
        name: String,
        /// Recorded position.
        position: i64,
        /// Number of bytes of the block or index entry.
        needed: usize,
        /// Number of free bytes in the file system.
        free: u64,
    },
    /// A block or an index entry cannot be written.
    #[error("{name} cannot be written at position {position}: {source}")]
    Write {
        /// Name of the file.
        name: String,
        /// Recorded position.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// The appended block or a new segment file cannot be forced to the disk, so a loss of power may remove it. The
    /// recorded position does not include such a block.
    #[error("{name} cannot be synced at position {position}: {source}")]
    Sync {
        /// Name of the file; `.` is the directory.
        name: String,
        /// Recorded position.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// The bytes after the recorded position cannot be removed; recovery will remove them.
    #[error("{name} cannot be cut at position {position}: {source}")]
    Undo {
        /// Name of the file.
        name: String,
        /// Recorded position.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// The stream has an invalid frame.
    #[error("recording {recording_id}, position {position}: {fault}")]
    Frame {
        /// Recording id.
        recording_id: i64,
        /// Position in the stream.
        position: i64,
        /// Fault at this position.
        fault: FrameFault,
    },
    /// A block is longer than the rest of the segment.
    #[error(
        "recording {recording_id}: a block of {length} bytes at position {position} passes the end of its segment"
    )]
    Block {
        /// Recording id.
        recording_id: i64,
        /// Position of the block.
        position: i64,
        /// Length of the block in bytes of the stream.
        length: i64,
    },
}

impl<S: Storage> RecorderSession<S> {
    /// Begins a recording: creates the first segment. At sync levels above [`SyncLevel::None`], all
    /// published bytes survive a loss of power.
    ///
    /// # Errors
    /// [`RecorderError::Create`] if the segment file cannot be created. [`RecorderError::Sync`] if
    /// it cannot be forced to the disk.
    pub fn create(
        storage: S,
        stream: RecordedStream,
        sync_level: SyncLevel,
    ) -> Result<Self, RecorderError> {
        let position = stream.start_position();
        let segment_base = stream.segment_base(position);
        let segment = create_segment(&storage, &stream, segment_base, sync_level)?;
        Ok(Self::at(position, storage, stream, sync_level, segment))
    }

    /// Continues a stopped recording at `position`: opens the segment file that holds `position`
    /// and removes the bytes from `position` on. A missing file is created if no bytes of the
    /// recording before `position` belong in it.
    ///
    /// # Errors
    /// [`RecorderError::Open`] or [`RecorderError::Create`] if the segment file cannot be opened or
    /// created. [`RecorderError::Sync`] if it cannot be forced to the disk.
    pub fn reopen(
        storage: S,
        stream: RecordedStream,
        position: i64,
        sync_level: SyncLevel,
    ) -> Result<Self, RecorderError> {
        let segment_base = stream.segment_base(position);
        let name = stream.segment_name(segment_base);
        let is_empty = position == segment_base.max(stream.start_position());
        let segment = match storage.open(&name, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_empty => {
                create_segment(&storage, &stream, segment_base, sync_level)?
            }
            opened => opened
                .and_then(|segment| {
                    let offset = (position - segment_base) as u64;
                    cut(&segment, offset, stream.segment_length() as u64)?;
                    // Without this sync, the removed bytes could appear again as recorded after a loss of power.
                    segment.sync(sync_level)?;
                    Ok(segment)
                })
                .map_err(|source| RecorderError::Open {
                    name,
                    position,
                    source,
                })?,
        };
        Ok(Self::at(position, storage, stream, sync_level, segment))
    }

    /// Sets the checksum of data frames, which is written into the frame's session id field.
    #[must_use]
    pub fn with_checksum(mut self, checksum: Option<Checksum>) -> Self {
        self.checksums = checksum.map(|checksum| StampedBlock {
            checksum,
            bytes: Vec::new(),
        });
        self
    }

    /// Sets the index that the session writes beside its segments.
    #[must_use]
    pub fn with_index(mut self, index: Option<SegmentIndex<S>>) -> Self {
        self.index = index.map(|index| SessionIndex {
            appended: index.frames(),
            index,
        });
        self
    }

    /// Writes the last index entry at the end of the recording. If the write fails, the next
    /// recorder of the recording computes this entry from the segment.
    ///
    /// # Errors
    /// [`RecorderError::Full`] or [`RecorderError::Write`] if the entry cannot be written.
    pub fn finish_index(&mut self) -> Result<(), RecorderError> {
        let Some(SessionIndex { index, .. }) = &mut self.index else {
            return Ok(());
        };
        let finished = index.finish();
        let name = index.name();
        finished.map_err(|source| self.write_error(name, ENTRY_LENGTH, source))
    }

    /// Notes in the index that there is no new data: see [`SegmentIndex::note_pause`].
    pub fn note_pause(&mut self) {
        if let Some(SessionIndex { index, .. }) = &mut self.index {
            index.note_pause();
        }
    }

    /// Creates a session that continues at `position` of an open segment.
    fn at(
        position: i64,
        storage: S,
        stream: RecordedStream,
        sync_level: SyncLevel,
        segment: S::File,
    ) -> Self {
        debug_assert!(
            position >= stream.start_position(),
            "recording {} cannot continue at {position}, before its start at {}",
            stream.recording_id(),
            stream.start_position()
        );
        Self {
            storage,
            stream,
            sync_level,
            segment,
            segment_base: stream.segment_base(position),
            recorded_position: position,
            appended_position: position,
            checksums: None,
            index: None,
            index_error: None,
        }
    }

    /// Returns the reason why the recording continues without an index. Returns each reason once.
    pub fn take_index_error(&mut self) -> Option<RecorderError> {
        self.index_error.take()
    }

    /// Returns the description of the recorded stream.
    pub fn stream(&self) -> &RecordedStream {
        &self.stream
    }

    /// Returns the recorded position: the end of the published bytes.
    pub fn recorded_position(&self) -> i64 {
        self.recorded_position
    }

    /// Returns the end of the appended bytes: the recorded position after the next [`publish`](Self::publish).
    pub fn appended_position(&self) -> i64 {
        self.appended_position
    }

    /// Returns the tracker of the messages in the published bytes, if the session has an index.
    pub fn tracker(&self) -> Option<&HeadTracker> {
        self.index.as_ref().map(|index| index.index.tracker())
    }

    /// Returns the position of the first byte of the segment that is being written.
    pub fn segment_base(&self) -> i64 {
        self.segment_base
    }

    /// Returns the base of the segment that the next [`publish`](Self::publish) will create.
    /// Returns `None` if it will not create a segment.
    pub fn next_segment(&self) -> Option<i64> {
        let end = self.segment_base + self.stream.segment_length();
        (self.appended_position == end).then_some(end)
    }

    /// Appends a block: whole data frames, or one padding frame. Only the header of a padding frame
    /// is read and written.
    ///
    /// Calls `on_frame` with each frame before the block is written. Returns the appended position.
    ///
    /// # Errors
    /// * [`RecorderError::Frame`] or [`RecorderError::Block`]: the block is not valid, and the file is unchanged.
    /// * [`RecorderError::Undo`]: the write failed, and removing the unpublished bytes failed too.
    /// * Any other error: the write failed, and the file has no byte of this block or of other unpublished blocks.
    pub fn append(
        &mut self,
        block: &[u8],
        mut on_frame: impl FnMut(&CheckedFrame<'_>),
    ) -> Result<i64, RecorderError> {
        let position = self.appended_position;
        let mut frames = self.index.as_ref().map(|index| index.appended);
        debug_assert!(
            self.recorded_position <= position,
            "recording {}: appended position {position} is before recorded position {}",
            self.stream.recording_id(),
            self.recorded_position
        );
        let (end, written) = self.check(block, |frame| {
            if let Some(frames) = &mut frames {
                frames.take(frame);
            }
            on_frame(frame);
        })?;
        if let (Some(index), Some(mut frames)) = (&mut self.index, frames) {
            frames.finish_block(position, written);
            index.appended = frames;
        }
        let offset = (position - self.segment_base) as u64;
        let length = written.len();
        debug_assert!(
            offset + length as u64 <= self.stream.segment_length() as u64,
            "recording {}: a write of {length} bytes at offset {offset} must end within its segment",
            self.stream.recording_id()
        );
        let written = match &mut self.checksums {
            Some(block) => block.stamp(written),
            None => written,
        };
        if let Err(source) = self.segment.write_all_at(written, offset) {
            self.undo()?;
            return Err(self.write_error(self.segment_name(), length, source));
        }
        self.appended_position = end;
        pause::at(Point::APPENDED);
        Ok(end)
    }

    /// Makes the appended bytes recorded, and returns the recorded position. If the segment is
    /// full, the next segment is created at once.
    ///
    /// # Errors
    /// * [`RecorderError::Sync`] of the segment, or the error of writing an index entry that must
    ///   not be missing: the recorded position has not moved.
    /// * [`RecorderError::Create`], or [`RecorderError::Sync`] of the directory: the recorded position has moved.
    /// * [`RecorderError::Write`] or [`RecorderError::Full`] of the next segment's index: the recorded position has
    ///   moved. This error is returned if the index is dense, or if an incomplete sparse index cannot be deleted.
    ///   Otherwise the recording continues without an index, and [`take_index_error`](Self::take_index_error) returns
    ///   the reason.
    pub fn publish(&mut self) -> Result<i64, RecorderError> {
        let now_us = self.index.as_ref().map_or(0, |index| index.index.now_us());
        self.publish_at(now_us)
    }

    /// Publishes like [`publish`](Self::publish). `now_us` is the arrival time of the appended
    /// bytes in microseconds since the epoch.
    ///
    /// # Errors
    /// The same errors as [`publish`](Self::publish).
    pub fn publish_at(&mut self, now_us: i64) -> Result<i64, RecorderError> {
        if self.appended_position > self.recorded_position
            && let Err(source) = self.segment.sync(self.sync_level)
        {
            self.undo()?;
            return Err(RecorderError::Sync {
                name: self.segment_name(),
                position: self.recorded_position,
                source,
            });
        }
        if self.appended_position > self.recorded_position {
            self.index_appended(now_us)?;
            pause::at(Point::INDEXED);
        }
        debug_assert!(
            (self.recorded_position..=self.segment_base + self.stream.segment_length())
                .contains(&self.appended_position),
            "recording {}: the recorded position {} cannot move to {} in the segment at {}",
            self.stream.recording_id(),
            self.recorded_position,
            self.appended_position,
            self.segment_base
        );
        self.recorded_position = self.appended_position;
        if let Some(base) = self.next_segment() {
            debug_assert_eq!(
                base,
                self.stream.segment_base(self.recorded_position),
                "recording {}: the next segment must begin at the recorded position",
                self.stream.recording_id()
            );
            self.segment = create_segment(&self.storage, &self.stream, base, self.sync_level)?;
            self.segment_base = base;
            if let Some(SessionIndex { index, .. }) = &mut self.index
                && let Err(source) = index.begin_segment(base)
            {
                self.discard_index(source)?;
            }
        }
        Ok(self.recorded_position)
    }

    /// Continues the recording without a sparse index, because the index of the next segment cannot
    /// be created.
    fn discard_index(&mut self, source: io::Error) -> Result<(), RecorderError> {
        let Some(SessionIndex { index, .. }) = &self.index else {
            return Ok(());
        };
        let error = self.write_error(index.name(), ENTRY_LENGTH, source);
        if index.is_required() {
            return Err(error);
        }
        let index = self.index.take();
        if index.is_some_and(|index| index.index.discard().is_err()) {
            return Err(error);
        }
        self.index_error = Some(error);
        Ok(())
    }

    /// Writes the index entries that are due. If an entry that must not be missing cannot be
    /// written, undoes the appended blocks, because they must not be acknowledged.
    fn index_appended(&mut self, now_us: i64) -> Result<(), RecorderError> {
        let Some(SessionIndex { index, appended }) = &mut self.index else {
            return Ok(());
        };
        if let Err(source) = index.note(appended, self.appended_position, now_us) {
            let name = index.name();
            self.undo()?;
            return Err(self.write_error(name, ENTRY_LENGTH, source));
        }
        Ok(())
    }

    /// Removes the bytes that are appended and not published. The owner calls this function if its
    /// own work between append and publish failed.
    ///
    /// # Errors
    /// [`RecorderError::Undo`] if the bytes cannot be removed.
    pub fn undo(&mut self) -> Result<(), RecorderError> {
        debug_assert!(
            self.recorded_position >= self.segment_base,
            "recording {}: recorded bytes up to {} are not in the open segment at {}, so they must not be cut",
            self.stream.recording_id(),
            self.recorded_position,
            self.segment_base
        );
        let recorded = (self.recorded_position - self.segment_base) as u64;
        self.appended_position = self.recorded_position;
        if let Some(SessionIndex { index, appended }) = &mut self.index {
            *appended = index.frames();
        }
        cut(&self.segment, recorded, self.stream.segment_length() as u64).map_err(|source| {
            RecorderError::Undo {
                name: self.segment_name(),
                position: self.recorded_position,
                source,
            }
        })
    }

    /// Checks the frames of a block. Returns the end position of the block, and the bytes to write.
    fn check<'b>(
        &self,
        block: &'b [u8],
        mut on_frame: impl FnMut(&CheckedFrame<'_>),
    ) -> Result<(i64, &'b [u8]), RecorderError> {
        let begin = self.appended_position;
        let mut end = begin;
        for frame in self.stream.rules().frames(begin, block) {
            let frame = frame.map_err(|fault| self.frame_error(end, fault))?;
            on_frame(&frame);
            if frame.is_padding() {
                if end > begin {
                    return Err(self.frame_error(end, PADDING_IN_BLOCK));
                }
                return self.checked_end(frame.end_position(), frame.bytes().len(), block);
            }
            end = frame.end_position();
        }
        self.checked_end(end, block.len(), block)
    }

    fn checked_end<'b>(
        &self,
        end: i64,
        length: usize,
        block: &'b [u8],
    ) -> Result<(i64, &'b [u8]), RecorderError> {
        if end > self.segment_base + self.stream.segment_length() {
            return Err(RecorderError::Block {
                recording_id: self.stream.recording_id(),
                position: self.appended_position,
                length: end - self.appended_position,
            });
        }
        Ok((end, &block[..length]))
    }

    fn segment_name(&self) -> String {
        self.stream.segment_name(self.segment_base)
    }

    fn frame_error(&self, position: i64, fault: FrameFault) -> RecorderError {
        RecorderError::Frame {
            recording_id: self.stream.recording_id(),
            position,
            fault,
        }
    }

    fn write_error(&self, name: String, needed: usize, source: io::Error) -> RecorderError {
        let position = self.recorded_position;
        if source.kind() != io::ErrorKind::StorageFull {
            return RecorderError::Write {
                name,
                position,
                source,
            };
        }
        RecorderError::Full {
            name,
            position,
            needed,
            free: self.storage.free_bytes().unwrap_or(0),
        }
    }
}

impl StampedBlock {
    fn stamp(&mut self, block: &[u8]) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(block);
        self.checksum.stamp(&mut self.bytes);
        &self.bytes
    }
}

/// A padding frame must be the only frame of its block.
const PADDING_IN_BLOCK: FrameFault = FrameFault::Field {
    field: "type",
    found: frame_type::PADDING as i32,
    expected: frame_type::DATA as i32,
};

/// Fills a segment file of `length` bytes with zeros from `offset` on.
pub(crate) fn cut(segment: &impl StorageFile, offset: u64, length: u64) -> io::Result<()> {
    segment.set_length(offset)?;
    segment.set_length(length)
}

fn create_segment<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    base: i64,
    sync_level: SyncLevel,
) -> Result<S::File, RecorderError> {
    let name = stream.segment_name(base);
    let file = storage
        .create(&name, stream.segment_length() as u64)
        .map_err(|source| RecorderError::Create { name, source })?;
    if sync_level > SyncLevel::None {
        storage.sync().map_err(|source| RecorderError::Sync {
            name: ".".to_owned(),
            position: base.max(stream.start_position()),
            source,
        })?;
    }
    Ok(file)
}
