//! [`Aeron`]: a client of a media driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::CncFile;
use aeron_memory::counters::CountersReader;

use crate::client::Client;
use crate::conductor::{ClientHandlers, Conductor, Progress};
use crate::connect;
use crate::context::Context;
use crate::counter::{self, Counter};
use crate::error::{CloseCause, Error, Result};
use crate::handlers::{CloseHandler, CounterHandler, ImageHandler};
use crate::lifetime::ResourceKind;
use crate::log_source::LogSource;
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::Subscription;

/// A client of a media driver. Clones are the same client; it is closed by [`close`](Self::close), or when the last clone
/// is dropped. Usable from any thread.
///
/// # Adding
/// Each resource can be added in two ways: `add_…` waits for the driver, `async_add_…` answers a registration id at once,
/// and `find_…` later has the resource: `None` as long as the driver has not answered (or the id is not known), the
/// driver's refusal once. What was added and never found stays open until the client closes, or `async_remove_…`.
///
/// # Errors
/// All calls that send something fail with [`Error::ClientClosed`] once the client is closed, and with
/// [`Error::CommandBufferFull`] when the driver does not take its commands. Those that wait fail with
/// [`Error::Registration`] when the driver refuses, with [`Error::DriverTimeout`] when it does not answer within the
/// driver timeout, with [`Error::ReentrantCall`] inside a handler of the client, and with [`Error::Interrupted`] when the
/// context's [`InterruptCheck`](crate::InterruptCheck) says so.
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

/// Handlers of one subscription.
#[derive(Clone, Default)]
pub struct SubscriptionHandlers {
    /// Told of each new image, once it can be polled.
    pub available_image: Option<ImageHandler>,
    /// Told of each image that is gone, once it is closed.
    pub unavailable_image: Option<ImageHandler>,
}

impl Aeron {
    /// Connects to the driver that `context` names.
    ///
    /// # Errors
    /// [`Error::Configuration`]; [`Error::DriverTimeout`] saying what is missing when no live driver is found within the
    /// driver timeout; [`Error::VersionMismatch`] or [`Error::InvalidCncFile`] at once for a foreign driver or file.
    pub fn connect(context: Context) -> Result<Self> {
        let client = connect::connect(context)?;
        Ok(Self {
            owner: Arc::new(Owner { client }),
        })
    }

    /// Connects to a driver that is alive and whose memory is at hand, such as one in this process that has no files. The
    /// directory of `context` means nothing then.
    ///
    /// # Errors
    /// [`Error::Configuration`], [`Error::InvalidCncFile`].
    pub fn attach(context: Context, cnc: &CncFile, logs: Box<dyn LogSource>) -> Result<Self> {
        context.validate()?;
        let client = connect::attach(context, cnc, logs)?;
        Ok(Self {
            owner: Arc::new(Owner { client }),
        })
    }

    fn client(&self) -> &Arc<Client> {
        &self.owner.client
    }

    /// Id of the client, which its heartbeat counter carries.
    pub fn client_id(&self) -> i64 {
        self.client().proxy.client_id()
    }

    /// Closes the client and everything it opened, runs the handlers that this makes due (inline mode) and waits for the
    /// conductor's thread. Does nothing when the client is closed already.
    pub fn close(&self) {
        self.client().close();
    }

    /// Whether the client is closed, by the application or by an error.
    pub fn is_closed(&self) -> bool {
        self.client().state.is_closed()
    }

    /// What closed the client.
    pub fn close_cause(&self) -> CloseCause {
        self.client().state.cause()
    }

    /// One duty cycle of the conductor, for clients without a thread of their own; answers a work count. To be called
    /// more often than the inter-service timeout. Harmless where the client has a thread.
    pub fn do_work(&self) -> usize {
        self.client().service()
    }

    /// Runs handlers that were queued ([`HandlerMode::Queued`](crate::HandlerMode::Queued)), after waiting up to `timeout`
    /// for one; answers how many ran. Returns early when the client is closed.
    pub fn run_handlers(&self, timeout: Duration) -> usize {
        let timeout = if self.is_closed() {
            // Whoever closes it holds the conductor until all handlers of the close are queued.
            drop(self.client().conductor());
            Duration::ZERO
        } else {
            timeout
        };
        self.client().dispatcher.run_queued(timeout)
    }

    /// An id that no other client, and no command, gets.
    pub fn next_correlation_id(&self) -> i64 {
        self.client().proxy.next_correlation_id()
    }

    /// How long calls wait for the driver.
    pub fn driver_timeout(&self) -> Duration {
        self.client().settings.driver_timeout()
    }

    /// How long the conductor may go without being run.
    pub fn inter_service_timeout(&self) -> Duration {
        Duration::from_nanos(self.client().settings.inter_service_timeout_ns)
    }

    /// Reads all counters of the driver and its clients.
    pub fn counters_reader(&self) -> &CountersReader<SharedBuffer> {
        &self.client().counters
    }

    /// Whether the command with this correlation id was sent and is not answered.
    pub fn is_command_active(&self, correlation_id: i64) -> bool {
        self.client()
            .open_conductor()
            .is_ok_and(|conductor| conductor.commands.is_active(correlation_id))
    }

    /// Whether any command was sent and is not answered.
    pub fn has_active_commands(&self) -> bool {
        self.client()
            .open_conductor()
            .is_ok_and(|conductor| conductor.commands.has_active())
    }
}

/// Publications.
impl Aeron {
    /// Adds a publication, sharing the one that exists on the channel and stream if there is one.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<Publication> {
        self.add(
            || self.async_add_publication(channel, stream_id),
            |conductor, id| conductor.publications.fetch(id).map(Publication::new),
        )
    }

    /// As [`add_publication`](Self::add_publication), without waiting; answers the registration id.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn async_add_publication(&self, channel: &str, stream_id: i32) -> Result<i64> {
        self.client().open_conductor()?.request_publication(
            self.client(),
            channel,
            stream_id,
            false,
        )
    }

    /// The publication with this registration id, once the driver has answered.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn find_publication(&self, registration_id: i64) -> Result<Option<Publication>> {
        self.find(registration_id, |conductor| {
            conductor
                .publications
                .fetch(registration_id)
                .map(Publication::new)
        })
    }

    /// Adds a publication that nobody shares.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication> {
        self.add(
            || self.async_add_exclusive_publication(channel, stream_id),
            |conductor, id| {
                conductor
                    .exclusive_publications
                    .fetch(id)
                    .map(ExclusivePublication::new)
            },
        )
    }

    /// As [`add_exclusive_publication`](Self::add_exclusive_publication), without waiting; answers the registration id.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn async_add_exclusive_publication(&self, channel: &str, stream_id: i32) -> Result<i64> {
        self.client()
            .open_conductor()?
            .request_publication(self.client(), channel, stream_id, true)
    }

    /// The exclusive publication with this registration id, once the driver has answered.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn find_exclusive_publication(
        &self,
        registration_id: i64,
    ) -> Result<Option<ExclusivePublication>> {
        self.find(registration_id, |conductor| {
            conductor
                .exclusive_publications
                .fetch(registration_id)
                .map(ExclusivePublication::new)
        })
    }

    /// Gives up a publication of either kind by its registration id, whether its add was answered or not; answers whether
    /// the id was known.
    ///
    /// # Errors
    /// [`Error::ClientClosed`].
    pub fn async_remove_publication(&self, registration_id: i64) -> Result<bool> {
        Ok(
            self.async_remove(ResourceKind::Publication, registration_id)?
                || self.async_remove(ResourceKind::ExclusivePublication, registration_id)?,
        )
    }
}

/// Subscriptions.
impl Aeron {
    /// Adds a subscription, with the context's handlers for its images.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_subscription(&self, channel: &str, stream_id: i32) -> Result<Subscription> {
        self.wait_for_subscription(|| self.async_add_subscription(channel, stream_id))
    }

    /// Adds a subscription with handlers of its own.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn add_subscription_with(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<Subscription> {
        self.wait_for_subscription(|| {
            self.async_add_subscription_with(channel, stream_id, handlers.clone())
        })
    }

    /// As [`add_subscription`](Self::add_subscription), without waiting; answers the registration id.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn async_add_subscription(&self, channel: &str, stream_id: i32) -> Result<i64> {
        let mut conductor = self.client().open_conductor()?;
        let handlers = conductor.default_image_handlers();
        conductor.request_subscription(self.client(), channel, stream_id, handlers)
    }

    /// As [`add_subscription_with`](Self::add_subscription_with), without waiting; answers the registration id.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn async_add_subscription_with(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64> {
        self.client().open_conductor()?.request_subscription(
            self.client(),
            channel,
            stream_id,
            handlers,
        )
    }

    /// The subscription with this registration id, once the driver has answered.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn find_subscription(&self, registration_id: i64) -> Result<Option<Subscription>> {
        self.find(registration_id, |conductor| {
            conductor
                .subscriptions
                .fetch(registration_id)
                .map(Subscription::new)
        })
    }

    /// Gives up a subscription by its registration id, whether its add was answered or not; answers whether the id was
    /// known.
    ///
    /// # Errors
    /// [`Error::ClientClosed`].
    pub fn async_remove_subscription(&self, registration_id: i64) -> Result<bool> {
        self.async_remove(ResourceKind::Subscription, registration_id)
    }

    fn wait_for_subscription(&self, request: impl FnMut() -> Result<i64>) -> Result<Subscription> {
        self.add(request, |conductor, id| {
            conductor.subscriptions.fetch(id).map(Subscription::new)
        })
    }
}

/// Counters.
impl Aeron {
    /// Adds a counter, which lives as long as the client. `key` has at most 112 bytes, `label` 380.
    ///
    /// # Errors
    /// See [`Aeron`]; [`Error::InvalidArgument`] for a key or label that is too long.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter> {
        self.wait_for_counter(|| self.async_add_counter(type_id, key, label))
    }

    /// As [`add_counter`](Self::add_counter), without waiting; answers the registration id.
    ///
    /// # Errors
    /// As [`add_counter`](Self::add_counter).
    pub fn async_add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<i64> {
        counter::check_lengths(key, label)?;
        self.client()
            .open_conductor()?
            .request_counter(self.client(), type_id, key, label, None)
    }

    /// Adds a counter that outlives the client, or finds the one with this type and registration id.
    ///
    /// # Errors
    /// As [`add_counter`](Self::add_counter); the driver refuses when an ordinary counter has these ids.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter> {
        self.wait_for_counter(|| {
            self.async_add_static_counter(type_id, key, label, registration_id)
        })
    }

    /// As [`add_static_counter`](Self::add_static_counter), without waiting; answers the correlation id.
    ///
    /// # Errors
    /// As [`add_static_counter`](Self::add_static_counter).
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<i64> {
        counter::check_lengths(key, label)?;
        self.client().open_conductor()?.request_counter(
            self.client(),
            type_id,
            key,
            label,
            Some(registration_id),
        )
    }

    /// The counter that was added with this correlation id, once the driver has answered.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn find_counter(&self, correlation_id: i64) -> Result<Option<Counter>> {
        self.find(correlation_id, |conductor| {
            conductor.counters.fetch(correlation_id).map(Counter::new)
        })
    }

    /// Gives up a counter by its registration id, whether its add was answered or not; answers whether the id was known.
    ///
    /// # Errors
    /// [`Error::ClientClosed`].
    pub fn async_remove_counter(&self, registration_id: i64) -> Result<bool> {
        self.async_remove(ResourceKind::Counter, registration_id)
    }

    fn wait_for_counter(&self, request: impl FnMut() -> Result<i64>) -> Result<Counter> {
        self.add(request, |conductor, id| {
            conductor.counters.fetch(id).map(Counter::new)
        })
    }
}

/// Other requests.
impl Aeron {
    /// A session id that no publication uses on the stream. The driver chooses it; one that does not know how leaves it to
    /// chance.
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn next_session_id(&self, stream_id: i32) -> Result<i32> {
        let request = || self.async_next_session_id(stream_id);
        let (_, session_id) = self.client().perform_operation(request)?;
        Ok(session_id)
    }

    /// As [`next_session_id`](Self::next_session_id), without waiting; answers a correlation id for
    /// [`poll_operation`](Self::poll_operation).
    ///
    /// # Errors
    /// See [`Aeron`].
    pub fn async_next_session_id(&self, stream_id: i32) -> Result<i64> {
        self.client()
            .open_conductor()?
            .request_session_id(self.client(), stream_id)
    }

    /// What became of a destination command, a rejection or a request for a session id: `None` without an answer yet, its
    /// value (0 but for session ids) once.
    ///
    /// # Errors
    /// The driver's refusal, once; [`Error::InvalidArgument`] for an id that is not known.
    pub fn poll_operation(&self, correlation_id: i64) -> Result<Option<i32>> {
        self.client().poll_operation(correlation_id)
    }

    /// Adds a handler of counters that become available; answers an id for its removal.
    pub fn add_available_counter_handler(&self, handler: CounterHandler) -> i64 {
        let id = self.next_correlation_id();
        self.change_handlers(|handlers| handlers.available_counter.push((id, handler)));
        id
    }

    /// Removes a handler; answers whether there was one with this id.
    pub fn remove_available_counter_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.available_counter, id))
            .unwrap_or_default()
    }

    /// Adds a handler of counters that are gone; answers an id for its removal.
    pub fn add_unavailable_counter_handler(&self, handler: CounterHandler) -> i64 {
        let id = self.next_correlation_id();
        self.change_handlers(|handlers| handlers.unavailable_counter.push((id, handler)));
        id
    }

    /// Removes a handler; answers whether there was one with this id.
    pub fn remove_unavailable_counter_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.unavailable_counter, id))
            .unwrap_or_default()
    }

    /// Adds a handler that is called when the client is closed; answers an id for its removal.
    pub fn add_close_handler(&self, handler: CloseHandler) -> i64 {
        let id = self.next_correlation_id();
        self.change_handlers(|handlers| handlers.close.push((id, handler)));
        id
    }

    /// Removes a handler; answers whether there was one with this id.
    pub fn remove_close_handler(&self, id: i64) -> bool {
        self.change_handlers(|handlers| remove(&mut handlers.close, id))
            .unwrap_or_default()
    }
}

impl Aeron {
    /// Changes the handlers of an open client; a closed one has none.
    fn change_handlers<T>(&self, change: impl FnOnce(&mut ClientHandlers) -> T) -> Option<T> {
        let mut conductor = self.client().open_conductor().ok()?;
        Some(change(&mut conductor.handlers))
    }

    /// Requests a resource and waits until it is there.
    fn add<T>(
        &self,
        request: impl FnMut() -> Result<i64>,
        fetch: impl Fn(&mut Conductor, i64) -> Option<T>,
    ) -> Result<T> {
        let client = self.client();
        client.request_and_wait(request, |conductor, id| {
            match conductor.poll_command(client, id)? {
                Progress::Awaiting => Ok(None),
                Progress::Succeeded(_) => Ok(fetch(conductor, id)),
                Progress::Unknown => Err(removed_meanwhile(id)),
            }
        })
    }

    /// Looks for a resource, after giving the driver's answer a chance to arrive.
    fn find<T>(
        &self,
        id: i64,
        fetch: impl FnOnce(&mut Conductor) -> Option<T>,
    ) -> Result<Option<T>> {
        let client = self.client();
        client.service();
        let mut conductor = client.open_conductor()?;
        match conductor.poll_command(client, id)? {
            Progress::Awaiting => Ok(None),
            Progress::Succeeded(_) | Progress::Unknown => Ok(fetch(&mut conductor)),
        }
    }

    fn async_remove(&self, kind: ResourceKind, registration_id: i64) -> Result<bool> {
        let client = self.client();
        let was_there = client
            .open_conductor()?
            .remove_by_id(client, kind, registration_id);
        client.dispatcher.run_inline();
        Ok(was_there)
    }
}

/// Another thread removed what this one is waiting for.
fn removed_meanwhile(id: i64) -> Error {
    Error::InvalidArgument(format!(
        "registration {id} was removed while it was being added"
    ))
}

fn remove<T>(handlers: &mut Vec<(i64, T)>, id: i64) -> bool {
    let before = handlers.len();
    handlers.retain(|(other, _)| *other != id);
    handlers.len() < before
}
