//! [`Verification`]: the result of a comparison of a recording's files with its catalog entry.
//! A verification changes no file.

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

/// Scope of a verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Whether all segment files are read, and not only the last segment file.
    pub all_segments: bool,
    /// Algorithm of the checksums of the catalog entry and the frames; `None` if checksums are not
    /// checked.
    pub checksum: Option<Checksum>,
}

/// The result for one recording.
#[derive(Debug)]
pub struct Verification {
    /// Recording id.
    pub recording_id: i64,
    /// State in the catalog. A deleted recording is not verified.
    pub state: RecordingState,
    /// Stop position in the catalog; -1 if the entry has no stop position.
    pub recorded_stop_position: i64,
    /// Stop position according to the segment files. A fragment that may be torn counts as not
    /// recorded.
    pub stop_position: i64,
    /// Whether the recording has a segment file.
    pub has_segments: bool,
    /// The last fragment, if it may be torn.
    pub torn: Option<TornFragment>,
    /// Why the recording is broken; `None` if it is sound.
    pub broken: Option<BrokenRecording>,
}

/// A last fragment that may be torn: it crosses the end of a page, and one of its later pages is all zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornFragment {
    /// Name of the segment file.
    pub name: String,
    /// Position of the fragment.
    pub position: i64,
    /// Stop position if the fragment is kept.
    pub kept_position: i64,
    /// Whether the index proves that the recorder did not acknowledge the fragment. A repair then removes it with every
    /// decision, as the next start of the archive does.
    pub is_unacknowledged: bool,
    /// The wrong checksum of the fragment. If the fragment is kept, the recording is broken because of
    /// this checksum. `None` if the verification checks no checksums.
    pub mismatch: Option<ChecksumMismatch>,
}

/// Why a recording is broken.
#[derive(Debug, thiserror::Error)]
pub enum BrokenRecording {
    /// The entry has a field with an invalid value.
    #[error("{field}={value}, expected {expected}", field = .0.field, value = .0.value, expected = .0.expected)]
    Descriptor(Damage),
    /// The term length, segment length or start position in the entry is not valid.
    #[error(transparent)]
    Stream(StreamError),
    /// The entry's positions are not within the positions of the segment files.
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
    /// The checksum in the entry is wrong.
    #[error("invalid Catalog checksum: expected={expected}, actual={actual}")]
    CatalogChecksum {
        /// Checksum of the entry's bytes.
        expected: i32,
        /// Checksum in the entry.
        actual: i32,
    },
    /// The end of the recording cannot be found. The name of the last segment file contains a
    /// position at which no segment of the recording can begin.
    #[error(transparent)]
    End(RecoveryError),
    /// The position in the name of a file is not a segment base of the recording.
    #[error("{name}: no segment of the recording begins at this position")]
    SegmentBase {
        /// Name of the file.
        name: String,
    },
    /// The last segment file ends before or within the header of its first frame.
    #[error("{name}: failed to read fragment header: the file has {length} bytes")]
    Short {
        /// Name of the file.
        name: String,
        /// Length of the file in bytes.
        length: u64,
    },
    /// The last segment file ends within a frame. A killed recorder cannot cause this, because it creates files with
    /// their full length.
    #[error("{name}: the file ends within the fragment at position {position}")]
    CutOff {
        /// Name of the file.
        name: String,
        /// Position of the fragment.
        position: i64,
    },
    /// A segment file holds bytes that are not a frame of the recording.
    #[error("{name}, position {position}: {fault}")]
    Frame {
        /// Name of the file.
        name: String,
        /// Position in the stream.
        position: i64,
        /// Fault at this position.
        fault: FrameFault,
    },
    /// The checksum in a frame is wrong.
    #[error("{name}: {mismatch}")]
    FrameChecksum {
        /// Name of the file.
        name: String,
        /// Position of the frame, and the two checksums.
        mismatch: ChecksumMismatch,
    },
}

/// Why a verification ended early.
enum VerificationStop {
    Broken(BrokenRecording),
    Failed(ToolError),
}

impl<T: Into<ToolError>> From<T> for VerificationStop {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Verifies a recording and changes no file. A missing segment file between other segment files
    /// is not an error. Aeron's tool does the same.
    ///
    /// `on_progress` is called after each segment file with the length of the file in bytes, and
    /// may stop the work.
    ///
    /// # Errors
    /// The recording is unknown, or the file system returns an error; [`ToolError::Interrupted`] if `on_progress` stops
    /// the work.
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
            Err(VerificationStop::Broken(broken)) => verification.broken = Some(broken),
            Err(VerificationStop::Failed(error)) => return Err(error),
        }
        Ok(verification)
    }

    fn verify_entry(
        &self,
        entry: &CatalogEntry,
        options: &VerifyOptions,
        verification: &mut Verification,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), VerificationStop> {
        let descriptor = &entry.descriptor;
        descriptor
            .check()
            .map_err(|damage| VerificationStop::Broken(BrokenRecording::Descriptor(damage)))?;
        let stream = RecordedStream::of_recording(descriptor)
            .map_err(|error| VerificationStop::Broken(BrokenRecording::Stream(error)))?;
        let segments = self.segments(descriptor);
        verification.has_segments = !segments.is_empty();
        if let Some(&last) = segments.last() {
            check_bounds(descriptor, last.saturating_add(stream.segment_length() - 1))?;
            self.check_not_short(&stream, last)?;
        }
        let (end, is_decided) = self.find_end(descriptor, &stream, segments, options)?;
        verification.stop_position = end.position;
        if let Some(checksum) = options.checksum {
            check_entry(entry, checksum)?;
        }
        if end.kept_position > end.position {
            verification.torn = Some(TornFragment {
                is_unacknowledged: is_decided,
                ..self.torn_fragment(&stream, &end, options)?
            });
        }
        let read = match options.all_segments {
            true => segments,
            false => &segments[segments.len().saturating_sub(1)..],
        };
        for &base in read {
            self.verify_segment(&stream, base, &end, options)?;
            if on_progress(stream.segment_length() as u64).is_break() {
                return Err(VerificationStop::Failed(ToolError::Interrupted));
            }
        }
        Ok(())
    }

    /// Returns the end of the recording, and whether this end is certain. It is not certain if the last fragment may be
    /// torn and the index proves nothing about it.
    fn find_end(
        &self,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
        segments: &[i64],
        options: &VerifyOptions,
    ) -> Result<(RecordingEnd, bool), VerificationStop> {
        let by = |on_torn_fragment| {
            let policy = RecoveryPolicy {
                on_torn_fragment,
                checksum: options.checksum,
            };
            find_end_from(
                &self.storage,
                stream,
                stream.start_position(),
                segments.last().copied(),
                &policy,
                |base| self.proof(descriptor, stream, base),
            )
        };
        let broken = match by(OnTornFragment::Refuse) {
            Ok(end) => return Ok((end, true)),
            Err(RecoveryError::Torn { name, position }) => {
                let end = by(OnTornFragment::Truncate)?;
                // All bytes of the fragment are in the file, so the caller of `verify` decides whether the
                // fragment is kept.
                if end.kept_position > end.position {
                    return Ok((end, false));
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
        Err(VerificationStop::Broken(broken))
    }

    /// Returns the last fragment, which may be torn. If checksums are checked, the checksum of this fragment is wrong:
    /// a fragment with a correct checksum counts as whole.
    fn torn_fragment(
        &self,
        stream: &RecordedStream,
        end: &RecordingEnd,
        options: &VerifyOptions,
    ) -> Result<TornFragment, VerificationStop> {
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
            is_unacknowledged: false,
            mismatch,
        })
    }

    fn check_not_short(&self, stream: &RecordedStream, base: i64) -> Result<(), VerificationStop> {
        let name = stream.segment_name(base);
        let length = self
            .storage
            .open(&name, Access::Read)
            .and_then(|file| file.length())
            .map_err(|source| ToolError::storage(name.clone(), source))?;
        let first = (stream.start_position() - base).max(0) as u64;
        match length < first + HEADER_LENGTH as u64 {
            true => Err(VerificationStop::Broken(BrokenRecording::Short {
                name,
                length,
            })),
            false => Ok(()),
        }
    }

    /// Checks the frames of a segment file up to the end of the recording. Stops earlier at a frame
    /// length of 0 or less.
    fn verify_segment(
        &self,
        stream: &RecordedStream,
        base: i64,
        end: &RecordingEnd,
        options: &VerifyOptions,
    ) -> Result<(), VerificationStop> {
        let name = stream.segment_name(base);
        if stream.segment_base(base.max(stream.start_position())) != base {
            return Err(VerificationStop::Broken(BrokenRecording::SegmentBase {
                name,
            }));
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
                    return Err(VerificationStop::Broken(BrokenRecording::Frame {
                        name,
                        position,
                        fault,
                    }));
                }
            };
            if let Some(checksum) = options.checksum {
                checksum.verify(&frame).map_err(|mismatch| {
                    let name = name.clone();
                    VerificationStop::Broken(BrokenRecording::FrameChecksum { name, mismatch })
                })?;
            }
            position = frame.end_position();
        }
        Ok(())
    }
}

/// Checks that the start and the stop position of the entry are not after `max_position`, the last
/// position in the last segment file.
fn check_bounds(
    descriptor: &RecordingDescriptor,
    max_position: i64,
) -> Result<(), VerificationStop> {
    let (start_position, stop_position) = (descriptor.start_position, descriptor.stop_position);
    match start_position > max_position || stop_position > max_position {
        true => Err(VerificationStop::Broken(BrokenRecording::BeyondSegments {
            start_position,
            stop_position,
            max_position,
        })),
        false => Ok(()),
    }
}

fn check_entry(entry: &CatalogEntry, checksum: Checksum) -> Result<(), VerificationStop> {
    let expected = entry.compute_checksum(checksum);
    let actual = entry.stored_checksum();
    match expected == actual {
        true => Ok(()),
        false => Err(VerificationStop::Broken(BrokenRecording::CatalogChecksum {
            expected,
            actual,
        })),
    }
}
