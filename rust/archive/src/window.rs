//! [`Window`]: a buffer over the segment files of a recording, from which readers and [recovery](crate::recovery) read
//! frames. If a frame is not in the buffer, one `pread` reads up to 1 MiB from the position of the frame.

use crate::frame::{CheckedFrame, CheckedFrames, FrameFault};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;
use aeron_memory::log::frame::MAX_MTU_LENGTH;
use std::io;

/// Maximum number of bytes of one read.
const WINDOW_LENGTH: usize = 1024 * 1024;

/// Reads the frames of a recording, one at a time. Opens a segment file when the first frame of the file is read.
#[derive(Debug)]
pub(crate) struct Window<S: Storage> {
    storage: S,
    stream: RecordedStream,
    segment: Option<Segment<S::File>>,
    bytes: Vec<u8>,
    /// Number of valid bytes in the buffer.
    filled: usize,
    /// Position of the buffer's first byte.
    begin: i64,
    /// Whether the segment has more bytes after those in the buffer.
    is_partial: bool,
}

#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) base: i64,
    pub(crate) file: F,
}

impl<S: Storage> Window<S> {
    pub(crate) fn new(storage: S, stream: RecordedStream) -> Self {
        Self {
            storage,
            stream,
            segment: None,
            bytes: Vec::new(),
            filled: 0,
            begin: 0,
            is_partial: false,
        }
    }

    /// Creates a window at an open segment. `bytes` is the memory of another window, which is reused.
    pub(crate) fn at(
        segment: Segment<S::File>,
        storage: S,
        stream: RecordedStream,
        bytes: Vec<u8>,
    ) -> Self {
        Self {
            segment: Some(segment),
            bytes,
            ..Self::new(storage, stream)
        }
    }

    /// Empties the window. A caller that reads frames up to another limit must call this method first, because the
    /// window has no bytes after the previous limit.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Returns the memory, for reuse by another window.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns whether the window ends at `limit` and has only zeros from `position` on. Returns `true` if the range is
    /// empty.
    pub(crate) fn holds_zeros(&self, position: i64, limit: i64) -> bool {
        let held = self.begin..self.begin + self.filled as i64;
        position >= limit
            || (held.contains(&position)
                && held.end == limit
                && self.bytes[(position - self.begin) as usize..self.filled]
                    .iter()
                    .all(|byte| *byte == 0))
    }

    pub(crate) fn stream(&self) -> &RecordedStream {
        &self.stream
    }

    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    /// Returns the frames from `position` on that the window holds.
    pub(crate) fn frames_from(&self, position: i64) -> CheckedFrames<'_> {
        let at = usize::try_from(position - self.begin).unwrap_or(usize::MAX);
        let bytes = self.bytes[..self.filled].get(at..).unwrap_or_default();
        self.stream.rules().frames(position, bytes)
    }

    /// Returns the frame at `position`, which is aligned and below `limit`. Bytes from `limit` on
    /// are treated as missing.
    ///
    /// # Errors
    /// The outer error is an error of the storage. The inner error is a fault in the bytes. Bytes after the end of the
    /// file are treated as missing.
    #[inline(always)]
    pub(crate) fn frame(
        &mut self,
        position: i64,
        limit: i64,
    ) -> io::Result<Result<CheckedFrame<'_>, FrameFault>> {
        let at = self.hold(position, limit)?;
        Ok(self.held(position, at))
    }

    /// Reads the frame at `position` into the window, unless the window holds it. Returns the offset of the frame in
    /// the window.
    ///
    /// # Errors
    /// The storage returns an error.
    #[inline(always)]
    pub(crate) fn hold(&mut self, position: i64, limit: i64) -> io::Result<usize> {
        let ahead = position.wrapping_sub(self.begin) as u64;
        let left = (self.filled as u64).saturating_sub(ahead);
        let is_held = if self.is_partial {
            left >= MAX_MTU_LENGTH as u64
        } else {
            left > 0
        };
        let at = if is_held { ahead as usize } else { 0 };
        if !is_held {
            self.fill(position, limit)?;
        }
        Ok(at)
    }

    /// Returns the frame at `position`, for which [`hold`](Self::hold) has returned the offset `at`.
    #[inline(always)]
    pub(crate) fn held(&self, position: i64, at: usize) -> Result<CheckedFrame<'_>, FrameFault> {
        let bytes = &self.bytes[at..self.filled];
        self.stream.rules().check(position, bytes)
    }

    /// Fills the window from `position` on.
    #[cold]
    fn fill(&mut self, position: i64, limit: i64) -> io::Result<()> {
        let base = self.stream.segment_base(position);
        let end = limit.min(base + self.stream.segment_length());
        let length = usize::try_from(end - position).map_or(0, |length| length.min(WINDOW_LENGTH));
        debug_assert!(
            (base..base + self.stream.segment_length()).contains(&position),
            "recording {}: position {position} is not in the segment at {base}",
            self.stream.recording_id()
        );
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        self.filled = 0;
        self.begin = position;
        let segment = open(&mut self.segment, &self.storage, &self.stream, base)?;
        self.filled = read(
            &segment.file,
            &mut self.bytes[..length],
            (position - base) as u64,
        )?;
        self.is_partial = self.filled == length && position + (length as i64) < end;
        Ok(())
    }
}

/// Returns the segment that begins at `base`. Opens it unless it is open.
pub(crate) fn open<'a, S: Storage>(
    segment: &'a mut Option<Segment<S::File>>,
    storage: &S,
    stream: &RecordedStream,
    base: i64,
) -> io::Result<&'a Segment<S::File>> {
    let open = segment.take().filter(|segment| segment.base == base);
    let open = match open {
        Some(open) => open,
        None => Segment {
            base,
            file: storage.open(&stream.segment_name(base), Access::Read)?,
        },
    };
    Ok(segment.insert(open))
}

/// Reads until `bytes` is full or the file ends. Returns the number of bytes.
fn read(file: &impl StorageFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
