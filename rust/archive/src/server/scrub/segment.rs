//! [`SegmentScrub`]: reads the frames of one sealed segment.

use crate::catalog::RecordingDescriptor;
use crate::checksum::Checksum;
use crate::reader::RecordingReader;
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// Bytes of frames that one step checks.
const STEP_LENGTH: i64 = 256 * 1024;

/// A segment whose frames are being checked.
pub(super) struct SegmentScrub<S: Storage> {
    recording_id: i64,
    file: String,
    reader: RecordingReader<S>,
    end: i64,
    checksum: Option<Checksum>,
    /// Bytes that were read and not yet taken.
    read_bytes: i64,
    checked_bytes: i64,
}

/// Damage in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The recording.
    pub recording_id: i64,
    /// Position of the frame that is damaged or cannot be read.
    pub position: i64,
    /// Name of the file.
    pub file: String,
    /// The damage.
    pub problem: String,
}

/// The outcome of a step.
pub(super) enum SegmentStep {
    /// The segment has further frames.
    Continue,
    /// All frames are sound.
    Sound,
    /// A frame is damaged. Frames after it cannot be found.
    Damaged(Finding),
}

impl<S: Storage> SegmentScrub<S> {
    /// Creates the check of the segment at `base`, up to `end` at most. No file is opened yet. Returns `None` if the
    /// catalog entry is not valid, which prevents reads.
    pub fn new(
        storage: S,
        recording: &RecordingDescriptor,
        (base, end): (i64, i64),
        checksum: Option<Checksum>,
    ) -> Option<Self> {
        let stream = RecordedStream::of_recording(recording).ok()?;
        let from = base.max(stream.start_position());
        let end = end.min(base + stream.segment_length());
        let reader = RecordingReader::new(storage, stream, from, end).ok()?;
        Some(Self {
            recording_id: recording.recording_id,
            file: stream.segment_name(base),
            reader,
            end,
            checksum,
            read_bytes: 0,
            checked_bytes: 0,
        })
    }

    /// Checks the next frames.
    pub fn step(&mut self) -> SegmentStep {
        let begin = self.reader.position();
        let step = self.check_frames(begin);
        let checked = self.reader.position() - begin;
        self.checked_bytes += checked;
        // A damaged or missing segment also costs a read.
        self.read_bytes += checked.max(1);
        step
    }

    fn check_frames(&mut self, begin: i64) -> SegmentStep {
        while self.reader.position() - begin < STEP_LENGTH {
            let position = self.reader.position();
            let problem = match self.reader.next_frame() {
                Ok(None) => return SegmentStep::Sound,
                Ok(Some(frame)) => self.checksum.and_then(|checksum| {
                    let mismatch = checksum.verify(&frame).err()?;
                    Some(format!("{}, {mismatch}", self.file))
                }),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                return SegmentStep::Damaged(Finding {
                    recording_id: self.recording_id,
                    position,
                    file: self.file.clone(),
                    problem,
                });
            }
        }
        match self.reader.position() < self.end {
            true => SegmentStep::Continue,
            false => SegmentStep::Sound,
        }
    }

    /// Returns the bytes that were read since the last call.
    pub fn take_read_bytes(&mut self) -> i64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// Returns the bytes of sound frames since the last call.
    pub fn take_checked_bytes(&mut self) -> i64 {
        std::mem::take(&mut self.checked_bytes)
    }
}
