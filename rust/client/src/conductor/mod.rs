//! The conductor: processes the driver's events, keeps the client alive, and tracks all open resources.
//!
//! [`Client::service`] runs the conductor on the calling thread, under the conductor's lock. The conductor reads only
//! the client's clocks and opens logs only through the client's `LogSource`. So a test can run it in virtual time and
//! without files. The conductor queues handlers and never calls them.

mod commands;
mod events;
mod heartbeat;
mod outage;
mod removal;
mod removals;
mod requests;
mod restoration;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;

use self::commands::{Commands, Purpose};
use self::heartbeat::Heartbeat;
use self::outage::Connection;
use self::removal::Removal;
use crate::client::Client;
use crate::counter::core::CounterCore;
use crate::error::{CloseCause, Error};
use crate::handlers::{CloseHandler, CounterHandler, PublicationErrorHandler};
use crate::image::{Image, ImageHandler};
use crate::link::Link;
use crate::publication::core::{ConcurrentCore, ExclusiveCore, PublicationBase, PublicationCore};
use crate::subscription::core::SubscriptionCore;

pub(crate) use self::commands::{CommandProgress, ResourceKind};
pub(crate) use self::outage::Reconnecting;
pub(crate) use self::removal::RemovalById;

/// Maximum number of events in one duty cycle, so that timers are not delayed.
const EVENTS_PER_CYCLE: usize = 16;

/// Handlers for the whole client.
#[derive(Default)]
pub(crate) struct ClientHandlers {
    pub(crate) available_image: Option<ImageHandler>,
    pub(crate) unavailable_image: Option<ImageHandler>,
    pub(crate) publication_error: Option<PublicationErrorHandler>,
    pub(crate) available_counter: Vec<(i64, CounterHandler)>,
    pub(crate) unavailable_counter: Vec<(i64, CounterHandler)>,
    pub(crate) close: Vec<(i64, CloseHandler)>,
}

impl ClientHandlers {
    /// Returns `proposed`, or a greater number if handlers have ids from there on: the ids of a driver begin again
    /// after a reconnection.
    pub(crate) fn unused_id(&self, proposed: i64) -> i64 {
        let counters = self
            .available_counter
            .iter()
            .chain(&self.unavailable_counter);
        let ids = counters.map(|(id, _)| *id);
        let largest = ids.chain(self.close.iter().map(|(id, _)| *id)).max();
        proposed.max(largest.map_or(proposed, |id| id + 1))
    }
}

/// Open resources of one kind, by registration id.
pub(crate) type Registry<T> = HashMap<i64, Arc<T>>;

/// The state of one client's conductor.
pub(crate) struct Conductor {
    /// The connection to the current driver. Without a driver, the last connection.
    link: Arc<Link>,
    connection: Connection,
    /// How the client connects again; `None` if the loss of the driver closes the client.
    reconnecting: Option<Reconnecting>,
    resources_added: u64,
    drivers_lost: u64,
    events: BroadcastReceiver<SharedBuffer>,
    /// Buffer for the current event; kept to reuse its memory.
    record: Vec<u8>,
    pub(crate) commands: Commands,
    pub(crate) publications: Registry<ConcurrentCore>,
    pub(crate) exclusive_publications: Registry<ExclusiveCore>,
    pub(crate) subscriptions: Registry<SubscriptionCore>,
    pub(crate) counters: Registry<CounterCore>,
    pub(crate) handlers: ClientHandlers,
    logs: HashMap<i64, Weak<LogBuffers<SharedBuffer>>>,
    lingering: Vec<(i64, Arc<LogBuffers<SharedBuffer>>)>,
    /// Removals that could not be sent because the ring was full, in the order of the requests; at most one for each
    /// resource.
    unsent_removals: VecDeque<Removal>,
    /// The client is closed, but the driver has not received the close yet.
    close_is_unsent: bool,
    heartbeat: Heartbeat,
    last_service_ns: i64,
    last_timer_ns: i64,
}

/// Objects that a closed client held. Dropped outside the conductor's lock: handlers may own handles, and dropping a
/// handle locks the conductor.
pub(crate) struct Released {
    _publications: Registry<ConcurrentCore>,
    _exclusive_publications: Registry<ExclusiveCore>,
    _subscriptions: Registry<SubscriptionCore>,
    _counters: Registry<CounterCore>,
    _handlers: ClientHandlers,
    _lingering: Vec<(i64, Arc<LogBuffers<SharedBuffer>>)>,
}

impl Conductor {
    pub(crate) fn new(
        link: Arc<Link>,
        events: BroadcastReceiver<SharedBuffer>,
        handlers: ClientHandlers,
        reconnecting: Option<Reconnecting>,
        now_ns: i64,
    ) -> Self {
        Self {
            heartbeat: Heartbeat::new(link.proxy.driver_heartbeat_ms(), now_ns),
            link,
            connection: Connection::Up,
            reconnecting,
            resources_added: 0,
            drivers_lost: 0,
            events,
            record: Vec::new(),
            commands: Commands::default(),
            publications: Registry::default(),
            exclusive_publications: Registry::default(),
            subscriptions: Registry::default(),
            counters: Registry::default(),
            handlers,
            logs: HashMap::new(),
            lingering: Vec::new(),
            unsent_removals: VecDeque::new(),
            close_is_unsent: false,
            last_service_ns: now_ns,
            last_timer_ns: now_ns,
        }
    }

    /// Runs one duty cycle of an open client. Returns a work count.
    pub(crate) fn do_work(&mut self, client: &Arc<Client>) -> usize {
        let mut work = match self.connection {
            Connection::Up => 0,
            Connection::Down(_) => return self.look_for_driver(client),
            Connection::Restoring(_) => self.restore(client),
        };
        while work < EVENTS_PER_CYCLE && self.receive_event(client) {
            work += 1;
        }
        work + self.send_removals(client) + self.retire_consumed(client) + self.check_timers(client)
    }

    fn check_timers(&mut self, client: &Arc<Client>) -> usize {
        let now_ns = client.now_ns();
        if client.state.is_closed()
            || self.is_down()
            || now_ns - self.last_timer_ns <= client.settings.timer_interval_ns as i64
        {
            return 0;
        }
        self.last_timer_ns = now_ns;
        let result = self
            .check_service_interval(now_ns)
            .and_then(|()| self.check_driver_process())
            .and_then(|()| self.heartbeat.check(client, &self.link, now_ns));
        if let Err(error) = result {
            self.terminate(client, error);
            return 1;
        }
        self.commands.forget_overdue_removals(now_ns);
        self.lingering
            .retain(|(deadline_ns, _)| now_ns - deadline_ns < 0);
        self.logs.retain(|_, log| log.strong_count() > 0);
        0
    }

    /// Checks that the driver is alive.
    ///
    /// # Errors
    /// [`Error::DriverTimeout`] if the driver was closed or its heartbeat is too old.
    pub(crate) fn check_driver(&mut self, client: &Client) -> Result<(), Error> {
        let driver_ms = self.link.proxy.driver_heartbeat_ms();
        self.heartbeat
            .check_driver(client, driver_ms, client.now_ms(), client.now_ns())
    }

    fn check_service_interval(&mut self, now_ns: i64) -> Result<(), Error> {
        let elapsed = Duration::from_nanos((now_ns - self.last_service_ns).max(0) as u64);
        let timeout = self.link.inter_service_timeout();
        self.last_service_ns = now_ns;
        if elapsed <= timeout {
            return Ok(());
        }
        Err(Error::ServiceTimeout { elapsed, timeout })
    }

    /// Processes one event. Returns whether there was an event.
    fn receive_event(&mut self, client: &Arc<Client>) -> bool {
        if client.state.is_closed() || self.is_down() {
            return false;
        }
        let mut record = std::mem::take(&mut self.record);
        let mut record_type_id = 0;
        let received = self.events.receive(|type_id, body| {
            record_type_id = type_id;
            record.clear();
            record.extend_from_slice(body);
        });
        match received {
            Ok(true) => self.on_record(client, record_type_id, &record),
            Ok(false) => {}
            Err(error) => self.terminate(client, Error::EventsLost(error)),
        }
        self.record = record;
        received != Ok(false)
    }

    /// Handles the loss of the driver because of `error`: suspends a client that reconnects, and closes any other.
    fn terminate(&mut self, client: &Arc<Client>, error: Error) {
        if self.reconnecting.is_some() {
            return self.suspend(client, error);
        }
        let cause = CloseCause::error(error.clone());
        client.dispatcher.report(error);
        if let Some(released) = self.close(client, cause) {
            // Dropped later, because this function runs under the conductor's lock.
            client.dispatcher.push(move || drop(released));
        }
    }

    /// Closes all resources and sends the close to the driver. Returns `None` if the client was already closed.
    pub(crate) fn close(&mut self, client: &Arc<Client>, cause: CloseCause) -> Option<Released> {
        if !client.state.close(cause.clone()) {
            return None;
        }
        self.publications
            .values()
            .for_each(|core| core.base().close(&cause));
        self.exclusive_publications
            .values()
            .for_each(|core| core.base().close(&cause));
        let subscriptions: Vec<_> = self.subscriptions.values().cloned().collect();
        for subscription in subscriptions {
            self.close_subscription(client, &subscription, &cause);
        }
        for counter in self.counters.values() {
            counter.close(&cause);
            if !counter.is_static() {
                notify_counter(
                    client,
                    &self.link,
                    &self.handlers.unavailable_counter,
                    counter.registration_id(),
                    counter.id(),
                );
            }
        }
        for (_, handler) in self.handlers.close.drain(..) {
            client.dispatcher.push(move || handler());
        }
        // The driver removes everything that the client has, so pending removals are not needed any more.
        self.unsent_removals.clear();
        self.close_is_unsent = !self.is_down();
        self.announce_close();
        client.dispatcher.wake();
        Some(Released {
            _publications: std::mem::take(&mut self.publications),
            _exclusive_publications: std::mem::take(&mut self.exclusive_publications),
            _subscriptions: std::mem::take(&mut self.subscriptions),
            _counters: std::mem::take(&mut self.counters),
            _handlers: std::mem::take(&mut self.handlers),
            _lingering: std::mem::take(&mut self.lingering),
        })
    }

    /// Closes one resource and sends its removal. Returns whether the resource was open.
    pub(crate) fn remove(
        &mut self,
        client: &Arc<Client>,
        kind: ResourceKind,
        registration_id: i64,
        revoke: bool,
    ) -> bool {
        let by_application = CloseCause::default();
        match kind {
            ResourceKind::Publication => {
                let Some(core) = self.publications.remove(&registration_id) else {
                    return false;
                };
                self.remove_publication(client, core.base(), revoke);
            }
            ResourceKind::ExclusivePublication => {
                let Some(core) = self.exclusive_publications.remove(&registration_id) else {
                    return false;
                };
                self.remove_publication(client, core.base(), revoke);
            }
            ResourceKind::Subscription => {
                let Some(core) = self.subscriptions.remove(&registration_id) else {
                    return false;
                };
                self.close_subscription(client, &core, &by_application);
                self.send_removal(client, Removal::Subscription { registration_id });
            }
            ResourceKind::Counter => {
                let Some(core) = self.counters.remove(&registration_id) else {
                    return false;
                };
                core.close(&by_application);
                if !core.is_static() {
                    self.send_removal(client, Removal::Counter { registration_id });
                }
            }
        }
        true
    }

    fn remove_publication(
        &mut self,
        client: &Arc<Client>,
        publication: &PublicationBase,
        revoke: bool,
    ) {
        publication.close(&CloseCause::default());
        self.linger(client, &publication.log());
        let registration_id = publication.registration.key();
        let removal = Removal::Publication {
            registration_id,
            revoke,
        };
        self.send_removal(client, removal);
    }

    fn await_answer(&mut self, client: &Client, correlation_id: i64, purpose: Purpose) {
        let deadline_ns = client.now_ns() + client.settings.driver_timeout().as_nanos() as i64;
        self.commands
            .await_answer(correlation_id, purpose, deadline_ns);
    }

    /// Closes a subscription and its images. Queues the unavailable handler for each image.
    fn close_subscription(
        &mut self,
        client: &Arc<Client>,
        subscription: &SubscriptionCore,
        cause: &CloseCause,
    ) {
        for image in subscription.close(cause).iter() {
            self.retire_image(client, subscription, image.clone(), cause);
        }
        let handlers = subscription.release_handlers();
        client.dispatcher.push(move || drop(handlers));
    }

    /// Closes an image that was removed from its subscription, and queues its unavailable handler.
    fn retire_image(
        &mut self,
        client: &Arc<Client>,
        subscription: &SubscriptionCore,
        image: Image,
        cause: &CloseCause,
    ) {
        image.close(cause);
        subscription.note_ended(&image);
        self.linger(client, image.log());
        if let Some(handler) = subscription.unavailable_handler() {
            client.dispatcher.push(move || handler(&image));
        }
    }

    /// Keeps a log mapped for the resource linger duration. Then the conductor unmaps the log: unmapping is slow, and
    /// would delay the thread of the last reader.
    fn linger(&mut self, client: &Client, log: &Arc<LogBuffers<SharedBuffer>>) {
        let deadline_ns = client.now_ns() + client.settings.resource_linger_duration_ns as i64;
        self.lingering.push((deadline_ns, Arc::clone(log)));
    }
}

/// Queues a call of each handler for a counter.
fn notify_counter(
    client: &Arc<Client>,
    link: &Link,
    handlers: &[(i64, CounterHandler)],
    registration_id: i64,
    counter_id: i32,
) {
    for (_, handler) in handlers {
        let (handler, counters) = (Arc::clone(handler), link.counters.clone());
        client
            .dispatcher
            .push(move || handler(&counters, registration_id, counter_id));
    }
}
