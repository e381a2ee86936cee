//! A busy wait that makes each message slower by a known time.

use std::hint::black_box;
use std::time::Instant;

const CALIBRATION_STEPS: u64 = 1_000_000;
/// Shortest wait of a publisher in nanoseconds. The wait for one message takes only a few instructions, which the
/// processor runs at the same time as the stores of other messages.
const LUMP_NS: f64 = 1000.0;

/// A busy wait for each message.
pub struct Delay {
    message_ns: f64,
    shortest_ns: f64,
    step_ns: f64,
    owed_ns: f64,
}

impl Delay {
    /// Waits once for the time that several messages owe.
    pub fn in_lumps(message_ns: f64) -> Self {
        Self::new(message_ns, LUMP_NS)
    }

    /// Waits after each message. This is right for round trips: the next message is sent after the reply, so the
    /// processor cannot execute the wait beside other work.
    pub fn in_each(message_ns: f64) -> Self {
        Self::new(message_ns, 0.0)
    }

    fn new(message_ns: f64, shortest_ns: f64) -> Self {
        let start = Instant::now();
        step(CALIBRATION_STEPS);
        let step_ns = start.elapsed().as_nanos() as f64 / CALIBRATION_STEPS as f64;
        Self {
            message_ns,
            shortest_ns,
            step_ns,
            owed_ns: 0.0,
        }
    }

    /// Waits for `messages` messages, or lets them owe their time.
    #[inline]
    pub fn after(&mut self, messages: usize) {
        if self.message_ns > 0.0 {
            self.owed_ns += self.message_ns * messages as f64;
            if self.owed_ns >= self.shortest_ns {
                let steps = (self.owed_ns / self.step_ns) as u64;
                step(steps);
                self.owed_ns -= steps as f64 * self.step_ns;
            }
        }
    }
}

/// Multiplies in a chain: each step needs the result of the step before it.
#[inline(never)]
fn step(count: u64) {
    let mut value = black_box(1_u64);
    for number in 0..count {
        value = value.wrapping_mul(6_364_136_223_846_793_005) ^ number;
    }
    black_box(value);
}
