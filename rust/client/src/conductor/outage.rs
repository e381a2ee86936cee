//! The loss of the driver, for a client that reconnects: suspends all resources and looks for the next driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_memory::broadcast::BroadcastReceiver;

use super::heartbeat::Heartbeat;
use super::restoration::Restoration;
use super::{Conductor, ResourceKind};
use crate::client::Client;
use crate::error::{CloseCause, DriverTimeout, Error, Result};
use crate::link::Link;
use crate::publication::core::PublicationCore;
use crate::reconnect::report::LostStream;
use crate::reconnect::{
    DisconnectHandler, DriverFinder, FoundDriver, LostDriver, Reconnect, ReconnectHandler,
};
use crate::subscription::core::SubscriptionCore;

/// Number of lost drivers of which a subscription keeps the unread messages.
const MAX_UNREAD_DRIVERS: usize = 8;

/// How the client connects again.
pub(crate) struct Reconnecting {
    policy: Reconnect,
    finder: Box<dyn DriverFinder>,
    on_disconnect: Option<DisconnectHandler>,
    on_reconnect: Option<ReconnectHandler>,
    /// Time from the next loss to the first look for a driver.
    delay: Duration,
    connected_at_ns: i64,
    reconnections: u64,
    /// Streams that the client has lost since it last had a driver with all its resources.
    pub(super) lost_streams: Vec<LostStream>,
}

/// Whether the client has a driver.
pub(super) enum Connection {
    Up,
    Down(Outage),
    /// The next driver does not have all resources yet.
    Restoring(Box<Restoration>),
}

/// A time without a driver.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    pub(super) cause: Error,
    pub(super) since_ns: i64,
    next_look_ns: i64,
    lost: LostDriver,
}

impl Reconnecting {
    pub(crate) fn new(
        policy: Reconnect,
        finder: Box<dyn DriverFinder>,
        on_disconnect: Option<DisconnectHandler>,
        on_reconnect: Option<ReconnectHandler>,
        now_ns: i64,
    ) -> Self {
        Self {
            delay: policy.min_delay,
            policy,
            finder,
            on_disconnect,
            on_reconnect,
            connected_at_ns: now_ns,
            reconnections: 0,
            lost_streams: Vec::new(),
        }
    }

    pub(super) fn has_driver_ended(&mut self) -> bool {
        self.finder.has_driver_ended()
    }

    pub(super) fn reconnect_handler(&self) -> Option<ReconnectHandler> {
        self.on_reconnect.clone()
    }

    /// Counts a reconnection. Returns their number.
    pub(super) fn count(&mut self) -> u64 {
        self.reconnections += 1;
        self.reconnections
    }

    /// Returns the time until the first look for the next driver. The time doubles for a driver that was lost sooner
    /// than that after the client had found it.
    fn next_delay(&mut self, now_ns: i64) -> Duration {
        let connected_ns = now_ns.saturating_sub(self.connected_at_ns);
        let was_short = connected_ns < self.delay.as_nanos() as i64;
        self.delay = match was_short {
            true => (2 * self.delay).min(self.policy.max_delay),
            false => self.policy.min_delay,
        };
        self.delay
    }
}

/// Shortens a delay to between half of it and all of it, so that the clients of a driver do not all return at once.
/// Equal inputs give equal results: a simulation can be repeated.
fn jittered(delay: Duration, seed: u64) -> i64 {
    // The mixing step of SplitMix64.
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let delay_ns = delay.as_nanos() as u64;
    let shortened_ns = delay_ns / 2 + (mixed ^ (mixed >> 31)) % (delay_ns / 2).max(1);
    debug_assert!(
        (delay_ns / 2..=delay_ns).contains(&shortened_ns),
        "a look after {shortened_ns} ns is too early or too late for a delay of {delay_ns} ns"
    );
    shortened_ns as i64
}

/// Whether a driver with this error leaves the logs of its clients as they are. A driver that has timed out its client
/// lives, and overwrites the logs that the client has.
fn is_driver_gone(cause: &Error) -> bool {
    matches!(cause, Error::DriverTimeout(_))
}

/// Whether a driver with this error has certainly ended. A driver without a heartbeat may only be paused: later it
/// sends what it has.
fn has_driver_ended(cause: &Error) -> bool {
    use DriverTimeout::{ProcessEnded, Shutdown};
    matches!(cause, Error::DriverTimeout(ProcessEnded { .. } | Shutdown))
}

impl Conductor {
    /// Whether the client has no driver now.
    pub(crate) fn is_down(&self) -> bool {
        matches!(self.connection, Connection::Down(_))
    }

    /// Returns why the client has no driver now.
    pub(crate) fn outage_cause(&self) -> Option<Error> {
        match &self.connection {
            Connection::Down(outage) => Some(outage.cause.clone()),
            Connection::Up | Connection::Restoring(_) => None,
        }
    }

    /// Returns the number of drivers that the client has lost. The ids of commands begin again with each driver.
    pub(crate) fn drivers_lost(&self) -> u64 {
        self.drivers_lost
    }

    /// Whether the client has a driver that has all its resources. Only then can a command name one of them.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.connection, Connection::Up)
    }

    /// Suspends all resources until there is another driver.
    pub(super) fn suspend(&mut self, client: &Arc<Client>, cause: Error) {
        let now_ns = client.now_ns();
        let lost = LostDriver {
            identity: self.link.driver,
            heartbeat_ms: self.link.proxy.driver_heartbeat_ms(),
        };
        // A driver that lives removes the resources at once, instead of after its timeout. The result does not matter.
        let _ = self.link.proxy.client_close();
        // First, so that its handler runs before those of the images that end.
        let reconnecting = self.reconnecting.as_ref();
        if let Some(handler) = reconnecting.and_then(|it| it.on_disconnect.clone()) {
            let cause = cause.clone();
            client.dispatcher.push(move || handler(&cause));
        }
        let is_driver_gone = is_driver_gone(&cause);
        self.interrupt_commands(client);
        self.drivers_lost += 1;
        self.suspend_publications(has_driver_ended(&cause));
        self.suspend_subscriptions(client, is_driver_gone);
        self.counters.values().for_each(|core| core.suspend());
        self.rename_suspended();
        self.unsent_removals.clear();
        // The ids of the next driver begin again.
        self.logs.clear();
        let since_ns = match &self.connection {
            Connection::Restoring(restoration) => restoration.outage.since_ns,
            Connection::Up | Connection::Down(_) => now_ns,
        };
        let Some(reconnecting) = &mut self.reconnecting else {
            return;
        };
        let delay = reconnecting.next_delay(now_ns);
        let seed = self.link.proxy.client_id() ^ now_ns;
        log::warn!(
            target: "aeron.client",
            "{} has lost its driver, and looks for a driver: {cause}",
                client.settings.display_name(self.link.proxy.client_id())
        );
        self.connection = Connection::Down(Outage {
            cause,
            since_ns,
            next_look_ns: now_ns + jittered(delay, seed.cast_unsigned()),
            lost,
        });
        client.dispatcher.wake();
    }

    /// Forgets the commands without a response, and the resources that the application has not fetched yet: the
    /// operations of the application send their commands to the next driver.
    fn interrupt_commands(&mut self, client: &Arc<Client>) {
        for (kind, id) in self.commands.clear(self.drivers_lost) {
            match kind {
                ResourceKind::Publication => drop(self.publications.remove(&id)),
                ResourceKind::ExclusivePublication => drop(self.exclusive_publications.remove(&id)),
                ResourceKind::Subscription => self.close_unanswered_subscription(client, id),
                ResourceKind::Counter => drop(self.counters.remove(&id)),
            }
        }
    }

    fn suspend_publications(&mut self, has_driver_ended: bool) {
        let concurrent = self.publications.values().map(|core| core.base());
        let exclusive = self.exclusive_publications.values().map(|core| core.base());
        let Some(reconnecting) = &mut self.reconnecting else {
            return;
        };
        for base in concurrent.chain(exclusive) {
            base.keep_response_source(|id| self.subscriptions.get(&id).cloned());
            if base.suspend() {
                let lost = LostStream::of_publication(base, has_driver_ended);
                reconnecting.lost_streams.push(lost);
            }
        }
    }

    /// Keeps the images of a driver that has ended, until they are consumed. The images of a driver that lives end now:
    /// the driver overwrites their logs.
    fn suspend_subscriptions(&mut self, client: &Arc<Client>, is_driver_gone: bool) {
        let subscriptions: Vec<_> = self.subscriptions.values().cloned().collect();
        for subscription in subscriptions {
            let images = subscription.suspend();
            if let Some(reconnecting) = &mut self.reconnecting {
                let lost = images
                    .iter()
                    .map(|image| LostStream::of_image(&subscription, image));
                reconnecting.lost_streams.extend(lost);
            }
            if !is_driver_gone {
                self.retire_all_orphans(client, &subscription);
            }
            self.bound_unread(client, &subscription);
        }
    }

    /// Ends the images of the driver that was lost first if the application reads none for too many drivers: their logs
    /// use the shared memory that the next driver needs.
    fn bound_unread(&mut self, client: &Arc<Client>, subscription: &Arc<SubscriptionCore>) {
        while subscription.unread_drivers() > MAX_UNREAD_DRIVERS {
            log::warn!(
                target: "aeron.client",
                "{} drops the unread messages of a lost driver in stream {} of {}: a subscription keeps those of \
                 {MAX_UNREAD_DRIVERS} lost drivers; poll it, or close it",
                client.settings.display_name(self.link.proxy.client_id()),
                subscription.stream_id(),
                subscription.channel(),
            );
            self.retire_orphans(client, subscription, |_| true);
        }
    }

    /// Gives all resources keys that no driver uses, because the ids of the next driver begin again.
    fn rename_suspended(&mut self) {
        /// −1 and 0 are ids with other meanings in the protocol.
        const FIRST_KEY: i64 = -2;
        let key = |order: u64| FIRST_KEY - order as i64;
        macro_rules! rename {
            ($($registry:ident: $registration:expr),*) => {$(
                let count = self.$registry.len();
                self.$registry = std::mem::take(&mut self.$registry).into_values().map(|core| {
                    let registration = $registration(&core);
                    registration.set_key(key(registration.order));
                    (registration.key(), core)
                }).collect();
                debug_assert_eq!(
                    self.$registry.len(),
                    count,
                    "two suspended {} have the same key, so one of them is lost",
                    stringify!($registry)
                );
            )*};
        }
        rename!(
            publications: |core: &Arc<crate::publication::core::ConcurrentCore>| Arc::clone(&core.base().registration),
            exclusive_publications: |core: &Arc<crate::publication::core::ExclusiveCore>| Arc::clone(&core.base().registration),
            subscriptions: |core: &Arc<crate::subscription::core::SubscriptionCore>| Arc::clone(&core.registration),
            counters: |core: &Arc<crate::counter::core::CounterCore>| Arc::clone(&core.registration)
        );
    }

    /// Looks for a driver if a look is due. Returns a work count.
    pub(super) fn look_for_driver(&mut self, client: &Arc<Client>) -> usize {
        let now_ns = client.now_ns();
        let Connection::Down(outage) = &mut self.connection else {
            return 0;
        };
        let Some(reconnecting) = &mut self.reconnecting else {
            return 0;
        };
        let give_up_after = reconnecting.policy.give_up_after;
        let down_ns = now_ns.saturating_sub(outage.since_ns);
        if give_up_after.is_some_and(|limit| down_ns > limit.as_nanos() as i64) {
            let cause = outage.cause.clone();
            self.end(client, cause);
            return 1;
        }
        if now_ns - outage.next_look_ns < 0 {
            return 0;
        }
        let min_delay = reconnecting.policy.min_delay;
        outage.next_look_ns =
            now_ns + jittered(min_delay, (now_ns ^ outage.since_ns).cast_unsigned());
        let lost = outage.lost;
        match reconnecting.finder.find(&lost) {
            Ok(None) => 0,
            Ok(Some(driver)) => {
                let outage = outage.clone();
                if let Err(error) = self.connect_to(client, driver, outage) {
                    self.end(client, error);
                }
                1
            }
            // A driver that refuses this client would refuse it again.
            Err(error) => {
                self.end(client, error);
                1
            }
        }
    }

    /// Continues with a driver, and begins to restore the resources.
    fn connect_to(
        &mut self,
        client: &Arc<Client>,
        driver: FoundDriver,
        outage: Outage,
    ) -> Result<()> {
        // The ids of the next driver begin again, so a later log or response could have the same id.
        debug_assert!(
            self.logs.is_empty(),
            "{} logs of the lost driver could be taken for logs of the next driver",
            self.logs.len()
        );
        debug_assert!(
            !self.commands.has_active(),
            "a command to the lost driver waits for a response of the next driver"
        );
        let link = Arc::new(Link::new(&driver.cnc, driver.logs));
        let timeout = link.inter_service_timeout();
        client.settings.check_keepalive(timeout)?;
        self.events = BroadcastReceiver::new(driver.cnc.to_clients().clone()).map_err(|error| {
            Error::InvalidCncFile {
                path: std::path::PathBuf::new(),
                reason: error.to_string(),
            }
        })?;
        let now_ns = client.now_ns();
        if link.driver == outage.lost.identity {
            // The driver was only paused. It goes on with its logs, so the old images cannot be read any more.
            let subscriptions: Vec<_> = self.subscriptions.values().cloned().collect();
            for subscription in subscriptions {
                self.retire_all_orphans(client, &subscription);
            }
        }
        self.heartbeat = Heartbeat::new(link.proxy.driver_heartbeat_ms(), now_ns);
        self.last_service_ns = now_ns;
        self.last_timer_ns = now_ns;
        self.close_is_unsent = false;
        client.set_link(&link);
        self.link = link;
        if let Some(reconnecting) = &mut self.reconnecting {
            reconnecting.connected_at_ns = now_ns;
        }
        let restoration = self.begin_restoration(outage, now_ns);
        self.connection = Connection::Restoring(Box::new(restoration));
        Ok(())
    }

    /// Returns the error of a driver that has ended, if the finder of drivers knows that.
    pub(super) fn check_driver_process(&mut self) -> Result<()> {
        let has_ended = self
            .reconnecting
            .as_mut()
            .is_some_and(Reconnecting::has_driver_ended);
        match has_ended {
            true => {
                let pid = self.link.driver.pid;
                Err(DriverTimeout::ProcessEnded { pid }.into())
            }
            false => Ok(()),
        }
    }

    /// Closes the client for good, although it reconnects.
    fn end(&mut self, client: &Arc<Client>, error: Error) {
        client.dispatcher.report(error.clone());
        if let Some(released) = self.close(client, CloseCause::error(error)) {
            client.dispatcher.push(move || drop(released));
        }
    }
}
