//! The conductor's periodic work. It runs once in each timer interval.

use aeron_memory::counters::system::SystemCounter;

use super::Conductor;
use super::clients::Client;
use crate::diagnostics::TARGET;

impl Conductor {
    pub(super) fn on_timer(&mut self) {
        self.commands.keep_alive(self.outlets.now_ms);
        self.check_clients();
        self.publications
            .check_ipc(&self.subscriptions, &mut self.outlets);
        self.publications
            .check_network(&mut self.endpoints, &mut self.outlets);
        self.images.check(&mut self.endpoints, &mut self.outlets);
        self.check_blocked_commands();
    }

    fn check_clients(&mut self) {
        let timeout_ns = self.context.client_liveness_timeout_ns.max(1_000_000);
        let (now_ms, now_ns) = (self.outlets.now_ms, self.outlets.now_ns);
        while let Some(client) = self.clients.take_gone(now_ms, now_ns, timeout_ns) {
            self.end_client(&client);
        }
    }

    /// Announces the end of a client, then frees its resources.
    fn end_client(&mut self, client: &Client) {
        self.pending.forget_client(client.id(), &mut self.outlets);
        if !client.is_closed() {
            self.outlets
                .system_counter(SystemCounter::ClientTimeouts)
                .add_release(1);
            self.outlets.events.on_client_timeout(client.id());
            let label = self
                .outlets
                .counters
                .reader()
                .label(client.heartbeat_counter_id());
            log::warn!(
                target: TARGET,
                "a client has timed out, and lost {} publications and {} counters: {}",
                client.publications.len(),
                client.counters.len(),
                label.unwrap_or_default()
            );
        }
        self.outlets
            .events
            .on_unavailable_counter(client.id(), client.heartbeat_counter_id());
        for reference in &client.publications {
            self.remove_publication_reference(*reference);
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

    fn check_blocked_commands(&mut self) {
        let timeout_ns = self.context.client_liveness_timeout_ns;
        if self.commands.unblock(self.outlets.now_ns, timeout_ns) {
            self.outlets
                .system_counter(SystemCounter::UnblockedCommands)
                .add_release(1);
        }
    }
}
