//! Assembles a driver: creates its files, counters, agents and queues, and assigns the agents to threads.

use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use aeron_agent::{
    Agent, AgentTurns, BackoffIdleStrategy, CompositeAgent, EpochClock, IdleStrategy, NanoClock,
    SharedAgent, SystemEpochClock, SystemNanoClock, console,
};
use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::directory::{cnc_file, loss_report_file};
use aeron_memory::mapped::{Allocation, MappedFile};

use crate::agents::{AgentCpus, ConductorAgent, Pinned, ReceiverAgent, SenderAgent};
use crate::closing::Closing;
use crate::config::{Context, LoopKind, ThreadNaming, ThreadingMode};
use crate::diagnostics::ErrorRecorder;
use crate::driver_core::{DriverCore, DriverEnvironment};
use crate::log_storage::MappedLogs;
use crate::media;
use crate::media::interfaces::SystemInterfaces;
use crate::media::transport::Socket;
use crate::names::configured_names;
use crate::resources::NativeResourceAgent;
use crate::socket_buffers::SocketBufferLengths;
use crate::start_error::StartError;

/// The loops and the shared state of a running driver.
pub struct Assembly {
    /// The loops, in the order in which they are closed.
    pub loops: Vec<Loop>,
    /// Lets other threads run the sender and the receiver for a turn. `Some` for `SHARED_NETWORK` and `SHARED`.
    pub network_turns: Option<AgentTurns>,
    /// Set by the conductor when a client terminates the driver.
    pub is_terminated: Arc<AtomicBool>,
    /// Asks the conductor to end the publications.
    pub closing: Arc<Closing>,
    /// Records the failures of the loops.
    pub errors: ErrorRecorder,
}

/// One agent, or several in a composite, and the idle strategy of the thread that runs the loop.
pub struct Loop {
    pub agent: Box<dyn Agent>,
    pub idle_strategy: Box<dyn IdleStrategy>,
}

/// Creates the CnC file without a version: clients cannot use it yet.
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

/// Creates the loss report.
pub fn create_loss_report(context: &Context) -> Result<SharedBuffer, StartError> {
    let path = loss_report_file(&context.dir);
    let length = context
        .loss_report_buffer_length
        .next_multiple_of(context.file_page_size);
    let file = MappedFile::create(&path, length, Allocation::Allocated)
        .map_err(|error| StartError::io(&error, "failed to create", &path))?;
    Ok(file.buffer().clone())
}

impl Assembly {
    /// Creates the agents on the memory of `cnc`, and groups the agents into loops. Each thread of the threading mode
    /// has one loop.
    pub fn new(
        context: &Arc<Context>,
        cnc: &CncFile,
        loss_report: SharedBuffer,
        gossip_socket: Option<Box<dyn Socket>>,
        cpus: AgentCpus,
    ) -> Result<Self, StartError> {
        let environment = environment(context, gossip_socket);
        let agents = Agents::new(context, cnc, loss_report, environment)?;
        let (is_terminated, errors) = (agents.is_terminated.clone(), agents.errors.clone());
        let closing = Arc::clone(&agents.closing);
        let (loops, network_turns) = agents.into_loops(context, cpus)?;
        Ok(Assembly {
            loops,
            network_turns,
            is_terminated,
            closing,
            errors,
        })
    }
}

struct Agents {
    conductor: ConductorAgent,
    resources: NativeResourceAgent,
    sender: SenderAgent,
    receiver: ReceiverAgent,
    is_terminated: Arc<AtomicBool>,
    closing: Arc<Closing>,
    errors: ErrorRecorder,
}

impl Agents {
    fn new(
        context: &Arc<Context>,
        cnc: &CncFile,
        loss_report: SharedBuffer,
        environment: DriverEnvironment,
    ) -> Result<Self, StartError> {
        let (now_ns, now_ms) = (SystemNanoClock.nano_time(), SystemEpochClock.time_ms());
        let mapped = cnc.file_length() + loss_report.len();
        let core = DriverCore::new(context, cnc, loss_report, environment)?;
        core.system_counters
            .get(SystemCounter::BytesMapped)
            .set(mapped as i64);
        Ok(Agents {
            conductor: ConductorAgent::new(core.conductor, now_ns, now_ms),
            resources: core.resources,
            sender: SenderAgent::new(core.sender),
            receiver: ReceiverAgent::new(core.receiver),
            is_terminated: core.is_terminated,
            closing: core.closing,
            errors: core.errors,
        })
    }

    /// Groups the agents into loops.
    ///
    /// The conductor's loop is first and therefore closes first. The native resource agent closes later and removes the
    /// conductor's logs.
    fn into_loops(
        self,
        context: &Context,
        cpus: AgentCpus,
    ) -> Result<(Vec<Loop>, Option<AgentTurns>), StartError> {
        let errors = self.errors;
        let new_loop = |agent: Box<dyn Agent>,
                        kind: LoopKind,
                        cpu: Option<usize>|
         -> Result<Loop, StartError> {
            let thread_name = match context.thread_naming {
                ThreadNaming::Classic => None,
                ThreadNaming::New => Some(kind.new_thread_name()),
            };
            Ok(Loop {
                agent: Box::new(Pinned::new(agent, cpu, thread_name, errors.clone())),
                idle_strategy: context.idle_strategy(kind)?.build(),
            })
        };
        let (sender, receiver) = (Box::new(self.sender), Box::new(self.receiver));
        let (conductor, resources) = (Box::new(self.conductor), Box::new(self.resources));
        match context.threading_mode {
            ThreadingMode::Dedicated => {
                let loops = vec![
                    new_loop(conductor, LoopKind::Conductor, cpus.conductor)?,
                    new_loop(resources, LoopKind::Resources, cpus.resources)?,
                    new_loop(receiver, LoopKind::Receiver, cpus.receiver)?,
                    new_loop(sender, LoopKind::Sender, cpus.sender)?,
                ];
                Ok((loops, None))
            }
            ThreadingMode::SharedNetwork => {
                let network = SharedAgent::new(composite(NETWORK, vec![sender, receiver]));
                let turns = network.turns();
                let network = new_loop(Box::new(network), LoopKind::Network, cpus.sender)?;
                let loops = vec![
                    new_loop(conductor, LoopKind::Conductor, cpus.conductor)?,
                    new_loop(resources, LoopKind::Resources, cpus.resources)?,
                    network.giving_way(&turns),
                ];
                Ok((loops, Some(turns)))
            }
            ThreadingMode::Shared => {
                let network = SharedAgent::new(composite(NETWORK, vec![sender, receiver]));
                let turns = network.turns();
                let all = composite(ALL, vec![Box::new(network), conductor, resources]);
                let all = new_loop(all, LoopKind::Shared, cpus.conductor)?;
                Ok((vec![all.giving_way(&turns)], Some(turns)))
            }
            ThreadingMode::Invoker => {
                // The sender runs first, so one call of the invoker sends what the caller has just published. The
                // receiver runs last, so the caller can read all datagrams that arrived before the call returned.
                let all = composite(ALL, vec![sender, conductor, resources, receiver]);
                Ok((vec![new_loop(all, LoopKind::Shared, cpus.conductor)?], None))
            }
        }
    }
}

/// Maximum number of bytes that clients process in their turns while the driver's own thread parks. If they process
/// more bytes, the thread no longer parks.
///
/// This is a quarter of the usual receiver window. After a quarter of the window, a status message is due.
const GIVE_WAY_BYTES: usize = 32 * 1024;

/// The thread names of the C driver. The system keeps only the first 15 bytes of a thread name.
const NETWORK: &str = "[sender, receiver]";
const ALL: &str = "[conductor, sender, receiver]";

fn composite(name: &str, agents: Vec<Box<dyn Agent>>) -> Box<dyn Agent> {
    let agents = CompositeAgent::new(agents).expect("there are agents");
    Box::new(agents.named(name))
}

impl Loop {
    /// If the idle strategy is backoff, keeps the thread parked while other threads take `turns`.
    fn giving_way(mut self, turns: &AgentTurns) -> Self {
        if self.idle_strategy.alias() == BackoffIdleStrategy::ALIAS {
            self.idle_strategy = turns.giving_way(self.idle_strategy, GIVE_WAY_BYTES);
        }
        self
    }
}

/// Creates the environment of a driver on this machine.
///
/// If `gossip_socket` is set, the name resolver also exchanges names with other drivers over it.
fn environment(
    context: &Arc<Context>,
    gossip_socket: Option<Box<dyn Socket>>,
) -> DriverEnvironment {
    let (network, warnings) = media::network(context);
    warnings.iter().for_each(console::warn);
    DriverEnvironment {
        logs: Box::new(MappedLogs::new(context.dir.clone())),
        network,
        names: Box::new({
            let context = Arc::clone(context);
            move |parts| configured_names(&context, gossip_socket, parts)
        }),
        interfaces: Box::new(SystemInterfaces),
        nano_clock: Arc::new(SystemNanoClock),
        epoch_clock: Arc::new(SystemEpochClock),
        epoch_nanos: Arc::new(epoch_nanos),
        system_socket_buffers: SocketBufferLengths::of_the_system(),
        seed: fastrand::u64(..),
    }
}

fn epoch_nanos() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |time| time.as_nanos() as i64)
}
