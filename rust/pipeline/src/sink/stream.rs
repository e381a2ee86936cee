//! [`SinkStream`]: one stream of a task. It counts the messages that the task has sent on the stream.

use std::time::{Duration, Instant};

use aeron_agent::{BackoffIdleStrategy, IdleStrategy};
use aeron_client::{AppendError, Counter};
use aeron_columns::write::{ArrowMessages, Packing, Payloads, ReservedValue, Rows};

use super::drain::slowest_position;
use super::offer::{OfferStop, Offered, offer_all};
use super::patience::RetryLimits;
use super::publication::SinkPublication;
use super::publications::Lease;

/// Result of a task on one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReceipt {
    /// The stream.
    pub stream_id: i32,
    /// Session id. With [`Sharing::Shared`](super::Sharing::Shared), other tasks of this machine publish into the same
    /// session.
    pub session_id: i32,
    /// Position of the session before the task's first message was offered.
    pub first_position: i64,
    /// Position after the task's last message.
    pub last_position: i64,
    /// Number of rows that the task sent on this stream.
    pub rows: u64,
}

/// One stream of a task.
pub(super) struct SinkStream {
    publication: Lease<SinkPublication>,
    /// `None` if the counter could not be added. The rows are then sent without a counter.
    rows_counter: Option<Lease<Counter>>,
    patience: RetryLimits,
    /// Packs several records into one message; `None` if each row is a message.
    packing: Option<Packing>,
    receipt: StreamReceipt,
}

/// Result of sending messages.
pub(super) struct Sent {
    pub(super) rows: u64,
    pub(super) messages: usize,
    pub(super) bytes: u64,
    /// Reason why the remaining messages were not sent; `None` if all messages were sent.
    pub(super) stopped: Option<OfferStop>,
}

impl SinkStream {
    pub(super) fn new(
        publication: Lease<SinkPublication>,
        rows_counter: Option<Lease<Counter>>,
        patience: RetryLimits,
        packing: Option<Packing>,
    ) -> Self {
        let position = publication.position().unwrap_or_default();
        let receipt = StreamReceipt {
            stream_id: publication.stream_id(),
            session_id: publication.session_id(),
            first_position: position,
            last_position: position,
            rows: 0,
        };
        Self {
            publication,
            rows_counter,
            patience,
            packing,
            receipt,
        }
    }

    pub(super) fn publication(&self) -> &SinkPublication {
        &self.publication
    }

    pub(super) fn receipt(&self) -> &StreamReceipt {
        &self.receipt
    }

    /// Sends messages of one row each.
    pub(super) fn send(
        &mut self,
        messages: &ArrowMessages<'_>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Sent {
        let offered = offer_all(
            &self.publication,
            messages,
            &mut self.patience,
            is_interrupted,
        );
        let rows = offered.messages as u64;
        self.count(offered, rows)
    }

    /// Adds rows to the messages that are not full yet. Returns `false` and does nothing if each row is a message.
    pub(super) fn pack(&mut self, rows: &Rows<'_>, order: Option<&[u32]>) -> bool {
        let Some(packing) = &mut self.packing else {
            return false;
        };
        match order {
            Some(order) => order
                .iter()
                .for_each(|row| packing.push(rows, *row as usize)),
            None => (0..rows.payloads.count()).for_each(|row| packing.push(rows, row)),
        }
        true
    }

    /// Sends the packed messages that `which` selects.
    pub(super) fn send_packed(
        &mut self,
        which: fn(&Packing) -> Payloads<'_>,
        reserved_value: ReservedValue,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Sent {
        let Some(packing) = &mut self.packing else {
            return Sent::NOTHING;
        };
        let messages = ArrowMessages {
            payloads: which(packing),
            reserved: packing.reserved(reserved_value),
            order: None,
        };
        let offered = offer_all(
            &self.publication,
            &messages,
            &mut self.patience,
            is_interrupted,
        );
        let rows = packing.remove(offered.messages) as u64;
        self.count(offered, rows)
    }

    fn count(&mut self, offered: Offered, rows: u64) -> Sent {
        if let Some(position) = offered.position {
            self.receipt.last_position = position;
        }
        self.receipt.rows += rows;
        if let Some(counter) = &self.rows_counter {
            counter.fetch_add(rows as i64);
        }
        Sent {
            rows,
            messages: offered.messages,
            bytes: offered.bytes,
            stopped: offered.stopped,
        }
    }

    /// Returns the position of the slowest subscriber; `None` if there is no subscriber.
    pub(super) fn slowest_position(&self) -> Option<i64> {
        slowest_position(self.publication.counters(), &self.publication)
    }

    /// Waits until the slowest subscriber has read all sent messages.
    ///
    /// # Errors
    /// `deadline` was reached, the caller interrupted the wait, or the publication is closed.
    pub(super) fn drain(
        &self,
        deadline: Option<Instant>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), DrainError> {
        let mut idle = BackoffIdleStrategy::default();
        while self
            .slowest_position()
            .is_some_and(|position| position < self.receipt.last_position)
        {
            if self.publication.is_closed() {
                return Err(DrainError::Stopped(OfferStop::Failed(AppendError::Closed)));
            }
            if is_interrupted() {
                return Err(DrainError::Stopped(OfferStop::Interrupted));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(DrainError::Undrained);
            }
            idle.idle_once();
        }
        Ok(())
    }
}

/// Reason why the wait for subscribers ended early.
pub(super) enum DrainError {
    /// The time-out is reached.
    Undrained,
    /// The caller interrupted the wait, or the publication is closed.
    Stopped(OfferStop),
}

impl Sent {
    const NOTHING: Self = Self {
        rows: 0,
        messages: 0,
        bytes: 0,
        stopped: None,
    };
}

/// Returns the time `timeout` from now; `None` if the clock cannot represent it.
pub(super) fn deadline_in(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
