//! [`CheckThread`]: checks credentials on a thread of its own, because a check may take long: scrypt takes tens of
//! milliseconds, and a function of a user may ask a server. The checks of different sources take turns.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::fair_queue::{FairLimits, FairQueue};
use crate::server::{ClientOrigin, ClientSource};

/// Maximum numbers of checks that wait.
const WAITING: FairLimits = FairLimits {
    total: 256,
    source: 8,
};
/// If other sources wait, one of so many checks is for a source with only failures.
const FAILING_SHARE: u32 = 8;
/// Maximum number of sources of which the results are remembered.
const MAX_REMEMBERED_SOURCES: usize = 4096;

/// Runs checks on a thread, one at a time. The thread ends after its check when this value is dropped.
pub(super) struct CheckThread<C, R> {
    turns: CheckTurns<C>,
    checks: SyncSender<(i64, C)>,
    results: Receiver<(i64, R)>,
    running: Option<RunningCheck>,
}

/// The result of a check.
pub(super) trait CheckResult: Send + 'static {
    /// Returns whether the credentials are right so far.
    fn is_right(&self) -> bool;
}

impl CheckResult for bool {
    fn is_right(&self) -> bool {
        *self
    }
}

struct RunningCheck {
    control_session_id: i64,
    source: ClientSource,
    began: Instant,
}

impl<C: Send + 'static, R: CheckResult> CheckThread<C, R> {
    /// Starts the thread, which calls `check` for each check.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn start(mut check: impl FnMut(C) -> R + Send + 'static) -> io::Result<Self> {
        let (checks, to_check) = sync_channel::<(i64, C)>(1);
        let (sender, results) = channel();
        thread::Builder::new()
            .name("archive-verifier".into())
            .spawn(move || {
                for (control_session_id, credentials) in to_check {
                    let result = check(credentials);
                    if sender.send((control_session_id, result)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            turns: CheckTurns::new(),
            checks,
            results,
            running: None,
        })
    }

    /// Queues a check. If too many checks wait, drops the newest one of the source with the most waiting checks. A
    /// dropped check has no result.
    pub fn begin(&mut self, control_session_id: i64, origin: &ClientOrigin, check: C) {
        self.turns.add(control_session_id, origin, check);
        self.start_next();
    }

    /// Returns the next session whose check has ended, and the result. Starts the next check.
    pub fn poll(&mut self) -> Option<(i64, R)> {
        let result = self.results.try_recv().ok()?;
        debug_assert_eq!(
            self.running
                .as_ref()
                .map(|running| running.control_session_id),
            Some(result.0),
            "the thread has checked control session {}, which it was not asked to check now",
            result.0
        );
        if let Some(running) = self.running.take() {
            self.turns.note(running.source, result.1.is_right());
        }
        self.start_next();
        Some(result)
    }

    /// Returns the session of the check that runs, if the check has run for longer than `limit`.
    pub fn overdue(&self, limit: Duration) -> Option<i64> {
        let running = self.running.as_ref()?;
        (running.began.elapsed() > limit).then_some(running.control_session_id)
    }

    /// Drops the check of a session that has ended.
    pub fn cancel(&mut self, control_session_id: i64) {
        self.turns.cancel(control_session_id);
    }

    fn start_next(&mut self) {
        if self.running.is_none()
            && let Some(turn) = self.turns.next()
            && self
                .checks
                .try_send((turn.control_session_id, turn.check))
                .is_ok()
        {
            self.running = Some(RunningCheck {
                control_session_id: turn.control_session_id,
                source: turn.source,
                began: Instant::now(),
            });
        }
    }
}

/// The order of the checks.
struct CheckTurns<T> {
    waiting: FairQueue<CheckTurn<T>>,
    /// Whether a source has sent a right password. A source is not in this map if none of its passwords was checked.
    results: HashMap<ClientSource, SourceResults>,
    turn: u32,
}

struct CheckTurn<T> {
    control_session_id: i64,
    source: ClientSource,
    check: T,
}

struct SourceResults {
    has_succeeded: bool,
    /// CheckTurn of the latest check.
    latest: u32,
}

impl<T> CheckTurns<T> {
    fn new() -> Self {
        Self {
            waiting: FairQueue::new(WAITING),
            results: HashMap::new(),
            turn: 0,
        }
    }

    fn add(&mut self, control_session_id: i64, origin: &ClientOrigin, check: T) {
        let turn = CheckTurn {
            control_session_id,
            source: origin.source.clone(),
            check,
        };
        self.waiting.push(origin, 1, turn);
    }

    /// Returns the next check. Sources without a right password so far get few checks while other sources wait.
    fn next(&mut self) -> Option<CheckTurn<T>> {
        let Self {
            waiting, results, ..
        } = self;
        let is_failing = |source: &ClientSource| {
            let results = results.get(source);
            results.is_some_and(|results| !results.has_succeeded)
        };
        let prefers_failing = self.turn % FAILING_SHARE == FAILING_SHARE - 1;
        let next = waiting
            .pop(|source, _| is_failing(source) == prefers_failing)
            .or_else(|| waiting.pop(|_, _| true))?;
        self.turn = self.turn.wrapping_add(1);
        Some(next)
    }

    fn note(&mut self, source: ClientSource, is_right: bool) {
        if self.results.len() >= MAX_REMEMBERED_SOURCES && !self.results.contains_key(&source) {
            let age = |results: &SourceResults| self.turn.wrapping_sub(results.latest);
            let oldest = self.results.iter().max_by_key(|(_, results)| age(results));
            if let Some(oldest) = oldest.map(|(source, _)| source.clone()) {
                self.results.remove(&oldest);
            }
        }
        let latest = self.turn;
        let results = self.results.entry(source).or_insert(SourceResults {
            has_succeeded: false,
            latest,
        });
        results.has_succeeded |= is_right;
        results.latest = latest;
    }

    fn cancel(&mut self, control_session_id: i64) {
        self.waiting
            .retain(|turn| turn.control_session_id != control_session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: i64) -> ClientOrigin {
        ClientOrigin {
            source: ClientSource::Address(format!("10.0.0.{number}").into()),
            image_id: number,
        }
    }

    fn next(turns: &mut CheckTurns<()>) -> Option<i64> {
        turns.next().map(|turn| turn.control_session_id)
    }

    /// 07-162: 50 hosts have sent wrong passwords, and each host has eight more that wait.
    #[test]
    fn a_new_source_waits_for_at_most_one_check_of_sources_with_only_failures() {
        let mut turns = CheckTurns::new();
        for host in 0..50 {
            turns.note(origin(host).source, false);
            for attempt in 0..40 {
                turns.add(1000 * host + attempt, &origin(host), ());
            }
        }
        for turn in 0..2 * FAILING_SHARE as i64 {
            turns.add(-1 - turn, &origin(100 + turn), ());
            let first = next(&mut turns).unwrap();
            if first >= 0 {
                assert_eq!(next(&mut turns), Some(-1 - turn));
            }
        }
    }

    /// 07-162
    #[test]
    fn sources_with_only_failures_take_turns_and_get_a_part_of_the_checks() {
        let mut turns = CheckTurns::new();
        turns.note(origin(1).source, false);
        turns.note(origin(2).source, false);
        turns.note(origin(3).source, false);
        turns.note(origin(3).source, true);
        for attempt in 0..8 {
            for host in [1, 2, 3, 4] {
                turns.add(10 * host + attempt, &origin(host), ());
            }
        }
        let order: Vec<_> = std::iter::from_fn(|| next(&mut turns)).collect();
        assert_eq!(
            order[..10],
            [30, 40, 31, 41, 32, 42, 33, 10, 43, 34],
            "the eighth check is for a source with only failures"
        );
        assert_eq!(order.len(), 32);
        assert_eq!(order[28..], [16, 26, 17, 27]);
    }

    /// 07-162
    #[test]
    fn a_source_has_8_waiting_checks_all_sources_256_and_ended_sessions_none() {
        let mut turns = CheckTurns::new();
        for attempt in 0..20 {
            turns.add(attempt, &origin(1), ());
        }
        turns.cancel(3);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut turns)).collect();
        assert_eq!(order, [0, 1, 2, 4, 5, 6, 7]);
        for attempt in 0..400 {
            turns.add(attempt, &origin(attempt % 50), ());
        }
        assert_eq!(std::iter::from_fn(|| next(&mut turns)).count(), 256);
    }

    #[test]
    fn the_results_of_a_limited_number_of_sources_are_remembered() {
        let mut turns = CheckTurns::<()>::new();
        for number in 0..MAX_REMEMBERED_SOURCES as i64 + 10 {
            turns.turn += 1;
            turns.note(origin(number).source, false);
        }
        assert_eq!(turns.results.len(), MAX_REMEMBERED_SOURCES);
        assert!(!turns.results.contains_key(&origin(9).source));
        assert!(turns.results.contains_key(&origin(10).source));
    }
}
