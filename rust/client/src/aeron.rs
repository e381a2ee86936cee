//! [`Aeron`]: a client of a media driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersReader;

use crate::client::Client;
use crate::command::{CommandSteps, RemovalSteps, Take};
use crate::conductor::{ClientHandlers, Conductor, RemovalById, ResourceKind};
use crate::counter::core::CounterDescription;
use crate::counter::{self, Counter};
use crate::error::{CloseCause, Error, Result};
use crate::handlers::{CloseHandler, CounterHandler};
use crate::lifetime::Lifetime;
use crate::operation::{PendingOperation, Waiter};
use crate::publication::core::{PublicationCore, PublishedStream};
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::{Subscription, SubscriptionHandlers};

/// A client of a media driver. All clones share one client. The client is closed by [`close`](Self::close), or when the
/// last clone is dropped. Usable from any thread.
///
/// # Adding
/// Each resource can be added in two ways: `add_…` waits for the driver; `async_add_…` sends the command and returns a
/// [`PendingOperation`], which returns the resource later. An operation that is dropped before it is finished is
/// cancelled.
///
/// # Errors
/// Calls that send a command fail with:
/// * [`Error::ClientClosed`] if the client is closed;
/// * [`Error::CommandBufferFull`] if the driver does not process its commands.
///
/// Calls that wait can also fail with:
/// * [`Error::Registration`] if the driver refuses the command;
/// * [`Error::DriverTimeout`] if the driver does not respond within the driver timeout;
/// * [`Error::ReentrantCall`] inside a handler of the client;
/// * [`Error::Interrupted`] if the context's [`InterruptCheck`](crate::InterruptCheck) ends the wait.
#[derive(Clone)]
pub struct Aeron {
    owner: Arc<Owner>,
}

/// Closes the client when the last handle is dropped.
struct Owner {
    client: Arc<Client>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.client.close();
    }
}

impl Aeron {
    /// Returns the first handle of a client.
    pub(crate) fn of(client: Arc<Client>) -> Self {
        Self {
            owner: Arc::new(Owner { client }),
        }
    }

    fn client(&self) -> &Arc<Client> {
        &self.owner.client
    }

    /// Returns the id of the client, which is in the key of its heartbeat counter.
    pub fn client_id(&self) -> i64 {
        self.client().link().proxy.client_id()
    }

    /// Closes the client and everything that it opened. In inline mode, also runs the handlers that the close
    /// queues. Waits until the conductor's thread has ended. Does nothing if the client is already closed.
    pub fn close(&self) {
        self.client().close();
    }

    /// Whether the client is closed, by the application or by an error.
    pub fn is_closed(&self) -> bool {
        self.client().state.is_closed()
    }

    /// Returns the cause of the close.
    pub fn close_cause(&self) -> CloseCause {
        self.client().state.cause()
    }

    /// Runs one duty cycle of the conductor, for clients without a conductor thread. Returns a work count. Call it more
    /// often than the inter-service timeout. Does no harm if the client has a conductor thread.
    pub fn do_work(&self) -> usize {
        self.client().service()
    }

    /// Waits up to `timeout` for a queued handler ([`HandlerMode::Queued`](crate::HandlerMode::Queued)) and runs all
    /// queued handlers. Returns the number of handlers that ran. Returns early if the client is closed.
    pub fn run_handlers(&self, timeout: Duration) -> usize {
        let timeout = if self.is_closed() {
            // A thread that closes the client holds the conductor's lock until all handlers of the close are queued.
            drop(self.client().conductor());
            Duration::ZERO
        } else {
            timeout
        };
        self.client().dispatcher.run_queued(timeout)
    }

    /// Returns an id that differs from all client ids and correlation ids of the driver.
    pub fn next_correlation_id(&self) -> i64 {
        self.client().link().proxy.next_correlation_id()
    }

    /// Returns the time for which calls wait for the driver.
    pub fn driver_timeout(&self) -> Duration {
        self.client().settings.driver_timeout()
    }

    /// Returns the maximum time between two runs of the conductor.
    pub fn inter_service_timeout(&self) -> Duration {
        self.client().link().inter_service_timeout()
    }

    /// Returns a reader of all counters of the current driver and its clients.
    pub fn counters_reader(&self) -> CountersReader<SharedBuffer> {
        self.client().link().counters.clone()
    }

    /// Whether the client has a driver. Always `true` for an open client that does not reconnect.
    pub fn has_driver(&self) -> bool {
        self.client()
            .open_conductor()
            .is_ok_and(|conductor| !conductor.is_down())
    }

    /// Returns why the client has no driver now; `None` if the client has a driver, or is closed.
    pub fn outage_cause(&self) -> Option<Error> {
        let conductor = self.client().open_conductor().ok()?;
        conductor.outage_cause()
    }

    /// Refuses to wait inside a handler of this client, because such a wait would never end.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of this client.
    pub fn check_may_wait(&self) -> Result<()> {
        self.client().check_may_wait()
    }

    /// Pauses a call that waits for a process other than the driver. `waits` is the number of earlier pauses of the
    /// call; the pauses are as long as in calls that wait for the driver. Runs the embedded driver if the client has
    /// one.
    ///
    /// # Errors
    /// [`Error::ReentrantCall`] inside a handler of the client; [`Error::Interrupted`] if the context's interrupt check
    /// ends the wait.
    pub fn idle_while_waiting(&self, waits: u32) -> Result<()> {
        self.client().idle_while_waiting(waits)
    }

    /// Whether the command with this correlation id was sent and has no response yet.
    pub fn is_command_active(&self, correlation_id: i64) -> bool {
        self.client()
            .open_conductor()
            .is_ok_and(|conductor| conductor.commands.is_active(correlation_id))
    }

    /// Whether any command was sent and has no response yet.
    pub fn has_active_commands(&self) -> bool {
        self.client()
            .open_conductor()
            .is_ok_and(|conductor| conductor.commands.has_active())
    }
}

/// Publications.
impl Aeron {
    /// Adds a publication. If the driver already has a publication with this channel and stream, both share one log.
    /// Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<Publication> {
        self.client().check_may_wait()?;
        self.async_add_publication(channel, stream_id)?.wait()
    }

    /// Like [`add_publication`](Self::add_publication), but does not wait for the driver.
    ///
    /// # Errors
    /// The command could not be sent. The operation returns all other errors.
    pub fn async_add_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<PendingOperation<Publication>> {
        let stream = PublishedStream {
            channel: channel.to_owned(),
            stream_id,
            is_exclusive: false,
        };
        self.send(
            move |conductor, client| conductor.request_publication(client, &stream),
            |conductor, client, id, _| {
                let core = conductor.publications.get(&id)?;
                let registration = &core.base().registration;
                let lifetime = Lifetime::new(client, ResourceKind::Publication, registration);
                Some(Publication::new(Arc::clone(core), lifetime))
            },
        )
    }

    /// Adds a publication that shares its log with no other publication. Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication> {
        self.client().check_may_wait()?;
        self.async_add_exclusive_publication(channel, stream_id)?
            .wait()
    }

    /// Like [`add_exclusive_publication`](Self::add_exclusive_publication), but does not wait for the driver.
    ///
    /// # Errors
    /// The command could not be sent. The operation returns all other errors.
    pub fn async_add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<PendingOperation<ExclusivePublication>> {
        let stream = PublishedStream {
            channel: channel.to_owned(),
            stream_id,
            is_exclusive: true,
        };
        self.send(
            move |conductor, client| conductor.request_publication(client, &stream),
            |conductor, client, id, _| {
                let core = conductor.exclusive_publications.get(&id)?;
                let kind = ResourceKind::ExclusivePublication;
                let lifetime = Lifetime::new(client, kind, &core.base().registration);
                Some(ExclusivePublication::new(Arc::clone(core), lifetime))
            },
        )
    }

    /// Removes a concurrent or exclusive publication by its registration id. The operation's result says whether the
    /// publication existed.
    ///
    /// # Errors
    /// [`Error::ClientClosed`] if the client is closed.
    pub fn async_remove_publication(&self, registration_id: i64) -> Result<PendingOperation<bool>> {
        let kinds = [
            ResourceKind::Publication,
            ResourceKind::ExclusivePublication,
        ];
        self.async_remove(&kinds, registration_id)
    }
}

/// Subscriptions.
impl Aeron {
    /// Adds a subscription, with the context's handlers for its images. Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_subscription(&self, channel: &str, stream_id: i32) -> Result<Subscription> {
        self.client().check_may_wait()?;
        self.async_add_subscription(channel, stream_id)?.wait()
    }

    /// Adds a subscription with the given handlers for its images. Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_subscription_with(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<Subscription> {
        self.client().check_may_wait()?;
        self.async_add_subscription_with(channel, stream_id, handlers)?
            .wait()
    }

    /// Like [`add_subscription`](Self::add_subscription), but does not wait for the driver.
    ///
    /// # Errors
    /// The command could not be sent. The operation returns all other errors.
    pub fn async_add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<PendingOperation<Subscription>> {
        let handlers = self.client().open_conductor()?.default_image_handlers();
        self.async_add_subscription_with(channel, stream_id, handlers)
    }

    /// Like [`add_subscription_with`](Self::add_subscription_with), but does not wait for the driver.
    ///
    /// # Errors
    /// The command could not be sent. The operation returns all other errors.
    pub fn async_add_subscription_with(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<PendingOperation<Subscription>> {
        let channel = channel.to_owned();
        self.send(
            move |conductor, client| {
                conductor.request_subscription(client, &channel, stream_id, handlers.clone())
            },
            |conductor, client, id, _| {
                let core = conductor.subscriptions.get(&id)?;
                let lifetime =
                    Lifetime::new(client, ResourceKind::Subscription, &core.registration);
                Some(Subscription::new(Arc::clone(core), lifetime))
            },
        )
    }

    /// Removes a subscription by its registration id. The operation's result says whether the subscription existed.
    ///
    /// # Errors
    /// [`Error::ClientClosed`] if the client is closed.
    pub fn async_remove_subscription(
        &self,
        registration_id: i64,
    ) -> Result<PendingOperation<bool>> {
        self.async_remove(&[ResourceKind::Subscription], registration_id)
    }
}

/// Counters.
impl Aeron {
    /// Adds a counter that the driver frees when the client is closed. `key` has at most 112 bytes, and `label` at most
    /// 380 bytes. Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`]; [`Error::InvalidArgument`] for a key or label that is too long.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter> {
        self.client().check_may_wait()?;
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// Like [`add_counter`](Self::add_counter), but does not wait for the driver.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], or the command could not be sent. The operation returns all other errors.
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<PendingOperation<Counter>> {
        self.send_counter(type_id, key, label, None)
            .map(CommandSteps::into_operation)
    }

    /// Adds a counter that outlives the client, or finds the existing counter with this type and registration id. Waits
    /// for the driver.
    ///
    /// # Errors
    /// The same errors as [`add_counter`](Self::add_counter). The driver also refuses the command if an ordinary
    /// counter has this type and registration id.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter> {
        self.client().check_may_wait()?;
        self.async_add_static_counter(type_id, key, label, registration_id)?
            .wait()
    }

    /// Like [`add_static_counter`](Self::add_static_counter), but does not wait for the driver. The operation cannot be
    /// cancelled, because no client can remove a static counter.
    ///
    /// # Errors
    /// The same errors as [`async_add_counter`](Self::async_add_counter).
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<PendingOperation<Counter>> {
        let steps = self.send_counter(type_id, key, label, Some(registration_id))?;
        Ok(steps.irrevocable().into_operation())
    }

    /// Removes a counter by its registration id. The operation's result says whether the counter existed.
    ///
    /// # Errors
    /// [`Error::ClientClosed`] if the client is closed.
    pub fn async_remove_counter(&self, registration_id: i64) -> Result<PendingOperation<bool>> {
        self.async_remove(&[ResourceKind::Counter], registration_id)
    }

    fn send_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        static_registration_id: Option<i64>,
    ) -> Result<CommandSteps<Counter>> {
        counter::check_lengths(key, label)?;
        let counter = CounterDescription {
            type_id,
            key: key.to_owned(),
            label: label.to_owned(),
            static_registration_id,
        };
        CommandSteps::send(
            self.client(),
            move |conductor, client| conductor.request_counter(client, &counter).map(Some),
            |conductor, client, id, _| {
                let core = conductor.counters.get(&id)?;
                let lifetime = Lifetime::new(client, ResourceKind::Counter, &core.registration);
                Some(Counter::new(Arc::clone(core), lifetime))
            },
        )
    }
}

/// Other requests.
impl Aeron {
    /// Returns a session id that no publication uses on the stream. The driver chooses the id. If the driver is too old
    /// for this command, the client returns a random id. Waits for the driver.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn next_session_id(&self, stream_id: i32) -> Result<i32> {
        self.client().check_may_wait()?;
        self.async_next_session_id(stream_id)?.wait()
    }

    /// Like [`next_session_id`](Self::next_session_id), but does not wait for the driver.
    ///
    /// # Errors
    /// The command could not be sent. The operation returns all other errors.
    pub fn async_next_session_id(&self, stream_id: i32) -> Result<PendingOperation<i32>> {
        self.send(
            move |conductor, client| conductor.request_session_id(client, stream_id),
            |_, _, _, value| Some(value),
        )
    }

    /// Adds a handler that is called for each counter that becomes available. Returns an id for the removal of the
    /// handler.
    pub fn add_available_counter_handler(&self, handler: CounterHandler) -> i64 {
        self.add_handler(|handlers, id| handlers.available_counter.push((id, handler)))
    }

    /// Removes a handler. Returns whether a handler with this id existed.
    pub fn remove_available_counter_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.available_counter, id))
            .unwrap_or_default()
    }

    /// Adds a handler that is called for each counter that is freed. Returns an id for the removal of the handler.
    pub fn add_unavailable_counter_handler(&self, handler: CounterHandler) -> i64 {
        self.add_handler(|handlers, id| handlers.unavailable_counter.push((id, handler)))
    }

    /// Removes a handler. Returns whether a handler with this id existed.
    pub fn remove_unavailable_counter_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.unavailable_counter, id))
            .unwrap_or_default()
    }

    /// Adds a handler that is called when the client is closed. Returns an id for the removal of the handler.
    pub fn add_close_handler(&self, handler: CloseHandler) -> i64 {
        self.add_handler(|handlers, id| handlers.close.push((id, handler)))
    }

    /// Removes a handler. Returns whether a handler with this id existed.
    pub fn remove_close_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.close, id))
            .unwrap_or_default()
    }
}

impl Aeron {
    /// Adds a handler with an id that no other handler of the client has. Returns the id.
    fn add_handler(&self, add: impl FnOnce(&mut ClientHandlers, i64)) -> i64 {
        let proposed = self.next_correlation_id();
        let Ok(mut conductor) = self.client().open_conductor() else {
            return proposed;
        };
        let id = conductor.handlers.unused_id(proposed);
        add(&mut conductor.handlers, id);
        id
    }

    /// Changes the handlers of an open client. Does nothing if the client is closed.
    fn change_handlers<T>(&self, change: impl FnOnce(&mut ClientHandlers) -> T) -> Option<T> {
        let mut conductor = self.client().open_conductor().ok()?;
        Some(change(&mut conductor.handlers))
    }

    fn send<T: Clone + 'static>(
        &self,
        mut request: impl FnMut(&mut Conductor, &Arc<Client>) -> Result<i64> + Send + 'static,
        take: Take<T>,
    ) -> Result<PendingOperation<T>> {
        let request = move |conductor: &mut Conductor, client: &Arc<Client>| {
            request(conductor, client).map(Some)
        };
        CommandSteps::send(self.client(), request, take).map(CommandSteps::into_operation)
    }

    /// Removes the resource with this id if it is of one of these kinds.
    fn async_remove(
        &self,
        kinds: &[ResourceKind],
        registration_id: i64,
    ) -> Result<PendingOperation<bool>> {
        let client = self.client();
        let operation = {
            let mut conductor = client.open_conductor()?;
            let outcome = kinds
                .iter()
                .map(|kind| conductor.remove_by_id(client, *kind, registration_id))
                .find(|outcome| !matches!(outcome, RemovalById::Unknown));
            match outcome {
                Some(RemovalById::Asked) => {
                    PendingOperation::new(RemovalSteps::new(client, registration_id))
                }
                Some(RemovalById::Unanswered) => PendingOperation::finished(true),
                Some(RemovalById::Unknown) | None => PendingOperation::finished(false),
            }
        };
        client.dispatcher.run_inline();
        Ok(operation)
    }
}

fn remove<T>(handlers: &mut Vec<(i64, T)>, id: i64) -> bool {
    let before = handlers.len();
    handlers.retain(|(other, _)| *other != id);
    handlers.len() < before
}
