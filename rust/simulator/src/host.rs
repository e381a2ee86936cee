//! [`Host`]: a media driver in heap memory. Each of its agents can be paused, and it can crash and start again.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aeron_agent::{CachedNanoClock, EpochClock, NanoClock};
use aeron_client::{
    Aeron, CncFile, DriverFinder, DriverScout, Error, FoundDriver, LogBuffers, LogSource,
    LostDriver,
};
use aeron_driver::driver_core::{DriverCore, DriverEnvironment, MakeNames};
use aeron_driver::log_storage::{HeapLogs, LogId};
use aeron_driver::media::address::Family;
use aeron_driver::names::{NameResolver, open_gossip_socket};
use aeron_driver::socket_buffers::SocketBufferLengths;
use aeron_driver::{Context, DriverError};
use aeron_memory::SharedBuffer;
use aeron_memory::cnc::{CncLengths, DriverIdentity};
use aeron_memory::counters::types;
use aeron_protocol::ErrorCode;

use crate::clock::{START_NS, VirtualClock};
use crate::death::die_at_term_end;
use crate::network::{HostId, HostInterfaces, HostNetwork, ipv4};
use crate::schedule::{NamePlan, TermEndDeath};

/// Maximum number of bytes for the logs of one driver.
const STORAGE_LENGTH: u64 = 256 * 1024 * 1024;
const LOSS_REPORT_LENGTH: usize = 64 * 1024;
/// No host has this number.
const NOWHERE: HostId = 99;

/// One of a driver's agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// Processes commands of clients.
    Conductor,
    /// Sends datagrams.
    Sender,
    /// Receives datagrams.
    Receiver,
    /// Does all work that can block.
    Resources,
}

impl AgentKind {
    /// All agents, in the order of a duty cycle.
    pub const ALL: [Self; 4] = [
        Self::Sender,
        Self::Receiver,
        Self::Resources,
        Self::Conductor,
    ];
}

/// A host and its driver.
pub struct Host {
    id: HostId,
    context: Arc<Context>,
    network: HostNetwork,
    names: NamePlan,
    seed: u64,
    starts: u64,
    driver: Option<Driver>,
    /// The files that clients find in the directory of the drivers.
    directory: DriverDirectory,
    /// Time until which each agent is paused, in the order of [`AgentKind::ALL`].
    paused_until_ns: [i64; 4],
}

/// A running driver: its agents and its memory.
struct Driver {
    core: DriverCore,
    cnc: CncFile,
    logs: HeapLogs,
}

impl Host {
    /// Creates a host without a driver. Its drivers use `context`.
    pub fn new(id: HostId, context: Context, network: HostNetwork, seed: u64) -> Self {
        Self {
            id,
            context: Arc::new(context),
            network,
            names: NamePlan::default(),
            seed,
            starts: 0,
            driver: None,
            directory: DriverDirectory::default(),
            paused_until_ns: [i64::MIN; 4],
        }
    }

    /// Sets the resolution of names.
    #[must_use]
    pub fn with_names(mut self, names: NamePlan) -> Self {
        self.names = names;
        self
    }

    /// Returns the number of times that a driver was started.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Returns the settings of the drivers.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the number of the host.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// Starts a driver with new memory.
    pub fn start(&mut self, clock: &VirtualClock) {
        self.starts += 1;
        let identity = DriverIdentity {
            client_liveness_timeout_ns: self.context.client_liveness_timeout_ns,
            start_timestamp_ms: clock.now_ms(self.id),
            pid: self.starts as i64,
        };
        let lengths = CncLengths {
            counters_values: CncLengths::MIN_COUNTERS_VALUES,
            ..CncLengths::default()
        };
        let memory = SharedBuffer::heap(lengths.file_length().expect("the lengths are valid"));
        let cnc = CncFile::format(memory, &lengths, &identity).expect("the lengths are valid");
        let logs = HeapLogs::new(STORAGE_LENGTH);
        let epoch = clock.epoch_clock(self.id);
        let environment = DriverEnvironment {
            logs: Box::new(logs.clone()),
            network: Box::new(self.network.clone()),
            names: self.names(clock),
            interfaces: Box::new(HostInterfaces(self.id)),
            nano_clock: clock.nano_clock() as Arc<dyn NanoClock>,
            epoch_clock: clock.epoch_clock(self.id),
            epoch_nanos: Arc::new(move || epoch.time_ms() * 1_000_000),
            system_socket_buffers: SocketBufferLengths {
                send: 212_992,
                receive: 212_992,
            },
            seed: self.seed.wrapping_add(self.starts),
        };
        let loss_report = SharedBuffer::heap(LOSS_REPORT_LENGTH);
        let core = DriverCore::new(&self.context, &cnc, loss_report, environment)
            .expect("a driver with this memory starts");
        cnc.to_driver().next_correlation_id();
        cnc.to_driver()
            .set_consumer_heartbeat_ms(clock.now_ms(self.id));
        cnc.publish();
        *self.directory.lock() = Some(DriverFiles {
            cnc: cnc.clone(),
            logs: logs.clone(),
            is_running: true,
        });
        self.driver = Some(Driver { core, cnc, logs });
    }

    /// Returns the function that creates the name resolver of a driver.
    fn names(&self, clock: &VirtualClock) -> Box<MakeNames> {
        let names = Box::new(HostNames {
            host: self.id,
            plan: self.names.clone(),
            clock: clock.nano_clock(),
        });
        let context = Arc::clone(&self.context);
        let mut network = self.network.clone();
        let mut interfaces = HostInterfaces(self.id);
        Box::new(move |mut parts| {
            match open_gossip_socket(&context, &mut network, &mut interfaces)? {
                Some(socket) => Ok(Box::new(parts.gossip(&context, socket, names)?)),
                None => Ok(names),
            }
        })
    }

    /// Whether a driver runs.
    pub fn is_running(&self) -> bool {
        self.driver.is_some()
    }

    /// Simulates a crash of the driver. Its sockets are closed, and clients keep its memory mapped.
    pub fn crash(&mut self) {
        self.driver = None;
        self.directory.end();
        self.resume();
    }

    /// Pauses an agent until the given time.
    pub fn pause(&mut self, agent: AgentKind, until_ns: i64) {
        for (kind, paused_until_ns) in AgentKind::ALL.iter().zip(&mut self.paused_until_ns) {
            if *kind == agent {
                *paused_until_ns = until_ns;
            }
        }
    }

    /// Pauses all agents until the given time.
    pub fn pause_all(&mut self, until_ns: i64) {
        self.paused_until_ns = [until_ns; 4];
    }

    /// Resumes all agents.
    pub fn resume(&mut self) {
        self.paused_until_ns = [i64::MIN; 4];
    }

    /// Runs one duty cycle of the agents that are not paused. Returns a work count.
    pub fn do_work(&mut self, clock: &VirtualClock) -> usize {
        let Some(Driver { core, .. }) = &mut self.driver else {
            return 0;
        };
        let (now_ns, now_ms) = (clock.now_ns(), clock.now_ms(self.id));
        let mut work_count = 0;
        for (kind, paused_until_ns) in AgentKind::ALL.iter().zip(self.paused_until_ns) {
            if now_ns < paused_until_ns {
                continue;
            }
            work_count += match kind {
                AgentKind::Sender => core.sender.do_work(now_ns),
                AgentKind::Receiver => core.receiver.do_work(now_ns),
                AgentKind::Resources => core.resources.do_work(),
                AgentKind::Conductor => core.conductor.do_work(now_ns, now_ms),
            };
        }
        work_count
    }

    /// Returns the memory that clients share with the driver.
    pub fn cnc(&self) -> Option<&CncFile> {
        self.driver.as_ref().map(|driver| &driver.cnc)
    }

    /// Lists all counters of the driver, one per line, except system counters with the value 0.
    pub fn counters_text(&self) -> String {
        let counters = self.cnc().map(CncFile::counters);
        let records = counters.into_iter().flat_map(|counters| counters.records());
        let told = records.filter(|record| record.type_id != types::SYSTEM || record.value != 0);
        let lines =
            told.map(|record| format!("host {}: {} {}\n", self.id, record.label, record.value));
        lines.collect()
    }

    /// Returns a log of the driver.
    pub fn log(&self, log: LogId) -> Option<LogBuffers<SharedBuffer>> {
        let memory = self.driver.as_ref()?.logs.memory(log)?;
        LogBuffers::attach(&memory).ok()
    }

    /// Simulates the death of a publisher that claims `length` bytes at the end of the active term of a log. The death
    /// comes directly after the store that `death` names.
    ///
    /// Returns whether the claim passes the end of the term. If it does not, nothing changes.
    pub fn die_at_term_end(&self, log: LogId, length: usize, death: TermEndDeath) -> bool {
        let driver = self.driver.as_ref();
        let memory = driver.and_then(|driver| driver.logs.memory(log));
        memory.is_some_and(|memory| die_at_term_end(&memory, length, death))
    }

    /// Returns the number of logs of the driver.
    pub fn log_count(&self) -> usize {
        self.driver.as_ref().map_or(0, |driver| driver.logs.count())
    }

    /// Returns the kinds of objects that a driver without clients still has, with their numbers.
    pub fn remains(&self) -> Vec<(&'static str, usize)> {
        let Some(driver) = &self.driver else {
            return Vec::new();
        };
        let used = STORAGE_LENGTH - driver.logs.usable_space_left();
        driver
            .core
            .census()
            .chain([("bytes of logs", used as usize)])
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Connects a client to the running driver.
    pub fn connect(&self, context: aeron_client::Context) -> Option<Aeron> {
        let FoundDriver { cnc, logs } = self.directory.files()?.found();
        self.driver.as_ref()?;
        Some(Aeron::attach(context, &cnc, logs).expect("the context is valid"))
    }

    /// Connects a client that reconnects. `is_watching` says whether it notices the end of a driver's process at once.
    pub fn connect_reconnecting(
        &self,
        context: aeron_client::Context,
        is_watching: bool,
    ) -> Option<Aeron> {
        self.driver.as_ref()?;
        let files = self.directory.files()?;
        let source = HostFinder {
            directory: self.directory.clone(),
            current: files.cnc.identity(),
            is_watching,
            scout: DriverScout::default(),
        };
        let connected = Aeron::attach_with_finder(context, files.found(), Box::new(source));
        Some(connected.expect("the context is valid"))
    }

    /// Closes the driver cleanly. Returns the number of remaining logs.
    pub fn close(&mut self) -> usize {
        let Some(mut driver) = self.driver.take() else {
            return 0;
        };
        driver.core.close();
        self.directory.end();
        driver.cnc.to_driver().set_consumer_heartbeat_ms(-1);
        driver.logs.count()
    }
}

/// The files of the host's newest driver, which stay after its crash.
#[derive(Clone, Default)]
struct DriverDirectory(Arc<Mutex<Option<DriverFiles>>>);

#[derive(Clone)]
struct DriverFiles {
    cnc: CncFile,
    logs: HeapLogs,
    is_running: bool,
}

impl DriverFiles {
    fn found(&self) -> FoundDriver {
        FoundDriver {
            cnc: self.cnc.clone(),
            logs: Box::new(DriverLogs(self.logs.clone())),
        }
    }
}

impl DriverDirectory {
    fn lock(&self) -> MutexGuard<'_, Option<DriverFiles>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> Option<DriverFiles> {
        self.lock().clone()
    }

    fn end(&self) {
        if let Some(files) = &mut *self.lock() {
            files.is_running = false;
        }
    }
}

/// Finds the next driver of a client on the same host.
struct HostFinder {
    directory: DriverDirectory,
    current: DriverIdentity,
    is_watching: bool,
    scout: DriverScout,
}

impl DriverFinder for HostFinder {
    fn find(&mut self, lost: &LostDriver) -> Result<Option<FoundDriver>, Error> {
        let Some(files) = self.directory.files() else {
            return Ok(None);
        };
        let is_running = self.is_watching && files.is_running;
        if !self.scout.is_next(lost, &files.cnc, is_running) {
            return Ok(None);
        }
        (self.current, self.scout) = (files.cnc.identity(), DriverScout::default());
        Ok(Some(files.found()))
    }

    fn has_driver_ended(&mut self) -> bool {
        let runs = |files: DriverFiles| files.is_running && files.cnc.identity() == self.current;
        self.is_watching && !self.directory.files().is_some_and(runs)
    }
}

/// Opens the logs of a driver for clients of the same host.
struct DriverLogs(HeapLogs);

impl LogSource for DriverLogs {
    fn open(&self, name: &[u8]) -> Result<LogBuffers<SharedBuffer>, Error> {
        let name = String::from_utf8_lossy(name).into_owned();
        let memory = log_id(Path::new(&name)).and_then(|log| self.0.memory(log));
        let memory = memory.ok_or_else(|| Error::InvalidArgument(format!("no log {name}")))?;
        LogBuffers::attach(&memory)
            .map_err(|error| Error::InvalidArgument(format!("{name}: {error}")))
    }
}

/// Returns the id of the log at this path; `None` if the path is not that of a log.
fn log_id(path: &Path) -> Option<LogId> {
    let id = path.file_stem()?.to_str()?.parse().ok()?;
    [LogId::Publication(id), LogId::Image(id)]
        .into_iter()
        .find(|log| {
            log.path(
                path.parent()
                    .and_then(Path::parent)
                    .unwrap_or(&PathBuf::new()),
            ) == path
        })
}

/// Name resolution of the virtual network. Resolves addresses, and the names of hosts if the drivers do not exchange
/// them.
struct HostNames {
    host: HostId,
    plan: NamePlan,
    clock: Arc<CachedNanoClock>,
}

impl HostNames {
    /// Returns the address of a host with this name.
    fn host(&self, name: &str) -> Option<IpAddr> {
        let number: HostId = name.strip_prefix("host-")?.parse().ok()?;
        let after_ns = self.clock.nano_time() - START_NS;
        let mut outages = self.plan.outages.iter();
        let outage = outages.find(|(period, _)| period.contains(&after_ns) && number != self.host);
        match outage {
            _ if self.plan.is_gossip => None,
            None => Some(ipv4(number).into()),
            Some((_, true)) => Some(ipv4(NOWHERE).into()),
            Some((_, false)) => None,
        }
    }
}

impl NameResolver for HostNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        host.parse()
            .ok()
            .or_else(|| self.host(host))
            .filter(|address| Family::of(*address) == family)
            .ok_or_else(|| DriverError::coded(ErrorCode::UnknownHost, format!("no host {host}")))
    }
}
