//! The conductor: executes the clients' commands, owns the resources that they add, and frees resources that are no
//! longer used.
//!
//! The state of the conductor is divided into owners: [`Clients`], [`Endpoints`], [`Publications`], [`Subscriptions`]
//! and [`Images`]. If an owner's method uses other owners, they are arguments of the method. [`Conductor`] has the duty
//! cycle and the operations that need several owners.
//!
//! The conductor is a plain state machine. The caller passes the time and the memory, the native resource agent creates
//! the files, and a seed determines the random ids. The same conductor therefore runs in a driver and in the simulator.

mod client_proxy;
mod clients;
mod closing;
mod command_ring;
mod commands;
mod counters;
mod destinations;
mod endpoints;
mod image_creation;
mod images;
mod inbox;
mod links;
mod outlets;
mod pending;
mod publication_commands;
mod publications;
mod receive_destinations;
mod rejections;
mod requests;
mod responses;
mod subscription_commands;
mod subscriptions;
mod timers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aeron_agent::ClockSteps;
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersManager;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::loss_report::LossReport;
use aeron_memory::ring::RingConsumer;

use crate::closing::Closing;
use crate::config::{Context, TerminationValidator};
use crate::diagnostics::ErrorRecorder;
use crate::duty_cycle::StallTracker;
use crate::media::transport::Network;
use crate::queue::{QueueConsumer, QueueProducer};
use crate::receiver::{ReceiverCommand, ReceiverEvent};
use crate::resources::{ResourceCommands, ResourceReply};
use crate::sender::{SenderCommand, SenderEvent};
use crate::session_ids::SessionIds;
use crate::socket_buffers::SocketBufferLengths;
use client_proxy::ClientProxy;
use clients::Clients;
use closing::ConductorDrain;
use command_ring::CommandRing;
use endpoints::Endpoints;
use images::Images;
use inbox::ConductorInbox;
use outlets::ConductorOutlets;
use pending::PendingCommands;
use publications::Publications;
use rejections::NotedRejections;
use subscriptions::Subscriptions;

/// The shared memory, the queues and the other parts of which a conductor is made.
pub struct ConductorParts {
    /// Commands from clients.
    pub commands: RingConsumer<SharedBuffer>,
    /// Events to clients.
    pub events: BroadcastTransmitter<SharedBuffer>,
    /// All counters.
    pub counters: CountersManager<SharedBuffer>,
    /// The driver's own counters.
    pub system_counters: SystemCounters<SharedBuffer>,
    /// The error log.
    pub errors: ErrorRecorder,
    /// Commands for the native resource agent.
    pub resource_commands: ResourceCommands,
    /// Results of the commands for the native resource agent.
    pub resource_replies: QueueConsumer<ResourceReply>,
    /// Commands for the sender.
    pub sender_commands: QueueProducer<SenderCommand>,
    /// Events of the sender.
    pub sender_events: QueueConsumer<SenderEvent>,
    /// Commands for the receiver.
    pub receiver_commands: QueueProducer<ReceiverCommand>,
    /// Events of the receiver.
    pub receiver_events: QueueConsumer<ReceiverEvent>,
    /// Opens sockets.
    pub network: Box<dyn Network>,
    /// Losses of the images.
    pub loss_report: LossReport<SharedBuffer>,
    /// Set when a client sends a terminate command and the validator allows the command.
    pub is_terminated: Arc<AtomicBool>,
    /// The requests of the closing driver, and the conductor's reports to the driver.
    pub closing: Arc<Closing>,
    /// Seed of all random values, such as session ids, initial term ids and receiver ids.
    pub seed: u64,
    /// The operating system's default lengths of socket buffers.
    pub system_socket_buffers: SocketBufferLengths,
}

/// The conductor; see the [module](self).
pub struct Conductor {
    context: Arc<Context>,
    commands: CommandRing,
    outlets: ConductorOutlets,
    inbox: ConductorInbox,
    is_terminated: Arc<AtomicBool>,
    drain: ConductorDrain,
    clients: Clients,
    endpoints: Endpoints,
    publications: Publications,
    images: Images,
    subscriptions: Subscriptions,
    pending: PendingCommands,
    stall_tracker: StallTracker,
    timer_deadline_ns: i64,
    clock_steps: ClockSteps,
}

impl Conductor {
    /// Creates a conductor; `now_ns` is the current monotonic time.
    pub fn new(context: Arc<Context>, parts: ConductorParts, now_ns: i64) -> Self {
        let mut random = fastrand::Rng::with_seed(parts.seed);
        let next_receiver_id = random.i64(..);
        let first_session_id = random.i32(..);
        let reserved = context.publication_reserved_session_id_low
            ..=context.publication_reserved_session_id_high;
        let stall_tracker = StallTracker::new(
            context.conductor_cycle_threshold_ns,
            parts
                .system_counters
                .get(SystemCounter::ConductorMaxCycleTime)
                .clone(),
            parts
                .system_counters
                .get(SystemCounter::ConductorCycleTimeExceeded)
                .clone(),
            now_ns,
        );
        let endpoints = Endpoints::new(
            Arc::clone(&context),
            parts.system_socket_buffers,
            parts.network,
            next_receiver_id,
        );
        let publications = Publications::new(
            Arc::clone(&context),
            parts.system_socket_buffers,
            SessionIds::new(first_session_id, reserved),
        );
        let images = Images::new(
            Arc::clone(&context),
            parts.system_socket_buffers,
            parts.loss_report,
            now_ns,
        );
        Self {
            timer_deadline_ns: now_ns.saturating_add(context.timer_interval_ns),
            clock_steps: ClockSteps::default(),
            context,
            commands: CommandRing::new(parts.commands, now_ns),
            outlets: ConductorOutlets {
                events: ClientProxy::new(parts.events),
                counters: parts.counters,
                system_counters: parts.system_counters,
                errors: parts.errors,
                noted_rejections: NotedRejections::default(),
                resource_commands: parts.resource_commands,
                sender_commands: parts.sender_commands,
                receiver_commands: parts.receiver_commands,
                last_lookup_id: 0,
                random,
                now_ns,
                now_ms: 0,
            },
            inbox: ConductorInbox {
                resource_replies: parts.resource_replies,
                sender_events: parts.sender_events,
                receiver_events: parts.receiver_events,
            },
            is_terminated: parts.is_terminated,
            drain: ConductorDrain::new(parts.closing),
            clients: Clients::default(),
            endpoints,
            publications,
            images,
            subscriptions: Subscriptions::default(),
            pending: PendingCommands::default(),
            stall_tracker,
        }
    }

    /// Runs one duty cycle at `now_ns` (monotonic) and `now_ms` (epoch). Returns the amount of work done.
    pub fn do_work(&mut self, now_ns: i64, now_ms: i64) -> usize {
        self.outlets.now_ns = now_ns;
        self.outlets.now_ms = now_ms;
        self.stall_tracker.on_duty_cycle(now_ns);
        if self.clock_steps.was_set(now_ms, now_ns) {
            // Clients of Aeron compare this heartbeat with the wall clock, and would end before the next timer.
            self.commands.keep_alive(now_ms);
        }
        if now_ns > self.timer_deadline_ns {
            self.on_timer();
            self.timer_deadline_ns = now_ns.saturating_add(self.context.timer_interval_ns);
        }
        let mut work_count = self.outlets.flush();
        work_count += self.take_command();
        self.drain_if_due();
        work_count += self.take_messages();
        work_count += self.resume_local_subscription();
        work_count += self.take_image_request();
        work_count += self.images.track(&mut self.outlets);
        work_count + self.publications.update(&mut self.outlets)
    }

    /// Restarts the measurement of duty cycles at `now_ns`.
    pub fn restart_stall_tracker(&mut self, now_ns: i64) {
        self.stall_tracker.restart(now_ns);
    }

    /// Returns the number of objects of each kind.
    pub(crate) fn census(&self) -> [(&'static str, usize); 9] {
        [
            ("clients", self.clients.count()),
            ("send endpoints", self.endpoints.send_count()),
            ("receive endpoints", self.endpoints.receive_count()),
            (
                "names looked up again",
                self.endpoints.re_resolution_count(),
            ),
            ("IPC publications", self.publications.ipc().len()),
            ("network publications", self.publications.network().len()),
            ("subscriptions", self.subscriptions.iter().count()),
            ("images", self.images.count()),
            ("waiting commands", self.pending.count()),
        ]
    }

    /// Ends the conductor. Drops all waiting commands, images and publications. The native resource agent removes the
    /// logs later.
    ///
    /// Counters are not freed. Clients regard the driver as active until the driver's heartbeat shows the end. If a
    /// client's heartbeat counter disappeared earlier, the client would conclude that the driver has timed it out.
    pub fn close(&mut self) {
        self.pending.clear();
        self.images.clear();
        self.publications.clear();
    }

    fn take_command(&mut self) -> usize {
        if self.pending.is_busy() || self.outlets.is_overloaded() {
            return 0;
        }
        if let Some(command) = self.pending.take_slow_ready() {
            self.resume(command);
            return 1;
        }
        let Some(command) = self.commands.read(&self.outlets) else {
            return 0;
        };
        self.on_command(command.type_id, &command.body);
        self.commands.recycle(command);
        1
    }

    fn terminate(&self) {
        if self.context.termination_validator == TerminationValidator::Allow {
            self.is_terminated.store(true, Ordering::Release);
        }
    }
}
