//! Measures the round trip between a receiver and its sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

const TIMEOUT_MULTIPLE: i64 = 4;

/// The last measured round trip of an image. The receiver writes it; the conductor reads it.
#[derive(Clone, Debug)]
pub struct RttShared(Arc<AtomicI64>);

/// The receiver's half: decides when to measure, and handles the replies.
#[derive(Debug)]
pub struct RttMeter {
    shared: RttShared,
    counter: AtomicCounter<SharedBuffer>,
    initial_rtt_ns: i64,
    timeout_ns: i64,
    time_of_last_message_ns: i64,
}

impl RttShared {
    /// Creates the value. Until the first measurement, the value is `initial_rtt_ns`.
    pub fn new(initial_rtt_ns: i64) -> Self {
        RttShared(Arc::new(AtomicI64::new(initial_rtt_ns)))
    }

    /// Returns the round trip in nanoseconds.
    pub fn get_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl RttMeter {
    /// Creates a meter that writes measurements into `shared` and `counter`.
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

    /// Returns whether a measurement is due. If so, restarts the interval; the caller must send the request.
    pub fn should_measure(&mut self, now_ns: i64) -> bool {
        let deadline_ns = self.time_of_last_message_ns.saturating_add(self.timeout_ns);
        let is_due = now_ns > deadline_ns;
        if is_due {
            self.time_of_last_message_ns = now_ns;
        }
        is_due
    }

    /// Handles a reply, which contains the time of the request and the delay at the other side.
    ///
    /// Both values come from the network and may be invalid. If they give a round trip that is negative or overflows,
    /// the reply is ignored.
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
