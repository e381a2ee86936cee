//! [`AwaitedReplay`] and [`Replaying`]: an active replay (states `AwaitReplayImage` and `Replay`), and the approach to
//! the live stream.

use aeron_client::Subscription;

use super::super::call::{ArchiveCall, Ticket};
use super::super::link::Answered;
use super::context::StartPosition;
use super::core::{Core, Transition, is_past};
use super::error::{PersistentSubscriptionError, REPLAY_REQUEST};
use super::live::{LiveFailure, LiveStream, LiveWait};
use super::read_image::ReadImage;
use super::set_up::AwaitedReplayPlan;
use super::state::{StateOutcome, SubscriptionState};
use super::switch::Switching;
use super::turn::Turn;

/// A replay that was started, before its image is available.
pub(super) struct AwaitedReplay {
    plan: AwaitedReplayPlan,
    replay_session_id: i64,
    subscription: Subscription,
    deadline_ns: i64,
}

impl AwaitedReplay {
    pub(super) const fn new(
        plan: AwaitedReplayPlan,
        replay_session_id: i64,
        subscription: Subscription,
        deadline_ns: i64,
    ) -> Self {
        Self {
            plan,
            replay_session_id,
            subscription,
            deadline_ns,
        }
    }

    pub(super) const fn replay_session_id(&self) -> i64 {
        self.replay_session_id
    }

    /// Checks whether the image is available. If the image is overdue, stops the replay and sets up
    /// another replay.
    pub(super) fn step(&self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        // The session id of a replay is in the low 32 bits of the replay id.
        let session_id = self.replay_session_id as i32;
        if let Some(image) = self.subscription.image_by_session_id(session_id) {
            let stream = ReplayStream {
                session_id: self.replay_session_id,
                subscription: self.subscription.clone(),
                image: ReadImage::new(image),
            };
            let replaying = Replaying::new(stream, self.plan.join_window);
            return Some(Transition::to(SubscriptionState::Replay(Box::new(
                replaying,
            ))));
        }
        is_past(self.deadline_ns, now_ns).then(|| {
            core.archive.stop_replay(self.replay_session_id, now_ns);
            core.set_up_replay(self.plan)
        })
    }
}

/// A replay with its image.
#[derive(Clone)]
pub(super) struct ReplayStream {
    pub(super) session_id: i64,
    /// Kept open, because the image ends when its subscription is closed.
    subscription: Subscription,
    pub(super) image: ReadImage,
}

impl ReplayStream {
    /// Looks up the recording again, because the replay has ended. If the archive has ended two replays at the same
    /// position with an error, a third one would end there too, for example because the recording is damaged.
    pub(super) fn ended(&self, core: &mut Core, now_ns: i64) -> Transition {
        let ended = (self.session_id, self.image.position());
        core.position = StartPosition::At(ended.1);
        core.archive.stop_replay(ended.0, now_ns);
        let before = core.ended_replay.replace(ended);
        // The error of the second replay may arrive after the end of its image.
        if let Some((session_id, position)) = before
            && position == ended.1
            && let Some(source) = core.archive.error_of_replay(session_id)
        {
            let request = REPLAY_REQUEST;
            return Transition::fail(PersistentSubscriptionError::Refused { request, source });
        }
        core.refresh()
    }
}

/// A replay whose messages are delivered.
pub(super) struct Replaying {
    replay: ReplayStream,
    join_window: i64,
    approach: Approach,
}

/// The distance of the replay from the live stream.
enum Approach {
    /// Far from the live stream. When the replay reaches the position `ask_at`, the archive is asked where the
    /// recording ends.
    Distant {
        ask_at: i64,
    },
    Asking(Ticket<i64>),
    AddLive,
    AwaitLive(LiveWait),
}

impl Replaying {
    pub(super) fn new(replay: ReplayStream, join_window: i64) -> Self {
        Self {
            replay,
            join_window,
            approach: Approach::Distant { ask_at: i64::MIN },
        }
    }

    pub(super) const fn replay_session_id(&self) -> i64 {
        self.replay.session_id
    }

    /// If the driver runs in this process, runs a turn of it, so that it can receive further data of the stream.
    pub(super) fn bring_more(&self) {
        self.replay.subscription.is_readable();
    }

    /// Stores the position up to which messages were delivered.
    pub(super) fn keep_position(&self, core: &mut Core) {
        core.position = StartPosition::At(self.replay.image.position());
    }

    pub(super) fn step(&mut self, core: &mut Core, turn: &mut Turn<'_>) -> StateOutcome {
        if self.replay.image.is_closed() {
            return Ok(Some(self.replay.ended(core, turn.now_ns)));
        }
        if let Some(transition) = self.look_for_live(core, turn.now_ns) {
            return Ok(Some(transition));
        }
        let delivered = turn.deliver(&mut self.replay.image);
        self.keep_position(core);
        delivered?;
        Ok(self.come_closer(core, turn.now_ns))
    }

    /// Begins the switch when a live image is available.
    fn look_for_live(&mut self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        let Approach::AwaitLive(wait) = &mut self.approach else {
            return None;
        };
        match wait.poll(core, now_ns) {
            Ok(live) => live.map(|live| self.switch_to(core, live)),
            Err(failure) => self.live_failed(core, failure, now_ns),
        }
    }

    /// Handles a failure to add the live subscription: tries again, or ends the subscription.
    fn live_failed(
        &mut self,
        core: &mut Core,
        failure: LiveFailure,
        now_ns: i64,
    ) -> Option<Transition> {
        self.approach = Approach::AddLive;
        match failure {
            LiveFailure::Temporary(error) => {
                core.resources.failed(now_ns);
                core.report(&error);
                None
            }
            LiveFailure::Refused(error) => {
                core.archive.stop_replay(self.replay.session_id, now_ns);
                Some(Transition::fail(error))
            }
        }
    }

    fn switch_to(&self, core: &Core, live: LiveStream) -> Transition {
        debug_assert!(
            matches!(self.approach, Approach::AwaitLive(_)),
            "a replay switches to a live stream that it has not subscribed to"
        );
        let difference = live.image.position() - self.replay.image.position();
        core.set_join_difference(difference);
        let switching = Switching::new(self.replay.clone(), live, self.join_window);
        Transition::to(SubscriptionState::Switch(Box::new(switching)))
    }

    /// Asks the archive where the recording ends, and adds the live subscription when the replay is close to this end.
    fn come_closer(&mut self, core: &mut Core, now_ns: i64) -> Option<Transition> {
        match &mut self.approach {
            Approach::Distant { ask_at } if self.replay.image.position() < *ask_at => None,
            Approach::Distant { .. } => {
                let call = ArchiveCall::max_recorded_position(core.settings.recording_id);
                if let Some(ticket) = core.archive.submit(&call, now_ns) {
                    self.approach = Approach::Asking(ticket);
                }
                None
            }
            Approach::Asking(ticket) => match core.archive.take(ticket) {
                Answered::Pending => None,
                Answered::Value(recorded_position) => {
                    self.approach = self.approach_to(recorded_position);
                    None
                }
                Answered::Expired => {
                    self.approach = Approach::Distant { ask_at: i64::MIN };
                    None
                }
                Answered::Refused(source) => {
                    core.archive.stop_replay(self.replay.session_id, now_ns);
                    let request = "get max recorded position request";
                    let error = PersistentSubscriptionError::Refused { request, source };
                    Some(Transition::fail(error))
                }
            },
            Approach::AddLive if !core.resources.is_due(now_ns) => None,
            Approach::AddLive => match LiveWait::subscribe(core) {
                Ok(wait) => {
                    self.approach = Approach::AwaitLive(wait);
                    None
                }
                Err(failure) => self.live_failed(core, failure, now_ns),
            },
            Approach::AwaitLive(_) => None,
        }
    }

    fn approach_to(&self, recorded_position: i64) -> Approach {
        if is_caught_up(
            self.replay.image.position(),
            recorded_position,
            self.join_window,
        ) {
            return Approach::AddLive;
        }
        Approach::Distant {
            ask_at: recorded_position,
        }
    }
}

/// Returns whether a replay is so close to the end of the recording that the live subscription is added.
const fn is_caught_up(position: i64, recorded_position: i64, join_window: i64) -> bool {
    position >= recorded_position.saturating_sub(join_window)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 11-17
    #[test]
    fn the_live_subscription_is_added_a_quarter_of_a_term_before_the_end_of_the_recording() {
        assert!(!is_caught_up(49_151, 65_536, 16_384));
        assert!(is_caught_up(49_152, 65_536, 16_384));
        assert!(is_caught_up(0, 0, 16_384));
        assert!(is_caught_up(0, i64::MIN, 16_384));
    }
}
