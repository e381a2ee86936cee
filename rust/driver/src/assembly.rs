//! Puts a driver together: files, counters, agents, queues, and which agents share a loop.

use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aeron_agent::value::format_duration_ns;
use aeron_agent::version;
use aeron_agent::{
    Agent, CompositeAgent, EpochClock, IdleStrategy, NanoClock, SystemEpochClock, SystemNanoClock,
};
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::CountersManager;
use aeron_memory::counters::system::{SystemCounter, SystemCounters, SystemLabels};
use aeron_memory::directory::{cnc_file, loss_report_file};
use aeron_memory::error_log::DistinctErrorLog;
use aeron_memory::mapped::{Allocation, MappedFile};
use aeron_memory::ring::RingConsumer;
use aeron_protocol::CONTROL_PROTOCOL_VERSION;

use crate::agents::{AgentCpus, ConductorAgent, NetworkAgent, Pinned};
use crate::conductor::{Conductor, ConductorParts};
use crate::config::{Context, LoopKind, ThreadingMode};
use crate::diagnostics::ErrorRecorder;
use crate::duty_cycle::StallTracker;
use crate::log_storage::MappedLogs;
use crate::media::ChannelResolver;
use crate::media::interfaces::SystemInterfaces;
use crate::media::transport::Socket;
use crate::media_driver::StartError;
use crate::names::{NameParts, configured_names};
use crate::queue::queue;
use crate::resources::{NativeResourceAgent, ResourceCounters, StorageLimits};
use crate::socket_buffers::SocketBufferLengths;

/// What a driver runs.
pub struct Assembly {
    /// The loops, in the order in which they close.
    pub loops: Vec<Loop>,
    /// Set by the conductor when a client terminates the driver.
    pub is_terminated: Arc<AtomicBool>,
    /// Where failures of the loops go.
    pub errors: ErrorRecorder,
}

/// An agent, or several, and what its loop does when there is no work.
pub struct Loop {
    pub agent: Box<dyn Agent>,
    pub idle_strategy: Box<dyn IdleStrategy>,
}

/// Creates the CnC file; it has no version yet.
pub fn create_cnc(context: &Context) -> Result<CncFile, StartError> {
    let lengths = CncLengths {
        to_driver: context.to_driver_buffer_length,
        to_clients: context.to_clients_buffer_length,
        counters_values: context.counters_values_buffer_length,
        error_log: context.error_buffer_length,
        file_page_size: context.file_page_size,
    };
    let identity = DriverIdentity {
        client_liveness_timeout_ns: context.client_liveness_timeout_ns,
        start_timestamp_ms: SystemEpochClock.time_ms(),
        pid: process::id().into(),
    };
    let path = cnc_file(&context.dir);
    CncFile::create(&path, &lengths, &identity)
        .map_err(|error| StartError::io(&error, "failed to create", &path))
}

/// Creates the loss report; answers its length.
pub fn create_loss_report(context: &Context) -> Result<usize, StartError> {
    let path = loss_report_file(&context.dir);
    let length = context
        .loss_report_buffer_length
        .next_multiple_of(context.file_page_size);
    MappedFile::create(&path, length, Allocation::Allocated)
        .map_err(|error| StartError::io(&error, "failed to create", &path))?;
    Ok(length)
}

impl Assembly {
    /// Agents on the memory of `cnc`, put into loops as the threading mode says.
    pub fn new(
        context: &Arc<Context>,
        cnc: &CncFile,
        loss_report_length: usize,
        gossip_socket: Option<Box<dyn Socket>>,
        cpus: AgentCpus,
    ) -> Result<Self, StartError> {
        let agents = Agents::new(context, cnc, loss_report_length, gossip_socket)?;
        let (is_terminated, errors) = (agents.is_terminated.clone(), agents.errors.clone());
        Ok(Assembly {
            loops: agents.into_loops(context, cpus)?,
            is_terminated,
            errors,
        })
    }
}

struct Agents {
    conductor: ConductorAgent,
    resources: NativeResourceAgent,
    sender: NetworkAgent,
    receiver: NetworkAgent,
    is_terminated: Arc<AtomicBool>,
    errors: ErrorRecorder,
}

impl Agents {
    fn new(
        context: &Arc<Context>,
        cnc: &CncFile,
        loss_report_length: usize,
        gossip_socket: Option<Box<dyn Socket>>,
    ) -> Result<Self, StartError> {
        let (now_ns, now_ms) = (SystemNanoClock.nano_time(), SystemEpochClock.time_ms());
        let (mut counters, system) = create_counters(context, cnc, now_ms);
        system
            .get(SystemCounter::BytesMapped)
            .set((cnc.file_length() + loss_report_length) as i64);
        let errors = ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(cnc.error_log().clone())),
            system.get(SystemCounter::Errors).clone(),
            Arc::new(SystemEpochClock),
        );
        let failed_offers = |counter| system.get(counter).clone();
        let (resource_commands, for_resources) =
            queue(failed_offers(SystemCounter::NativeResourceAgentProxyFails));
        let (replies, resource_replies) = queue(failed_offers(SystemCounter::ConductorProxyFails));
        let (sender_commands, for_sender) = queue(failed_offers(SystemCounter::SenderProxyFails));
        let (receiver_commands, for_receiver) =
            queue(failed_offers(SystemCounter::ReceiverProxyFails));
        let stall_tracker = |threshold_ns, max: SystemCounter, exceeded: SystemCounter| {
            StallTracker::new(
                threshold_ns,
                system.get(max).clone(),
                system.get(exceeded).clone(),
                now_ns,
            )
        };
        let sender_stalls = stall_tracker(
            context.sender_cycle_threshold_ns,
            SystemCounter::SenderMaxCycleTime,
            SystemCounter::SenderCycleTimeExceeded,
        );
        let receiver_stalls = stall_tracker(
            context.receiver_cycle_threshold_ns,
            SystemCounter::ReceiverMaxCycleTime,
            SystemCounter::ReceiverCycleTimeExceeded,
        );
        let is_terminated = Arc::new(AtomicBool::new(false));
        let names = configured_names(
            context,
            gossip_socket,
            NameParts {
                counters: &mut counters,
                system: &system,
                errors: &errors,
                clock: Arc::new(SystemNanoClock),
                now_ms,
            },
        )?;
        let resources = NativeResourceAgent::new(
            Box::new(MappedLogs::new(context.dir.clone())),
            ChannelResolver::new(names, Box::new(SystemInterfaces)),
            (for_resources, replies),
            storage_limits(context),
            ResourceCounters {
                failed_frees: system.get(SystemCounter::FreeFails).clone(),
                bytes_mapped: system.get(SystemCounter::BytesMapped).clone(),
            },
            errors.clone(),
        );
        let parts = ConductorParts {
            commands: RingConsumer::new(cnc.to_driver().clone()),
            events: BroadcastTransmitter::new(cnc.to_clients().clone())
                .expect("the CnC file has valid sections"),
            counters,
            system_counters: system,
            errors: errors.clone(),
            resource_commands,
            resource_replies,
            sender_commands,
            receiver_commands,
            is_terminated: is_terminated.clone(),
            seed: fastrand::u64(..),
            system_socket_buffers: SocketBufferLengths::of_the_system(),
        };
        let conductor = Conductor::new(context.clone(), parts, now_ns);
        Ok(Agents {
            conductor: ConductorAgent::new(conductor, now_ns, now_ms),
            resources,
            sender: NetworkAgent::new("sender", for_sender, sender_stalls),
            receiver: NetworkAgent::new("receiver", for_receiver, receiver_stalls),
            is_terminated,
            errors,
        })
    }

    /// The conductor's loop comes first. It closes before the native resource agent, which then removes the conductor's logs.
    fn into_loops(self, context: &Context, cpus: AgentCpus) -> Result<Vec<Loop>, StartError> {
        let errors = self.errors;
        let new_loop = |agent: Box<dyn Agent>,
                        kind: LoopKind,
                        cpu: Option<usize>|
         -> Result<Loop, StartError> {
            Ok(Loop {
                agent: Box::new(Pinned::new(agent, cpu, errors.clone())),
                idle_strategy: context.idle_strategy(kind)?.build(),
            })
        };
        // Thread names, of which the system keeps 15 bytes, are the C driver's.
        let composite = |name, agents| {
            let agents = CompositeAgent::new(agents).expect("there are agents");
            Box::new(agents.named(name))
        };
        let (sender, receiver) = (Box::new(self.sender), Box::new(self.receiver));
        let (conductor, resources) = (Box::new(self.conductor), Box::new(self.resources));
        match context.threading_mode {
            ThreadingMode::Dedicated => Ok(vec![
                new_loop(conductor, LoopKind::Conductor, cpus.conductor)?,
                new_loop(resources, LoopKind::Resources, cpus.resources)?,
                new_loop(receiver, LoopKind::Receiver, cpus.receiver)?,
                new_loop(sender, LoopKind::Sender, cpus.sender)?,
            ]),
            ThreadingMode::SharedNetwork => Ok(vec![
                new_loop(conductor, LoopKind::Conductor, cpus.conductor)?,
                new_loop(resources, LoopKind::Resources, cpus.resources)?,
                new_loop(
                    composite("[sender, receiver]", vec![sender, receiver]),
                    LoopKind::Network,
                    cpus.sender,
                )?,
            ]),
            ThreadingMode::Shared | ThreadingMode::Invoker => {
                let all = composite(
                    "[conductor, sender, receiver]",
                    vec![sender, receiver, conductor, resources],
                );
                Ok(vec![new_loop(all, LoopKind::Shared, cpus.conductor)?])
            }
        }
    }
}

fn create_counters(
    context: &Context,
    cnc: &CncFile,
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
