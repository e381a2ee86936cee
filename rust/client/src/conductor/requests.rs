//! Requests of the application: each sends a command and remembers what its answer is for.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use aeron_protocol::CONTROL_PROTOCOL_VERSION;

use super::Conductor;
use super::commands::{Progress, Purpose};
use super::removals::Removal;
use crate::aeron::SubscriptionHandlers;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::lifetime::{Lifetime, ResourceKind};
use crate::proxy::DestinationCommand;
use crate::subscription::SubscriptionCore;

impl Conductor {
    pub(crate) fn request_publication(
        &mut self,
        client: &Client,
        channel: &str,
        stream_id: i32,
        exclusive: bool,
    ) -> Result<i64> {
        let correlation_id = client
            .proxy
            .add_publication(channel, stream_id, exclusive)?;
        let channel = channel.to_owned();
        let purpose = match exclusive {
            true => Purpose::AddExclusivePublication { channel, stream_id },
            false => Purpose::AddPublication { channel, stream_id },
        };
        self.await_answer(client, correlation_id, purpose);
        Ok(correlation_id)
    }

    pub(crate) fn request_subscription(
        &mut self,
        client: &Arc<Client>,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64> {
        let registration_id = client.proxy.add_subscription(channel, stream_id)?;
        let idle_part = client.idle_work.as_ref().map(|work| work.part_of(channel));
        let core = SubscriptionCore::new(registration_id, channel, stream_id, handlers, idle_part);
        let lifetime = Lifetime::new(client, ResourceKind::Subscription, registration_id);
        self.subscriptions
            .insert(registration_id, Arc::new(core), lifetime);
        self.await_answer(client, registration_id, Purpose::AddSubscription);
        Ok(registration_id)
    }

    /// The handlers of subscriptions that are added without any.
    pub(crate) fn default_image_handlers(&self) -> SubscriptionHandlers {
        SubscriptionHandlers {
            available_image: self.handlers.available_image.clone(),
            unavailable_image: self.handlers.unavailable_image.clone(),
        }
    }

    pub(crate) fn request_counter(
        &mut self,
        client: &Client,
        type_id: i32,
        key: &[u8],
        label: &str,
        static_registration_id: Option<i64>,
    ) -> Result<i64> {
        let (correlation_id, purpose) = match static_registration_id {
            None => (
                client.proxy.add_counter(type_id, key, label)?,
                Purpose::AddCounter,
            ),
            Some(registration_id) => (
                client
                    .proxy
                    .add_static_counter(type_id, key, label, registration_id)?,
                Purpose::AddStaticCounter { registration_id },
            ),
        };
        self.await_answer(client, correlation_id, purpose);
        Ok(correlation_id)
    }

    pub(crate) fn request_destination(
        &mut self,
        client: &Client,
        command: DestinationCommand,
        resource_id: i64,
        channel: &str,
    ) -> Result<i64> {
        let correlation_id = client.proxy.destination(command, resource_id, channel)?;
        self.await_answer(client, correlation_id, Purpose::Operation);
        Ok(correlation_id)
    }

    pub(crate) fn request_destination_removal(
        &mut self,
        client: &Client,
        publication_id: i64,
        destination_id: i64,
    ) -> Result<i64> {
        let correlation_id = client
            .proxy
            .remove_destination_by_id(publication_id, destination_id)?;
        self.await_answer(client, correlation_id, Purpose::Operation);
        Ok(correlation_id)
    }

    pub(crate) fn request_rejection(
        &mut self,
        client: &Client,
        image_correlation_id: i64,
        position: i64,
        reason: &str,
    ) -> Result<i64> {
        let correlation_id = client
            .proxy
            .reject_image(image_correlation_id, position, reason)?;
        self.await_answer(client, correlation_id, Purpose::Operation);
        Ok(correlation_id)
    }

    /// Asks for a session id; chooses one by chance when the driver is too old to know the command.
    pub(crate) fn request_session_id(&mut self, client: &Client, stream_id: i32) -> Result<i64> {
        if client.counters.control_protocol_version() < CONTROL_PROTOCOL_VERSION {
            let correlation_id = client.proxy.next_correlation_id();
            self.commands.succeed(correlation_id, random_session_id());
            return Ok(correlation_id);
        }
        let correlation_id = client.proxy.next_available_session_id(stream_id)?;
        self.await_answer(client, correlation_id, Purpose::NextSessionId);
        Ok(correlation_id)
    }

    /// What became of a command; the driver's refusal and a missing answer are errors, each said once.
    ///
    /// What the driver adds after the time ran out would stay until the client closes, so its removal is asked for.
    pub(crate) fn poll_command(
        &mut self,
        client: &Arc<Client>,
        correlation_id: i64,
    ) -> Result<Progress> {
        let purpose = self.commands.purpose(correlation_id).cloned();
        let timeout = client.settings.driver_timeout();
        let progress = self.commands.poll(correlation_id, client.now_ns(), timeout);
        if let (Err(Error::DriverTimeout(_)), Some(purpose)) = (&progress, purpose) {
            self.give_up(client, correlation_id, &purpose);
        }
        progress
    }

    /// Gives up a resource by its registration id, whether its add was answered or not; answers whether there was one.
    pub(crate) fn remove_by_id(
        &mut self,
        client: &Arc<Client>,
        kind: ResourceKind,
        registration_id: i64,
    ) -> bool {
        let purpose = self.commands.purpose(registration_id).cloned();
        if let Some(purpose) = purpose.filter(|purpose| purpose.adds() == Some(kind)) {
            self.commands.forget(registration_id);
            self.give_up(client, registration_id, &purpose);
            return true;
        }
        let removed = self.remove(client, kind, registration_id, false);
        let was_there = removed.is_some();
        if was_there {
            self.commands.forget(registration_id);
        }
        client.dispatcher.push(move || drop(removed));
        was_there
    }

    /// Gives up a command that nobody waits for any more, and what it adds.
    pub(crate) fn abandon(&mut self, client: &Arc<Client>, correlation_id: i64) {
        if let Some(purpose) = self.commands.purpose(correlation_id).cloned() {
            self.commands.forget(correlation_id);
            self.give_up(client, correlation_id, &purpose);
        }
    }

    /// Asks for the removal of what an unanswered command adds.
    fn give_up(&mut self, client: &Arc<Client>, id: i64, purpose: &Purpose) {
        let removal = match purpose.adds() {
            Some(ResourceKind::Publication | ResourceKind::ExclusivePublication) => {
                Removal::Publication {
                    registration_id: id,
                    revoke: false,
                }
            }
            Some(ResourceKind::Subscription) => {
                // Its object exists already, and its handle must not be dropped under the conductor's lock.
                let removed = self.remove(client, ResourceKind::Subscription, id, false);
                return client.dispatcher.push(move || drop(removed));
            }
            Some(ResourceKind::Counter) if *purpose == Purpose::AddCounter => Removal::Counter {
                registration_id: id,
            },
            Some(ResourceKind::Counter) | None => return,
        };
        self.send_removal(client, removal);
    }
}

/// A number by chance: the standard library seeds each of its hash states with one.
fn random_session_id() -> i32 {
    RandomState::new().build_hasher().finish() as i32
}
