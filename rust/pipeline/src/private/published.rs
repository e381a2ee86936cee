//! [`Published`]: positions of a recording, stored by its writer and read by planning threads.

use std::sync::atomic::{AtomicI64, Ordering};

use aeron_archive::index::{Counts, Progress};

/// Marks an unknown head. Positions are never negative.
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

    /// Returns the end of the recorded data. All data before this position is in the files and in the index.
    pub fn recorded_position(&self) -> i64 {
        self.recorded_position.load(Ordering::Acquire)
    }

    /// Returns the end of the last complete message. If no message is complete, returns the start of the first message;
    /// if no message has started, returns `None`.
    pub fn head(&self) -> Option<i64> {
        let head = self.head.load(Ordering::Acquire);
        (head != NONE).then_some(head)
    }

    /// Returns the head if at least one message is complete. Offsets name only recordings with a complete message. A
    /// recording without a complete message is abandoned after its end.
    pub fn complete_head(&self) -> Option<i64> {
        let head = self.head();
        head.filter(|_| self.counts().messages > 0)
    }

    /// Returns the position up to which Spark has committed the recording.
    pub fn committed_position(&self) -> i64 {
        self.committed_position.load(Ordering::Acquire)
    }

    /// Returns the counts of complete messages up to the head, without those that were purged before the archive was
    /// opened. During a store by the writer, the result may include messages after the head that [`head`](Self::head)
    /// returns.
    pub fn counts(&self) -> Counts {
        Counts {
            messages: self.messages.load(Ordering::Relaxed),
            payload_bytes: self.payload_bytes.load(Ordering::Relaxed),
        }
    }

    pub(super) fn store(&self, recorded_position: i64, progress: Progress) {
        let Progress { head, counts, .. } = progress;
        debug_assert!(
            recorded_position >= self.recorded_position(),
            "the recorded position must not go back from {} to {recorded_position}",
            self.recorded_position()
        );
        debug_assert!(
            head.is_none_or(|head| head <= recorded_position),
            "a message that ends at {head:?} is not recorded yet: the recorded position is {recorded_position}"
        );
        debug_assert!(
            head >= self.head(),
            "the end of the last message must not go back from {:?} to {head:?}",
            self.head()
        );
        // The position is stored last, so that a reader of the position finds the messages before it.
        self.messages.store(counts.messages, Ordering::Relaxed);
        self.payload_bytes
            .store(counts.payload_bytes, Ordering::Relaxed);
        self.head.store(head.unwrap_or(NONE), Ordering::Release);
        self.recorded_position
            .store(recorded_position, Ordering::Release);
    }

    pub(super) fn commit(&self, position: i64) {
        debug_assert!(
            position >= self.committed_position(),
            "the committed position must not go back from {} to {position}: the data before it may be deleted",
            self.committed_position()
        );
        self.committed_position.store(position, Ordering::Release);
    }
}
