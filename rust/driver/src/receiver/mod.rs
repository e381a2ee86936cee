//! The receiver: reads the sockets of receive endpoints, inserts data into images, and sends control frames to the
//! senders.
//!
//! [`Receiver`] is a state machine: the caller passes the time and the implementations of the sockets. The conductor
//! sends [`ReceiverCommand`]s, and the receiver sends [`ReceiverEvent`]s back. Both agents read and write the
//! [`ImageStatus`](crate::image::ImageStatus) of an image. Datagrams may be hostile: [`MAX_REMEMBERED_SESSIONS`],
//! [`MAX_IMAGES`] and [`MAX_PENDING_SETUPS`] limit the memory that datagrams can use.

mod arrivals;
mod command;
mod command_execution;
mod connections;
mod control_frames;
mod destination;
mod dispatcher;
mod endpoint;
mod feedback;
mod ids;
mod image;
mod pending_setups;
mod sessions;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_protocol::frame::Rttm;
use slab::Slab;

pub use command::{ImageRequest, ReceiverCommand, ReceiverEvent};
pub use destination::{ControlAddress, ReceiveDestination};
pub use dispatcher::MAX_IMAGES;
pub use endpoint::{ReceiveEndpoint, ReceiverIdentity};
pub use ids::{DestinationId, ReceiveEndpointId};
pub use image::{ReceiverImage, ReceiverImageConfig};
pub use pending_setups::MAX_PENDING_SETUPS;
pub use sessions::{ForgettableState, MAX_REMEMBERED_SESSIONS};

use arrivals::{Arrivals, Reply};
use destination::Outbound;
use feedback::FeedbackTimeouts;
use pending_setups::{PendingSetup, PendingSetups};

use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::duty_cycle::StallTracker;
use crate::error::DriverError;
use crate::media::timestamps::EpochNanos;
use crate::media::transport::{Poller, SocketKey};
use crate::queue::{QueueConsumer, QueueProducer};
use crate::stream::StreamSession;

/// Maximum number of commands in one duty cycle. After a flood of sessions, many images end together, and the conductor
/// sends two commands for each image.
const MAX_COMMANDS: usize = 16;

/// The parts of a new receiver.
pub struct ReceiverParts {
    pub commands: QueueConsumer<ReceiverCommand>,
    pub events: QueueProducer<ReceiverEvent>,
    pub poller: Box<dyn Poller>,
    pub system_counters: SystemCounters<SharedBuffer>,
    pub errors: ErrorRecorder,
    /// The wall clock, for timestamps that are written into messages.
    pub epoch_nanos: EpochNanos,
}

/// The receiver agent.
pub struct Receiver {
    commands: QueueConsumer<ReceiverCommand>,
    events: QueueProducer<ReceiverEvent>,
    poller: Box<dyn Poller>,
    system: SystemCounters<SharedBuffer>,
    errors: ErrorRecorder,
    stall_tracker: StallTracker,
    epoch_nanos: EpochNanos,
    endpoints: Slab<Box<ReceiveEndpoint>>,
    /// The key of a destination in the slab is also its key at the poller.
    destinations: Slab<ReceiveDestination>,
    images: Slab<Box<ReceiverImage>>,
    pending_setups: PendingSetups,
    has_noted_forgotten_setups: bool,
    receive_limit: usize,
    timeouts: FeedbackTimeouts,
    re_resolution_check_interval_ns: i64,
    time_of_last_re_resolution_check_ns: i64,
    // Buffers that are reused in the next duty cycle to save allocations.
    ready: Vec<SocketKey>,
    replies: Vec<Reply>,
}

impl Receiver {
    /// Creates a receiver without endpoints.
    pub fn new(context: &Context, parts: ReceiverParts, now_ns: i64) -> Self {
        let system = &parts.system_counters;
        let stall_tracker = StallTracker::new(
            context.receiver_cycle_threshold_ns,
            system.get(SystemCounter::ReceiverMaxCycleTime).clone(),
            system.get(SystemCounter::ReceiverCycleTimeExceeded).clone(),
            now_ns,
        );
        Self {
            commands: parts.commands,
            events: parts.events,
            poller: parts.poller,
            system: parts.system_counters,
            errors: parts.errors,
            stall_tracker,
            epoch_nanos: parts.epoch_nanos,
            endpoints: Slab::new(),
            destinations: Slab::new(),
            images: Slab::new(),
            pending_setups: PendingSetups::default(),
            has_noted_forgotten_setups: false,
            receive_limit: context.receiver_io_vector_capacity as usize,
            timeouts: FeedbackTimeouts {
                status_message_ns: context.status_message_timeout_ns,
                image_liveness_ns: context.image_liveness_timeout_ns,
            },
            re_resolution_check_interval_ns: context.re_resolution_check_interval_ns,
            time_of_last_re_resolution_check_ns: now_ns,
            ready: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Returns the number of objects of each kind.
    pub(crate) fn census(&self) -> [(&'static str, usize); 4] {
        [
            ("endpoints of the receiver", self.endpoints.len()),
            ("destinations of the receiver", self.destinations.len()),
            ("images of the receiver", self.images.len()),
            ("requests of SETUPs", self.pending_setups.count()),
        ]
    }

    /// Restarts the measurement of duty cycles at `now_ns`.
    pub fn restart_stall_tracker(&mut self, now_ns: i64) {
        self.stall_tracker.restart(now_ns);
    }

    /// Runs one duty cycle. Returns the amount of work done.
    pub fn do_work(&mut self, now_ns: i64) -> usize {
        self.stall_tracker.on_duty_cycle(now_ns);
        let mut work_count = self.events.flush();
        for _ in 0..MAX_COMMANDS {
            let Ok(command) = self.commands.pop() else {
                break;
            };
            self.on_command(command, now_ns);
            work_count += 1;
        }
        work_count += self.receive(now_ns);
        work_count += self.send_pending(now_ns);
        self.check_pending_setups(now_ns);
        self.check_for_re_resolution(now_ns);
        work_count
    }

    /// Reads one batch from each readable socket. Returns the number of bytes.
    fn receive(&mut self, now_ns: i64) -> usize {
        let mut ready = std::mem::take(&mut self.ready);
        if let Err(error) = self.poller.ready(&mut |key| ready.push(key)) {
            let message = "failed to poll receive sockets";
            self.errors.record(&DriverError::io(&error, message));
        }
        let mut bytes_received = 0;
        for key in ready.drain(..) {
            bytes_received += self.receive_from(key as usize, now_ns);
        }
        self.ready = ready;
        if bytes_received > 0 {
            self.system
                .get(SystemCounter::BytesReceived)
                .add_release(bytes_received as i64);
        }
        bytes_received
    }

    fn receive_from(&mut self, key: usize, now_ns: i64) -> usize {
        let Some(destination) = self.destinations.get_mut(key) else {
            return 0;
        };
        let link = &mut destination.link;
        let Some(endpoint) = self.endpoints.get_mut(link.endpoint) else {
            return 0;
        };
        let mut arrivals = Arrivals {
            now_ns,
            destination: key,
            link,
            endpoint,
            images: &mut self.images,
            replies: &mut self.replies,
            events: &mut self.events,
            system: &self.system,
            errors: &self.errors,
            epoch_nanos: &self.epoch_nanos,
        };
        let received = destination
            .socket
            .receive(self.receive_limit, &mut |mut datagram| {
                arrivals.on_datagram(&mut datagram);
            });
        arrivals.note_forgotten_sessions();
        if !self.replies.is_empty() {
            self.send_replies(key, now_ns);
        }
        received.unwrap_or_else(|error| {
            let message = "failed to receive from a socket";
            self.errors.record(&DriverError::io(&error, message));
            0
        })
    }

    fn send_replies(&mut self, key: usize, now_ns: i64) {
        let mut replies = std::mem::take(&mut self.replies);
        let endpoint = self.destinations[key].link.endpoint;
        for reply in replies.drain(..) {
            match reply {
                Reply::SetupRequest { to, session } => {
                    self.ask_for_setup(key, to, session);
                    let forgotten = self.pending_setups.add(PendingSetup {
                        endpoint,
                        session,
                        time_ns: now_ns,
                    });
                    if forgotten.is_some_and(|setup| self.forget_pending_setup(&setup)) {
                        self.note_forgotten_setups();
                    }
                }
                Reply::RoundTrip { to, answer } => {
                    let mut frame = [0; Rttm::LENGTH];
                    answer.encode(&mut frame);
                    self.outbound().send(key, to, &frame);
                }
            }
        }
        self.replies = replies;
    }

    fn send_pending(&mut self, now_ns: i64) -> usize {
        let mut outbound = Outbound {
            destinations: &mut self.destinations,
            system: &self.system,
            errors: &self.errors,
        };
        let mut sent = 0;
        for (_, image) in &mut self.images {
            sent += image.send_pending(now_ns, &self.timeouts, &mut outbound);
        }
        sent
    }

    fn check_pending_setups(&mut self, now_ns: i64) {
        while let Some(expired) = self.pending_setups.next_expired(now_ns) {
            self.forget_pending_setup(&expired);
        }
        while let Some(key) = self.pending_setups.next_due(now_ns) {
            let endpoint = self.destinations[key].link.endpoint;
            if self.endpoints[endpoint].dispatcher.has_interest() {
                self.ask_control_for_setup(key, StreamSession::ANY);
            }
        }
    }

    fn forget_pending_setup(&mut self, setup: &PendingSetup) -> bool {
        self.endpoints
            .get_mut(setup.endpoint)
            .is_some_and(|endpoint| endpoint.dispatcher.forget_pending_setup(setup.session))
    }

    /// Records in the error log, once, that more SETUP requests were pending than can be remembered.
    fn note_forgotten_setups(&mut self) {
        if !std::mem::replace(&mut self.has_noted_forgotten_setups, true) {
            self.errors
                .record(&DriverError::invalid_argument(format_args!(
                    "more than {MAX_PENDING_SETUPS} SETUP requests within a second, the oldest are forgotten"
                )));
        }
    }

    /// Requests the SETUP of a session from the sender of a destination, if the channel contains the sender's control
    /// address.
    fn ask_control_for_setup(&mut self, key: usize, session: StreamSession) {
        if let ControlAddress::Explicit { address, .. } = self.destinations[key].link.control {
            self.ask_for_setup(key, address, session);
        }
    }

    fn ask_for_setup(&mut self, key: usize, to: SocketAddr, session: StreamSession) {
        let endpoint = self.destinations[key].link.endpoint;
        let identity = self.endpoints[endpoint].identity;
        let request = identity.setup_request(session);
        self.outbound().send(key, to, request.bytes());
    }

    /// Requests a new lookup for the names of control addresses from which no frames arrive.
    fn check_for_re_resolution(&mut self, now_ns: i64) {
        let interval_ns = self.re_resolution_check_interval_ns;
        let deadline_ns = self
            .time_of_last_re_resolution_check_ns
            .saturating_add(interval_ns);
        if interval_ns == 0 || now_ns <= deadline_ns {
            return;
        }
        self.time_of_last_re_resolution_check_ns = now_ns;
        for (_, destination) in &mut self.destinations {
            let (endpoint, id) = (destination.link.endpoint, destination.link.id);
            if let Some((name, current)) = destination.take_silent_control(now_ns) {
                self.events.send(ReceiverEvent::ReResolveControl {
                    endpoint: self.endpoints[endpoint].id,
                    destination: id,
                    name: name.to_owned(),
                    current,
                });
            }
        }
    }

    fn outbound(&mut self) -> Outbound<'_> {
        Outbound {
            destinations: &mut self.destinations,
            system: &self.system,
            errors: &self.errors,
        }
    }
}
