//! [`ConductorAgent`]: runs the conductor with the clocks of this machine.

use std::borrow::Cow;

use aeron_agent::{Agent, AgentError, EpochClock, NanoClock, SystemEpochClock, SystemNanoClock};

use crate::conductor::Conductor;

/// Minimum time between two reads of the wall clock.
const EPOCH_CLOCK_RESOLUTION_NS: i64 = 1_000_000;

pub struct ConductorAgent {
    conductor: Conductor,
    now_ms: i64,
    time_of_last_epoch_update_ns: i64,
}

impl ConductorAgent {
    /// Creates the agent. `conductor` was created at `now_ns` and `now_ms`.
    pub fn new(conductor: Conductor, now_ns: i64, now_ms: i64) -> Self {
        Self {
            conductor,
            now_ms,
            time_of_last_epoch_update_ns: now_ns,
        }
    }
}

impl Agent for ConductorAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.conductor
            .restart_stall_tracker(SystemNanoClock.nano_time());
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        let now_ns = SystemNanoClock.nano_time();
        if now_ns - self.time_of_last_epoch_update_ns >= EPOCH_CLOCK_RESOLUTION_NS {
            self.time_of_last_epoch_update_ns = now_ns;
            self.now_ms = SystemEpochClock.time_ms();
        }
        Ok(self.conductor.do_work(now_ns, self.now_ms))
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.conductor.close();
        Ok(())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "conductor".into()
    }
}
