//! [`Receivers`]: which receivers of a publication are alive.

use std::collections::HashMap;

use crate::flow_control::MAX_RECEIVERS_PER_PUBLICATION;

/// When each receiver was heard last. Its keys come from the network, hence their number is bounded and their hash seeded.
#[derive(Debug)]
pub struct Receivers {
    time_of_last_message_ns: HashMap<i64, i64>,
    timeout_ns: i64,
    /// Nobody is overdue before.
    next_check_ns: i64,
}

/// There are [`MAX_RECEIVERS_PER_PUBLICATION`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status messages ignored: a publication remembers {MAX_RECEIVERS_PER_PUBLICATION} receivers, this would be one more"
)]
pub struct TooManyReceivers;

impl Receivers {
    /// Nobody yet; a receiver is gone after `timeout_ns` of silence.
    pub fn new(timeout_ns: i64) -> Self {
        Self {
            time_of_last_message_ns: HashMap::new(),
            timeout_ns,
            next_check_ns: i64::MAX,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.time_of_last_message_ns.is_empty()
    }

    /// A receiver gave a sign of life.
    ///
    /// # Errors
    /// It is a new one and there are too many.
    pub fn on_message(&mut self, receiver_id: i64, now_ns: i64) -> Result<(), TooManyReceivers> {
        if let Some(time_ns) = self.time_of_last_message_ns.get_mut(&receiver_id) {
            *time_ns = now_ns;
            return Ok(());
        }
        if self.time_of_last_message_ns.len() >= MAX_RECEIVERS_PER_PUBLICATION {
            return Err(TooManyReceivers);
        }
        self.time_of_last_message_ns.insert(receiver_id, now_ns);
        let overdue_ns = now_ns.saturating_add(self.timeout_ns);
        self.next_check_ns = self.next_check_ns.min(overdue_ns);
        Ok(())
    }

    /// A receiver is gone; answers whether it was there.
    pub fn remove(&mut self, receiver_id: i64) -> bool {
        self.time_of_last_message_ns.remove(&receiver_id).is_some()
    }

    /// Forgets receivers that were silent for the timeout. Costs next to nothing while none can have been.
    pub fn forget_silent(&mut self, now_ns: i64) {
        if now_ns < self.next_check_ns {
            return;
        }
        let timeout_ns = self.timeout_ns;
        self.time_of_last_message_ns
            .retain(|_, time_ns| now_ns.saturating_sub(*time_ns) < timeout_ns);
        self.next_check_ns = self
            .time_of_last_message_ns
            .values()
            .min()
            .map_or(i64::MAX, |oldest_ns| oldest_ns.saturating_add(timeout_ns));
    }
}
