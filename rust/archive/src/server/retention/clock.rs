//! The clock of retention in a running archive: stores its state for the next start, and tells the operator about data
//! that only wait because the clock is not trusted.

use super::Retention;
use super::round::DoubtedTotal;
use super::turn::RetentionTurn;
use crate::extensions::{ClockState, ExtensionChange};
use crate::retention::{ClockChange, Moment, RetentionClock, RetentionOutcome, Span};
use crate::server::outlets::ArchiveOutlets;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Interval in nanoseconds at which the state is stored. It is much shorter than the time between the last known time
/// and a start that makes the start doubtful.
const STORE_INTERVAL_NS: i64 = 600_000_000_000;
/// Interval after which the archive stores the state again if the file system has returned an error.
const RETRY_INTERVAL_NS: i64 = 10_000_000_000;

/// The parts of the clock's state that were stored, and those that the operator was told.
#[derive(Debug)]
pub(super) struct ClockNotes {
    next_store_ns: i64,
    /// Whether the log must get a line about the doubt.
    is_to_be_told: bool,
    /// Whether the log must get a line for each recording that waits because of the doubt.
    is_listing: bool,
}

impl ClockNotes {
    pub fn new(clock: &RetentionClock) -> Self {
        let is_doubted = clock.doubted().is_some();
        Self {
            next_store_ns: i64::MIN,
            is_to_be_told: is_doubted,
            is_listing: is_doubted,
        }
    }
}

impl<S: Storage + Clone> Retention<S> {
    /// Sets the time of the clock. `has_work` is whether the archive has policies or readers.
    pub(super) fn update_clock(&mut self, has_work: bool, turn: &mut RetentionTurn<'_, S>) {
        let outlets = &*turn.outlets;
        let now = Moment {
            wall_ms: outlets.now_ms(),
            now_ns: outlets.now_ns(),
        };
        let change = self.clock.update(now);
        self.on_clock_change(change, outlets);
        if !has_work {
            return;
        }
        if self.notes.is_to_be_told
            && let Some(doubt) = self.clock.doubted()
        {
            self.notes.is_to_be_told = false;
            let wait = Span(self.clock.remaining_ns() / 1_000_000);
            self.log.on_clock(
                outlets.now_ms(),
                format_args!(
                    "{doubt}: nothing is deleted because of its age, and no reader expires by its age, for {wait} of running"
                ),
            );
        }
        if outlets.now_ns() >= self.notes.next_store_ns {
            self.store_clock(turn.store, turn.outlets);
        }
    }

    /// Trusts the wall clock from now on, because a user has requested it.
    pub fn trust_clock(&mut self, outlets: &ArchiveOutlets) {
        let change = self.clock.trust();
        self.on_clock_change(change, outlets);
    }

    /// Stores the state of the clock for the next start, if the archive has policies or readers.
    pub fn store_clock(&mut self, store: &mut ArchiveStore<S>, outlets: &ArchiveOutlets) {
        let extensions = store.extensions();
        if extensions.policy_count() == 0 && extensions.reader_count() == 0 {
            return;
        }
        let state = ClockState {
            last_ms: outlets.now_ms(),
            remaining_ms: (self.clock.remaining_ns() + 999_999) / 1_000_000,
        };
        let stored = store
            .extensions_mut()
            .apply(vec![ExtensionChange::Clock(state)]);
        // Without the state, the next start finds an older time, so it may doubt a clock that is right. A clock that is
        // wrong is still found.
        let interval_ns = match stored {
            Ok(()) => STORE_INTERVAL_NS,
            Err(_) => RETRY_INTERVAL_NS,
        };
        self.notes.next_store_ns = outlets.now_ns().saturating_add(interval_ns);
    }

    fn on_clock_change(&mut self, change: Option<ClockChange>, outlets: &ArchiveOutlets) {
        let Some(change) = change else {
            return;
        };
        let is_doubted = matches!(change, ClockChange::Doubted(_));
        self.notes = ClockNotes {
            next_store_ns: i64::MIN,
            is_to_be_told: is_doubted,
            is_listing: is_doubted,
        };
        if change == ClockChange::Trusted {
            let text = "the clock is trusted: data are deleted because of their age";
            self.log.on_clock(outlets.now_ms(), text);
        }
        // The round in progress has used the clock as it was before.
        self.restart();
    }

    /// Notes data that a round would delete if the clock was trusted.
    pub(super) fn note_doubted(&self, outcome: &RetentionOutcome, outlets: &ArchiveOutlets) {
        if self.notes.is_listing {
            self.log.on_doubted(outlets.now_ms(), outcome);
        }
    }

    /// Tells the operator, once in each doubt, about the data that a round would delete if the clock was trusted.
    pub(super) fn tell_doubted(&mut self, total: DoubtedTotal, outlets: &mut ArchiveOutlets) {
        let DoubtedTotal { recordings, bytes } = total;
        let Some(doubt) = self.clock.doubted() else {
            return;
        };
        if recordings == 0 || !self.notes.is_listing {
            return;
        }
        self.notes.is_listing = false;
        let wait = Span(self.clock.remaining_ns() / 1_000_000);
        outlets.report(&format!(
            "retention waits, because {doubt}: by this clock, {bytes} bytes of {recordings} recordings are too old. They are deleted after {wait} of running. If the clock of the machine is right, `aeron archive retention --trust-clock` deletes them now; otherwise correct the clock, or remove the policy"
        ));
    }
}
