//! Round trips between a receiver and its sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

const TIMEOUT_MULTIPLE: i64 = 4;

/// The round trip time of an image, as it was last measured: written by the receiver, read by the conductor.
#[derive(Clone, Debug)]
pub struct RttShared(Arc<AtomicI64>);

/// The receiver's half: says when to ask for a measurement, and takes the answers.
#[derive(Debug)]
pub struct RttMeter {
    shared: RttShared,
    counter: AtomicCounter<SharedBuffer>,
    initial_rtt_ns: i64,
    timeout_ns: i64,
    time_of_last_message_ns: i64,
}

impl RttShared {
    /// Nothing was measured yet: `initial_rtt_ns` is assumed.
    pub fn new(initial_rtt_ns: i64) -> Self {
        RttShared(Arc::new(AtomicI64::new(initial_rtt_ns)))
    }

    /// The round trip in nanoseconds.
    pub fn get_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl RttMeter {
    /// Measures into `shared` and shows it in `counter`.
    pub fn new(shared: RttShared, counter: AtomicCounter<SharedBuffer>, now_ns: i64) -> Self {
        let initial_rtt_ns = shared.get_ns();
        RttMeter {
            shared,
            counter,
            initial_rtt_ns,
            timeout_ns: initial_rtt_ns.saturating_mul(TIMEOUT_MULTIPLE),
            time_of_last_message_ns: now_ns,
        }
    }

    /// Whether it is time to ask; if so the caller asks, and the time starts anew.
    pub fn should_measure(&mut self, now_ns: i64) -> bool {
        let deadline_ns = self.time_of_last_message_ns.saturating_add(self.timeout_ns);
        let is_due = now_ns > deadline_ns;
        if is_due {
            self.time_of_last_message_ns = now_ns;
        }
        is_due
    }

    /// An answer arrived: it echoes when it was asked for, and says how long the other side took. Both are what a datagram claims;
    /// a time that cannot be is ignored.
    pub fn on_answer(&mut self, echo_timestamp_ns: i64, reception_delta_ns: i64, now_ns: i64) {
        let rtt_ns = now_ns
            .checked_sub(echo_timestamp_ns)
            .and_then(|elapsed_ns| elapsed_ns.checked_sub(reception_delta_ns));
        let Some(rtt_ns) = rtt_ns.filter(|rtt_ns| *rtt_ns >= 0) else {
            return;
        };
        self.time_of_last_message_ns = now_ns;
        self.timeout_ns = rtt_ns
            .max(self.initial_rtt_ns)
            .saturating_mul(TIMEOUT_MULTIPLE);
        self.shared.0.store(rtt_ns, Ordering::Relaxed);
        self.counter.set(rtt_ns);
    }
}
