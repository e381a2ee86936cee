//! The sender: sends the messages of publications and handles the control frames of receivers.
//!
//! [`Sender`] owns the [send endpoints](SendEndpoint) with their sockets and the sending halves of the
//! [publications](SenderPublication). The caller passes sockets, time and memory, so a simulator can run the sender.
//! The conductor creates the endpoints and publications and passes them to the sender in [`SenderCommand`]s. The sender
//! reports events in [`SenderEvent`]s.

mod command;
mod context;
mod counters;
mod destinations;
mod dispatch;
mod endpoint;
mod endpoint_id;
mod event;
mod gso_batches;
mod inbox;
mod manual_destination;
mod publication;
mod receivers;
#[cfg(test)]
mod tests;
mod validation;

pub use command::SenderCommand;
pub use destinations::{DestinationControl, DestinationTracker};
pub use endpoint::{Destinations, Peer, SendEndpoint, SendEndpointConfig};
pub use endpoint_id::SendEndpointId;
pub use event::{PublicationErrorReport, SenderEvent};
pub use manual_destination::ManualDestination;
pub use publication::{PublicationCounters, Response, SenderPublication, SenderPublicationConfig};

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};

use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::duty_cycle::StallTracker;
use crate::media::timestamps::EpochNanos;
use crate::media::transport::{Poller, SocketKey};
use crate::queue::{QueueConsumer, QueueProducer};
use context::{SenderContext, SenderSettings};
use counters::SenderCounters;
use dispatch::{RoutedPublication, Routes};
use inbox::DatagramInbox;

/// The parts of a new sender.
pub struct SenderParts {
    /// Commands from the conductor.
    pub commands: QueueConsumer<SenderCommand>,
    /// Events for the conductor.
    pub events: QueueProducer<SenderEvent>,
    /// Finds the sockets with control frames.
    pub poller: Box<dyn Poller>,
    /// The driver's own counters.
    pub system_counters: SystemCounters<SharedBuffer>,
    /// Records failures of the sender.
    pub errors: ErrorRecorder,
    /// The wall clock, for timestamps that are written into messages.
    pub epoch_nanos: EpochNanos,
}

/// Maximum number of commands in one duty cycle, the same as in the receiver.
///
/// A duty cycle visits every publication. With thousands of publications and one command in each duty cycle, the last
/// of many commands would be delayed by seconds.
const MAX_COMMANDS: usize = 16;

/// The sender; see the [module](self).
pub struct Sender {
    context: SenderContext,
    commands: QueueConsumer<SenderCommand>,
    poller: Box<dyn Poller>,
    stall_tracker: StallTracker,
    /// The index of an endpoint does not change until the endpoint is removed.
    endpoints: Vec<Option<SendEndpoint>>,
    publications: Vec<RoutedPublication>,
    routes: Routes,
    inbox: DatagramInbox,
    /// Index of the publication that sends first in the next duty cycle.
    next: usize,
    cycles_since_poll: usize,
    time_of_last_poll_ns: i64,
    time_of_last_re_resolution_check_ns: i64,
}

/// Result of a pass over all publications.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    bytes_sent: usize,
    is_waiting: bool,
}

impl Sender {
    /// Creates a sender without endpoints.
    pub fn new(settings: &Context, parts: SenderParts, now_ns: i64) -> Self {
        let system = &parts.system_counters;
        let stall_tracker = StallTracker::new(
            settings.sender_cycle_threshold_ns,
            system.get(SystemCounter::SenderMaxCycleTime).clone(),
            system.get(SystemCounter::SenderCycleTimeExceeded).clone(),
            now_ns,
        );
        Self {
            context: SenderContext {
                settings: SenderSettings::of(settings),
                counters: SenderCounters::of(system),
                events: parts.events,
                errors: parts.errors,
                epoch_nanos: parts.epoch_nanos,
                now_ns,
            },
            commands: parts.commands,
            poller: parts.poller,
            stall_tracker,
            endpoints: Vec::new(),
            publications: Vec::new(),
            routes: Routes::default(),
            inbox: DatagramInbox::default(),
            next: 0,
            cycles_since_poll: 0,
            time_of_last_poll_ns: now_ns,
            time_of_last_re_resolution_check_ns: now_ns,
        }
    }

    /// Returns the number of objects of each kind.
    pub(crate) fn census(&self) -> [(&'static str, usize); 3] {
        [
            (
                "endpoints of the sender",
                self.endpoints.iter().flatten().count(),
            ),
            ("publications of the sender", self.publications.len()),
            ("routes of control frames", self.routes.count()),
        ]
    }

    /// Restarts the measurement of duty cycles at `now_ns`.
    pub fn restart_stall_tracker(&mut self, now_ns: i64) {
        self.stall_tracker.restart(now_ns);
    }

    /// Runs one duty cycle. Returns the amount of work done; 0 if the thread may idle.
    pub fn do_work(&mut self, now_ns: i64) -> usize {
        self.stall_tracker.on_duty_cycle(now_ns);
        self.context.now_ns = now_ns;
        let mut work = self.context.events.flush();
        for _ in 0..MAX_COMMANDS {
            let Ok(command) = self.commands.pop() else {
                break;
            };
            self.on_command(command);
            work += 1;
        }
        let short_sends = self.context.counters.short_sends.get_relaxed();
        let pass = self.send();
        work += pass.bytes_sent + usize::from(pass.is_waiting);
        let is_short = self.context.counters.short_sends.get_relaxed() != short_sends;
        if self.is_poll_due(pass.bytes_sent, is_short) {
            work += self.poll();
        }
        self.check_re_resolution();
        work
    }

    /// Lets every publication send once. Each call begins with a different publication, so that no publication is
    /// always the last one.
    fn send(&mut self) -> Pass {
        if self.next >= self.publications.len() {
            self.next = 0;
        }
        let (last, first) = self.publications.split_at_mut(self.next);
        self.next += 1;
        let mut pass = Pass::default();
        for RoutedPublication { slot, publication } in first.iter_mut().chain(last) {
            if let Some(endpoint) = &mut self.endpoints[*slot] {
                let progress = publication.send(endpoint, &mut self.context);
                pass.bytes_sent += progress.bytes_sent;
                pass.is_waiting |= progress.is_waiting;
            }
        }
        if pass.bytes_sent > 0 {
            let counter = &self.context.counters.bytes_sent;
            counter.add_release(pass.bytes_sent as i64);
        }
        pass
    }

    /// Returns whether to poll for control frames. A poll is due if nothing was sent or a send was short. It is also
    /// due after a number of duty cycles, and after half the timeout of status messages.
    fn is_poll_due(&mut self, bytes_sent: usize, is_short: bool) -> bool {
        let settings = &self.context.settings;
        self.cycles_since_poll += 1;
        let waited_ns = self.context.now_ns - self.time_of_last_poll_ns;
        bytes_sent == 0
            || is_short
            || self.cycles_since_poll >= settings.send_to_status_poll_ratio
            || waited_ns > settings.status_message_timeout_ns / 2
    }

    /// Reads and handles a batch of control frames from each readable socket. Returns the number of frames.
    fn poll(&mut self) -> usize {
        self.cycles_since_poll = 0;
        self.time_of_last_poll_ns = self.context.now_ns;
        let mut received = 0;
        let Self {
            context,
            poller,
            endpoints,
            publications,
            routes,
            inbox,
            ..
        } = self;
        let ready = poller.ready(&mut |key| {
            let slot = key as usize;
            let Some(endpoint) = endpoints.get_mut(slot).and_then(Option::as_mut) else {
                return;
            };
            if let Err(error) = endpoint.receive(context.settings.io_vector_capacity, inbox) {
                context.on_socket_error(&error, "failed to receive control frames");
            }
            received += inbox.drain(|datagram| {
                routes.dispatch(slot, endpoint, publications, datagram, context);
            });
        });
        if let Err(error) = ready {
            context.on_socket_error(&error, "failed to poll for control frames");
        }
        received
    }

    fn check_re_resolution(&mut self) {
        let interval_ns = self.context.settings.re_resolution_check_interval_ns;
        let now_ns = self.context.now_ns;
        if interval_ns == 0 || now_ns - self.time_of_last_re_resolution_check_ns <= interval_ns {
            return;
        }
        self.time_of_last_re_resolution_check_ns = now_ns;
        let events = &mut self.context.events;
        for endpoint in self.endpoints.iter_mut().flatten() {
            let id = endpoint.id();
            endpoint.check_re_resolution(now_ns, |name: &Arc<str>, current: Option<SocketAddr>| {
                events.send(SenderEvent::ReResolve {
                    endpoint: id,
                    name: name.clone(),
                    current,
                });
            });
        }
    }

    fn on_command(&mut self, command: SenderCommand) {
        let now_ns = self.context.now_ns;
        match command {
            SenderCommand::AddEndpoint(endpoint) => self.add_endpoint(*endpoint),
            SenderCommand::RemoveEndpoint(id) => self.remove_endpoint(id),
            SenderCommand::AddPublication(id, publication) => self.add_publication(id, publication),
            SenderCommand::RemovePublication(registration_id) => {
                self.remove_publication(registration_id);
            }
            SenderCommand::AddDestination {
                endpoint,
                destination,
            } => self.with_endpoint(endpoint, |it| it.add_destination(destination, now_ns)),
            SenderCommand::RemoveDestination { endpoint, address } => {
                self.with_endpoint(endpoint, |it| it.remove_destination(address));
            }
            SenderCommand::RemoveDestinationById {
                endpoint,
                registration_id,
            } => self.with_endpoint(endpoint, |it| it.remove_destination_by_id(registration_id)),
            SenderCommand::ResolutionChange {
                endpoint,
                name,
                address,
            } => self.change_resolution(endpoint, &name, address),
        }
    }

    fn add_endpoint(&mut self, endpoint: SendEndpoint) {
        debug_assert!(
            self.slot_of(endpoint.id()).is_none(),
            "endpoint {} is added twice",
            endpoint.id()
        );
        let free = self.endpoints.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.endpoints.len());
        if let Err(error) = self.poller.add(slot as SocketKey, endpoint.socket()) {
            let what = "failed to watch a socket for control frames";
            self.context.on_socket_error(&error, what);
        }
        match free {
            Some(_) => self.endpoints[slot] = Some(endpoint),
            None => self.endpoints.push(Some(endpoint)),
        }
    }

    fn remove_endpoint(&mut self, id: SendEndpointId) {
        if let Some(slot) = self.slot_of(id)
            && let Some(endpoint) = self.endpoints[slot].take()
        {
            // The next endpoint gets this slot. A publication that is left would send to its receivers.
            debug_assert!(
                self.publications.iter().all(|it| it.slot != slot),
                "endpoint {id} is removed before its publications"
            );
            self.poller.remove(slot as SocketKey, endpoint.socket());
        }
        self.context.events.send(SenderEvent::EndpointReleased(id));
    }

    fn add_publication(&mut self, id: SendEndpointId, publication: Box<SenderPublication>) {
        let Some(slot) = self.slot_of(id) else {
            debug_assert!(false, "endpoint {id} of the publication does not exist");
            return;
        };
        let index = self.publications.len();
        self.routes.add(slot, &publication, index);
        self.publications
            .push(RoutedPublication { slot, publication });
        debug_assert_eq!(
            self.routes.count(),
            self.publications.len(),
            "each publication needs its own route"
        );
    }

    fn remove_publication(&mut self, registration_id: i64) {
        let is_meant = |it: &RoutedPublication| it.publication.registration_id() == registration_id;
        if let Some(index) = self.publications.iter().position(is_meant) {
            let removed = self.publications.swap_remove(index);
            self.routes.remove(removed.slot, &removed.publication);
            if let Some(moved) = self.publications.get(index) {
                self.routes.add(moved.slot, &moved.publication, index);
            }
            debug_assert_eq!(
                self.routes.count(),
                self.publications.len(),
                "each publication needs its own route, and a removed one has none"
            );
        }
        self.context
            .events
            .send(SenderEvent::PublicationReleased(registration_id));
    }

    fn change_resolution(&mut self, id: SendEndpointId, name: &str, address: SocketAddr) {
        self.context.counters.resolution_changes.fetch_add(1);
        let mut outcome = Ok(());
        self.with_endpoint(id, |endpoint| {
            outcome = endpoint.on_resolution_change(name, address);
        });
        if let Err(error) = outcome {
            // The text does not contain the address. The name server chooses the address, and each new address would
            // add an entry to the error log.
            self.context
                .on_socket_error(&error, &format!("failed to connect to {name}"));
        }
    }

    fn with_endpoint(&mut self, id: SendEndpointId, action: impl FnOnce(&mut SendEndpoint)) {
        if let Some(slot) = self.slot_of(id)
            && let Some(endpoint) = &mut self.endpoints[slot]
        {
            action(endpoint);
        }
    }

    fn slot_of(&self, id: SendEndpointId) -> Option<usize> {
        self.endpoints
            .iter()
            .position(|slot| slot.as_ref().is_some_and(|endpoint| endpoint.id() == id))
    }
}
