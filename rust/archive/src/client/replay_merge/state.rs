//! [`MergeState`]: the states of a merge.

use aeron_client::Image;

use super::super::operation::ArchiveOperation;
use super::MergeResult;
use super::error::ReplayMergeError;
use super::parties::Parties;

/// The states of a merge, in their order. `Catchup` and `AttemptLiveJoin` alternate until the merge
/// is complete.
pub(super) enum MergeState {
    /// Waits until the driver has chosen the port of the replay.
    ResolveReplayPort,
    /// Requests the position of the recording.
    GetRecordingPosition,
    /// Requests the replay. The replay must reach `target`.
    Replay {
        target: i64,
        starting: ArchiveOperation<i64>,
    },
    /// Receives the replay up to `target`.
    Catchup { target: i64 },
    /// Requests the position of the recording again, and compares it with the position of the image.
    AttemptLiveJoin,
    /// Receives only the live stream.
    Merged,
    /// An error has ended the merge.
    Failed,
    /// The application has closed the merge.
    Closed,
}

impl MergeState {
    pub(super) fn begin(parties: &Parties) -> MergeResult<Self> {
        Ok(match parties.awaits_port()? {
            true => Self::ResolveReplayPort,
            false => Self::GetRecordingPosition,
        })
    }

    /// Makes progress without waiting. Returns the next state, or `None` if the state does not change.
    pub(super) fn advance(
        &mut self,
        parties: &mut Parties,
        now_ns: i64,
    ) -> MergeResult<Option<Self>> {
        match self {
            Self::ResolveReplayPort => {
                let is_resolved = parties.resolve_port()?;
                Ok(is_resolved.then_some(Self::GetRecordingPosition))
            }
            Self::GetRecordingPosition => {
                let Some(target) = parties.poll_position(now_ns)? else {
                    return Ok(None);
                };
                let starting = parties.start_replay()?;
                Ok(Some(Self::Replay { target, starting }))
            }
            Self::Replay { target, starting } => {
                let Some(replay_session_id) = starting.poll()? else {
                    return Ok(None);
                };
                parties.begin_catchup(replay_session_id);
                Ok(Some(Self::Catchup { target: *target }))
            }
            Self::Catchup { target } => match parties.find_image() {
                Some(image) if image.position() >= *target => Ok(Some(Self::AttemptLiveJoin)),
                Some(image) if image.is_closed() => Err(ReplayMergeError::ImageClosed),
                Some(_) | None => Ok(None),
            },
            Self::AttemptLiveJoin => {
                let Some(target) = parties.poll_position(now_ns)? else {
                    return Ok(None);
                };
                Ok(Some(match parties.join(target)? {
                    true => Self::Merged,
                    false => Self::Catchup { target },
                }))
            }
            Self::Merged | Self::Failed | Self::Closed => Ok(None),
        }
    }

    /// Ends the merge before it is complete. The archive may still start the requested replay. That replay is stopped,
    /// because it would occupy the channel and the session id of the next merge.
    pub(super) fn fail(&mut self, parties: &Parties) {
        if let Self::Replay { starting, .. } = self {
            parties.archive.stop_late_replay(starting.correlation_id());
        }
        *self = Self::Failed;
    }

    /// Returns Aeron's name of the state.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::ResolveReplayPort => "RESOLVE_REPLAY_PORT",
            Self::GetRecordingPosition => "GET_RECORDING_POSITION",
            Self::Replay { .. } => "REPLAY",
            Self::Catchup { .. } => "CATCHUP",
            Self::AttemptLiveJoin => "ATTEMPT_LIVE_JOIN",
            Self::Merged => "MERGED",
            Self::Failed => "FAILED",
            Self::Closed => "CLOSED",
        }
    }

    /// Returns whether the state is final: only closing the merge still changes it.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Merged | Self::Failed | Self::Closed)
    }

    /// Returns whether a merge may go from this state to `next`.
    pub(super) const fn may_become(&self, next: &Self) -> bool {
        // While the live stream is too far ahead, the merge catches up again.
        let is_again = matches!((self, next), (Self::AttemptLiveJoin, Self::Catchup { .. }));
        is_again || next.stage() > self.stage()
    }

    const fn stage(&self) -> u8 {
        match self {
            Self::ResolveReplayPort => 0,
            Self::GetRecordingPosition => 1,
            Self::Replay { .. } => 2,
            Self::Catchup { .. } => 3,
            Self::AttemptLiveJoin => 4,
            Self::Merged | Self::Failed | Self::Closed => 5,
        }
    }
}

/// The last state and the highest position that a merge has reached, and the time of this progress.
#[derive(Default)]
pub(super) struct MergeProgress {
    stage: u8,
    is_live_added: bool,
    position: i64,
    since_ns: i64,
}

impl MergeProgress {
    pub(super) fn begin(now_ns: i64) -> Self {
        Self {
            since_ns: now_ns,
            ..Self::default()
        }
    }

    /// Updates the progress. Returns the time without progress, in nanoseconds.
    pub(super) fn update(&mut self, state: &MergeState, parties: &Parties, now_ns: i64) -> i64 {
        let position = parties.image.as_ref().map_or(0, Image::position);
        let is_live_added = parties.is_live_added;
        if state.stage() > self.stage
            || position > self.position
            || is_live_added != self.is_live_added
        {
            debug_assert!(
                is_live_added || !self.is_live_added,
                "a merge must not lose its live destination before its end"
            );
            self.stage = self.stage.max(state.stage());
            self.position = self.position.max(position);
            self.is_live_added = is_live_added;
            self.since_ns = now_ns;
        }
        now_ns.wrapping_sub(self.since_ns)
    }
}
