//! [`ReplayBounds`]: the position up to which a replay may send now, and the position at which the
//! replay ends.

use aeron_client::{AtomicCounter, CountersReader, SharedBuffer};

use super::plan::ReplayPlan;

/// A counter that bounds a replay: the position counter of an active recording, or a counter that
/// the client has chosen.
#[derive(Debug, Clone)]
pub(in crate::server) struct LimitCounter {
    counters: CountersReader<SharedBuffer>,
    value: AtomicCounter<SharedBuffer>,
    /// Registration id, which distinguishes the counter from a later counter with the same id.
    registration_id: i64,
}

/// The value of a [`LimitCounter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitValue {
    /// The counter is allocated, and its value may still increase.
    Moving(i64),
    /// The counter is freed. This was its last value.
    Last(i64),
    /// The counter is freed, and its id now belongs to another counter.
    Lost,
}

impl LimitCounter {
    /// Returns the counter with this id, if it is allocated.
    pub fn find(counters: &CountersReader<SharedBuffer>, counter_id: i32) -> Option<Self> {
        let value = counters.counter(counter_id)?;
        let registration_id = value.registration_id();
        counters.is_allocated(counter_id).then(|| Self {
            counters: counters.clone(),
            value,
            registration_id,
        })
    }

    /// Returns the current value.
    pub fn get(&self) -> i64 {
        self.value.get()
    }

    fn read(&self) -> LimitValue {
        // The order of these reads matters. If the counter is freed before `value` is read, `value` is
        // its last value. If another counter has the id by then, the registration id differs.
        let is_allocated = self.counters.is_allocated(self.value.id());
        let value = self.value.get();
        match (
            self.value.registration_id() == self.registration_id,
            is_allocated,
        ) {
            (true, true) => LimitValue::Moving(value),
            (true, false) => LimitValue::Last(value),
            (false, _) => LimitValue::Lost,
        }
    }
}

/// The position up to which a replay may send now, and the position at which the replay ends.
#[derive(Debug)]
pub(in crate::server) struct ReplayBounds {
    counters: Vec<Bound>,
    /// Stop position of the recording, if it is not active.
    recording_stop: Option<i64>,
    stop_position: i64,
    limit_position: i64,
}

#[derive(Debug)]
struct Bound {
    /// The counter; `None` after it was freed.
    counter: Option<LimitCounter>,
    /// Highest value of the counter so far.
    position: i64,
}

impl ReplayBounds {
    /// Returns the bounds of a plan with these counters. `recording_stop` is the stop position of a recording that is
    /// not active.
    pub fn new(
        plan: &ReplayPlan,
        recording_stop: Option<i64>,
        counters: Vec<LimitCounter>,
    ) -> Self {
        let bound = |counter: LimitCounter| Bound {
            position: plan.stop_position,
            counter: Some(counter),
        };
        Self {
            counters: counters.into_iter().map(bound).collect(),
            recording_stop,
            stop_position: plan.stop_position,
            limit_position: plan.limit_position,
        }
    }

    /// Returns the position up to which frames may be sent now.
    pub fn stop_position(&self) -> i64 {
        self.stop_position
    }

    /// Returns the limit position: the replay ends with the frame that reaches it.
    pub fn limit_position(&self) -> i64 {
        self.limit_position
    }

    /// Returns whether the stop position may still increase.
    pub fn is_moving(&self) -> bool {
        let is_below =
            |bound: &Bound| bound.counter.is_some() || bound.position > self.stop_position;
        self.recording_stop != Some(self.stop_position)
            && !self.counters.is_empty()
            && self.counters.iter().all(is_below)
    }

    /// Returns the stop position of a recording that had stopped when the replay was requested.
    pub fn recording_stop(&self) -> Option<i64> {
        self.recording_stop
    }

    /// Returns whether frames may be sent up to the end of a recording that has stopped.
    pub fn is_at_recording_stop(&self) -> bool {
        self.recording_stop == Some(self.stop_position)
    }

    /// Reads the counters. After a counter is freed, its last value bounds the replay.
    pub fn update(&mut self) {
        for bound in &mut self.counters {
            let Some(counter) = &bound.counter else {
                continue;
            };
            match counter.read() {
                LimitValue::Moving(value) => bound.position = bound.position.max(value),
                LimitValue::Last(value) => {
                    bound.position = bound.position.max(value);
                    bound.counter = None;
                }
                LimitValue::Lost => bound.counter = None,
            }
            if bound.counter.is_none() {
                self.limit_position = self.limit_position.min(bound.position);
            }
        }
        let positions = self.counters.iter().map(|bound| bound.position);
        if let Some(stop_position) = positions.chain(self.recording_stop).min() {
            debug_assert!(
                stop_position >= self.stop_position,
                "the readable end of a replay must not go back from {} to {stop_position}",
                self.stop_position
            );
            self.stop_position = stop_position;
        }
    }
}
