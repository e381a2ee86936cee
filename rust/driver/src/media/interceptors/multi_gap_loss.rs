//! `multi-gap-loss`: drops several ranges of one term, once in every stream. The ranges begin at equal distances.

use std::ops::Range;

use super::Interceptor;
use super::arguments::Arguments;
use super::data::{DataDatagram, LostOnce};

const VARIABLE: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS";

/// The ranges of term offsets to drop: `[k * radix, k * radix + gap_length)` for `k` from 1 to `total_gaps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiGapLossArguments {
    term_id: i32,
    /// A power of two.
    radix: i64,
    gap_length: i64,
    total_gaps: i64,
}

impl MultiGapLossArguments {
    /// Parses `term-id=…|gap-radix=…|gap-length=…|total-gaps=…`; `None` if one of these arguments is missing.
    ///
    /// The radix is rounded up to a power of two.
    ///
    /// # Errors
    /// The warning for text that cannot be parsed.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let arguments = Arguments::new(VARIABLE, text);
        arguments.check_keys(&["term-id", "gap-radix", "gap-length", "total-gaps"])?;
        let term_id = arguments.number("term-id")?;
        let number = |key| arguments.number::<u32>(key);
        let (radix, gap_length, total_gaps) = (
            number("gap-radix")?,
            number("gap-length")?,
            number("total-gaps")?,
        );
        let all = || {
            Some(MultiGapLossArguments {
                term_id: term_id?,
                radix: i64::from(radix?).max(1).unsigned_abs().next_power_of_two() as i64,
                gap_length: gap_length?.into(),
                total_gaps: total_gaps?.into(),
            })
        };
        Ok(all())
    }

    /// Returns whether a gap overlaps `range`.
    fn has_gap_in(&self, range: &Range<i64>) -> bool {
        // The first gap that ends after the start of the range.
        let k = ((range.start - self.gap_length).div_euclid(self.radix) + 1).max(1);
        k <= self.total_gaps && k * self.radix < range.end && self.gap_length > 0
    }
}

/// Drops the data of the gaps.
#[derive(Debug)]
pub struct MultiGapLoss {
    arguments: MultiGapLossArguments,
    lost: LostOnce,
}

impl MultiGapLoss {
    /// Creates the interceptor.
    pub fn new(arguments: MultiGapLossArguments) -> Self {
        MultiGapLoss {
            arguments,
            lost: LostOnce::default(),
        }
    }
}

impl Interceptor for MultiGapLoss {
    fn lets_pass(&mut self, datagram: &[u8]) -> bool {
        let Some(data) =
            DataDatagram::parse(datagram).filter(|data| data.term_id == self.arguments.term_id)
        else {
            return true;
        };
        let is_in_gap = self.arguments.has_gap_in(&data.range);
        !self
            .lost
            .loses(&data, |next| is_in_gap && data.range.start >= next)
    }
}
