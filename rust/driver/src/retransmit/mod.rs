//! Answers to NAKs: which ranges of a publication are sent again, when, and how much of them.
//!
//! The handler belongs to one publication and runs in the sender. It holds a few *actions*, each a range that waits to be sent
//! again or was just sent; as long as one lingers, NAKs for what it covers are ignored, because their answer is on its way. What
//! is sent again is bounded by a [budget](RETRANSMIT_MULTIPLE) of the last second, whatever is asked for.

use aeron_memory::log::frame::MAX_MESSAGE_LENGTH;
use aeron_memory::log::position::Positions;

mod budget;

use budget::Budget;
pub use budget::{FREE_RETRANSMIT_LENGTH, RETRANSMIT_MULTIPLE};

/// The receiver window by which the length of an answer is measured, whatever window receivers have.
const WINDOW_LENGTH: usize = 128 * 1024;

/// What makes a [`RetransmitHandler`].
#[derive(Clone, Copy, Debug)]
pub struct RetransmitConfig {
    /// The publication's positions.
    pub positions: Positions,
    /// Where the publication starts.
    pub start_position: i64,
    /// Ranges that may be in flight with several receivers; `None` for a publication with one, where the latest counts.
    pub max_resend: Option<usize>,
    /// Longest answer to a NAK, in initial receiver windows.
    pub window_multiple: usize,
    /// How long an answer waits.
    pub delay_ns: i64,
    /// How long after an answer NAKs for the same range are ignored.
    pub linger_ns: i64,
}

/// What became of a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakOutcome {
    /// It was answered, or will be after the delay.
    Accepted,
    /// There was nothing to do: its answer is on its way, or it asks for nothing.
    Ignored,
    /// Too many ranges are in flight.
    PoolOverflow,
    /// The answer was cut short or left out: too much was sent again within a second.
    OverBudget,
}

/// What to log when the budget is used up: the same text each time, so that the error log counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "retransmits of a publication limited: NAKs ask for more than {FREE_RETRANSMIT_LENGTH} bytes and {RETRANSMIT_MULTIPLE} times the new data within a second"
)]
pub struct RetransmitBudgetExceeded;

/// The handler; see the [module](self).
#[derive(Debug)]
pub struct RetransmitHandler {
    config: RetransmitConfig,
    actions: Box<[Option<Action>]>,
    /// Nothing expires before.
    next_expiry_ns: i64,
    budget: Budget,
}

#[derive(Clone, Copy, Debug)]
struct Action {
    state: State,
    position: i64,
    length: usize,
    expiry_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Delayed,
    Lingering,
}

impl RetransmitHandler {
    /// A handler without actions.
    pub fn new(config: RetransmitConfig) -> Self {
        RetransmitHandler {
            config,
            actions: vec![None; config.max_resend.unwrap_or(1)].into(),
            next_expiry_ns: i64::MAX,
            budget: Budget::new(config.start_position),
        }
    }

    /// A NAK arrived for `length` bytes from `position` on, in one term. `resend` sends whole frames from a position on, of at most
    /// the given length in all, and answers the bytes sent, padding included.
    pub fn on_nak(
        &mut self,
        position: i64,
        length: usize,
        sender_position: i64,
        now_ns: i64,
        resend: impl FnMut(i64, usize) -> usize,
    ) -> NakOutcome {
        let length = length.min(self.max_length());
        let is_covered = self.actions.iter().flatten().any(|it| it.covers(position));
        if length == 0 || is_covered {
            return NakOutcome::Ignored;
        }
        let Some(slot) = self.free_slot() else {
            return NakOutcome::PoolOverflow;
        };
        if self.config.delay_ns > 0 {
            let expiry_ns = now_ns.saturating_add(self.config.delay_ns);
            self.set(slot, State::Delayed, position, length, expiry_ns);
            return NakOutcome::Accepted;
        }
        if self.answer(slot, position, length, sender_position, now_ns, resend) {
            NakOutcome::Accepted
        } else {
            NakOutcome::OverBudget
        }
    }

    /// To be called in every duty cycle: sends what was delayed until now, and forgets what has lingered. Answers whether the
    /// budget allowed everything.
    pub fn on_tick(
        &mut self,
        sender_position: i64,
        now_ns: i64,
        mut resend: impl FnMut(i64, usize) -> usize,
    ) -> bool {
        self.budget.on_sender_position(sender_position, now_ns);
        if now_ns <= self.next_expiry_ns {
            return true;
        }
        let mut is_within_budget = true;
        self.next_expiry_ns = i64::MAX;
        for slot in 0..self.actions.len() {
            let Some(action) = self.actions[slot] else {
                continue;
            };
            if now_ns <= action.expiry_ns {
                self.next_expiry_ns = self.next_expiry_ns.min(action.expiry_ns);
            } else if action.state == State::Lingering {
                self.actions[slot] = None;
            } else {
                let (position, length) = (action.position, action.length);
                is_within_budget &=
                    self.answer(slot, position, length, sender_position, now_ns, &mut resend);
            }
        }
        is_within_budget
    }

    /// Sends a range again, as much of it as there is budget for, and lets it linger; answers whether that was all of it.
    fn answer(
        &mut self,
        slot: usize,
        position: i64,
        length: usize,
        sender_position: i64,
        now_ns: i64,
        mut resend: impl FnMut(i64, usize) -> usize,
    ) -> bool {
        let expiry_ns = now_ns.saturating_add(self.config.linger_ns);
        if !self.can_resend(position, sender_position) {
            self.set(slot, State::Lingering, position, length, expiry_ns);
            return true;
        }
        self.budget.on_sender_position(sender_position, now_ns);
        let allowed = length.min(self.budget.available());
        if allowed == 0 {
            self.actions[slot] = None;
            return false;
        }
        let resent = resend(position, allowed);
        self.budget.on_resent(resent);
        self.set(slot, State::Lingering, position, allowed, expiry_ns);
        allowed == length
    }

    /// Sends a range again to one receiver that has not been sent it, within the budget: what is in flight for others does not count.
    pub fn resend_to_one(
        &mut self,
        position: i64,
        length: usize,
        sender_position: i64,
        now_ns: i64,
        mut resend: impl FnMut(i64, usize) -> usize,
    ) {
        if self.can_resend(position, sender_position) {
            self.budget.on_sender_position(sender_position, now_ns);
            let resent = resend(position, length.min(self.budget.available()));
            self.budget.on_resent(resent);
        }
    }

    /// Only what was sent, and not so long ago that its place may be written again, can be sent again.
    fn can_resend(&self, position: i64, sender_position: i64) -> bool {
        let term_length = self.config.positions.term_length();
        let max_message_length = (term_length / 8).min(MAX_MESSAGE_LENGTH);
        let oldest = sender_position - (term_length / 2 + max_message_length) as i64;
        (oldest.max(self.config.start_position)..sender_position).contains(&position)
    }

    fn max_length(&self) -> usize {
        let half_a_term = self.config.positions.term_length() / 2;
        half_a_term
            .min(WINDOW_LENGTH)
            .saturating_mul(self.config.window_multiple)
    }

    fn free_slot(&self) -> Option<usize> {
        match self.config.max_resend {
            Some(_) => self.actions.iter().position(Option::is_none),
            None => Some(0),
        }
    }

    fn set(&mut self, slot: usize, state: State, position: i64, length: usize, expiry_ns: i64) {
        self.next_expiry_ns = self.next_expiry_ns.min(expiry_ns);
        self.actions[slot] = Some(Action {
            state,
            position,
            length,
            expiry_ns,
        });
    }
}

impl Action {
    fn covers(&self, position: i64) -> bool {
        let end = self.position.saturating_add(self.length as i64);
        (self.position..end).contains(&position)
    }
}
