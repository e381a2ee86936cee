//! When messages arrived, as far as it is known.

use std::io;

/// When a block of a recording arrived. Each begins where the one before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where the block ends.
    pub end_position: i64,
    /// Microseconds since the epoch; `None` when it is not known any more.
    pub epoch_us: Option<i64>,
}

/// The arrivals of a recording without an index.
pub type NoArrivals = std::iter::Empty<io::Result<Arrival>>;

/// Finds the arrivals of positions that rise.
#[derive(Debug)]
pub(super) struct ArrivalCursor<A> {
    arrivals: A,
    current: Option<Arrival>,
}

impl<A: Iterator<Item = io::Result<Arrival>>> ArrivalCursor<A> {
    pub(super) fn new(arrivals: A) -> Self {
        let current = Some(Arrival {
            end_position: i64::MIN,
            epoch_us: None,
        });
        Self { arrivals, current }
    }

    /// When the byte before `position` arrived. Positions must not fall from call to call.
    pub(super) fn at(&mut self, position: i64) -> io::Result<Option<i64>> {
        while let Some(arrival) = self.current {
            if position <= arrival.end_position {
                return Ok(arrival.epoch_us);
            }
            self.current = self.arrivals.next().transpose()?;
        }
        Ok(None)
    }
}
