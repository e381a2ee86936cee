//! [`DriverCore`]: the four agents of a driver, connected by their queues.
//!
//! The core has no threads, files or sockets of its own: it uses the shared memory and the [`DriverEnvironment`] that
//! the caller passes. A process runs the agents on threads. The simulator runs the agents of many drivers on one
//! thread, with a simulated clock and network.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aeron_agent::value::format_duration_ns;
use aeron_agent::{EpochClock, NanoClock, version};
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::Cnc;
use aeron_memory::counters::CountersManager;
use aeron_memory::counters::system::{SystemCounter, SystemCounters, SystemLabels};
use aeron_memory::error_log::DistinctErrorLog;
use aeron_memory::loss_report::LossReport;
use aeron_memory::ring::RingConsumer;
use aeron_protocol::CONTROL_PROTOCOL_VERSION;

use crate::closing::Closing;
use crate::conductor::{Conductor, ConductorParts};
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::log_storage::LogStorage;
use crate::media::ChannelResolver;
use crate::media::interfaces::Interfaces;
use crate::media::transport::Network;
use crate::names::{NameParts, NameResolver};
use crate::queue::{QueueConsumer, QueueProducer, queue};
use crate::receiver::{Receiver, ReceiverCommand, ReceiverEvent, ReceiverParts};
use crate::resources::{
    NativeResourceAgent, ResourceCommands, ResourceCounters, ResourceInbox, ResourceReply,
    StorageLimits, lanes,
};
use crate::sender::{Sender, SenderCommand, SenderEvent, SenderParts};
use crate::socket_buffers::SocketBufferLengths;

/// Creates a name resolver from the parts that a driver provides.
pub type MakeNames = dyn FnOnce(NameParts<'_>) -> Result<Box<dyn NameResolver>, DriverError>;

/// The services that the caller provides to a driver: storage, network, names, clocks.
pub struct DriverEnvironment {
    /// Storage of the log buffers.
    pub logs: Box<dyn LogStorage>,
    /// Opens the sockets.
    pub network: Box<dyn Network>,
    /// Creates the name resolver.
    pub names: Box<MakeNames>,
    /// Lists the network interfaces and addresses of this machine.
    pub interfaces: Box<dyn Interfaces>,
    /// The monotonic clock.
    pub nano_clock: Arc<dyn NanoClock>,
    /// The wall clock.
    pub epoch_clock: Arc<dyn EpochClock>,
    /// The wall clock in nanoseconds, for timestamps that are written into messages.
    pub epoch_nanos: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// The system's default lengths of socket buffers.
    pub system_socket_buffers: SocketBufferLengths,
    /// Seed of the generators of ids and delays.
    pub seed: u64,
}

/// The agents of a driver; see the [module](self).
pub struct DriverCore {
    /// Executes the clients' commands and owns the objects that they create.
    pub conductor: Conductor,
    /// Makes the system calls that can block.
    pub resources: NativeResourceAgent,
    /// Sends the messages of the publications.
    pub sender: Sender,
    /// Receives datagrams of other drivers.
    pub receiver: Receiver,
    /// The driver's own counters.
    pub system_counters: SystemCounters<SharedBuffer>,
    /// Writes failures to the error log.
    pub errors: ErrorRecorder,
    /// Set by the conductor when a client terminates the driver.
    pub is_terminated: Arc<AtomicBool>,
    /// Asks the conductor to end the publications.
    pub closing: Arc<Closing>,
}

impl DriverCore {
    /// Creates the agents on the memory of `cnc` and `loss_report`, which must both be new. `context` must be valid.
    ///
    /// # Errors
    /// The name resolver cannot be created.
    pub fn new(
        context: &Arc<Context>,
        cnc: &Cnc<SharedBuffer>,
        loss_report: SharedBuffer,
        mut environment: DriverEnvironment,
    ) -> Result<Self, DriverError> {
        let now_ns = environment.nano_clock.nano_time();
        let now_ms = environment.epoch_clock.time_ms();
        let (mut counters, system) = create_counters(context, cnc, now_ms);
        let errors = ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(cnc.error_log().clone())),
            system.get(SystemCounter::Errors).clone(),
            Arc::clone(&environment.epoch_clock),
        );
        let queues = Queues::new(&system);
        let is_terminated = Arc::new(AtomicBool::new(false));
        let closing = Arc::new(Closing::default());
        let names = (environment.names)(NameParts {
            counters: &mut counters,
            system: &system,
            errors: &errors,
            clock: environment.nano_clock,
            now_ms,
        })?;
        let resources = NativeResourceAgent::new(
            environment.logs,
            ChannelResolver::new(names, environment.interfaces),
            queues.resource_commands.1,
            queues.resource_replies.0,
            storage_limits(context),
            ResourceCounters {
                failed_frees: system.get(SystemCounter::FreeFails).clone(),
                bytes_mapped: system.get(SystemCounter::BytesMapped).clone(),
            },
            errors.clone(),
        );
        let clock = environment.epoch_nanos;
        let epoch_nanos = || {
            let clock = Arc::clone(&clock);
            Box::new(move || clock())
        };
        let sender_parts = SenderParts {
            commands: queues.sender_commands.1,
            events: queues.sender_events.0,
            poller: environment.network.poller(),
            system_counters: system.clone(),
            errors: errors.clone(),
            epoch_nanos: epoch_nanos(),
        };
        let receiver_parts = ReceiverParts {
            commands: queues.receiver_commands.1,
            events: queues.receiver_events.0,
            poller: environment.network.poller(),
            system_counters: system.clone(),
            errors: errors.clone(),
            epoch_nanos: epoch_nanos(),
        };
        let conductor_parts = ConductorParts {
            commands: RingConsumer::new(cnc.to_driver().clone()),
            events: BroadcastTransmitter::new(cnc.to_clients().clone())
                .expect("the CnC file has valid sections"),
            counters,
            system_counters: system.clone(),
            errors: errors.clone(),
            resource_commands: queues.resource_commands.0,
            resource_replies: queues.resource_replies.1,
            sender_commands: queues.sender_commands.0,
            sender_events: queues.sender_events.1,
            receiver_commands: queues.receiver_commands.0,
            receiver_events: queues.receiver_events.1,
            network: environment.network,
            loss_report: LossReport::new(loss_report),
            is_terminated: Arc::clone(&is_terminated),
            closing: Arc::clone(&closing),
            seed: environment.seed,
            system_socket_buffers: environment.system_socket_buffers,
        };
        Ok(DriverCore {
            conductor: Conductor::new(Arc::clone(context), conductor_parts, now_ns),
            resources,
            sender: Sender::new(context, sender_parts, now_ns),
            receiver: Receiver::new(context, receiver_parts, now_ns),
            system_counters: system,
            errors,
            is_terminated,
            closing,
        })
    }

    /// Runs one duty cycle of all agents at `now_ns` (monotonic) and `now_ms` (epoch), in the order of agents that
    /// share a thread.
    ///
    /// Returns the amount of work done.
    pub fn do_work(&mut self, now_ns: i64, now_ms: i64) -> usize {
        self.sender.do_work(now_ns)
            + self.receiver.do_work(now_ns)
            + self.resources.do_work()
            + self.conductor.do_work(now_ns, now_ms)
    }

    /// Returns the number of objects of each kind that exist because of clients and peers. All are 0 after the last
    /// client has ended.
    pub fn census(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.conductor
            .census()
            .into_iter()
            .chain(self.resources.census())
            .chain(self.sender.census())
            .chain(self.receiver.census())
    }

    /// Closes the conductor and the native resource agent, and removes the logs.
    ///
    /// The counters stay allocated. If the heartbeat counter of a client is missing, the client concludes that it has
    /// timed out.
    pub fn close(&mut self) {
        self.conductor.close();
        self.resources.close();
    }
}

/// Both ends of the queues between the agents.
struct Queues {
    resource_commands: (ResourceCommands, ResourceInbox),
    resource_replies: Ends<ResourceReply>,
    sender_commands: Ends<SenderCommand>,
    sender_events: Ends<SenderEvent>,
    receiver_commands: Ends<ReceiverCommand>,
    receiver_events: Ends<ReceiverEvent>,
}

type Ends<T> = (QueueProducer<T>, QueueConsumer<T>);

impl Queues {
    /// Creates empty queues. The counter of a queue counts the attempts to add an entry while the queue was full.
    fn new(system: &SystemCounters<SharedBuffer>) -> Self {
        let counter = |counter| system.get(counter).clone();
        let to_conductor = SystemCounter::ConductorProxyFails;
        Self {
            resource_commands: lanes(&counter(SystemCounter::NativeResourceAgentProxyFails)),
            resource_replies: queue(counter(to_conductor)),
            sender_commands: queue(counter(SystemCounter::SenderProxyFails)),
            sender_events: queue(counter(to_conductor)),
            receiver_commands: queue(counter(SystemCounter::ReceiverProxyFails)),
            receiver_events: queue(counter(to_conductor)),
        }
    }
}

fn create_counters(
    context: &Context,
    cnc: &Cnc<SharedBuffer>,
    now_ms: i64,
) -> (CountersManager<SharedBuffer>, SystemCounters<SharedBuffer>) {
    let free_to_reuse_timeout_ms = match context.counter_free_to_reuse_timeout_ns {
        0 => 0,
        timeout_ns => (timeout_ns / 1_000_000).max(1),
    };
    let mut counters = CountersManager::new(
        cnc.counters_metadata().clone(),
        cnc.counters_values().clone(),
        free_to_reuse_timeout_ms,
    )
    .expect("the CnC file has valid sections");
    let labels = SystemLabels {
        software: format!("version={} commit={}", version::TEXT, version::COMMIT),
        resolver_name: context.resolver_name.clone(),
        threading_mode: context.threading_mode.name().to_owned(),
        conductor_threshold: format_duration_ns(context.conductor_cycle_threshold_ns),
        sender_threshold: format_duration_ns(context.sender_cycle_threshold_ns),
        receiver_threshold: format_duration_ns(context.receiver_cycle_threshold_ns),
        name_resolver_threshold: format_duration_ns(context.name_resolver_threshold_ns),
    };
    let system = SystemCounters::allocate(&mut counters, &labels, now_ms)
        .expect("there is room for the first counters");
    system
        .get(SystemCounter::Version)
        .set(version::VALUE.into());
    system
        .get(SystemCounter::ControlProtocolVersion)
        .set(CONTROL_PROTOCOL_VERSION.into());
    (counters, system)
}

fn storage_limits(context: &Context) -> StorageLimits {
    StorageLimits {
        perform_checks: context.perform_storage_checks,
        low_space_warning: context.low_file_store_warning_threshold,
        free_limit: context.resource_free_limit as usize,
        dir: context.dir.display().to_string(),
    }
}
