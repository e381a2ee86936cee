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
use crate::window::Window;
use std::io;
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
    find_end_from(
        storage,
        stream,
        known_position,
        highest_segment(storage, stream)?,
        policy,
    )
}

/// Finds the end of a recording as [`find_end_by`], whose last segment file begins at `last`.
pub(crate) fn find_end_from<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    last: Option<i64>,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let possible = stream.start_position()..=stream.positions().max_position();
    if !possible.contains(&known_position) || !is_aligned(known_position) {
        return Err(RecoveryError::Position {
            recording_id: stream.recording_id(),
            known_position,
            start_position: stream.start_position(),
        });
    }
    match checked_segment(stream, last)? {
        Some(base) => find_end_in(storage, stream, known_position, base, policy),
        None => end_without_segments(stream, known_position),
    }
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
    let end = find_end(storage, stream, known_position)?;
    cut_at(storage, stream, end.position)?;
    Ok(end)
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
    let Some(base) = checked_segment(stream, highest_segment(storage, stream)?)? else {
        return Ok(());
    };
    let length = stream.segment_length();
    let used = end_position - base;
    let cut_last = |file: S::File| cut(&file, used as u64, length as u64);
    let name = stream.segment_name(base);
    storage
        .open(&name, Access::Write)
        .and_then(cut_last)
        .map_err(|source| RecoveryError::Storage { name, source })?;
    if used == length {
        let name = stream.segment_name(end_position);
        storage
            .create(&name, length as u64)
            .map_err(|source| RecoveryError::Storage { name, source })?;
    }
    Ok(())
}

fn end_without_segments(
    stream: &RecordedStream,
    known_position: i64,
) -> Result<RecordingEnd, RecoveryError> {
    let position = stream.start_position();
    if known_position > position {
        return Err(lost(stream, known_position, position));
    }
    Ok(RecordingEnd {
        position,
        kept_position: position,
        is_torn: false,
        modified: None,
    })
}

/// The end in the last segment, which begins at `base`.
fn find_end_in<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    known_position: i64,
    base: i64,
    policy: &RecoveryPolicy,
) -> Result<RecordingEnd, RecoveryError> {
    let storage_error = |source| RecoveryError::Storage {
        name: stream.segment_name(base),
        source,
    };
    let (length, modified) = storage
        .open(&stream.segment_name(base), Access::Read)
        .and_then(|file| Ok((file.length()?, file.modified()?)))
        .map_err(storage_error)?;
    let limit = base
        + stream
            .segment_length()
            .min(i64::try_from(length).unwrap_or(i64::MAX));
    // A segment that was killed while it was created is shorter than the offset of the start position in it.
    if known_position > limit.max(stream.start_position()) {
        return Err(lost(stream, known_position, limit));
    }
    let begin = known_position.max(base);
    let walked = walk(storage, stream, begin, limit, policy.checksum).map_err(storage_error)?;
    if policy.on_torn_fragment == OnTornFragment::Refuse {
        walked.check(stream.segment_name(base))?;
    }
    Ok(RecordingEnd {
        position: walked.position,
        kept_position: walked.kept_position,
        is_torn: walked.is_torn || walked.fault != FrameFault::Nothing,
        modified: Some(modified),
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
    storage: &S,
    stream: &RecordedStream,
    begin: i64,
    limit: i64,
    checksum: Option<Checksum>,
) -> io::Result<Walked> {
    let mut window = Window::new(storage, *stream);
    let mut position = begin;
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

/// Base in the name of the recording's last segment file.
fn highest_segment<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
) -> Result<Option<i64>, RecoveryError> {
    let names = storage.names().map_err(|source| RecoveryError::Storage {
        name: ".".to_owned(),
        source,
    })?;
    let first = stream.segment_base(stream.start_position());
    let bases = names.iter().filter_map(|name| base_of(stream, name));
    Ok(bases.filter(|base| *base >= first).max())
}

/// Checks that a segment of the recording can begin at `last`.
fn checked_segment(
    stream: &RecordedStream,
    last: Option<i64>,
) -> Result<Option<i64>, RecoveryError> {
    match last {
        Some(base) if stream.segment_base(base) != base => Err(RecoveryError::Segment {
            recording_id: stream.recording_id(),
            name: stream.segment_name(base),
        }),
        last => Ok(last),
    }
}

fn base_of(stream: &RecordedStream, name: &str) -> Option<i64> {
    let name = SegmentFileName::parse(name)?;
    let is_ours = name.recording_id == stream.recording_id() && name.extension == SEGMENT_EXTENSION;
    is_ours.then_some(name.base)
}

fn lost(stream: &RecordedStream, known_position: i64, end_position: i64) -> RecoveryError {
    RecoveryError::Lost {
        recording_id: stream.recording_id(),
        known_position,
        end_position,
    }
}
