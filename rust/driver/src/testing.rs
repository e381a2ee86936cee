//! Shared memory of a driver for tests of a single agent: counters and an error log.

use std::sync::Arc;

use aeron_agent::CachedEpochClock;
use aeron_memory::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters, SystemLabels};
use aeron_memory::counters::{AtomicCounter, CountersManager, NULL_VALUE, NewCounter};
use aeron_memory::error_log::{self, DistinctErrorLog};

use crate::diagnostics::ErrorRecorder;

/// A counter with an arbitrary type and no key.
pub const PLAIN_COUNTER: NewCounter<'static> = NewCounter {
    type_id: 1,
    key: &[],
    label: b"",
    registration_id: 0,
    owner_id: NULL_VALUE,
    reference_id: 0,
    value: 0,
};

/// Counters and an error log on the heap. The system counters are allocated.
pub struct DriverMemory {
    pub system: SystemCounters<SharedBuffer>,
    counters: CountersManager<SharedBuffer>,
    error_log: SharedBuffer,
}

impl DriverMemory {
    pub fn new() -> Self {
        let mut counters = CountersManager::new(
            SharedBuffer::heap(4 * 1024 * 1024),
            SharedBuffer::heap(1024 * 1024),
            0,
        )
        .expect("lengths of counters");
        DriverMemory {
            system: SystemCounters::allocate(&mut counters, &no_labels(), 0).expect("room"),
            counters,
            error_log: SharedBuffer::heap(1024 * 1024),
        }
    }

    /// Creates a recorder that writes to the error log and to the counter of errors.
    pub fn error_recorder(&self) -> ErrorRecorder {
        ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(self.error_log.clone())),
            self.system.get(SystemCounter::Errors).clone(),
            Arc::new(CachedEpochClock::new(1)),
        )
    }

    pub fn count(&self, counter: SystemCounter) -> i64 {
        self.system.get(counter).get()
    }

    /// Returns the distinct texts of the error log, each with the number of times that it was recorded.
    pub fn errors(&self) -> Vec<(String, i32)> {
        error_log::read(&self.error_log, 0)
            .into_iter()
            .map(|observation| (observation.text, observation.observation_count))
            .collect()
    }

    /// Allocates a counter as in [`PLAIN_COUNTER`].
    pub fn counter(&mut self) -> AtomicCounter<SharedBuffer> {
        self.counters.allocate(&PLAIN_COUNTER, 0).expect("room")
    }
}

fn no_labels() -> SystemLabels {
    SystemLabels {
        software: String::new(),
        resolver_name: String::new(),
        threading_mode: String::new(),
        conductor_threshold: String::new(),
        sender_threshold: String::new(),
        receiver_threshold: String::new(),
        name_resolver_threshold: String::new(),
    }
}
