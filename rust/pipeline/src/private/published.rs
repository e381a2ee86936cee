//! [`Published`]: how far a recording goes, stored by its writer and read by whoever plans.

use std::sync::atomic::{AtomicI64, Ordering};

use super::heads::{Counts, Progress};

/// Stands for a head that is not known. No position is negative.
const NONE: i64 = -1;

/// Positions and counts of one recording. Written by one thread, read by any.
#[derive(Debug)]
pub struct Published {
    recorded_position: AtomicI64,
    committed_position: AtomicI64,
    messages: AtomicI64,
    payload_bytes: AtomicI64,
    head: AtomicI64,
}

impl Published {
    pub(super) fn new(recorded_position: i64, committed_position: i64, progress: Progress) -> Self {
        Self {
            recorded_position: AtomicI64::new(recorded_position),
            committed_position: AtomicI64::new(committed_position),
            messages: AtomicI64::new(progress.counts.messages),
            payload_bytes: AtomicI64::new(progress.counts.payload_bytes),
            head: AtomicI64::new(progress.head.unwrap_or(NONE)),
        }
    }

    /// End of what is recorded. Whatever lies before it is in the files, with its index.
    pub fn recorded_position(&self) -> i64 {
        self.recorded_position.load(Ordering::Acquire)
    }

    /// End of the last complete message; before one is complete, the begin of the first; before that `None`.
    pub fn head(&self) -> Option<i64> {
        let head = self.head.load(Ordering::Acquire);
        (head != NONE).then_some(head)
    }

    /// The head, once a message is complete: what an offset may name. A recording without a complete message never enters an
    /// offset, and is given up when it has ended.
    pub fn complete_head(&self) -> Option<i64> {
        let head = self.head();
        head.filter(|_| self.counts().messages > 0)
    }

    /// How far the recording was taken for good.
    pub fn committed_position(&self) -> i64 {
        self.committed_position.load(Ordering::Acquire)
    }

    /// The complete messages up to the head that were not purged when the archive was opened. A reader may see those of a head
    /// that is stored just now.
    pub fn counts(&self) -> Counts {
        Counts {
            messages: self.messages.load(Ordering::Relaxed),
            payload_bytes: self.payload_bytes.load(Ordering::Relaxed),
        }
    }

    pub(super) fn store(&self, recorded_position: i64, progress: Progress) {
        let Progress { head, counts, .. } = progress;
        self.messages.store(counts.messages, Ordering::Relaxed);
        self.payload_bytes
            .store(counts.payload_bytes, Ordering::Relaxed);
        self.head.store(head.unwrap_or(NONE), Ordering::Release);
        self.recorded_position
            .store(recorded_position, Ordering::Release);
    }

    pub(super) fn commit(&self, position: i64) {
        self.committed_position.store(position, Ordering::Release);
    }
}
