//! [`Stream`]: one stream of a task, with what the task has sent on it.

use std::time::{Duration, Instant};

use aeron_agent::{BackoffIdleStrategy, IdleStrategy};
use aeron_client::{AppendError, Counter, Publication};
use aeron_columns::write::{ArrowMessages, Packing, Payloads, ReservedValue, Rows};

use super::drain::slowest_position;
use super::offer::{Offered, Stop, offer_all};
use super::patience::Patience;
use super::publications::Lease;

/// What a task published on one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReceipt {
    /// The stream.
    pub stream_id: i32,
    /// Its session, which other tasks of this machine publish into as well.
    pub session_id: i32,
    /// Position of the session before the task's first message was offered.
    pub first_position: i64,
    /// Position after the task's last message.
    pub last_position: i64,
    /// Rows of the task.
    pub rows: u64,
}

/// One stream of a task.
pub(super) struct Stream {
    publication: Lease<Publication>,
    /// Missing when the driver has no room for it: a counter is not worth the rows.
    rows_counter: Option<Lease<Counter>>,
    patience: Patience,
    /// For messages of several records.
    packing: Option<Packing>,
    receipt: StreamReceipt,
}

/// What became of messages.
pub(super) struct Sent {
    pub(super) rows: u64,
    pub(super) messages: usize,
    pub(super) bytes: u64,
    /// Why the others were not sent.
    pub(super) stopped: Option<Stop>,
}

impl Stream {
    pub(super) fn new(
        publication: Lease<Publication>,
        rows_counter: Option<Lease<Counter>>,
        patience: Patience,
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

    pub(super) fn publication(&self) -> &Publication {
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

    /// Adds rows to the messages that are not full yet; does nothing and answers false where each row is a message.
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

    /// Sends those messages of several records that `which` chooses.
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

    /// Position of the slowest subscriber, if there is one.
    pub(super) fn slowest_position(&self) -> Option<i64> {
        slowest_position(self.publication.counters(), &self.publication)
    }

    /// Waits until the slowest subscriber has read what was sent.
    ///
    /// # Errors
    /// It has not, and the time is up, or there is no use in waiting.
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
                return Err(DrainError::Stopped(Stop::Failed(AppendError::Closed)));
            }
            if is_interrupted() {
                return Err(DrainError::Stopped(Stop::Interrupted));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(DrainError::Undrained);
            }
            idle.idle_once();
        }
        Ok(())
    }
}

/// Why subscribers were not waited for to the end.
pub(super) enum DrainError {
    /// The time is up.
    Undrained,
    /// For another reason.
    Stopped(Stop),
}

impl Sent {
    const NOTHING: Self = Self {
        rows: 0,
        messages: 0,
        bytes: 0,
        stopped: None,
    };
}

/// The end of a wait that begins now; none if it is further away than a clock goes.
pub(super) fn deadline_in(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
