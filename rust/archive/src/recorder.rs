//! [`RecorderSession`]: writes one stream into segment files, block by block.
//!
//! A block is recorded in two steps: *append* checks its frames and writes them behind the recorded position, *publish* forces them
//! to the disk at the session's [`SyncLevel`] and moves the recorded position over them. What else must be on disk before anybody is told
//! of the block goes between the two.
//! Bytes behind the recorded position are zeros except between these steps, because tools take a whole frame there for
//! recorded: a write that fails or comes back short is undone.
//!
//! A session [with a checksum](RecorderSession::with_checksum) writes a copy of each block, in which the session ids of data frames are
//! checksums.

use crate::checksum::Checksum;
use crate::frame::{Frame, FrameFault};
use crate::storage::{Access, Storage, StorageFile, SyncLevel};
use crate::stream::RecordedStream;
use aeron_memory::log::frame::frame_type;
use std::io;
use thiserror::Error;

/// Records one image. The recorded position starts at the start of the recording, or where the recording is continued.
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
}

/// A copy of a block, with checksums. Its memory serves all blocks of a session.
#[derive(Debug)]
struct StampedBlock {
    checksum: Checksum,
    bytes: Vec<u8>,
}

/// Why a recording ends before its image does. What is recorded stays; nothing more can be appended.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// The next segment file cannot be made; it must not exist.
    #[error("segment file {name} cannot be created: {source}")]
    Create {
        /// Name of the file.
        name: String,
        /// What the storage answers.
        source: io::Error,
    },
    /// The segment file at which a recording is continued cannot be opened.
    #[error("segment file {name} cannot be opened at position {position}: {source}")]
    Open {
        /// Name of the file.
        name: String,
        /// Where the recording is continued.
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
        /// Bytes of the block.
        needed: usize,
        /// Bytes that the file system could still take.
        free: u64,
    },
    /// A block cannot be written.
    #[error("{name} cannot be written at position {position}: {source}")]
    Write {
        /// Name of the file.
        name: String,
        /// Recorded position.
        position: i64,
        /// What the storage answers.
        source: io::Error,
    },
    /// The appended block cannot be forced to the disk. A loss of power may take it, so it is not recorded.
    #[error("{name} cannot be synced at position {position}: {source}")]
    Sync {
        /// Name of the file; of the directory, `.`.
        name: String,
        /// Recorded position.
        position: i64,
        /// Error of the storage.
        source: io::Error,
    },
    /// What is behind the recorded position cannot be removed; recovery will do it.
    #[error("{name} cannot be cut at position {position}: {source}")]
    Undo {
        /// Name of the file.
        name: String,
        /// Recorded position.
        position: i64,
        /// What the storage answers.
        source: io::Error,
    },
    /// The stream itself is damaged.
    #[error("recording {recording_id}, position {position}: {fault}")]
    Frame {
        /// Recording id.
        recording_id: i64,
        /// Where in the stream.
        position: i64,
        /// What is wrong there.
        fault: FrameFault,
    },
    /// A block that does not fit in the segment.
    #[error(
        "recording {recording_id}: a block of {length} bytes at position {position} passes the end of its segment"
    )]
    Block {
        /// Recording id.
        recording_id: i64,
        /// Where the block begins.
        position: i64,
        /// Bytes of stream that it covers.
        length: i64,
    },
}

impl<S: Storage> RecorderSession<S> {
    /// Begins a recording: creates its first segment. Above [`SyncLevel::None`] all that is published survives a loss of power.
    ///
    /// # Errors
    /// [`RecorderError::Create`], [`RecorderError::Sync`].
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

    /// Continues a recording at `position`, where it was stopped: opens the segment file of that position and removes what follows there.
    /// A file that is missing is created if it would hold nothing before `position`.
    ///
    /// # Errors
    /// [`RecorderError::Open`], [`RecorderError::Create`], [`RecorderError::Sync`].
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
                    // What was cut must not come back as recorded if the machine loses power.
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

    /// Lets the session write the checksum of each data frame into the frame's session id field.
    #[must_use]
    pub fn with_checksum(mut self, checksum: Option<Checksum>) -> Self {
        self.checksums = checksum.map(|checksum| StampedBlock {
            checksum,
            bytes: Vec::new(),
        });
        self
    }

    /// A session that goes on at `position` of an open segment.
    fn at(
        position: i64,
        storage: S,
        stream: RecordedStream,
        sync_level: SyncLevel,
        segment: S::File,
    ) -> Self {
        Self {
            storage,
            stream,
            sync_level,
            segment,
            segment_base: stream.segment_base(position),
            recorded_position: position,
            appended_position: position,
            checksums: None,
        }
    }

    /// What is recorded.
    pub fn stream(&self) -> &RecordedStream {
        &self.stream
    }

    /// End of what is recorded.
    pub fn recorded_position(&self) -> i64 {
        self.recorded_position
    }

    /// End of what is appended: the recorded position after the next [`publish`](Self::publish).
    pub fn appended_position(&self) -> i64 {
        self.appended_position
    }

    /// Position of the first byte of the segment that is written.
    pub fn segment_base(&self) -> i64 {
        self.segment_base
    }

    /// Base of the segment that the next [`publish`](Self::publish) will create, if it does.
    pub fn next_segment(&self) -> Option<i64> {
        let end = self.segment_base + self.stream.segment_length();
        (self.appended_position == end).then_some(end)
    }

    /// Writes a block behind what is appended: whole frames of data, or one frame of padding, of which only the header is
    /// looked at and written. Each frame is handed to `on_frame` before anything is written. Answers the appended position.
    ///
    /// # Errors
    /// [`RecorderError`]; nothing of the block is in the file then, nor of blocks appended and not published, unless that too
    /// failed ([`RecorderError::Undo`]).
    pub fn append(
        &mut self,
        block: &[u8],
        on_frame: impl FnMut(&Frame<'_>),
    ) -> Result<i64, RecorderError> {
        let position = self.appended_position;
        let (end, written) = self.check(block, on_frame)?;
        let offset = (position - self.segment_base) as u64;
        let length = written.len();
        let written = match &mut self.checksums {
            Some(block) => block.stamp(written),
            None => written,
        };
        if let Err(source) = self.segment.write_all_at(written, offset) {
            self.undo()?;
            return Err(self.write_error(length, source));
        }
        self.appended_position = end;
        Ok(end)
    }

    /// Makes what is appended recorded, and answers the recorded position. A segment that is full is followed by the next one
    /// at once.
    ///
    /// # Errors
    /// [`RecorderError::Sync`] of the segment, and nothing of what is appended is recorded; [`RecorderError::Create`], or
    /// [`RecorderError::Sync`] of the directory, and the recorded position has moved all the same.
    pub fn publish(&mut self) -> Result<i64, RecorderError> {
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
        self.recorded_position = self.appended_position;
        if let Some(base) = self.next_segment() {
            self.segment = create_segment(&self.storage, &self.stream, base, self.sync_level)?;
            self.segment_base = base;
        }
        Ok(self.recorded_position)
    }

    /// Takes back what is appended and not published: for an owner whose own step between the two failed.
    ///
    /// # Errors
    /// [`RecorderError::Undo`].
    pub fn undo(&mut self) -> Result<(), RecorderError> {
        let recorded = (self.recorded_position - self.segment_base) as u64;
        self.appended_position = self.recorded_position;
        cut(&self.segment, recorded, self.stream.segment_length() as u64).map_err(|source| {
            RecorderError::Undo {
                name: self.segment_name(),
                position: self.recorded_position,
                source,
            }
        })
    }

    /// Where a block ends, and the bytes of it to be written.
    fn check<'b>(
        &self,
        block: &'b [u8],
        mut on_frame: impl FnMut(&Frame<'_>),
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

    fn write_error(&self, needed: usize, source: io::Error) -> RecorderError {
        let (name, position) = (self.segment_name(), self.recorded_position);
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

/// Padding comes in a block of its own.
const PADDING_IN_BLOCK: FrameFault = FrameFault::Field {
    field: "type",
    found: frame_type::PADDING as i32,
    expected: frame_type::DATA as i32,
};

/// Zeros all that is behind `offset` in a segment file of `length` bytes.
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
