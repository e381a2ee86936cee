//! [`SegmentScrub`]: reads the frames of one sealed segment.

use crate::catalog::RecordingDescriptor;
use crate::checksum::Checksum;
use crate::reader::RecordingReader;
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// Number of bytes of frames that one step checks.
const STEP_LENGTH: i64 = 256 * 1024;

/// The check of the frames of one segment.
pub(super) struct SegmentScrub<S: Storage> {
    recording_id: i64,
    file: String,
    reader: RecordingReader<S>,
    end: i64,
    checksum: Option<Checksum>,
    /// Number of read bytes that [`take_read_bytes`](SegmentScrub::take_read_bytes) has not returned yet.
    read_bytes: i64,
    checked_bytes: i64,
}

/// Damage in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Recording id.
    pub recording_id: i64,
    /// Position of the frame that is damaged or cannot be read.
    pub position: i64,
    /// Name of the file.
    pub file: String,
    /// Description of the damage.
    pub problem: String,
}

/// The outcome of a step.
pub(super) enum SegmentStep {
    /// The segment has further frames.
    Continue,
    /// All frames are valid.
    Sound,
    /// A frame is damaged. Frames after the damaged frame cannot be found.
    Damaged(Finding),
}

impl<S: Storage> SegmentScrub<S> {
    /// Creates the check of the segment at `base`, at most up to position `end`. No file is opened
    /// yet. Returns `None` if the values of the catalog entry are not valid, because then no frame
    /// can be checked.
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
        debug_assert!(
            checked >= 0 && self.reader.position() <= self.end,
            "recording {}: a check from {begin} to {} must end before {}",
            self.recording_id,
            self.reader.position(),
            self.end
        );
        self.checked_bytes += checked;
        // Counts at least one byte, because a read of a damaged or missing segment also takes time.
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

    /// Returns the number of bytes that were read since the last call.
    pub fn take_read_bytes(&mut self) -> i64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// Returns the number of bytes of valid frames since the last call.
    pub fn take_checked_bytes(&mut self) -> i64 {
        std::mem::take(&mut self.checked_bytes)
    }
}
