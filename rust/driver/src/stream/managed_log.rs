//! [`ManagedLog`]: the driver's view of a log. It knows which pages are allocated, which part is clean, and which
//! positions are possible.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::clean::clean;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogMetadata};

use super::pages::Pages;

/// Number of terms in a log. A stream uses the terms in turn. One pass over all terms is a lap.
const LAP: i64 = PARTITION_COUNT as i64;

/// A log, its allocated pages, and the position up to which it is clean.
#[derive(Debug)]
pub struct ManagedLog {
    log: LogBuffers<SharedBuffer>,
    pub pages: Pages,
    start_position: i64,
    clean_position: i64,
}

impl ManagedLog {
    /// Creates a clean log with its first frame at `start_position`.
    pub fn new(log: LogBuffers<SharedBuffer>, pages: Pages, start_position: i64) -> Self {
        debug_assert!(
            start_position >= 0 && start_position % FRAME_ALIGNMENT as i64 == 0,
            "no frame can begin at the start position {start_position}"
        );
        Self {
            log,
            pages,
            start_position,
            clean_position: start_position,
        }
    }

    pub fn log(&self) -> &LogBuffers<SharedBuffer> {
        &self.log
    }

    pub fn metadata(&self) -> &LogMetadata<SharedBuffer> {
        self.log.metadata()
    }

    pub fn term_length(&self) -> i64 {
        self.log.term_length() as i64
    }

    /// Returns the position up to which publishers may write.
    ///
    /// The memory after this position may still contain data of the previous lap.
    pub fn clean_limit(&self) -> i64 {
        self.log.positions().term_begin(self.clean_position) + LAP * self.term_length()
    }

    /// Cleans the log up to `target`, but at most the rest of one term and a part of the next term.
    pub fn clean_to(&mut self, target: i64) {
        let before = self.clean_position;
        // The target may be no frame boundary: a client can change the tail of its log between the loads from which the
        // target follows.
        let target = target.min(self.pages.end()) & -(FRAME_ALIGNMENT as i64);
        // Only an invalid position of a subscriber can move the target by more than a lap at once. Even then, cleaning
        // one lap cleans the whole log.
        let lap = LAP * self.term_length();
        self.clean_position = self.clean_position.max(target.saturating_sub(lap));
        for _ in 0..2 {
            self.clean_position = clean(&self.log, self.clean_position, target);
        }
        debug_assert!(
            self.clean_position >= before,
            "the clean position went back from {before} to {}",
            self.clean_position
        );
    }

    /// Clamps `position`, a value from another process, to the range from the start position to `end`. Then rounds it
    /// down to a multiple of the frame alignment.
    pub fn sanitize(&self, position: i64, end: i64) -> i64 {
        let bounded = position.clamp(self.start_position, end.max(self.start_position));
        let aligned = bounded & !(FRAME_ALIGNMENT as i64 - 1);
        debug_assert!(
            aligned >= self.start_position,
            "the position {aligned} is before the start position {}",
            self.start_position
        );
        aligned
    }
}

#[cfg(test)]
mod tests {
    use aeron_memory::log::buffers::log_length;
    use aeron_memory::log::description::{LogDescription, LogType};
    use proptest::prelude::*;

    use super::*;

    const TERM_LENGTH: i32 = 64 * 1024;

    fn managed_log() -> ManagedLog {
        let description = LogDescription {
            mtu_length: 1408,
            term_length: TERM_LENGTH,
            ..LogDescription::new(LogType::ConcurrentPublication, 1, 1, 1)
        };
        let length = log_length(TERM_LENGTH.into(), 4096).unwrap();
        let log = LogBuffers::create(&SharedBuffer::heap(length), &description, 0).unwrap();
        ManagedLog::new(
            log,
            Pages::for_publishers(false, 0, TERM_LENGTH.into(), 8192),
            0,
        )
    }

    fn target() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -100..40 * i64::from(TERM_LENGTH)]
    }

    proptest! {
        /// The target follows from loads of a tail and of positions that clients write at any time.
        #[test]
        fn a_log_is_cleaned_up_to_any_target(targets in proptest::collection::vec(target(), 1..20)) {
            let mut managed = managed_log();
            for target in targets {
                let before = managed.clean_position;
                managed.clean_to(target);
                prop_assert!(managed.clean_position >= before);
                prop_assert_eq!(managed.clean_position % FRAME_ALIGNMENT as i64, 0);
                prop_assert!(managed.clean_limit() >= managed.clean_position);
            }
        }
    }
}
