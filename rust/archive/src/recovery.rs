//! Finds the end of a recording after its recorder was killed. Only the segment files of the
//! recording are needed.
//!
//! After a kill, the file may have only a prefix of the recorder's last block. The prefix ends at a page boundary,
//! and zeros follow. So the search walks over whole frames, from a position that is known to be recorded. Only the
//! last frame can be in doubt. If the last frame crosses a page boundary, and one of its later pages is all zeros,
//! it may be torn. The recorded position never included a torn frame. An [index](crate::index) beside the segment
//! may prove that the frame is whole, or that the frame was not acknowledged.
//!
//! If the recorder has stored a known position, [`recover`] always removes a torn frame. An archive
//! only knows the start position, and other processes may have read the frame. So the
//! [`RecoveryPolicy`] of an archive can refuse to remove it.

use crate::checksum::Checksum;
use crate::frame::{CheckedFrame, FrameFault};
use crate::index::IndexProof;
use crate::recorder::cut;
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::{Access, Storage, StorageFile, SyncLevel};
use crate::stream::{RecordedStream, is_aligned};
use crate::window::{Segment, Window};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::time::SystemTime;
use thiserror::Error;

/// Length of a page in bytes. After a kill, a page has either all or none of the bytes of a write.
const PAGE_LENGTH: usize = 4096;

/// The end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Stop position of the recording.
    pub position: i64,
    /// Stop position if a last frame that may be torn is kept. It is above `position` only if the
    /// last frame may be torn and all bytes of the frame are in the file.
    pub kept_position: i64,
    /// Whether an incomplete frame or other invalid bytes follow after `position`.
    pub is_torn: bool,
    /// Time of the last write to the last segment; `None` if the recording has no segment.
    pub modified: Option<SystemTime>,
}

/// Decision about a last frame that may be torn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnTornFragment {
    /// Fail and change nothing: an operator has to decide.
    Refuse,
    /// Remove the frame, so that the recording ends before it.
    #[default]
    Truncate,
}

/// Settings of the search for the end of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// Decision about a last frame that may be torn.
    pub on_torn_fragment: OnTornFragment,
    /// Checksum that the recorder wrote. A last frame with a correct checksum is whole, even if one of its pages is all
    /// zeros.
    pub checksum: Option<Checksum>,
}

/// Why the end of a recording was not found.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// No frame of the recording can begin at the known position.
    #[error(
        "recording {recording_id}: {known_position} is not the position of a frame; the recording starts at {start_position}"
    )]
    Position {
        /// Recording id.
        recording_id: i64,
        /// Known position, as given.
        known_position: i64,
        /// Start position of the recording.
        start_position: i64,
    },
    /// The known position is after the end of the segment files: recorded bytes are missing.
    #[error(
        "recording {recording_id}: recorded up to {known_position}, but its segment files end at {end_position}"
    )]
    Lost {
        /// Recording id.
        recording_id: i64,
        /// Known position, as given.
        known_position: i64,
        /// End of the last segment file.
        end_position: i64,
    },
    /// No segment of the recording can begin at the highest position in the names of its files.
    #[error("{name}: no segment of recording {recording_id} begins at this position")]
    Segment {
        /// Recording id.
        recording_id: i64,
        /// Name of the file.
        name: String,
    },
    /// The last frame may be torn, and the policy is to refuse.
    #[error(
        "Found potentially incomplete last fragment straddling page boundary in file: {name}, position {position}: run \
         `aeron archive verify --repair`, or start the archive once with \
         aeron.archive.on.torn.fragment=truncate"
    )]
    Torn {
        /// Name of the file.
        name: String,
        /// Position of the frame.
        position: i64,
    },
    /// Bytes that no recorder writes follow the last frame, and the policy is to refuse.
    #[error(
        "{name}, position {position}: {fault}: run `aeron archive verify --repair`, or start the archive once with \
         aeron.archive.on.torn.fragment=truncate"
    )]
    Damaged {
        /// Name of the file.
        name: String,
        /// Position of the first of these bytes.
        position: i64,
        /// Fault in these bytes.
        fault: FrameFault,
    },
    /// The directory cannot be listed, or a segment cannot be opened, read or shortened.
    #[error("{name}: {source}")]
    Storage {
        /// Name of the file; `.` is the directory.
        name: String,
        /// Error of the storage.
        source: io::Error,
    },
}

impl RecoveryError {
    /// Returns whether the catalog entry and the segment files of this one recording do not fit each other.
    pub(crate) fn is_of_entry(&self) -> bool {
        match self {
            Self::Position { .. } | Self::Lost { .. } | Self::Segment { .. } => true,
            Self::Torn { .. } | Self::Damaged { .. } | Self::Storage { .. } => false,
        }
    }
}

/// Finds the end of a recording and changes nothing.
///
/// The bytes below `known_position` are not read: the caller knows that they are recorded. The
/// start position is always a valid `known_position`. A higher recorded position saves reads.
///
/// # Errors
/// [`RecoveryError`] says why the end was not found.
pub fn find_end<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
) -> Result<RecordingEnd, RecoveryError> {
    find_end_by(storage, stream, known_position, &RecoveryPolicy::default())
}

/// Finds the end of a recording like [`find_end`], with the given policy.
///
/// # Errors
/// [`RecoveryError`]; [`RecoveryError::Torn`] and [`RecoveryError::Damaged`] only with [`OnTornFragment::Refuse`].
pub fn find_end_by<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let files = LastSegments::of(SegmentFileName::among(&list(storage)?));
    let found = Recovery::new(storage, &files, *policy).find_end(stream, known_position)?;
    found.recording_end(storage, stream)
}

/// Finds the end of a recording like [`find_end_by`]. The base of the recording's last segment file
/// is `last`. `prove` returns the proof of the index for this segment, as in [`Recovery::find_end_with`].
pub(crate) fn find_end_from<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    last: Option<i64>,
    policy: &RecoveryPolicy,
    prove: impl FnOnce(i64) -> io::Result<Option<IndexProof>>,
) -> Result<RecordingEnd, RecoveryError> {
    let files = LastSegments {
        bases: last
            .map(|base| (stream.recording_id(), base))
            .into_iter()
            .collect(),
    };
    let found =
        Recovery::new(storage, &files, *policy).find_end_with(stream, known_position, prove)?;
    found.recording_end(storage, stream)
}

/// Restores the files of a recording to the state after a normal stop at `end_position`. The caller has found
/// `end_position` by [`find_end_by`].
///
/// # Errors
/// [`RecoveryError::Storage`] if a file cannot be changed.
pub fn cut_at<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    end_position: i64,
) -> Result<(), RecoveryError> {
    let end = FoundEnd {
        position: end_position,
        kept_position: end_position,
        is_torn: false,
        last_segment: LastSegments::of(SegmentFileName::among(&list(storage)?)).base(stream)?,
        is_clean: false,
    };
    end.cut(storage, stream)
}

/// Finds the end of a recording, and restores the files of the recording to the state after a normal stop.
///
/// The last segment file is extended to the full length, with zeros after the end of the recording. If the last segment
/// is full, the next segment is created. The caller writes the stop position into the catalog. Only the owner of the
/// directory may call this function.
///
/// # Errors
/// [`RecoveryError`]; nothing was changed unless it is [`RecoveryError::Storage`].
pub fn recover<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
) -> Result<RecordingEnd, RecoveryError> {
    let names = list(storage)?;
    let files = LastSegments::of(SegmentFileName::among(&names));
    let found = Recovery::new(storage, &files, RecoveryPolicy::default())
        .find_end(stream, known_position)?;
    let end = found.recording_end(storage, stream)?;
    found.cut(storage, stream)?;
    Ok(end)
}

/// The last segment file of each recording of a directory.
#[derive(Debug, Default)]
pub struct LastSegments {
    bases: HashMap<i64, i64>,
}

impl LastSegments {
    /// Finds the last segment file of each recording among the files of the directory.
    #[must_use]
    pub fn of<'a>(files: impl IntoIterator<Item = SegmentFileName<'a>>) -> Self {
        let mut bases = HashMap::new();
        let segments = files
            .into_iter()
            .filter(|file| file.extension == SEGMENT_EXTENSION);
        for file in segments {
            let base = bases.entry(file.recording_id).or_insert(file.base);
            *base = file.base.max(*base);
        }
        Self { bases }
    }

    /// Returns the base of the recording's last segment file.
    fn base(&self, stream: &RecordedStream) -> Result<Option<i64>, RecoveryError> {
        let first = stream.segment_base(stream.start_position());
        let last = self.bases.get(&stream.recording_id()).copied();
        match last.filter(|base| *base >= first) {
            Some(base)
                if stream.segment_base(base) != base
                    || base > stream.positions().max_position() =>
            {
                Err(RecoveryError::Segment {
                    recording_id: stream.recording_id(),
                    name: stream.segment_name(base),
                })
            }
            last => Ok(last),
        }
    }
}

/// Finds the ends of recordings, one after the other.
#[derive(Debug)]
pub struct Recovery<'a, S> {
    storage: &'a S,
    files: &'a LastSegments,
    policy: RecoveryPolicy,
    /// Memory of the window over the segment files, reused for each recording.
    bytes: Vec<u8>,
}

/// The end of a recording, and whether its last segment file has to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundEnd {
    /// Stop position of the recording.
    pub position: i64,
    /// See [`RecordingEnd::kept_position`].
    kept_position: i64,
    /// Whether an incomplete frame or other invalid bytes follow after `position`.
    pub is_torn: bool,
    /// Base of the last segment file.
    last_segment: Option<i64>,
    /// Whether the last segment file has its full length, and all its bytes after the end of the
    /// recording are zeros.
    is_clean: bool,
}

impl FoundEnd {
    /// Restores the files of the recording to the state after a normal stop: see [`recover`].
    ///
    /// # Errors
    /// [`RecoveryError::Storage`] if a file cannot be changed.
    pub fn cut<S: Storage>(
        &self,
        storage: &S,
        stream: &RecordedStream,
    ) -> Result<(), RecoveryError> {
        let Some(base) = self.last_segment else {
            return Ok(());
        };
        let length = stream.segment_length();
        let used = self.position - base;
        if !self.is_clean {
            let cut_last = |file: S::File| cut(&file, used as u64, length as u64);
            let name = stream.segment_name(base);
            storage
                .open(&name, Access::Write)
                .and_then(cut_last)
                .map_err(|source| RecoveryError::Storage { name, source })?;
        }
        if used == length {
            let name = stream.segment_name(self.position);
            storage
                .create(&name, length as u64)
                .map_err(|source| RecoveryError::Storage { name, source })?;
        }
        Ok(())
    }

    /// Forces the restored files to the disk. They may have frames that a killed recorder did not
    /// force to the disk. These frames now belong to the recording, so a loss of power must not
    /// remove them.
    ///
    /// # Errors
    /// [`RecoveryError::Storage`] if a file cannot be forced to the disk.
    pub fn sync<S: Storage>(
        &self,
        storage: &S,
        stream: &RecordedStream,
        level: SyncLevel,
    ) -> Result<(), RecoveryError> {
        let (Some(base), true) = (self.last_segment, level > SyncLevel::None) else {
            return Ok(());
        };
        let name = stream.segment_name(base);
        storage
            .open(&name, Access::Write)
            .and_then(|file| file.sync(level))
            .and_then(|()| storage.sync())
            .map_err(|source| RecoveryError::Storage { name, source })
    }

    /// Returns the end, with the time of the last write to the last segment.
    fn recording_end<S: Storage>(
        &self,
        storage: &S,
        stream: &RecordedStream,
    ) -> Result<RecordingEnd, RecoveryError> {
        let modified = |name: String| {
            storage
                .open(&name, Access::Read)
                .and_then(|file| file.modified())
                .map_err(|source| RecoveryError::Storage { name, source })
        };
        let last = self.last_segment.map(|base| stream.segment_name(base));
        Ok(RecordingEnd {
            position: self.position,
            kept_position: self.kept_position,
            is_torn: self.is_torn,
            modified: last.map(modified).transpose()?,
        })
    }
}

impl<'a, S: Storage> Recovery<'a, S> {
    /// Creates a recovery for recordings in `storage`. `files` has the last segment of each
    /// recording.
    pub fn new(storage: &'a S, files: &'a LastSegments, policy: RecoveryPolicy) -> Self {
        Self {
            storage,
            files,
            policy,
            bytes: Vec::new(),
        }
    }

    /// Finds the end of a recording and changes nothing: see [`find_end_by`].
    ///
    /// # Errors
    /// The same errors as [`find_end_by`].
    pub fn find_end(
        &mut self,
        stream: &RecordedStream,
        known_position: i64,
    ) -> Result<FoundEnd, RecoveryError> {
        self.find_end_with(stream, known_position, |_| Ok(None))
    }

    /// Finds the end like [`find_end`](Self::find_end), with the help of an index. `prove` returns
    /// the proof of the index for the segment at the given base. If the proof shows that a last
    /// frame with a page of zeros is whole, the frame is kept. If the proof shows that the frame was not acknowledged,
    /// the frame is removed. The policy decides about this frame only without a proof.
    ///
    /// # Errors
    /// The same errors as [`find_end_by`], and the errors of `prove`.
    pub(crate) fn find_end_with(
        &mut self,
        stream: &RecordedStream,
        known_position: i64,
        prove: impl FnOnce(i64) -> io::Result<Option<IndexProof>>,
    ) -> Result<FoundEnd, RecoveryError> {
        let possible = stream.start_position()..=stream.positions().max_position();
        if !possible.contains(&known_position) || !is_aligned(known_position) {
            return Err(RecoveryError::Position {
                recording_id: stream.recording_id(),
                known_position,
                start_position: stream.start_position(),
            });
        }
        match self.files.base(stream)? {
            Some(base) => self.find_end_in(stream, known_position, base, prove),
            None => end_without_segments(stream, known_position),
        }
    }

    /// Returns the end that is found in the last segment, which begins at `base`.
    fn find_end_in(
        &mut self,
        stream: &RecordedStream,
        known_position: i64,
        base: i64,
        prove: impl FnOnce(i64) -> io::Result<Option<IndexProof>>,
    ) -> Result<FoundEnd, RecoveryError> {
        let storage_error = |source| RecoveryError::Storage {
            name: stream.segment_name(base),
            source,
        };
        let file = self
            .storage
            .open(&stream.segment_name(base), Access::Read)
            .map_err(storage_error)?;
        let length = file.length().map_err(storage_error)?;
        let limit = base
            + stream
                .segment_length()
                .min(i64::try_from(length).unwrap_or(i64::MAX));
        // If the recorder was killed while it created a segment, the file may end before the start position.
        if known_position > limit.max(stream.start_position()) {
            return Err(lost(stream, known_position, limit));
        }
        let begin = known_position.max(base);
        let walked = self
            .walk(stream, Segment { base, file }, begin..limit)
            .map_err(storage_error)?;
        let proof = match walked.is_torn {
            true => prove(base).map_err(storage_error)?,
            false => None,
        };
        let verdict = Verdict::of(&walked, proof);
        let position = match verdict {
            Verdict::Whole => walked.kept_position,
            Verdict::Untold | Verdict::Unknown => walked.position,
        };
        debug_assert!(
            (begin..=walked.kept_position).contains(&position),
            "recording {}: the end {position} must be between {begin}, where the search began, and {}, where it ended",
            stream.recording_id(),
            walked.kept_position
        );
        if self.policy.on_torn_fragment == OnTornFragment::Refuse {
            walked.check(stream.segment_name(base), verdict)?;
        }
        Ok(FoundEnd {
            position,
            kept_position: walked.kept_position,
            is_torn: position < walked.kept_position || walked.fault != FrameFault::Nothing,
            last_segment: Some(base),
            is_clean: walked.is_followed_by_zeros && limit == base + stream.segment_length(),
        })
    }

    /// Walks over the frames of a segment. The storage reports where the zeros at the end of the
    /// file begin, so the zeros are not read.
    fn walk(
        &mut self,
        stream: &RecordedStream,
        segment: Segment<S::File>,
        range: Range<i64>,
    ) -> io::Result<Walked> {
        let (base, checksum) = (segment.base, self.policy.checksum);
        let zeros = segment.file.trailing_zeros((range.start - base) as u64)?;
        let bytes = std::mem::take(&mut self.bytes);
        let mut window = Window::at(segment, self.storage, *stream, bytes);
        let mut walked = None;
        if let Some(zeros) = zeros {
            let limit = range.end.min(base + zeros as i64);
            // The last frame may end with zeros that were never written. Then this walk stops
            // before the frame, and the second walk reads all of it.
            walked = Some(walk(&mut window, range.start..limit, checksum)?)
                .filter(|walked| walked.is_followed_by_zeros);
        }
        let walked = match walked {
            Some(walked) => walked,
            None => {
                window.clear();
                Walked {
                    is_followed_by_zeros: false,
                    ..walk(&mut window, range, checksum)?
                }
            }
        };
        self.bytes = window.into_bytes();
        Ok(walked)
    }
}

fn end_without_segments(
    stream: &RecordedStream,
    known_position: i64,
) -> Result<FoundEnd, RecoveryError> {
    let position = stream.start_position();
    if known_position > position {
        return Err(lost(stream, known_position, position));
    }
    Ok(FoundEnd {
        position,
        kept_position: position,
        is_torn: false,
        last_segment: None,
        is_clean: true,
    })
}

/// The result of a walk over whole frames.
struct Walked {
    /// End of the last frame that is whole.
    position: i64,
    /// End of the last frame, even if this frame may be torn.
    kept_position: i64,
    /// Whether the last frame may be torn.
    is_torn: bool,
    /// Fault of the bytes at which the walk ended.
    fault: FrameFault,
    /// Whether all frames are whole, and only zeros follow up to the limit.
    is_followed_by_zeros: bool,
}

/// The proof of an index about a last frame with a page of zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The frame is whole.
    Whole,
    /// The recorder did not acknowledge the frame. The frame may be torn, and is removed.
    Untold,
    /// The index proves nothing.
    Unknown,
}

impl Verdict {
    fn of(walked: &Walked, proof: Option<IndexProof>) -> Self {
        match proof {
            Some(proof) if proof.told_position >= walked.kept_position => Self::Whole,
            Some(proof) if walked.position >= proof.begin_position => Self::Untold,
            _ => Self::Unknown,
        }
    }
}

impl Walked {
    /// Returns an error if an operator has to decide about the last frame. A frame length of 0 or
    /// less is the normal end of a recording.
    fn check(&self, name: String, verdict: Verdict) -> Result<(), RecoveryError> {
        let position = self.position;
        match self.fault {
            FrameFault::Incomplete { .. } => Err(RecoveryError::Torn { name, position }),
            _ if self.is_torn && verdict == Verdict::Unknown => {
                Err(RecoveryError::Torn { name, position })
            }
            FrameFault::Nothing | FrameFault::Length { length: ..=0, .. } => Ok(()),
            fault => Err(RecoveryError::Damaged {
                name,
                position,
                fault,
            }),
        }
    }
}

fn walk<S: Storage>(
    window: &mut Window<S>,
    range: Range<i64>,
    checksum: Option<Checksum>,
) -> io::Result<Walked> {
    let limit = range.end;
    let mut position = range.start;
    let mut doubtful = None;
    let mut fault = FrameFault::Nothing;
    while position < limit {
        match window.frame(position, limit)? {
            Ok(frame) => {
                position = frame.end_position();
                doubtful = is_doubtful(&frame, checksum).then_some(frame.position());
            }
            Err(found) => {
                fault = found;
                break;
            }
        }
    }
    Ok(Walked {
        position: doubtful.unwrap_or(position),
        kept_position: position,
        is_torn: doubtful.is_some(),
        is_followed_by_zeros: doubtful.is_none()
            && fault == FrameFault::Nothing
            && window.holds_zeros(position, limit),
        fault,
    })
}

/// Returns whether the last frame may be torn. The frame may be torn if a page after its first page is all zeros, and
/// no checksum proves that these zeros were recorded.
fn is_doubtful(frame: &CheckedFrame<'_>, checksum: Option<Checksum>) -> bool {
    has_empty_page(frame.position(), frame.bytes())
        && checksum.is_none_or(|checksum| checksum.verify(frame).is_err())
}

/// Returns whether any page after the first page of a frame at `position` is all zeros.
pub(crate) fn has_empty_page(position: i64, frame: &[u8]) -> bool {
    let first_page = PAGE_LENGTH - position as usize % PAGE_LENGTH;
    let further = frame.get(first_page..).unwrap_or_default();
    further
        .chunks(PAGE_LENGTH)
        .any(|page| page.iter().all(|byte| *byte == 0))
}

fn list<S: Storage>(storage: &S) -> Result<Vec<String>, RecoveryError> {
    storage.names().map_err(|source| RecoveryError::Storage {
        name: ".".to_owned(),
        source,
    })
}

fn lost(stream: &RecordedStream, known_position: i64, end_position: i64) -> RecoveryError {
    RecoveryError::Lost {
        recording_id: stream.recording_id(),
        known_position,
        end_position,
    }
}
