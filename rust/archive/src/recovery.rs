//! Where a recording ends whose recorder died: found in its segment files alone.
//!
//! A writer that is killed leaves a prefix of its last block, which ends at a page boundary, and zeros behind it. So the end
//! is found by walking over whole frames, from a position that is known to be recorded. Only the last frame can be in doubt:
//! where it goes over a page boundary and a page behind that holds nothing, it is torn, and nobody was told of it.
//!
//! A recorder that keeps a known position cuts a torn frame without a question ([`recover`]). An archive only knows the start position,
//! and other processes may have seen the frame, so its [`RecoveryPolicy`] can refuse to cut.

use crate::checksum::Checksum;
use crate::frame::{Frame, FrameFault};
use crate::recorder::cut;
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::{RecordedStream, is_aligned};
use crate::window::{Segment, Window};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::time::SystemTime;
use thiserror::Error;

/// What the kernel writes wholly or not at all, in bytes.
const PAGE_LENGTH: usize = 4096;

/// Where a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Its stop position.
    pub position: i64,
    /// Stop position if a last frame that may not be whole is kept: after `position` only if there is such a frame with all its bytes.
    pub kept_position: i64,
    /// Whether a frame follows that was not written wholly, or bytes that are none.
    pub is_torn: bool,
    /// When its last segment was last written; `None` when it has no segment.
    pub modified: Option<SystemTime>,
}

/// Decision about a last frame that may not be whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnTornFragment {
    /// Fail and change nothing: a person has to decide.
    Refuse,
    /// Cut the frame, so that the recording ends before it.
    #[default]
    Truncate,
}

/// What a recovery takes for the end of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// Decision about a last frame that may not be whole.
    pub on_torn_fragment: OnTornFragment,
    /// Checksum that the recorder wrote. A last frame with this checksum is whole, even if one of its pages is empty.
    pub checksum: Option<Checksum>,
}

/// Why no end can be found.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The known position is not one of the recording.
    #[error(
        "recording {recording_id}: {known_position} is no position of a frame; it starts at {start_position}"
    )]
    Position {
        /// Recording id.
        recording_id: i64,
        /// As given.
        known_position: i64,
        /// Where the recording starts.
        start_position: i64,
    },
    /// Something was recorded that the files do not hold any more.
    #[error(
        "recording {recording_id}: recorded up to {known_position}, but its segment files end at {end_position}"
    )]
    Lost {
        /// Recording id.
        recording_id: i64,
        /// As given.
        known_position: i64,
        /// Where the last segment file ends.
        end_position: i64,
    },
    /// The file with the highest position is none that the recording can have.
    #[error("{name}: no segment of recording {recording_id} begins at this position")]
    Segment {
        /// Recording id.
        recording_id: i64,
        /// Name of the file.
        name: String,
    },
    /// The last frame may not be whole, and the policy is to refuse.
    #[error(
        "Found potentially incomplete last fragment straddling page boundary in file: {name}, position {position}: run \
         `ArchiveTool verify` for corrective action, or start the archive once with \
         aeron.archive.on.torn.fragment=truncate"
    )]
    Torn {
        /// Name of the file.
        name: String,
        /// Where the frame begins.
        position: i64,
    },
    /// Bytes that no recorder writes follow the last frame, and the policy is to refuse.
    #[error(
        "{name}, position {position}: {fault}: run `ArchiveTool verify` for corrective action, or start the archive once with \
         aeron.archive.on.torn.fragment=truncate"
    )]
    Damaged {
        /// Name of the file.
        name: String,
        /// Where the bytes begin.
        position: i64,
        /// What is wrong with them.
        fault: FrameFault,
    },
    /// The directory cannot be listed, or a segment not opened, read or cut.
    #[error("{name}: {source}")]
    Storage {
        /// Name of the file; of the directory, `.`.
        name: String,
        /// What the storage answers.
        source: io::Error,
    },
}

/// Finds the end of a recording and changes nothing. Nothing below `known_position` is looked at: it is recorded, so the start
/// position is always right, and whatever anybody was told of is better.
///
/// # Errors
/// [`RecoveryError`].
pub fn find_end<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
) -> Result<RecordingEnd, RecoveryError> {
    find_end_by(storage, stream, known_position, &RecoveryPolicy::default())
}

/// Finds the end of a recording as [`find_end`], by a policy of its own.
///
/// # Errors
/// [`RecoveryError`]; [`RecoveryError::Torn`] and [`RecoveryError::Damaged`] only with [`OnTornFragment::Refuse`].
pub fn find_end_by<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let files = LastSegments::of(&list(storage)?);
    find_end_among(storage, stream, known_position, &files, policy)
}

/// Finds the end of a recording as [`find_end_by`], whose last segment file begins at `last`.
pub(crate) fn find_end_from<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    last: Option<i64>,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let files = LastSegments {
        bases: last
            .map(|base| (stream.recording_id(), base))
            .into_iter()
            .collect(),
    };
    find_end_among(storage, stream, known_position, &files, policy)
}

fn find_end_among<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    files: &LastSegments,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let found = Recovery::new(storage, files, *policy).find_end(stream, known_position)?;
    found.recording_end(storage, stream)
}

/// Leaves the files of a recording that ends at `end_position`, which [`find_end_by`] has found, as its recorder would have.
///
/// # Errors
/// [`RecoveryError::Storage`].
pub fn cut_at<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    end_position: i64,
) -> Result<(), RecoveryError> {
    let end = FoundEnd {
        position: end_position,
        kept_position: end_position,
        is_torn: false,
        last_segment: LastSegments::of(&list(storage)?).base(stream)?,
        is_clean: false,
    };
    end.cut(storage, stream)
}

/// Finds the end of a recording and leaves its files as its recorder would have: the last segment has its length and is zeros
/// from the end on, and a full one is followed by the next. The stop position in the catalog is left to the caller. Only for
/// who owns the directory.
///
/// # Errors
/// [`RecoveryError`]; nothing was changed unless it is [`RecoveryError::Storage`].
pub fn recover<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
) -> Result<RecordingEnd, RecoveryError> {
    let names = list(storage)?;
    let files = LastSegments::of(&names);
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
    /// Reads the names of the directory's files.
    #[must_use]
    pub fn of<N: AsRef<str>>(names: &[N]) -> Self {
        let mut bases = HashMap::new();
        let segments = names
            .iter()
            .filter_map(|name| SegmentFileName::parse(name.as_ref()))
            .filter(|name| name.extension == SEGMENT_EXTENSION);
        for name in segments {
            let base = bases.entry(name.recording_id).or_insert(name.base);
            *base = name.base.max(*base);
        }
        Self { bases }
    }

    /// Base of the recording's last segment file.
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
    /// Memory of the window over the recording in turn.
    bytes: Vec<u8>,
}

/// The end of a recording, and what its last segment file needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundEnd {
    /// Its stop position.
    pub position: i64,
    /// As that of [`RecordingEnd`].
    kept_position: i64,
    /// Whether a frame follows that was not written wholly, or bytes that are none.
    pub is_torn: bool,
    /// Base of the last segment file.
    last_segment: Option<i64>,
    /// Whether the last segment has its length and is zeros from the end on.
    is_clean: bool,
}

impl FoundEnd {
    /// Leaves the files of the recording as its recorder would have: see [`recover`].
    ///
    /// # Errors
    /// [`RecoveryError::Storage`].
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

    /// The end, with the time at which the last segment was last written.
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
    /// A recovery of recordings in `storage`, whose last segments `files` knows.
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
    /// As [`find_end_by`].
    pub fn find_end(
        &mut self,
        stream: &RecordedStream,
        known_position: i64,
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
            Some(base) => self.find_end_in(stream, known_position, base),
            None => end_without_segments(stream, known_position),
        }
    }

    /// The end in the last segment, which begins at `base`.
    fn find_end_in(
        &mut self,
        stream: &RecordedStream,
        known_position: i64,
        base: i64,
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
        // A segment that was killed while it was created is shorter than the offset of the start position in it.
        if known_position > limit.max(stream.start_position()) {
            return Err(lost(stream, known_position, limit));
        }
        let begin = known_position.max(base);
        let walked = self
            .walk(stream, Segment { base, file }, begin..limit)
            .map_err(storage_error)?;
        if self.policy.on_torn_fragment == OnTornFragment::Refuse {
            walked.check(stream.segment_name(base))?;
        }
        Ok(FoundEnd {
            position: walked.position,
            kept_position: walked.kept_position,
            is_torn: walked.is_torn || walked.fault != FrameFault::Nothing,
            last_segment: Some(base),
            is_clean: walked.is_followed_by_zeros && limit == base + stream.segment_length(),
        })
    }

    /// Walks over the frames of a segment. A file says where its trailing zeros begin, so that those of a long segment need not be read.
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
            // A frame that goes on in the zeros is looked at as a whole.
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
    /// End of the last frame, whole or in doubt.
    kept_position: i64,
    /// Whether a frame follows that is not.
    is_torn: bool,
    /// What is wrong with the bytes at which the walk ended.
    fault: FrameFault,
    /// Whether the frames are whole, and only zeros follow up to the limit.
    is_followed_by_zeros: bool,
}

impl Walked {
    /// Refuses an end that a person has to decide on. A length of 0 or less is the end of each recording.
    fn check(&self, name: String) -> Result<(), RecoveryError> {
        let position = self.position;
        match self.fault {
            FrameFault::Incomplete { .. } => Err(RecoveryError::Torn { name, position }),
            _ if self.is_torn => Err(RecoveryError::Torn { name, position }),
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

/// Whether the end of a frame may be missing: a page behind its first one holds nothing, and no checksum says that this is right.
fn is_doubtful(frame: &Frame<'_>, checksum: Option<Checksum>) -> bool {
    let first_page = PAGE_LENGTH - frame.position() as usize % PAGE_LENGTH;
    let further = frame.bytes().get(first_page..).unwrap_or_default();
    let has_empty_page = further
        .chunks(PAGE_LENGTH)
        .any(|page| page.iter().all(|byte| *byte == 0));
    has_empty_page && checksum.is_none_or(|checksum| checksum.verify(frame).is_err())
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
