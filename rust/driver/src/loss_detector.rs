//! Finds what is missing in a stream that is rebuilt, and says when to ask for it.
//!
//! The detector belongs to one image and runs in the conductor. Only the first gap is tracked: those behind it wait until it is
//! repaired. A gap that changes is a new one.

use aeron_memory::Words;
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::{CorruptLog, LogBuffers};

use crate::nak_delay::NakDelay;

/// A gap, with the term that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGap {
    /// The term.
    pub term_id: i32,
    /// The bytes of it that are missing.
    pub gap: Gap,
}

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossScan {
    /// Position up to which the stream is complete. Padding may carry it beyond the highest position seen.
    pub rebuild_position: i64,
    /// A gap was found that is not the one of the last scan.
    pub is_loss_found: bool,
    /// The gap to ask for, or to fill, now.
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
    /// A detector that reports gaps after `delay`.
    pub fn new(delay: NakDelay) -> Self {
        LossDetector {
            delay,
            tracked: None,
        }
    }

    /// Looks at the stream between `rebuild_position` and `hwm_position`, both frame boundaries, in the term of the former.
    ///
    /// # Errors
    /// The log holds what no receiver has put there.
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
        let Some(gap) = scanned.gap else {
            self.tracked = None;
            return Ok(scan);
        };
        let term_id = positions.term_id(rebuild_position);
        scan.is_loss_found = self.track(TermGap { term_id, gap }, now_ns);
        scan.due = self.take_due(now_ns);
        Ok(scan)
    }

    /// Answers whether the gap is not the one that is tracked already.
    fn track(&mut self, gap: TermGap, now_ns: i64) -> bool {
        if self.tracked.is_some_and(|tracked| tracked.gap == gap) {
            return false;
        }
        let expiry_ns = now_ns.saturating_add(self.delay.delay_ns());
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
