//! [`RetransmitHandler`]: decides which ranges of a publication are retransmitted after NAKs, and at what time.
//!
//! The sender has one handler for each publication. A handler has a few *actions*. An action is a range that waits to
//! be retransmitted or was just retransmitted. During the linger time of an action, NAKs for its range are ignored,
//! because the retransmit is on its way. A [budget](RETRANSMIT_MULTIPLE) limits the bytes that are retransmitted within
//! a second, regardless of the number of NAKs.

use aeron_memory::log::frame::MAX_MESSAGE_LENGTH;
use aeron_memory::log::position::Positions;

mod budget;

use budget::Budget;
pub use budget::{FREE_RETRANSMIT_LENGTH, RETRANSMIT_MULTIPLE};

/// Initial receiver window in bytes. It is the unit of the maximum length of a retransmit, unless half a term is
/// shorter. The unit does not depend on the actual windows of receivers.
const WINDOW_LENGTH: usize = 128 * 1024;

/// Parameters of a [`RetransmitHandler`].
#[derive(Clone, Copy, Debug)]
pub struct RetransmitConfig {
    /// Converts the positions of the publication.
    pub positions: Positions,
    /// Start position of the publication.
    pub start_position: i64,
    /// Maximum number of actions if there are several receivers. `None` for a single receiver: there is one action, and
    /// the latest NAK replaces it.
    pub max_resend: Option<usize>,
    /// Maximum length of a retransmit, as a multiple of the initial receiver window, or of half a term if that is
    /// shorter.
    pub window_multiple: usize,
    /// Delay of a retransmit after the NAK.
    pub delay_ns: i64,
    /// Time after a retransmit in which NAKs for the same range are ignored.
    pub linger_ns: i64,
}

/// Outcome of a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakOutcome {
    /// An action covers the range. The range was retransmitted, or will be after the delay, or cannot be retransmitted
    /// because its start was not sent yet or is too old.
    Accepted,
    /// The NAK has no effect, because an action already covers its position, or because it requests no bytes.
    Ignored,
    /// All actions are in use.
    PoolOverflow,
    /// The retransmit was shortened or dropped, because the budget of the last second is used up.
    OverBudget,
}

/// The problem to record in the error log if the budget is used up. The text is always the same, so the log has one
/// entry with a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "retransmits of a publication limited: NAKs ask for more than {FREE_RETRANSMIT_LENGTH} bytes and {RETRANSMIT_MULTIPLE} times the new data within a second"
)]
pub struct RetransmitBudgetExceeded;

/// The handler; see the [module](self).
#[derive(Debug)]
pub struct RetransmitHandler {
    config: RetransmitConfig,
    actions: Box<[Option<RetransmitAction>]>,
    /// No action expires before this time.
    next_expiry_ns: i64,
    budget: Budget,
}

#[derive(Clone, Copy, Debug)]
struct RetransmitAction {
    state: RetransmitState,
    position: i64,
    length: usize,
    expiry_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetransmitState {
    Delayed,
    Lingering,
}

impl RetransmitHandler {
    /// Creates a handler without actions.
    pub fn new(config: RetransmitConfig) -> Self {
        debug_assert_ne!(
            config.max_resend,
            Some(0),
            "without an action, every NAK is an overflow"
        );
        RetransmitHandler {
            config,
            actions: vec![None; config.max_resend.unwrap_or(1)].into(),
            next_expiry_ns: i64::MAX,
            budget: Budget::new(config.start_position),
        }
    }

    /// Handles a NAK for `length` bytes from `position`, in one term.
    ///
    /// `resend` sends whole frames from a position, of at most the given length in total. It returns the number of
    /// bytes sent, including padding.
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
        debug_assert!(
            self.actions[slot].is_none() || self.config.max_resend.is_none(),
            "a NAK of one receiver replaces the retransmit for another receiver"
        );
        if self.config.delay_ns > 0 {
            let expiry_ns = now_ns.saturating_add(self.config.delay_ns);
            self.set(slot, RetransmitState::Delayed, position, length, expiry_ns);
            return NakOutcome::Accepted;
        }
        if self.answer(slot, position, length, sender_position, now_ns, resend) {
            NakOutcome::Accepted
        } else {
            NakOutcome::OverBudget
        }
    }

    /// Sends the retransmits for which the delay has ended. Removes the actions for which the linger time has ended.
    ///
    /// Returns whether the budget allowed all of these retransmits in full. Call this method in every duty cycle.
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
            } else if action.state == RetransmitState::Lingering {
                self.actions[slot] = None;
            } else {
                let (position, length) = (action.position, action.length);
                is_within_budget &=
                    self.answer(slot, position, length, sender_position, now_ns, &mut resend);
            }
        }
        debug_assert!(
            self.actions
                .iter()
                .flatten()
                .all(|action| action.expiry_ns >= self.next_expiry_ns),
            "an action expires before {}, and is overlooked until then",
            self.next_expiry_ns
        );
        is_within_budget
    }

    /// Retransmits a range as far as the budget allows, and starts the linger time.
    ///
    /// Returns whether the budget allowed the whole range.
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
            self.set(
                slot,
                RetransmitState::Lingering,
                position,
                length,
                expiry_ns,
            );
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
        self.set(
            slot,
            RetransmitState::Lingering,
            position,
            allowed,
            expiry_ns,
        );
        allowed == length
    }

    /// Retransmits a range to one receiver that has missed it, within the budget.
    ///
    /// The actions are neither checked nor changed, because they are for retransmits to all receivers.
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

    /// Returns whether the bytes at `position` can be retransmitted: they were sent, and publishers cannot overwrite
    /// them yet.
    fn can_resend(&self, position: i64, sender_position: i64) -> bool {
        debug_assert!(
            sender_position >= self.config.start_position,
            "the sender position {sender_position} is before the start of the stream"
        );
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

    fn set(
        &mut self,
        slot: usize,
        state: RetransmitState,
        position: i64,
        length: usize,
        expiry_ns: i64,
    ) {
        debug_assert!(
            length > 0,
            "an action without bytes covers no NAK, and only occupies its slot"
        );
        debug_assert!(
            state == RetransmitState::Lingering || self.config.delay_ns > 0,
            "a retransmit waits, although retransmits have no delay"
        );
        self.next_expiry_ns = self.next_expiry_ns.min(expiry_ns);
        self.actions[slot] = Some(RetransmitAction {
            state,
            position,
            length,
            expiry_ns,
        });
    }
}

impl RetransmitAction {
    fn covers(&self, position: i64) -> bool {
        let end = self.position.saturating_add(self.length as i64);
        (self.position..end).contains(&position)
    }
}
