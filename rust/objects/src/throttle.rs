//! [`Throttle`]: limits the number of bytes that are sent per second.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Limits the rate of all copies together.
pub(crate) struct Throttle {
    bytes_per_second: u64,
    /// Time at which the next bytes may be sent.
    next: Cell<Instant>,
}

impl Throttle {
    /// Creates a throttle. With 0 bytes per second, there is no limit.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            next: Cell::new(Instant::now()),
        }
    }

    /// Waits until this number of bytes may be sent.
    pub async fn pass(&self, bytes: usize) {
        if self.bytes_per_second == 0 {
            return;
        }
        let begin = self.next.get().max(Instant::now());
        let duration = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        self.next.set(begin + duration);
        sleep_until(begin).await;
    }
}
