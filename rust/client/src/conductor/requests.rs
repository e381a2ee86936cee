//! Requests of the application: each one sends a command and records the command's purpose.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use aeron_protocol::CONTROL_PROTOCOL_VERSION;

use super::Conductor;
use super::commands::{AbandonedCommand, Answered, CommandProgress, Purpose, ResourceKind};
use super::removal::{Removal, RemovalById};
use crate::client::Client;
use crate::counter::core::CounterDescription;
use crate::error::{CloseCause, Error, Result};
use crate::lifetime::Registration;
use crate::proxy::DestinationCommand;
use crate::publication::core::PublishedStream;
use crate::subscription::core::{SubscriptionCore, SubscriptionHandlers};

impl Conductor {
    pub(crate) fn request_publication(
        &mut self,
        client: &Client,
        stream: &PublishedStream,
    ) -> Result<i64> {
        let (channel, exclusive) = (&stream.channel, stream.is_exclusive);
        let proxy = &self.link.proxy;
        let correlation_id = proxy.add_publication(channel, stream.stream_id, exclusive)?;
        self.await_answer(
            client,
            correlation_id,
            Purpose::AddPublication(stream.clone()),
        );
        Ok(correlation_id)
    }

    pub(crate) fn request_subscription(
        &mut self,
        client: &Arc<Client>,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64> {
        let registration_id = self.link.proxy.add_subscription(channel, stream_id)?;
        let idle_part = client.idle_work.as_ref().map(|work| work.part_of(channel));
        let registration = self.registration(registration_id);
        let core = SubscriptionCore::new(registration, channel, stream_id, handlers, idle_part);
        self.subscriptions.insert(registration_id, Arc::new(core));
        self.await_answer(client, registration_id, Purpose::AddSubscription);
        Ok(registration_id)
    }

    /// Returns the registration of a new resource.
    pub(super) fn registration(&mut self, registration_id: i64) -> Arc<Registration> {
        self.resources_added += 1;
        Registration::new(registration_id, self.resources_added)
    }

    /// Returns the context's handlers, for subscriptions that the application adds without handlers of their own.
    pub(crate) fn default_image_handlers(&self) -> SubscriptionHandlers {
        SubscriptionHandlers {
            available_image: self.handlers.available_image.clone(),
            unavailable_image: self.handlers.unavailable_image.clone(),
        }
    }

    pub(crate) fn request_counter(
        &mut self,
        client: &Client,
        counter: &CounterDescription,
    ) -> Result<i64> {
        let correlation_id = self.link.proxy.counter(counter)?;
        self.await_answer(client, correlation_id, Purpose::AddCounter(counter.clone()));
        Ok(correlation_id)
    }

    pub(crate) fn request_destination(
        &mut self,
        client: &Client,
        command: DestinationCommand,
        resource_id: i64,
        channel: &str,
    ) -> Result<i64> {
        let correlation_id = self.link.proxy.destination(command, resource_id, channel)?;
        let purpose = match command {
            DestinationCommand::Add => Purpose::AddDestination {
                publication_id: resource_id,
                channel: channel.to_owned(),
            },
            DestinationCommand::AddReceive => Purpose::AddReceiveDestination {
                subscription_id: resource_id,
                channel: channel.to_owned(),
            },
            DestinationCommand::Remove | DestinationCommand::RemoveReceive => Purpose::Operation,
        };
        self.await_answer(client, correlation_id, purpose);
        Ok(correlation_id)
    }

    pub(crate) fn request_destination_removal(
        &mut self,
        client: &Client,
        publication_id: i64,
        destination_id: i64,
    ) -> Result<i64> {
        let correlation_id = self
            .link
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
        let correlation_id =
            self.link
                .proxy
                .reject_image(image_correlation_id, position, reason)?;
        self.await_answer(client, correlation_id, Purpose::Operation);
        Ok(correlation_id)
    }

    /// Requests a session id from the driver. If the driver is too old for this command, chooses a random id.
    pub(crate) fn request_session_id(&mut self, client: &Client, stream_id: i32) -> Result<i64> {
        if self.link.counters.control_protocol_version() < CONTROL_PROTOCOL_VERSION {
            let correlation_id = self.link.proxy.next_correlation_id();
            self.commands
                .succeed(correlation_id, Purpose::NextSessionId, random_session_id());
            return Ok(correlation_id);
        }
        let correlation_id = self.link.proxy.next_available_session_id(stream_id)?;
        self.await_answer(client, correlation_id, Purpose::NextSessionId);
        Ok(correlation_id)
    }

    /// Returns the outcome of a command so far. A refusal by the driver and a missing response are errors; each error
    /// is returned once.
    pub(crate) fn poll_command(
        &mut self,
        client: &Arc<Client>,
        correlation_id: i64,
    ) -> Result<CommandProgress> {
        let timeout = client.settings.driver_timeout();
        let progress = self.commands.poll(correlation_id, client.now_ns(), timeout);
        if let Err(Error::DriverTimeout(_)) = &progress {
            self.close_unanswered_subscription(client, correlation_id);
        }
        progress
    }

    /// Removes a resource by its registration id, even if the command that adds it has no response yet.
    pub(crate) fn remove_by_id(
        &mut self,
        client: &Arc<Client>,
        kind: ResourceKind,
        registration_id: i64,
    ) -> RemovalById {
        let purpose = self.commands.purpose(registration_id);
        if purpose.is_some_and(|purpose| purpose.adds() == Some(kind)) {
            self.abandon(client, registration_id);
            return RemovalById::Unanswered;
        }
        if !self.remove(client, kind, registration_id, false) {
            return RemovalById::Unknown;
        }
        self.commands.forget(registration_id);
        RemovalById::Asked
    }

    /// Abandons a command whose result is not needed any more. The resource that it adds is removed now, or when the
    /// driver's response comes.
    pub(crate) fn abandon(&mut self, client: &Arc<Client>, correlation_id: i64) {
        match self.commands.abandon(correlation_id) {
            Some(AbandonedCommand::Unanswered(Purpose::AddSubscription)) => {
                self.close_unanswered_subscription(client, correlation_id);
            }
            Some(AbandonedCommand::Succeeded(purpose)) => {
                self.undo(client, correlation_id, &purpose)
            }
            Some(AbandonedCommand::Unanswered(_)) | None => {}
        }
    }

    /// Returns the purpose of a command whose response has come, if the application still waits. Otherwise undoes the
    /// command.
    pub(super) fn wanted(&mut self, client: &Arc<Client>, correlation_id: i64) -> Option<Purpose> {
        match self.commands.answered(correlation_id)? {
            Answered::Wanted(purpose) => Some(purpose),
            Answered::Abandoned(purpose) => {
                self.undo(client, correlation_id, &purpose);
                None
            }
        }
    }

    /// Closes a subscription without a message to the driver, because the command that adds it has no response yet.
    pub(super) fn close_unanswered_subscription(
        &mut self,
        client: &Arc<Client>,
        registration_id: i64,
    ) {
        if let Some(core) = self.subscriptions.remove(&registration_id) {
            core.close(&CloseCause::default());
            // Dropped later: the handlers may own handles, and dropping a handle locks the conductor.
            client.dispatcher.push(move || drop(core));
        }
    }

    /// Removes the resource that a command has added.
    fn undo(&mut self, client: &Arc<Client>, id: i64, purpose: &Purpose) {
        let was_open = |kind| self.remove(client, kind, id, false);
        if purpose.adds().is_some_and(was_open) {
            return;
        }
        let removal = match purpose {
            Purpose::AddPublication(_) => Removal::Publication {
                registration_id: id,
                revoke: false,
            },
            Purpose::AddSubscription => Removal::Subscription {
                registration_id: id,
            },
            Purpose::AddCounter(counter) if counter.static_registration_id.is_none() => {
                Removal::Counter {
                    registration_id: id,
                }
            }
            Purpose::AddDestination { publication_id, .. } => Removal::Destination {
                publication_id: *publication_id,
                destination_id: id,
            },
            Purpose::AddReceiveDestination {
                subscription_id,
                channel,
            } => Removal::ReceiveDestination {
                subscription_id: *subscription_id,
                channel: channel.clone(),
            },
            Purpose::AddCounter(_)
            | Purpose::NextSessionId
            | Purpose::Operation
            | Purpose::Restoration
            | Purpose::Removal { .. } => return,
        };
        self.send_removal(client, removal);
    }
}

/// Returns a random number. The source is the standard library, which seeds each hash state with a random number.
fn random_session_id() -> i32 {
    RandomState::new().build_hasher().finish() as i32
}
