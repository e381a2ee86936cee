//! [`Receivers`]: the live receivers of a publication.

use std::collections::HashMap;

use crate::flow_control::MAX_RECEIVERS_PER_PUBLICATION;

/// Time and position of each receiver's last message.
///
/// The keys come from the network, so their number is limited and the hash is seeded.
#[derive(Debug)]
pub struct Receivers {
    heard: HashMap<i64, HeardReceiver>,
    timeout_ns: i64,
    /// No receiver can time out before this time.
    next_check_ns: i64,
    /// Whether the slowest position may have changed since it was read last.
    has_moved: bool,
}

/// The state of one receiver.
#[derive(Debug)]
struct HeardReceiver {
    time_ns: i64,
    /// Position up to which the receiver has reported consumption.
    position: i64,
}

/// The publication has [`MAX_RECEIVERS_PER_PUBLICATION`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status message of a new receiver ignored: the publication has the maximum of {MAX_RECEIVERS_PER_PUBLICATION} receivers"
)]
pub struct TooManyReceivers;

impl Receivers {
    /// Creates an empty collection. A receiver times out `timeout_ns` after its last message.
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

    /// Updates or adds a receiver that has consumed up to `position`.
    ///
    /// # Errors
    /// The receiver is new and there are too many receivers.
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
        self.heard
            .insert(receiver_id, HeardReceiver { time_ns, position });
        self.has_moved = true;
        let overdue_ns = now_ns.saturating_add(self.timeout_ns);
        self.next_check_ns = self.next_check_ns.min(overdue_ns);
        Ok(())
    }

    /// Removes a receiver. Returns whether the receiver existed.
    pub fn remove(&mut self, receiver_id: i64) -> bool {
        let is_removed = self.heard.remove(&receiver_id).is_some();
        self.has_moved |= is_removed;
        is_removed
    }

    /// Removes the receivers that have timed out. Takes almost no time if no receiver can have timed out yet.
    pub fn forget_silent(&mut self, now_ns: i64) {
        if now_ns < self.next_check_ns {
            debug_assert!(
                self.heard
                    .values()
                    .all(|heard| now_ns.saturating_sub(heard.time_ns) < self.timeout_ns),
                "a receiver has timed out at {now_ns}, but the next check is at {}",
                self.next_check_ns
            );
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

    /// Returns the position of the slowest receiver, if it may have changed since the last call.
    pub fn take_slowest_position(&mut self) -> Option<i64> {
        match std::mem::take(&mut self.has_moved) {
            true => self.heard.values().map(|heard| heard.position).min(),
            false => None,
        }
    }
}
