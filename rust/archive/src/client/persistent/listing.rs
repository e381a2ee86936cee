//! Looks up the recording, and chooses between a replay and the live stream. The states are `SendListRequest` and
//! `AwaitList`.

use aeron_protocol::archive::ArchiveErrorCode;

use super::super::call::{ArchiveCall, Ticket};
use super::super::error::ArchiveClientError;
use super::super::link::Answered;
use super::context::StartPosition;
use super::copies::CopyLookup;
use super::core::{Core, Transition};
use super::error::PersistentSubscriptionError;
use super::set_up::AwaitedReplayPlan;
use super::state::SubscriptionState;
use crate::catalog::RecordingDescriptor;

/// Sends the request for the descriptor of the recording.
pub(super) fn send(core: &mut Core, now_ns: i64) -> Transition {
    let call = ArchiveCall::list_recording(core.settings.recording_id);
    Transition::to(match core.archive.submit(&call, now_ns) {
        Some(ticket) => SubscriptionState::AwaitList(ticket),
        None => SubscriptionState::AwaitArchive,
    })
}

/// Receives the descriptor of the recording. If the next message is before the start position of the recording, asks
/// for copies in object storage.
pub(super) fn receive(
    core: &mut Core,
    ticket: &Ticket<Option<RecordingDescriptor>>,
    now_ns: i64,
) -> Option<Transition> {
    let recording_id = core.settings.recording_id;
    let failure = match core.archive.take(ticket) {
        Answered::Pending => return None,
        Answered::Expired => return Some(Transition::to(SubscriptionState::SendListRequest)),
        Answered::Value(Some(recording)) => {
            return Some(match RecordingCriteria::of(core).choose(&recording) {
                Err(PersistentSubscriptionError::BeforeStart { .. }) => {
                    CopyLookup::begin(core, recording, now_ns)
                }
                chosen => go(core, chosen),
            });
        }
        Answered::Value(None) => PersistentSubscriptionError::UnknownRecording { recording_id },
        Answered::Refused(error) if is_unknown_recording(&error) => {
            PersistentSubscriptionError::UnknownRecording { recording_id }
        }
        // The archive still works on an earlier request of this session, which has expired here.
        Answered::Refused(error)
            if error.archive_code() == Some(ArchiveErrorCode::ActiveListing) =>
        {
            return Some(Transition::to(SubscriptionState::SendListRequest));
        }
        Answered::Refused(source) => PersistentSubscriptionError::Refused {
            request: "list recording request",
            source,
        },
    };
    Some(Transition::fail(failure))
}

fn is_unknown_recording(error: &ArchiveClientError) -> bool {
    error.archive_code() == Some(ArchiveErrorCode::UnknownRecording)
}

/// Chooses the source of the next messages.
pub(super) fn go_on(core: &mut Core, recording: &RecordingDescriptor) -> Transition {
    let chosen = RecordingCriteria::of(core).choose(recording);
    go(core, chosen)
}

fn go(core: &mut Core, chosen: Result<Choice, PersistentSubscriptionError>) -> Transition {
    match chosen {
        Ok(Choice::Live { position }) => {
            core.position = position;
            Transition::to(SubscriptionState::AddLive)
        }
        Ok(Choice::Replay(plan)) => {
            core.position = StartPosition::At(plan.position);
            core.set_up_replay(plan)
        }
        Err(error) => Transition::fail(error),
    }
}

/// The conditions that the recording must meet.
struct RecordingCriteria {
    live_stream_id: i32,
    position: StartPosition,
    highest_live_position: Option<i64>,
}

/// The source of the next messages.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The live stream, joined at this position.
    Live {
        position: StartPosition,
    },
    Replay(AwaitedReplayPlan),
}

impl RecordingCriteria {
    fn of(core: &Core) -> Self {
        Self {
            live_stream_id: core.settings.live_stream_id,
            position: core.position,
            highest_live_position: core.highest_live_position,
        }
    }

    fn choose(
        &self,
        recording: &RecordingDescriptor,
    ) -> Result<Choice, PersistentSubscriptionError> {
        self.check_stream(recording)?;
        let stop_position = (!recording.is_unfinished()).then_some(recording.stop_position);
        let position = match self.position {
            StartPosition::FromLive => {
                return Ok(Choice::Live {
                    position: StartPosition::FromLive,
                });
            }
            StartPosition::FromStart => recording.start_position,
            StartPosition::At(position) => position,
        };
        check_range(recording, position, stop_position)?;
        if stop_position == Some(position) {
            return Ok(Choice::Live {
                position: StartPosition::At(position),
            });
        }
        Ok(Choice::Replay(AwaitedReplayPlan {
            position,
            join_window: i64::from(recording.term_length) / 4,
        }))
    }

    fn check_stream(
        &self,
        recording: &RecordingDescriptor,
    ) -> Result<(), PersistentSubscriptionError> {
        let recording_id = recording.recording_id;
        if recording.stream_id != self.live_stream_id {
            return Err(PersistentSubscriptionError::StreamIdMismatch {
                live_stream_id: self.live_stream_id,
                recorded_stream_id: recording.stream_id,
                recording_id,
            });
        }
        match self.highest_live_position {
            Some(live_position)
                if !recording.is_unfinished() && recording.stop_position < live_position =>
            {
                Err(PersistentSubscriptionError::StoppedBeforeLivePosition {
                    recording_id,
                    stop_position: recording.stop_position,
                    live_position,
                })
            }
            _ => Ok(()),
        }
    }
}

/// Checks that `position` is not before the start position and not after the stop position.
fn check_range(
    recording: &RecordingDescriptor,
    position: i64,
    stop_position: Option<i64>,
) -> Result<(), PersistentSubscriptionError> {
    let recording_id = recording.recording_id;
    let start_position = recording.start_position;
    if position < start_position {
        return Err(PersistentSubscriptionError::BeforeStart {
            position,
            start_position,
            recording_id,
        });
    }
    match stop_position {
        Some(stop_position) if stop_position < position => {
            Err(PersistentSubscriptionError::BeyondStop {
                position,
                stop_position,
                recording_id,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::NULL_VALUE;

    fn recording(start_position: i64, stop_position: i64) -> RecordingDescriptor {
        RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: 7,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position,
            stop_position,
            initial_term_id: 0,
            segment_length: 65536,
            term_length: 65536,
            mtu_length: 1408,
            session_id: 1,
            stream_id: 2,
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        }
    }

    fn wanted(position: StartPosition) -> RecordingCriteria {
        RecordingCriteria {
            live_stream_id: 2,
            position,
            highest_live_position: None,
        }
    }

    fn replay(position: i64) -> Choice {
        Choice::Replay(AwaitedReplayPlan {
            position,
            join_window: 16384,
        })
    }

    fn live(position: i64) -> Choice {
        Choice::Live {
            position: StartPosition::At(position),
        }
    }

    /// 11-22, 11-23, 11-28
    #[test]
    fn an_active_recording_is_replayed_from_its_start_or_from_the_given_position() {
        let active = recording(1024, NULL_VALUE);
        let from_start = wanted(StartPosition::FromStart).choose(&active).unwrap();
        assert_eq!(from_start, replay(1024));
        let inside = wanted(StartPosition::At(2048)).choose(&active).unwrap();
        assert_eq!(inside, replay(2048));
    }

    /// 11-19, 11-26
    #[test]
    fn without_recorded_messages_after_the_start_position_the_live_stream_is_chosen() {
        let stopped = recording(0, 4096);
        let at_end = wanted(StartPosition::At(4096)).choose(&stopped).unwrap();
        assert_eq!(at_end, live(4096));
        let empty = recording(64, 64);
        let from_start = wanted(StartPosition::FromStart).choose(&empty).unwrap();
        assert_eq!(from_start, live(64));
        let from_live = wanted(StartPosition::FromLive).choose(&stopped).unwrap();
        let position = StartPosition::FromLive;
        assert_eq!(from_live, Choice::Live { position });
    }

    /// 11-31, 11-32, 11-53
    #[test]
    fn if_several_checks_fail_the_first_failed_check_determines_the_error() {
        let refusal = |wanted: &RecordingCriteria, recording: &RecordingDescriptor| {
            wanted.choose(recording).unwrap_err().to_string()
        };
        let stopped = recording(1024, 4096);
        assert_eq!(
            refusal(&wanted(StartPosition::At(992)), &stopped),
            "requested replay start position=992 is less than recording start position=1024 for recording 7"
        );
        assert_eq!(
            refusal(&wanted(StartPosition::At(4128)), &stopped),
            "requested replay start position=4128 must be less than the limit position=4096 for recording 7"
        );
        let seen_live = RecordingCriteria {
            highest_live_position: Some(4128),
            ..wanted(StartPosition::At(992))
        };
        assert_eq!(
            refusal(&seen_live, &stopped),
            "recording 7 stopped at position=4096 which is earlier than last observed live position=4128"
        );
        let other_stream = RecordingCriteria {
            live_stream_id: 3,
            ..seen_live
        };
        assert_eq!(
            refusal(&other_stream, &stopped),
            "Requested live stream with ID: 3 does not match stream ID: 2 for recording: 7"
        );
    }
}
