//! Finds gaps in the stream of an image, and decides when the missing bytes are requested or filled with padding.
//!
//! Each image has a detector, which the conductor calls. A detector tracks only the first gap: later gaps wait until
//! the first gap is repaired. If the bounds of a gap change, it counts as a new gap.

use aeron_memory::Words;
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::{CorruptLog, LogBuffers};

use crate::nak_delay::NakDelay;

/// A gap and the term that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGap {
    /// Id of the term.
    pub term_id: i32,
    /// The missing bytes of the term.
    pub gap: Gap,
}

/// Result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossScan {
    /// Position up to which the stream is complete. This position may be after the high-water mark, because padding
    /// that begins before the high-water mark may end after it.
    pub rebuild_position: i64,
    /// True if the scan found a gap that differs from the gap of the previous scan.
    pub is_loss_found: bool,
    /// The gap to request, or to fill, now.
    pub due: Option<TermGap>,
}

/// The detector; see the [module](self).
#[derive(Debug)]
pub struct LossDetector {
    delay: NakDelay,
    tracked: Option<Tracked>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    gap: TermGap,
    expiry_ns: i64,
}

impl LossDetector {
    /// Creates a detector that reports a gap after `delay`.
    pub fn new(delay: NakDelay) -> Self {
        LossDetector {
            delay,
            tracked: None,
        }
    }

    /// Scans the term of `rebuild_position` from `rebuild_position` to `hwm_position`. Both positions must be frame
    /// boundaries.
    ///
    /// # Errors
    /// The log contains a frame that no receiver can have written.
    pub fn scan<W: Words>(
        &mut self,
        log: &LogBuffers<W>,
        rebuild_position: i64,
        hwm_position: i64,
        now_ns: i64,
    ) -> Result<LossScan, CorruptLog> {
        let mut scan = LossScan {
            rebuild_position,
            is_loss_found: false,
            due: None,
        };
        if rebuild_position >= hwm_position {
            self.tracked = None;
            return Ok(scan);
        }
        let positions = log.positions();
        let from = log.cursor(rebuild_position)?.offset();
        let term_begin = positions.term_begin(rebuild_position);
        let limit = (hwm_position - term_begin).min(positions.term_length() as i64) as usize;
        let scanned = gap::scan(log.term_at(rebuild_position), term_begin, from, limit)?;
        scan.rebuild_position = term_begin + scanned.complete as i64;
        debug_assert!(
            scan.rebuild_position >= rebuild_position,
            "the rebuild position went back from {rebuild_position} to {}",
            scan.rebuild_position
        );
        let Some(gap) = scanned.gap else {
            self.tracked = None;
            return Ok(scan);
        };
        debug_assert!(
            gap.length > 0 && gap.offset + gap.length <= positions.term_length(),
            "a gap of {} bytes at {} is empty or ends after its term",
            gap.length,
            gap.offset
        );
        let term_id = positions.term_id(rebuild_position);
        scan.is_loss_found = self.track(TermGap { term_id, gap }, now_ns);
        scan.due = self.take_due(now_ns);
        Ok(scan)
    }

    /// Tracks `gap`. Returns whether `gap` differs from the gap that was tracked before.
    fn track(&mut self, gap: TermGap, now_ns: i64) -> bool {
        if self.tracked.is_some_and(|tracked| tracked.gap == gap) {
            return false;
        }
        let expiry_ns = now_ns.saturating_add(self.delay.delay_ns());
        debug_assert!(
            expiry_ns >= now_ns,
            "a gap that is found at {now_ns} cannot be due before, at {expiry_ns}"
        );
        self.tracked = Some(Tracked { gap, expiry_ns });
        true
    }

    fn take_due(&mut self, now_ns: i64) -> Option<TermGap> {
        let tracked = self.tracked.as_mut()?;
        if now_ns < tracked.expiry_ns {
            return None;
        }
        tracked.expiry_ns = now_ns.saturating_add(self.delay.retry_ns());
        Some(tracked.gap)
    }
}
