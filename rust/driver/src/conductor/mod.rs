//! The conductor: takes the clients' commands, owns what they ask for, and ends what nobody needs any more.
//!
//! A plain state machine: it is handed the time, its memory is handed in, files are made by the native resource agent, and what
//! looks random comes from a seed. So the same conductor runs in a driver and in a simulation.

mod client_proxy;
mod clients;
mod closing;
mod commands;
mod counters;
mod destinations;
mod endpoints;
mod image_creation;
mod image_requests;
mod images;
mod ipc_publications;
mod links;
mod network_publications;
mod network_subscriptions;
mod news;
mod outlets;
mod pending;
mod publications;
mod receive_destinations;
mod rejections;
mod requests;
mod responses;
mod subscriptions;
mod timers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
use crate::image::PublicationImage;
use crate::media::transport::Network;
use crate::publication::{IpcPublication, NetworkPublication};
use crate::queue::{QueueConsumer, QueueProducer};
use crate::receiver::{ReceiverCommand, ReceiverEvent};
use crate::resources::{ResourceCommands, ResourceReply};
use crate::sender::{SenderCommand, SenderEvent};
use crate::session_ids::SessionIds;
use crate::socket_buffers::SocketBufferLengths;
use client_proxy::ClientProxy;
use clients::Clients;
use closing::DrainBegin;
use endpoints::Endpoints;
use image_creation::PendingImage;
use image_requests::ImageRequests;
use links::Subscription;
use outlets::Outlets;
use pending::PendingCommands;
use rejections::NotedRejections;
use timers::BlockedCommandTimer;

/// The shared memory and the queues of a conductor.
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
    /// Work for the native resource agent.
    pub resource_commands: ResourceCommands,
    /// What became of it.
    pub resource_replies: QueueConsumer<ResourceReply>,
    /// Work for the sender.
    pub sender_commands: QueueProducer<SenderCommand>,
    /// What the sender has to say.
    pub sender_events: QueueConsumer<SenderEvent>,
    /// Work for the receiver.
    pub receiver_commands: QueueProducer<ReceiverCommand>,
    /// What the receiver has to say.
    pub receiver_events: QueueConsumer<ReceiverEvent>,
    /// Where sockets come from.
    pub network: Box<dyn Network>,
    /// What images have lost.
    pub loss_report: LossReport<SharedBuffer>,
    /// Set when a client may end the driver and does so.
    pub is_terminated: Arc<AtomicBool>,
    /// Asks for the end of the publications.
    pub closing: Arc<Closing>,
    /// Where session ids, initial term ids and receiver ids come from.
    pub seed: u64,
    /// What the system gives a socket, for the metadata of logs.
    pub system_socket_buffers: SocketBufferLengths,
}

/// See the [module](self).
pub struct Conductor {
    context: Arc<Context>,
    commands: RingConsumer<SharedBuffer>,
    outlets: Outlets,
    resource_replies: QueueConsumer<ResourceReply>,
    sender_events: QueueConsumer<SenderEvent>,
    receiver_events: QueueConsumer<ReceiverEvent>,
    loss_report: LossReport<SharedBuffer>,
    is_terminated: Arc<AtomicBool>,
    closing: Arc<Closing>,
    drain_begin: DrainBegin,
    clients: Clients,
    endpoints: Endpoints,
    ipc_publications: Vec<IpcPublication>,
    network_publications: Vec<NetworkPublication>,
    images: Vec<PublicationImage>,
    subscriptions: Vec<Subscription>,
    pending: PendingCommands,
    image_requests: ImageRequests,
    pending_images: Vec<PendingImage>,
    session_ids: SessionIds,
    system_socket_buffers: SocketBufferLengths,
    next_link_id: u64,
    stall_tracker: StallTracker,
    blocked_command_timer: BlockedCommandTimer,
    timer_deadline_ns: i64,
    command_body: Vec<u8>,
}

impl Conductor {
    /// A conductor that begins at `now_ns` (monotonic).
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
        Self {
            timer_deadline_ns: now_ns.saturating_add(context.timer_interval_ns),
            context,
            blocked_command_timer: BlockedCommandTimer::new(
                parts.commands.ring().consumer_position(),
                now_ns,
            ),
            commands: parts.commands,
            outlets: Outlets {
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
            resource_replies: parts.resource_replies,
            sender_events: parts.sender_events,
            receiver_events: parts.receiver_events,
            loss_report: parts.loss_report,
            is_terminated: parts.is_terminated,
            closing: parts.closing,
            drain_begin: DrainBegin::default(),
            clients: Clients::default(),
            endpoints,
            ipc_publications: Vec::new(),
            network_publications: Vec::new(),
            images: Vec::new(),
            subscriptions: Vec::new(),
            pending: PendingCommands::default(),
            image_requests: ImageRequests::new(now_ns),
            pending_images: Vec::new(),
            session_ids: SessionIds::new(first_session_id, reserved),
            system_socket_buffers: parts.system_socket_buffers,
            next_link_id: 0,
            stall_tracker,
            command_body: Vec::new(),
        }
    }

    /// One duty cycle at `now_ns` (monotonic) and `now_ms` (epoch); answers how much was done.
    pub fn do_work(&mut self, now_ns: i64, now_ms: i64) -> usize {
        self.outlets.now_ns = now_ns;
        self.outlets.now_ms = now_ms;
        self.stall_tracker.on_duty_cycle(now_ns);
        if now_ns > self.timer_deadline_ns {
            self.on_timer();
            self.timer_deadline_ns = now_ns.saturating_add(self.context.timer_interval_ns);
        }
        let mut work_count = self.outlets.flush();
        work_count += self.take_command();
        if self.is_drain_due() {
            self.drain();
        }
        work_count += self.take_news();
        work_count += self.take_image_request();
        work_count += self.track_images();
        work_count + self.update_publications()
    }

    /// Measures duty cycles from now on.
    pub fn restart_stall_tracker(&mut self, now_ns: i64) {
        self.stall_tracker.restart(now_ns);
    }

    /// Ends everything: logs are given back. The counters stay: a client that misses its own believes that the driver, which it
    /// takes for alive until told otherwise, has given it up.
    pub fn close(&mut self) {
        self.pending.clear();
        self.image_requests.clear();
        self.pending_images.clear();
        self.images.clear();
        self.network_publications.clear();
        self.ipc_publications.clear();
    }

    fn take_command(&mut self) -> usize {
        if self.pending.is_busy() || self.outlets.is_overloaded() {
            return 0;
        }
        if let Some(command) = self.pending.take_slow_ready() {
            self.resume(command);
            return 1;
        }
        let mut taken = None;
        let body = &mut self.command_body;
        let result = self.commands.read(1, |type_id, bytes| {
            taken = Some(type_id);
            body.clear();
            body.extend_from_slice(bytes);
        });
        if let Err(corrupt) = result {
            self.outlets.errors.note(&format!("{corrupt}\n"));
        }
        let Some(type_id) = taken else { return 0 };
        let body = std::mem::take(&mut self.command_body);
        self.on_command(type_id, &body);
        self.command_body = body;
        1
    }

    fn terminate(&self) {
        if self.context.termination_validator == TerminationValidator::Allow {
            self.is_terminated.store(true, Ordering::Release);
        }
    }
}
