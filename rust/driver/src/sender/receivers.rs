//! [`Receivers`]: which receivers of a publication are alive.

use std::collections::HashMap;

use crate::flow_control::MAX_RECEIVERS_PER_PUBLICATION;

/// When each receiver was heard last, and what it said. Its keys come from the network, hence their number is bounded and their
/// hash seeded.
#[derive(Debug)]
pub struct Receivers {
    heard: HashMap<i64, Heard>,
    timeout_ns: i64,
    /// Nobody is overdue before.
    next_check_ns: i64,
    /// The slowest position may be another than the one that was taken last.
    has_moved: bool,
}

/// What is known of a receiver.
#[derive(Debug)]
struct Heard {
    time_ns: i64,
    /// Position up to which it has reported consumption.
    position: i64,
}

/// There are [`MAX_RECEIVERS_PER_PUBLICATION`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status messages ignored: a publication remembers {MAX_RECEIVERS_PER_PUBLICATION} receivers, this would be one more"
)]
pub struct TooManyReceivers;

impl Receivers {
    /// No receivers; a receiver is gone after `timeout_ns` of silence.
    pub fn new(timeout_ns: i64) -> Self {
        Self {
            heard: HashMap::new(),
            timeout_ns,
            next_check_ns: i64::MAX,
            has_moved: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.heard.is_empty()
    }

    /// A receiver gave a sign of life, having consumed up to `position`.
    ///
    /// # Errors
    /// It is a new one and there are too many.
    pub fn on_message(
        &mut self,
        receiver_id: i64,
        position: i64,
        now_ns: i64,
    ) -> Result<(), TooManyReceivers> {
        if let Some(heard) = self.heard.get_mut(&receiver_id) {
            heard.time_ns = now_ns;
            self.has_moved |= heard.position != position;
            heard.position = position;
            return Ok(());
        }
        if self.heard.len() >= MAX_RECEIVERS_PER_PUBLICATION {
            return Err(TooManyReceivers);
        }
        let time_ns = now_ns;
        self.heard.insert(receiver_id, Heard { time_ns, position });
        self.has_moved = true;
        let overdue_ns = now_ns.saturating_add(self.timeout_ns);
        self.next_check_ns = self.next_check_ns.min(overdue_ns);
        Ok(())
    }

    /// A receiver is gone; returns whether it was there.
    pub fn remove(&mut self, receiver_id: i64) -> bool {
        let is_removed = self.heard.remove(&receiver_id).is_some();
        self.has_moved |= is_removed;
        is_removed
    }

    /// Forgets receivers that were silent for the timeout. Costs next to nothing while none can have been.
    pub fn forget_silent(&mut self, now_ns: i64) {
        if now_ns < self.next_check_ns {
            return;
        }
        let timeout_ns = self.timeout_ns;
        self.heard
            .retain(|_, heard| now_ns.saturating_sub(heard.time_ns) < timeout_ns);
        self.has_moved = true;
        let oldest_ns = self.heard.values().map(|heard| heard.time_ns).min();
        self.next_check_ns =
            oldest_ns.map_or(i64::MAX, |oldest_ns| oldest_ns.saturating_add(timeout_ns));
    }

    /// The position of the slowest receiver, if it may have changed since it was taken last.
    pub fn take_slowest_position(&mut self) -> Option<i64> {
        match std::mem::take(&mut self.has_moved) {
            true => self.heard.values().map(|heard| heard.position).min(),
            false => None,
        }
    }
}
