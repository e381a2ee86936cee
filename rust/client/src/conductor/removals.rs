//! Removals and the close of the client, which are repeated until the driver has taken them.
//!
//! A removal that was lost would leave the resource with the driver for as long as the client lives: its log in shared memory, its
//! counters, and for a subscription the flow control of every publisher.

use std::sync::Arc;

use super::Conductor;
use super::commands::Purpose;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::proxy::DriverProxy;

/// A resource that the driver is to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// A publication of either kind.
    Publication { registration_id: i64, revoke: bool },
    /// A subscription.
    Subscription { registration_id: i64 },
    /// A counter.
    Counter { registration_id: i64 },
}

impl Removal {
    fn send(self, proxy: &DriverProxy) -> Result<i64> {
        match self {
            Self::Publication {
                registration_id,
                revoke,
            } => proxy.remove_publication(registration_id, revoke),
            Self::Subscription { registration_id } => proxy.remove_subscription(registration_id),
            Self::Counter { registration_id } => proxy.remove_counter(registration_id),
        }
    }
}

impl Conductor {
    /// Asks the driver for a removal. If the ring to the driver is full, the next duty cycles ask again.
    pub(super) fn send_removal(&mut self, client: &Client, removal: Removal) {
        self.unsent_removals.push_back(removal);
        self.send_removals(client);
    }

    /// Sends the removals that wait, in order, until one meets a full ring. Returns the number that left the queue.
    pub(super) fn send_removals(&mut self, client: &Client) -> usize {
        let mut sent = 0;
        while let Some(removal) = self.unsent_removals.front() {
            match removal.send(&client.proxy) {
                Ok(correlation_id) => self.await_answer(client, correlation_id, Purpose::Removal),
                Err(Error::CommandBufferFull { .. }) => break,
                Err(error) => client.dispatcher.report(error),
            }
            self.unsent_removals.pop_front();
            sent += 1;
        }
        sent
    }

    /// Tells the driver of the client's close if it was not told yet. Returns whether nothing is left to be told.
    pub(crate) fn announce_close(&mut self, client: &Arc<Client>) -> bool {
        if self.close_is_unsent {
            let sent = client.proxy.client_close();
            self.close_is_unsent = matches!(sent, Err(Error::CommandBufferFull { .. }));
        }
        !self.close_is_unsent
    }
}
