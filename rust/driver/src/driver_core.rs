//! [`DriverCore`]: the four agents of a driver, connected by their queues.
//!
//! That is all a driver does, without threads, files and sockets of its own: what the world is like is handed in. A process puts
//! the agents on threads; a simulator runs those of many drivers in one, on a clock and a network of its own.

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

/// Makes a resolver of names out of what a driver has for it.
pub type MakeNames = dyn FnOnce(NameParts<'_>) -> Result<Box<dyn NameResolver>, DriverError>;

/// The world as a driver finds it.
pub struct Surroundings {
    /// Where logs live.
    pub logs: Box<dyn LogStorage>,
    /// Where sockets come from.
    pub network: Box<dyn Network>,
    /// Makes who knows the addresses of hosts.
    pub names: Box<MakeNames>,
    /// The addresses of this machine.
    pub interfaces: Box<dyn Interfaces>,
    /// The monotonic clock.
    pub nano_clock: Arc<dyn NanoClock>,
    /// The wall clock.
    pub epoch_clock: Arc<dyn EpochClock>,
    /// The wall clock once more, in nanoseconds, for times that are written into messages.
    pub epoch_nanos: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// What the system gives a socket that asks for nothing.
    pub system_socket_buffers: SocketBufferLengths,
    /// Where ids and delays come from that look random.
    pub seed: u64,
}

/// The agents of a driver; see the [module](self).
pub struct DriverCore {
    /// Takes the clients' commands and owns what they ask for.
    pub conductor: Conductor,
    /// Does what can block.
    pub resources: NativeResourceAgent,
    /// Sends what publishers wrote.
    pub sender: Sender,
    /// Receives what other drivers send.
    pub receiver: Receiver,
    /// The driver's own counters.
    pub system_counters: SystemCounters<SharedBuffer>,
    /// Where failures are written down.
    pub errors: ErrorRecorder,
    /// Set by the conductor when a client terminates the driver.
    pub is_terminated: Arc<AtomicBool>,
    /// Asks the conductor to end the publications.
    pub closing: Arc<Closing>,
}

impl DriverCore {
    /// The agents of a driver on the memory of `cnc` and `loss_report`, both fresh. `context` was validated.
    ///
    /// # Errors
    /// What made no resolver of names.
    pub fn new(
        context: &Arc<Context>,
        cnc: &Cnc<SharedBuffer>,
        loss_report: SharedBuffer,
        mut surroundings: Surroundings,
    ) -> Result<Self, DriverError> {
        let now_ns = surroundings.nano_clock.nano_time();
        let now_ms = surroundings.epoch_clock.time_ms();
        let (mut counters, system) = create_counters(context, cnc, now_ms);
        let errors = ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(cnc.error_log().clone())),
            system.get(SystemCounter::Errors).clone(),
            Arc::clone(&surroundings.epoch_clock),
        );
        let queues = Queues::new(&system);
        let is_terminated = Arc::new(AtomicBool::new(false));
        let closing = Arc::new(Closing::default());
        let names = (surroundings.names)(NameParts {
            counters: &mut counters,
            system: &system,
            errors: &errors,
            clock: surroundings.nano_clock,
            now_ms,
        })?;
        let resources = NativeResourceAgent::new(
            surroundings.logs,
            ChannelResolver::new(names, surroundings.interfaces),
            queues.resource_commands.1,
            queues.resource_replies.0,
            storage_limits(context),
            ResourceCounters {
                failed_frees: system.get(SystemCounter::FreeFails).clone(),
                bytes_mapped: system.get(SystemCounter::BytesMapped).clone(),
            },
            errors.clone(),
        );
        let clock = surroundings.epoch_nanos;
        let epoch_nanos = || {
            let clock = Arc::clone(&clock);
            Box::new(move || clock())
        };
        let sender_parts = SenderParts {
            commands: queues.sender_commands.1,
            events: queues.sender_events.0,
            poller: surroundings.network.poller(),
            system_counters: system.clone(),
            errors: errors.clone(),
            epoch_nanos: epoch_nanos(),
        };
        let receiver_parts = ReceiverParts {
            commands: queues.receiver_commands.1,
            events: queues.receiver_events.0,
            poller: surroundings.network.poller(),
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
            network: surroundings.network,
            loss_report: LossReport::new(loss_report),
            is_terminated: Arc::clone(&is_terminated),
            closing: Arc::clone(&closing),
            seed: surroundings.seed,
            system_socket_buffers: surroundings.system_socket_buffers,
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

    /// One duty cycle of all agents at `now_ns` (monotonic) and `now_ms` (epoch), in the order in which they share a thread; answers
    /// how much was done.
    pub fn do_work(&mut self, now_ns: i64, now_ms: i64) -> usize {
        self.sender.do_work(now_ns)
            + self.receiver.do_work(now_ns)
            + self.resources.do_work()
            + self.conductor.do_work(now_ns, now_ms)
    }

    /// Ends everything: logs are removed. Counters stay allocated, because a client that misses its own heartbeat counter believes
    /// that the driver has given it up.
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
    /// Empty queues, whose full moments are counted.
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
