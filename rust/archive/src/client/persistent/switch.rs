//! [`Switching`]: the switch from a replay to the live stream, without missing or repeated messages (state `Switch`).

use super::core::{Core, Transition, TransitionNotice};
use super::live::LiveStream;
use super::replay::{ReplayStream, Replaying};
use super::state::{StateOutcome, SubscriptionState};
use super::turn::Turn;

/// Reads a replay and the live stream until both are at the same position.
pub(super) struct Switching {
    replay: ReplayStream,
    live: LiveStream,
    join_window: i64,
    /// End of the first frame of the live image that was not skipped; `None` before there is such a frame. The replay
    /// is read up to the begin of this frame. The value is valid only for this attempt to switch.
    switch_position: Option<i64>,
}

impl Switching {
    pub(super) const fn new(replay: ReplayStream, live: LiveStream, join_window: i64) -> Self {
        Self {
            replay,
            live,
            join_window,
            switch_position: None,
        }
    }

    pub(super) const fn replay_session_id(&self) -> i64 {
        self.replay.session_id
    }

    pub(super) fn step(&mut self, core: &mut Core, turn: &mut Turn<'_>) -> StateOutcome {
        let live_position = self.live.image.position();
        let replay_position = self.replay.image.position();
        if live_position == replay_position {
            return Ok(Some(self.switched(core, turn.now_ns)));
        }
        if self.replay.image.is_closed() {
            core.saw_live_position(live_position);
            return Ok(Some(self.replay.ended(core, turn.now_ns)));
        }
        if self.live.image.is_closed() {
            return Ok(Some(self.back_to_replay(core)));
        }
        if let Some(end) = turn.skip_to(&mut self.live.image, replay_position)? {
            self.switch_position = Some(end);
        }
        let is_reached = turn.deliver_before(&mut self.replay.image, self.switch_position)?;
        Ok(is_reached.then(|| self.switched(core, turn.now_ns)))
    }

    fn switched(&self, core: &mut Core, now_ns: i64) -> Transition {
        core.archive.stop_replay(self.replay.session_id, now_ns);
        Transition::noticed(
            SubscriptionState::Live(self.live.clone()),
            TransitionNotice::LiveJoined,
        )
    }

    /// Continues the replay, because the live stream was lost before any of its messages was
    /// delivered.
    fn back_to_replay(&self, core: &Core) -> Transition {
        core.forget_join_difference();
        let replaying = Replaying::new(self.replay.clone(), self.join_window);
        Transition::to(SubscriptionState::Replay(Box::new(replaying)))
    }
}
