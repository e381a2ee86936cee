//! Watches how long names take to resolve.

use std::net::IpAddr;
use std::sync::Arc;

use aeron_agent::NanoClock;

use super::NameResolver;
use crate::duty_cycle::StallTracker;
use crate::error::DriverError;
use crate::media::address::Family;

/// A resolver whose calls are timed: the longest is kept, and those over a threshold are counted.
pub struct TimedNames {
    names: Box<dyn NameResolver>,
    stalls: StallTracker,
    clock: Arc<dyn NanoClock>,
}

impl TimedNames {
    /// Times the calls of `names` with `clock` into `stalls`.
    pub fn new(
        names: Box<dyn NameResolver>,
        stalls: StallTracker,
        clock: Arc<dyn NanoClock>,
    ) -> Self {
        Self {
            names,
            stalls,
            clock,
        }
    }
}

impl NameResolver for TimedNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        self.stalls.restart(self.clock.nano_time());
        let result = self.names.resolve(host, family);
        self.stalls.on_duty_cycle(self.clock.nano_time());
        result
    }

    fn do_work(&mut self) -> usize {
        self.names.do_work()
    }
}
