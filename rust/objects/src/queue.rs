//! [`CopyQueue`]: the order in which segments are copied, and the time at which a failed copy is tried again.

use std::collections::{BTreeMap, VecDeque};

use aeron_archive::objects::{RecordingIdentity, SealedSegment};

/// Time before the second attempt, in milliseconds. Each further attempt waits twice as long.
const FIRST_DELAY_MS: u64 = 1_000;
/// Longest time between two attempts, in milliseconds.
const MAX_DELAY_MS: u64 = 60_000;

/// A segment that is to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTask {
    /// The segment.
    pub segment: SealedSegment,
    /// Number of attempts that have failed.
    pub failures: u32,
    /// Whether the object must be written even if it exists, because an earlier attempt read back wrong bytes.
    pub is_object_wrong: bool,
}

/// The segments that wait to be copied, and the number of running copies. Times are in milliseconds from any origin.
#[derive(Debug)]
pub struct CopyQueue {
    concurrency: usize,
    running: usize,
    waiting: VecDeque<CopyTask>,
    /// Failed copies by the time at which they are tried again, and by the order of their failures.
    delayed: BTreeMap<(u64, u64), CopyTask>,
    failure_count: u64,
}

impl CopyQueue {
    /// Creates an empty queue that lets at most `concurrency` copies run at the same time.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            running: 0,
            waiting: VecDeque::new(),
            delayed: BTreeMap::new(),
            failure_count: 0,
        }
    }

    /// Adds a segment.
    pub fn add(&mut self, segment: SealedSegment) {
        self.waiting.push_back(CopyTask {
            segment,
            failures: 0,
            is_object_wrong: false,
        });
    }

    /// Returns the next copy to begin, if one may begin now.
    pub fn begin(&mut self, now_ms: u64) -> Option<CopyTask> {
        if self.running == self.concurrency {
            return None;
        }
        let is_due = |due: &(u64, u64)| due.0 <= now_ms;
        let task = match self.delayed.first_key_value() {
            Some((due, _)) if is_due(due) => self.delayed.pop_first().map(|(_, task)| task),
            _ => self.waiting.pop_front(),
        }?;
        self.running += 1;
        Some(task)
    }

    /// Notes that a copy has ended, so that another one may begin.
    pub fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Adds a segment of which the copy has failed. Returns the time until the next attempt, in milliseconds.
    pub fn retry(&mut self, mut task: CopyTask, now_ms: u64) -> u64 {
        let delay_ms = delay_ms(task.failures);
        task.failures = task.failures.saturating_add(1);
        self.failure_count += 1;
        let due = (now_ms.saturating_add(delay_ms), self.failure_count);
        self.delayed.insert(due, task);
        delay_ms
    }

    /// Removes the waiting segments of a recording. Its running copies continue.
    pub fn forget(&mut self, recording: RecordingIdentity) {
        let is_kept = |task: &CopyTask| task.recording() != recording;
        self.waiting.retain(is_kept);
        self.delayed.retain(|_, task| is_kept(task));
    }

    /// Returns the time of the next attempt of a failed copy. Returns `None` if no failed copy waits, or if the maximum
    /// number of copies is running.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<u64> {
        let first = self.delayed.first_key_value();
        first
            .filter(|_| self.running < self.concurrency)
            .map(|((due_ms, _), _)| *due_ms)
    }
}

impl CopyTask {
    /// Returns the identity of the segment's recording.
    #[must_use]
    pub fn recording(&self) -> RecordingIdentity {
        RecordingIdentity::of(&self.segment.recording)
    }
}

fn delay_ms(failures: u32) -> u64 {
    FIRST_DELAY_MS
        .saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX))
        .min(MAX_DELAY_MS)
}
