//! Retention of the archive. A [`Round`] applies the policies to all recordings. This module
//! decides when a round begins, and makes new recordings wait while a round frees space. The module
//! [`crate::retention`] computes the deletions.
//!
//! A round begins when a recording enters a new segment or stops, when policies change, when a segment was copied to
//! object storage, and otherwise every five seconds. Without policies and named readers, no such round begins. A round
//! also begins when a client requests it, and when a new recording needs space. A round works in small steps, one in
//! each duty cycle of the conductor.
//!
//! This module and its children `clock`, `room` and `round` import each other: the first two have parts of the `impl`
//! of [`Retention`], and a round reads its clock, its log and its step sizes.

mod clock;
mod file;
mod linked;
mod log;
mod room;
mod round;
mod turn;

pub use file::RetentionFileError;
pub(super) use file::load_policies;
pub(super) use log::RetentionLog;
pub(super) use turn::RetentionTurn;

use std::collections::VecDeque;

use aeron_protocol::archive::RequestIds;

use clock::ClockNotes;
use room::Room;
use round::Round;

use super::ArchiveError;
use super::context::StepSizes;
use super::listing::{DescriptorPage, Listing, PageEntry};
use crate::retention::RetentionClock;
use crate::storage::Storage;

/// Longest time between two rounds, in nanoseconds.
const ROUND_INTERVAL_NS: i64 = 5_000_000_000;
/// Maximum number of requests that wait for their rounds.
const MAX_REQUESTS: usize = 64;

/// A request to apply the policies, or to report the deletions that they would cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApplyRequest {
    /// Control session id and correlation id of the request.
    pub requester: RequestIds,
    /// Recording to which the policies are applied; `None` for all recordings.
    pub recording_id: Option<i64>,
    /// Whether the deletions are only reported.
    pub dry_run: bool,
}

/// State of retention. The conductor runs it.
pub(super) struct Retention<S> {
    log: RetentionLog<S>,
    requests: VecDeque<ApplyRequest>,
    round: Option<Round>,
    /// Whether a round without a request must begin.
    is_due: bool,
    next_round_ns: i64,
    room: Room,
    clock: RetentionClock,
    notes: ClockNotes,
    steps: StepSizes,
}

impl<S: Storage + Clone> Retention<S> {
    /// Creates the state of an archive that starts. Deletions are written to `log`.
    pub fn new(log: RetentionLog<S>, clock: RetentionClock, steps: StepSizes) -> Self {
        Self {
            log,
            requests: VecDeque::new(),
            round: None,
            is_due: true,
            next_round_ns: i64::MIN,
            room: Room::default(),
            notes: ClockNotes::new(&clock),
            clock,
            steps,
        }
    }

    /// Requests a round, because recordings have grown or have stopped, or a segment was copied to object storage.
    pub fn trigger(&mut self) {
        self.is_due = true;
    }

    /// Returns the time by which ages are measured, in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Begins the running round again. Call it if policies or files of a recording have changed,
    /// because the results of the round do not take such changes into account.
    pub fn restart(&mut self) {
        self.is_due = true;
        if let Some(round) = &mut self.round {
            round.restart();
        }
    }

    /// Adds a request. The response is sent at the end of the request's round.
    ///
    /// # Errors
    /// Too many requests are waiting.
    pub fn request(&mut self, request: ApplyRequest) -> Result<(), ArchiveError> {
        if self.requests.len() >= MAX_REQUESTS {
            return Err(ArchiveError::generic(format!(
                "max requests to apply retention reached {MAX_REQUESTS}: wait for their responses"
            )));
        }
        self.requests.push_back(request);
        Ok(())
    }

    /// Returns the round that this duty cycle begins or continues.
    fn take_round(&mut self, now_ns: i64, has_work: bool) -> Option<Round> {
        if self.round.is_some() {
            return self.round.take();
        }
        // Recordings wait for this round, even if the last policy was removed in the meantime.
        if self.room.is_requested() {
            return Some(Round::new(None, true));
        }
        if let Some(request) = self.requests.pop_front() {
            return Some(Round::new(Some(request), false));
        }
        if !self.is_due && now_ns < self.next_round_ns {
            return None;
        }
        self.is_due = false;
        self.next_round_ns = now_ns.saturating_add(ROUND_INTERVAL_NS);
        has_work.then(|| Round::new(None, false))
    }

    /// Continues the round in progress, or begins a round if one is due. Returns the work count.
    pub fn do_work(&mut self, turn: &mut RetentionTurn<'_, S>) -> usize {
        let extensions = turn.store.extensions();
        let has_work = extensions.policy_count() > 0 || extensions.reader_count() > 0;
        self.update_clock(has_work, turn);
        let Some(mut round) = self.take_round(turn.outlets.now_ns(), has_work) else {
            return 0;
        };
        match round.step(self, turn) {
            true => self.end_round(round, turn),
            false => self.round = Some(round),
        }
        1
    }

    fn end_round(&mut self, round: Round, turn: &mut RetentionTurn<'_, S>) {
        if round.is_for_room() {
            self.room.on_round_ended();
        }
        self.tell_doubted(round.doubted(), turn.outlets);
        if let Some((requester, outcomes)) = round.into_response() {
            let page = DescriptorPage::whole(outcomes.into_iter().map(PageEntry::Outcome));
            turn.outlets.reply(requester, Ok(Listing::from(page)));
        }
    }
}
