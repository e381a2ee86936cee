//! [`TimedNames`]: measures the time for resolving names.

use std::net::IpAddr;
use std::sync::Arc;

use aeron_agent::NanoClock;

use super::NameResolver;
use crate::duty_cycle::StallTracker;
use crate::error::DriverError;
use crate::media::address::Family;

/// A resolver with timed lookups. One counter shows the longest time of a lookup. Another counter counts the lookups
/// that took longer than a threshold.
pub struct TimedNames {
    names: Box<dyn NameResolver>,
    /// Lookups in progress, with their start time.
    begun: Vec<(Box<str>, Family, i64)>,
    stalls: StallTracker,
    clock: Arc<dyn NanoClock>,
}

impl TimedNames {
    /// Creates a resolver that measures the calls of `names` with `clock` and reports to `stalls`.
    pub fn new(
        names: Box<dyn NameResolver>,
        stalls: StallTracker,
        clock: Arc<dyn NanoClock>,
    ) -> Self {
        Self {
            names,
            begun: Vec::new(),
            stalls,
            clock,
        }
    }

    fn begun(&self, host: &str, family: Family) -> Option<usize> {
        self.begun
            .iter()
            .position(|(name, of, _)| (&**name, *of) == (host, family))
    }
}

impl NameResolver for TimedNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let now_ns = self.clock.nano_time();
        let result = self.names.resolve(host, family);
        let is_temporary = result.as_ref().is_err_and(DriverError::is_temporary);
        match (is_temporary, self.begun(host, family)) {
            (true, Some(_)) => return result,
            (true, None) => {
                self.begun.push((host.into(), family, now_ns));
                return result;
            }
            (false, Some(index)) => self.stalls.restart(self.begun.swap_remove(index).2),
            (false, None) => self.stalls.restart(now_ns),
        }
        self.stalls.on_duty_cycle(self.clock.nano_time());
        result
    }

    fn do_work(&mut self) -> usize {
        self.names.do_work()
    }
}
