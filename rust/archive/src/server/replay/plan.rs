//! [`ReplayPlan`]: the part of a recording that a replay sends, or why the archive refuses the request.

use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP,
};

use crate::catalog::RecordingDescriptor;
use crate::server::ArchiveError;
use crate::storage::BLOCK_LENGTH;
use crate::stream::is_aligned;

/// The requested part of a recording. The values are not checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct ReplayRange {
    /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
    pub position: i64,
    /// Length in bytes, or [`REPLAY_ALL_AND_FOLLOW`], or [`REPLAY_ALL_AND_STOP`].
    pub length: i64,
    /// Longest read of a segment file, in bytes; 0 or less for the archive's setting.
    pub file_io_max_length: i32,
}

/// The part of a recording that a replay sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct ReplayPlan {
    /// Position of the first frame.
    pub position: i64,
    /// Position up to which the replay may send at first.
    pub stop_position: i64,
    /// The replay ends with the frame that reaches this position.
    pub limit_position: i64,
    /// Longest read of a segment file, in bytes.
    pub read_length: usize,
    /// Longest data frame of the recording, in bytes.
    pub mtu_length: usize,
}

impl ReplayPlan {
    /// Checks a request against the recording.
    ///
    /// `bound` is the position that counters allow: the recorded position of an active recording, or the value of the
    /// client's counter for a bounded replay. If both counters bound the replay, `bound` is the lower value. If the
    /// recording is not active, the plan ends at or before the stop position. So segments after the stop position can
    /// be deleted during the replay.
    ///
    /// # Errors
    /// The first reason why the request is refused, with the code and the text for the client.
    pub fn new(
        range: &ReplayRange,
        recording: &RecordingDescriptor,
        bound: Option<i64>,
        file_io_max_length: i32,
    ) -> Result<Self, ArchiveError> {
        let position = first_position(range.position, recording)?;
        let read_length = read_length(
            range.file_io_max_length,
            file_io_max_length,
            recording.mtu_length,
        )?;
        if let Some(bound) = bound.filter(|&bound| position > bound) {
            return Err(not_below(position, bound, recording));
        }
        let (stop_position, end_position) = match bound {
            Some(bound) if recording.is_unfinished() => (bound, i64::MAX),
            Some(bound) => (bound.min(recording.stop_position), recording.stop_position),
            None => (recording.stop_position, recording.stop_position),
        };
        let to_stop = stop_position.saturating_sub(position);
        let to_end = end_position.saturating_sub(position);
        let length = match range.length {
            REPLAY_ALL_AND_STOP if to_stop == 0 => return Err(empty(recording)),
            REPLAY_ALL_AND_STOP => to_stop,
            REPLAY_ALL_AND_FOLLOW => to_end,
            length => length.min(to_end),
        };
        if length < 0 {
            return Err(ArchiveError::generic(format!(
                "replay length must be positive: {length}"
            )));
        }
        debug_assert!(
            position <= stop_position,
            "a replay of recording {} must not begin at {position}, after {stop_position}",
            recording.recording_id
        );
        debug_assert!(
            recording.is_unfinished() || length <= recording.stop_position - position,
            "a replay of {length} bytes from {position} must end before recording {} stops at {}",
            recording.recording_id,
            recording.stop_position
        );
        Ok(Self {
            position,
            stop_position,
            limit_position: position.saturating_add(length),
            read_length,
            mtu_length: usize::try_from(recording.mtu_length).unwrap_or(0),
        })
    }
}

fn first_position(position: i64, recording: &RecordingDescriptor) -> Result<i64, ArchiveError> {
    let &RecordingDescriptor {
        recording_id,
        start_position,
        stop_position,
        ..
    } = recording;
    if position == NULL_VALUE {
        return Ok(start_position);
    }
    if !is_aligned(position) {
        return Err(ArchiveError::generic(format!(
            "requested replay start position={position} is not a multiple of FRAME_ALIGNMENT \
             ({FRAME_ALIGNMENT}) for recording {recording_id}"
        )));
    }
    if position < start_position {
        return Err(ArchiveError::new(
            ArchiveErrorCode::InvalidPosition,
            format!(
                "requested replay start position={position} is less than recording start position={start_position} for \
                 recording {recording_id}"
            ),
        ));
    }
    if !recording.is_unfinished() && position >= stop_position {
        return Err(not_below(position, stop_position, recording));
    }
    Ok(position)
}

fn read_length(requested: i32, own: i32, mtu_length: i32) -> Result<usize, ArchiveError> {
    let shortest = match requested {
        1.. => requested.min(own),
        _ => own,
    };
    if shortest < mtu_length {
        return Err(ArchiveError::generic(format!(
            "fileIoMaxLength={shortest} < mtuLength={mtu_length}"
        )));
    }
    Ok(usize::try_from(shortest).unwrap_or(0).min(BLOCK_LENGTH))
}

fn not_below(position: i64, limit: i64, recording: &RecordingDescriptor) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::InvalidPosition,
        format!(
            "requested replay start position={position} must be less than the limit position={limit} for recording {}",
            recording.recording_id
        ),
    )
}

fn empty(recording: &RecordingDescriptor) -> ArchiveError {
    ArchiveError::new(
        ArchiveErrorCode::EmptyRecording,
        format!(
            "when replaying and stopping the replay length must be non-zero, recordingId={}",
            recording.recording_id
        ),
    )
}
