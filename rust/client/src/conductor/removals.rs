//! Sends removals and the close of the client. If the ring to the driver is full, later duty cycles try again.
//!
//! If a removal were lost, the driver would keep the resource as long as the client lives. The log would stay in shared
//! memory, the counters would stay allocated, and an unread subscription would block its publishers.

use super::Conductor;
use super::commands::Purpose;
use super::removal::Removal;
use crate::client::Client;
use crate::error::Error;

impl Conductor {
    /// Sends a removal to the driver. If the ring to the driver is full, later duty cycles try again.
    ///
    /// A resource with a negative key exists in no driver.
    pub(super) fn send_removal(&mut self, client: &Client, removal: Removal) {
        if removal.registration_id() < 0 || self.is_down() {
            return;
        }
        debug_assert!(
            !self
                .unsent_removals
                .iter()
                .any(|it| it.registration_id() == removal.registration_id()),
            "resource {} is removed twice: the driver would refuse the second removal",
            removal.registration_id()
        );
        self.unsent_removals.push_back(removal);
        self.send_removals(client);
    }

    /// Sends the pending removals in order, until the ring is full. Returns the number of removals that were sent.
    pub(super) fn send_removals(&mut self, client: &Client) -> usize {
        let mut sent = 0;
        while let Some(removal) = self.unsent_removals.front() {
            let registration_id = removal.registration_id();
            match removal.send(&self.link.proxy) {
                Ok(correlation_id) => {
                    let purpose = Purpose::Removal { registration_id };
                    self.await_answer(client, correlation_id, purpose);
                }
                Err(Error::CommandBufferFull { .. }) => break,
                Err(error) => client.dispatcher.report(error),
            }
            self.unsent_removals.pop_front();
            sent += 1;
        }
        sent
    }

    /// Whether a removal of this resource is still to be sent, or still to be confirmed by the driver.
    pub(crate) fn is_removing(&self, registration_id: i64) -> bool {
        let is_unsent = |removal: &Removal| removal.registration_id() == registration_id;
        self.unsent_removals.iter().any(is_unsent) || self.commands.is_removing(registration_id)
    }

    /// Sends the client's close to the driver if that was not done yet. Returns whether nothing is left to send.
    pub(crate) fn announce_close(&mut self) -> bool {
        if self.close_is_unsent {
            let sent = self.link.proxy.client_close();
            self.close_is_unsent = matches!(sent, Err(Error::CommandBufferFull { .. }));
        }
        !self.close_is_unsent
    }
}
