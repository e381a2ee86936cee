//! What the conductor does once per timer interval.

use aeron_memory::counters::system::SystemCounter;

use super::Conductor;
use super::clients::Client;
use crate::publication::Tick;
use crate::sender::SenderCommand;
use crate::stream::IPC_SOURCE_IDENTITY;

/// Notices a command that its client will not finish: the ring stands still although something was claimed.
#[derive(Debug)]
pub(super) struct BlockedCommandTimer {
    last_consumer_position: i64,
    time_of_last_movement_ns: i64,
}

impl BlockedCommandTimer {
    pub(super) fn new(consumer_position: i64, now_ns: i64) -> Self {
        Self {
            last_consumer_position: consumer_position,
            time_of_last_movement_ns: now_ns,
        }
    }

    /// Whether the ring has been standing still for longer than `timeout_ns`.
    fn is_blocked(&mut self, consumer: i64, producer: i64, now_ns: i64, timeout_ns: i64) -> bool {
        if consumer != self.last_consumer_position || producer <= consumer {
            self.last_consumer_position = consumer;
            self.time_of_last_movement_ns = now_ns;
            return false;
        }
        now_ns - self.time_of_last_movement_ns > timeout_ns
    }
}

impl Conductor {
    pub(super) fn on_timer(&mut self) {
        self.commands
            .ring()
            .set_consumer_heartbeat_ms(self.outlets.now_ms);
        self.check_clients();
        self.check_ipc_publications();
        self.check_network_publications();
        self.check_images();
        self.check_blocked_commands();
    }

    fn check_clients(&mut self) {
        let liveness_timeout_ms = (self.context.client_liveness_timeout_ns / 1_000_000).max(1);
        while let Some(client) = self
            .clients
            .take_gone(self.outlets.now_ms, liveness_timeout_ms)
        {
            self.end_client(&client);
        }
    }

    /// Announces the client's end, then ends what it owns.
    fn end_client(&mut self, client: &Client) {
        self.pending.forget_client(client.id(), &mut self.outlets);
        if !client.is_closed() {
            self.outlets
                .system_counter(SystemCounter::ClientTimeouts)
                .add_release(1);
            self.outlets.events.on_client_timeout(client.id());
        }
        self.outlets
            .events
            .on_unavailable_counter(client.id(), client.heartbeat_counter_id());
        for reference in &client.publications {
            self.remove_publication_reference(reference.publication_id);
        }
        for counter in &client.counters {
            self.outlets
                .events
                .on_unavailable_counter(counter.registration_id, counter.counter_id);
            self.outlets.free_counter(counter.counter_id);
        }
        self.remove_subscriptions(|subscription| subscription.client_id == client.id());
        self.outlets.free_counter(client.heartbeat_counter_id());
    }

    fn check_ipc_publications(&mut self) {
        for index in (0..self.ipc_publications.len()).rev() {
            let publication = &mut self.ipc_publications[index];
            let mut tether_actions = Vec::new();
            let tick =
                publication.on_tick(self.outlets.now_ns, |action| tether_actions.push(action));
            self.outlets.on_tether_actions(publication, tether_actions);
            match tick {
                Tick::Nothing | Tick::Release => {}
                Tick::Unavailable { is_revoked } => {
                    self.outlets
                        .announce_unavailable(publication, Some(IPC_SOURCE_IDENTITY));
                    self.count_revoked(is_revoked);
                }
                Tick::Available => self.link_ipc_publication(index),
                Tick::Unblocked => self.count_unblocked(),
                Tick::EndOfLife => self.delete_ipc_publication(index),
            }
        }
    }

    pub(super) fn check_network_publications(&mut self) {
        for index in (0..self.network_publications.len()).rev() {
            let publication = &mut self.network_publications[index];
            let mut tether_actions = Vec::new();
            let tick =
                publication.on_tick(self.outlets.now_ns, |action| tether_actions.push(action));
            self.outlets.on_tether_actions(publication, tether_actions);
            match tick {
                Tick::Nothing | Tick::Available => {}
                Tick::Unavailable { is_revoked } => {
                    self.outlets.announce_unavailable(publication, None);
                    self.outlets.free_subscribers(publication);
                    self.count_revoked(is_revoked);
                }
                Tick::Unblocked => self.count_unblocked(),
                Tick::Release => {
                    let id = publication.config().registration_id;
                    self.outlets
                        .sender_commands
                        .send(SenderCommand::RemovePublication(id));
                }
                Tick::EndOfLife => self.delete_network_publication(index),
            }
        }
    }

    fn count_revoked(&self, is_revoked: bool) {
        if is_revoked {
            self.outlets
                .system_counter(SystemCounter::PublicationsRevoked)
                .add_release(1);
        }
    }

    fn count_unblocked(&self) {
        self.outlets
            .system_counter(SystemCounter::UnblockedPublications)
            .add_release(1);
    }

    fn check_blocked_commands(&mut self) {
        let ring = self.commands.ring();
        let (consumer, producer) = (ring.consumer_position(), ring.producer_position());
        let timeout_ns = self.context.client_liveness_timeout_ns;
        if self.blocked_command_timer.is_blocked(
            consumer,
            producer,
            self.outlets.now_ns,
            timeout_ns,
        ) && self.commands.unblock()
        {
            self.outlets
                .system_counter(SystemCounter::UnblockedCommands)
                .add_release(1);
        }
    }
}
