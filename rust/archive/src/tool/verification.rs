//! [`Verification`]: whether a recording is as its catalog entry says. Changes nothing.

use std::ops::ControlFlow;

use super::{ArchiveFiles, ToolError};
use crate::Damage;
use crate::catalog::{CatalogEntry, RecordingDescriptor, RecordingState};
use crate::checksum::{Checksum, ChecksumMismatch};
use crate::frame::FrameFault;
use crate::recovery::{OnTornFragment, RecordingEnd, RecoveryError, RecoveryPolicy, find_end_from};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::{RecordedStream, StreamError};
use crate::window::Window;
use aeron_memory::log::frame::HEADER_LENGTH;

/// What is verified of each recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Read all segment files, not just the last one.
    pub all_segments: bool,
    /// Compare the catalog entry and each frame with its checksum.
    pub checksum: Option<Checksum>,
}

/// The result for one recording.
#[derive(Debug)]
pub struct Verification {
    /// The recording.
    pub recording_id: i64,
    /// State in the catalog. A deleted recording is not verified.
    pub state: RecordingState,
    /// Stop position in the catalog, -1 if there is none.
    pub recorded_stop_position: i64,
    /// Stop position that the segment files have; a torn fragment counts as not recorded.
    pub stop_position: i64,
    /// Whether the recording has a segment file.
    pub has_segments: bool,
    /// A last fragment that may not be whole.
    pub torn: Option<TornFragment>,
    /// Why the recording is broken, `None` if it is sound.
    pub broken: Option<BrokenRecording>,
}

/// A last fragment that may not be whole: it goes over the end of a page, and nothing is in one of its further pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornFragment {
    /// Name of the segment file.
    pub name: String,
    /// Position at which the fragment begins.
    pub position: i64,
    /// Stop position if the fragment is kept.
    pub kept_position: i64,
    /// Why the recording is broken if the fragment is kept; `None` if it is sound then.
    pub mismatch: Option<ChecksumMismatch>,
}

/// Why a recording is broken.
#[derive(Debug, thiserror::Error)]
pub enum BrokenRecording {
    /// The entry has a value that no recording can have.
    #[error("{field}={value}, expected {expected}", field = .0.field, value = .0.value, expected = .0.expected)]
    Descriptor(Damage),
    /// The lengths of the entry are impossible.
    #[error(transparent)]
    Stream(StreamError),
    /// The entry says that there is more than the segment files hold.
    #[error(
        "Invariant violation: startPosition={start_position} and/or stopPosition={stop_position} exceed max segment file position={max_position}"
    )]
    BeyondSegments {
        /// Start position of the entry.
        start_position: i64,
        /// Stop position of the entry.
        stop_position: i64,
        /// Last position in the last segment file.
        max_position: i64,
    },
    /// The entry has another checksum.
    #[error("invalid Catalog checksum: expected={expected}, actual={actual}")]
    CatalogChecksum {
        /// Checksum of the bytes that are there.
        expected: i32,
        /// Checksum in the entry.
        actual: i32,
    },
    /// The end of the recording cannot be found: the last segment file is none of the recording.
    #[error(transparent)]
    End(RecoveryError),
    /// No segment of the recording begins at the position in the name of a file.
    #[error("{name}: no segment of the recording begins at this position")]
    SegmentBase {
        /// Name of the file.
        name: String,
    },
    /// A segment file ends before its first frame.
    #[error("{name}: failed to read fragment header: the file has {length} bytes")]
    Short {
        /// Name of the file.
        name: String,
        /// Length of the file.
        length: u64,
    },
    /// The last segment file ends amid a frame. No kill of a recorder leaves that: files have their whole length from the first.
    #[error("{name}: the file ends within the fragment at position {position}")]
    CutOff {
        /// Name of the file.
        name: String,
        /// Position at which the fragment begins.
        position: i64,
    },
    /// A segment file holds bytes that are not a frame of the recording.
    #[error("{name}, position {position}: {fault}")]
    Frame {
        /// Name of the file.
        name: String,
        /// Where in the stream.
        position: i64,
        /// What is wrong there.
        fault: FrameFault,
    },
    /// A frame has another checksum.
    #[error("{name}: {mismatch}")]
    FrameChecksum {
        /// Name of the file.
        name: String,
        /// Position and values.
        mismatch: ChecksumMismatch,
    },
}

/// The end of a verification before its end.
enum Stop {
    Broken(BrokenRecording),
    Failed(ToolError),
}

impl<T: Into<ToolError>> From<T> for Stop {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Verifies a recording and changes nothing. Segment files that are missing between others are no error, as for Aeron's tool.
    ///
    /// `on_progress` is called with the number of bytes after each segment file, and may break the work off.
    ///
    /// # Errors
    /// The recording is unknown, or the file system refuses; [`ToolError::Interrupted`] if `on_progress` says so.
    pub fn verify(
        &self,
        recording_id: i64,
        options: &VerifyOptions,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Verification, ToolError> {
        let entry = self.entry(recording_id)?;
        let mut verification = Verification {
            recording_id,
            state: entry.state,
            recorded_stop_position: entry.descriptor.stop_position,
            stop_position: entry.descriptor.stop_position,
            has_segments: false,
            torn: None,
            broken: None,
        };
        if entry.state == RecordingState::Deleted {
            return Ok(verification);
        }
        match self.verify_entry(entry, options, &mut verification, on_progress) {
            Ok(()) => {}
            Err(Stop::Broken(broken)) => verification.broken = Some(broken),
            Err(Stop::Failed(error)) => return Err(error),
        }
        Ok(verification)
    }

    fn verify_entry(
        &self,
        entry: &CatalogEntry,
        options: &VerifyOptions,
        verification: &mut Verification,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Stop> {
        let descriptor = &entry.descriptor;
        descriptor
            .check()
            .map_err(|damage| Stop::Broken(BrokenRecording::Descriptor(damage)))?;
        let stream = RecordedStream::of_recording(descriptor)
            .map_err(|error| Stop::Broken(BrokenRecording::Stream(error)))?;
        let segments = self.segments(descriptor);
        verification.has_segments = !segments.is_empty();
        if let Some(&last) = segments.last() {
            check_bounds(descriptor, last.saturating_add(stream.segment_length() - 1))?;
            self.check_not_short(&stream, last)?;
        }
        let end = self.find_end(&stream, segments.last().copied(), options)?;
        verification.stop_position = end.position;
        if let Some(checksum) = options.checksum {
            check_entry(entry, checksum)?;
        }
        if end.kept_position > end.position {
            verification.torn = Some(self.torn_fragment(&stream, &end, options)?);
        }
        let read = match options.all_segments {
            true => segments,
            false => &segments[segments.len().saturating_sub(1)..],
        };
        for &base in read {
            self.verify_segment(&stream, base, &end, options)?;
            if on_progress(stream.segment_length() as u64).is_break() {
                return Err(Stop::Failed(ToolError::Interrupted));
            }
        }
        Ok(())
    }

    fn find_end(
        &self,
        stream: &RecordedStream,
        last: Option<i64>,
        options: &VerifyOptions,
    ) -> Result<RecordingEnd, Stop> {
        let by = |on_torn_fragment| {
            let policy = RecoveryPolicy {
                on_torn_fragment,
                checksum: options.checksum,
            };
            find_end_from(
                &self.storage,
                stream,
                stream.start_position(),
                last,
                &policy,
            )
        };
        let broken = match by(OnTornFragment::Refuse) {
            Ok(end) => return Ok(end),
            Err(RecoveryError::Torn { name, position }) => {
                let end = by(OnTornFragment::Truncate)?;
                // A fragment with all its bytes is for the caller to decide on.
                if end.kept_position > end.position {
                    return Ok(end);
                }
                BrokenRecording::CutOff { name, position }
            }
            Err(RecoveryError::Damaged {
                name,
                position,
                fault,
            }) => BrokenRecording::Frame {
                name,
                position,
                fault,
            },
            Err(error @ RecoveryError::Storage { .. }) => return Err(error.into()),
            Err(error) => BrokenRecording::End(error),
        };
        Err(Stop::Broken(broken))
    }

    /// The fragment at the end of the recording. With a checksum it is in doubt because it has another one.
    fn torn_fragment(
        &self,
        stream: &RecordedStream,
        end: &RecordingEnd,
        options: &VerifyOptions,
    ) -> Result<TornFragment, Stop> {
        let name = stream.segment_name(stream.segment_base(end.position));
        let mut window = Window::new(&self.storage, *stream);
        let read = window
            .frame(end.position, end.kept_position)
            .map_err(|source| ToolError::storage(name.clone(), source))?;
        let mismatch = options
            .checksum
            .zip(read.ok())
            .and_then(|(checksum, frame)| checksum.verify(&frame).err());
        Ok(TornFragment {
            name,
            position: end.position,
            kept_position: end.kept_position,
            mismatch,
        })
    }

    fn check_not_short(&self, stream: &RecordedStream, base: i64) -> Result<(), Stop> {
        let name = stream.segment_name(base);
        let length = self
            .storage
            .open(&name, Access::Read)
            .and_then(|file| file.length())
            .map_err(|source| ToolError::storage(name.clone(), source))?;
        let first = (stream.start_position() - base).max(0) as u64;
        match length < first + HEADER_LENGTH as u64 {
            true => Err(Stop::Broken(BrokenRecording::Short { name, length })),
            false => Ok(()),
        }
    }

    /// Walks over the frames of a segment file. A length of 0 or less ends it.
    fn verify_segment(
        &self,
        stream: &RecordedStream,
        base: i64,
        end: &RecordingEnd,
        options: &VerifyOptions,
    ) -> Result<(), Stop> {
        let name = stream.segment_name(base);
        if stream.segment_base(base.max(stream.start_position())) != base {
            return Err(Stop::Broken(BrokenRecording::SegmentBase { name }));
        }
        let limit = base
            .saturating_add(stream.segment_length())
            .min(end.position);
        let mut position = base.max(stream.start_position());
        let mut window = Window::new(&self.storage, *stream);
        while position < limit {
            let read = window
                .frame(position, limit)
                .map_err(|source| ToolError::storage(name.clone(), source))?;
            let frame = match read {
                Ok(frame) => frame,
                Err(FrameFault::Nothing | FrameFault::Length { length: ..=0, .. }) => break,
                Err(fault) => {
                    return Err(Stop::Broken(BrokenRecording::Frame {
                        name,
                        position,
                        fault,
                    }));
                }
            };
            if let Some(checksum) = options.checksum {
                checksum.verify(&frame).map_err(|mismatch| {
                    let name = name.clone();
                    Stop::Broken(BrokenRecording::FrameChecksum { name, mismatch })
                })?;
            }
            position = frame.end_position();
        }
        Ok(())
    }
}

/// Checks that the last segment file can hold the positions of the entry.
fn check_bounds(descriptor: &RecordingDescriptor, max_position: i64) -> Result<(), Stop> {
    let (start_position, stop_position) = (descriptor.start_position, descriptor.stop_position);
    match start_position > max_position || stop_position > max_position {
        true => Err(Stop::Broken(BrokenRecording::BeyondSegments {
            start_position,
            stop_position,
            max_position,
        })),
        false => Ok(()),
    }
}

fn check_entry(entry: &CatalogEntry, checksum: Checksum) -> Result<(), Stop> {
    let expected = entry.compute_checksum(checksum);
    let actual = entry.stored_checksum();
    match expected == actual {
        true => Ok(()),
        false => Err(Stop::Broken(BrokenRecording::CatalogChecksum {
            expected,
            actual,
        })),
    }
}
