//! [`ArchiveServer`]: an archive of a host, which is killed, starts again, and serves what its disk kept.

use std::sync::{Arc, Mutex, PoisonError};

use aeron_agent::Agent;
use aeron_archive::mark_file::{MarkFile, Owner};
use aeron_archive::memory_storage::{Fault, Survival};
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::server::context::ArchiveContext;
use aeron_archive::server::{
    ArchiveStart, ArchiveStartError, ArchiveSurroundings, ErrorReports, OpenReports,
};
use aeron_client::Aeron;
use fastrand::Rng;

use super::disk::{Killed, SimulatedDisk, SimulatedFile, run_until_killed};
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::roles::{Graveyard, client_context};
use crate::schedule::MS;
use crate::truth::Finding;

/// Time between two attempts to start.
const RETRY_NS: i64 = 100 * MS;
/// Age of its driver's heartbeat at which an archive ends.
const DRIVER_TIMEOUT_MS: u64 = 1_500;
/// Length of the error log in the mark file.
const ERROR_BUFFER_LENGTH: usize = 16 * 1024;

/// An archive of a schedule.
#[derive(Clone, Debug)]
pub struct ArchivePlan {
    /// Where it runs.
    pub host: HostId,
    /// Its configuration.
    pub context: ArchiveContext,
    /// Where its random numbers come from.
    pub seed: u64,
    /// Bytes that a read of its disk returns at most.
    pub longest_read: Option<usize>,
}

/// See the [module](self).
pub struct ArchiveServer {
    plan: ArchivePlan,
    disk: SimulatedDisk,
    random: Rng,
    state: State,
    /// Its client, and how many drivers its host had started when the client connected.
    client: Option<(Aeron, u64)>,
    /// Processes that were started.
    lives: u64,
    starts_from_ns: i64,
    is_wanted: bool,
    must_restart: bool,
    /// Whether the process before was not ended in order.
    has_crashed: bool,
    on_torn_fragment: OnTornFragment,
    /// Whether the disk may refuse what it is asked for.
    is_disk_faulty: bool,
    /// What it reported, for whoever looks for a cause.
    errors: Arc<Mutex<Vec<String>>>,
}

enum State {
    Down,
    Starting(Box<ArchiveStart<SimulatedDisk>>),
    Up(Box<dyn Agent>),
}

impl ArchiveServer {
    /// An archive with an empty disk, which starts when it first runs.
    pub fn new(plan: ArchivePlan) -> Self {
        let disk = SimulatedDisk::default();
        disk.0.shorten_reads(plan.longest_read);
        Self {
            random: Rng::with_seed(plan.seed),
            disk,
            state: State::Down,
            client: None,
            lives: 0,
            starts_from_ns: i64::MIN,
            is_wanted: true,
            must_restart: false,
            has_crashed: false,
            on_torn_fragment: plan.context.on_torn_fragment,
            is_disk_faulty: false,
            errors: Arc::default(),
            plan,
        }
    }

    /// Its plan.
    pub fn plan(&self) -> &ArchivePlan {
        &self.plan
    }

    /// Its disk.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// Processes that were started.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// What its processes have reported.
    pub fn errors(&self) -> Vec<String> {
        lock(&self.errors).clone()
    }

    /// Whether a process of it runs.
    pub fn is_running(&self) -> bool {
        !matches!(self.state, State::Down)
    }

    /// Its process ends in order, and another starts.
    pub fn restart(&mut self) {
        self.must_restart = self.is_running();
    }

    /// It starts at this time, if it is down.
    pub fn start_at(&mut self, starts_from_ns: i64) {
        self.starts_from_ns = starts_from_ns;
    }

    /// From now on it is to run, or not.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Lets a fault strike at one of the next writes.
    pub fn fail_in(&mut self, steps: u64, fault: Fault) {
        self.is_disk_faulty |= !matches!(fault, Fault::Kill { .. });
        let storage = &self.disk.0;
        storage.fail_at(storage.steps() + steps, fault);
    }

    /// Leaves so many bytes on the disk.
    pub fn limit_space(&mut self, free: u64) {
        self.is_disk_faulty = true;
        let storage = &self.disk.0;
        storage.set_capacity(storage.used_bytes() + free);
    }

    /// From now on the disk does what it is asked for.
    pub fn heal_disk(&mut self) {
        self.is_disk_faulty = false;
        self.disk.0.forget_faults();
        self.disk.0.set_capacity(i64::MAX as u64);
    }

    /// Its process dies at once. It starts again after a while.
    pub fn kill(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        self.bury(graveyard);
        self.disk.0.restart();
        self.starts_from_ns = starts_from_ns;
    }

    /// Its machine loses power. It starts again after a while.
    pub fn lose_power(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        self.bury(graveyard);
        let random = &mut self.random;
        self.disk.0.lose_power_in_sectors(|| match random.u8(..4) {
            0 => Survival::Kept,
            1 => Survival::Sectors(random.u8(..)),
            _ => Survival::Lost,
        });
        self.starts_from_ns = starts_from_ns;
    }

    /// Nothing of the process goes on.
    fn bury(&mut self, graveyard: &mut Graveyard) {
        let state = std::mem::replace(&mut self.state, State::Down);
        self.has_crashed |= !matches!(state, State::Down);
        if let Some((client, _)) = self.client.take() {
            let state: Box<dyn std::any::Any> = match state {
                State::Down => Box::new(()),
                State::Starting(start) => Box::new(start),
                State::Up(agent) => Box::new(agent),
            };
            graveyard.bury(client, state);
        }
    }

    /// Does what it can now; answers how much that was.
    ///
    /// # Errors
    /// It does not start although it has to.
    pub fn do_work(
        &mut self,
        host: &Host,
        clock: &VirtualClock,
        graveyard: &mut Graveyard,
    ) -> Result<usize, Finding> {
        let outcome = match &mut self.state {
            State::Down if !self.is_wanted || clock.now_ns() < self.starts_from_ns => Ok(Ok(0)),
            State::Down => run_until_killed(|| self.begin(host, clock)),
            State::Starting(_) => run_until_killed(|| self.go_on(clock)),
            State::Up(_) => run_until_killed(|| Ok(self.run(clock))),
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(Killed) => {
                let pause_ns = self.random.i64(0..2_000 * MS);
                self.kill(clock.now_ns() + pause_ns, graveyard);
                Ok(1)
            }
        }
    }

    fn begin(&mut self, host: &Host, clock: &VirtualClock) -> Result<usize, Finding> {
        let mut context = client_context(clock);
        context.driver_timeout_ms = DRIVER_TIMEOUT_MS;
        context.keepalive_interval_ns = 200 * MS as u64;
        context.client_name = "archive".to_owned();
        let Some(aeron) = host.connect(context) else {
            return Ok(0);
        };
        self.client = Some((aeron.clone(), host.starts()));
        let mut random = self.random.fork();
        let surroundings = ArchiveSurroundings {
            storage: self.disk.clone(),
            aeron,
            archive_id: self.plan.context.archive_id,
            epoch_clock: clock.epoch_clock(),
            nano_clock: clock.nano_clock(),
            random: Box::new(move || random.i64(..)),
            reports: self.reports(clock.now_ms()),
        };
        let context = ArchiveContext {
            on_torn_fragment: self.on_torn_fragment,
            ..self.plan.context.clone()
        };
        let start = ArchiveStart::new(context, surroundings)
            .map_err(|error| format!("archive of host {}: {error}", self.plan.host))?;
        self.state = State::Starting(Box::new(start));
        Ok(1)
    }

    fn go_on(&mut self, clock: &VirtualClock) -> Result<usize, Finding> {
        let State::Starting(start) = &mut self.state else {
            return Ok(0);
        };
        match start.poll() {
            Ok(None) => Ok(0),
            Ok(Some(core)) => {
                self.state = State::Up(Box::new(core.into_agent()));
                self.lives += 1;
                self.has_crashed = false;
                self.on_torn_fragment = self.plan.context.on_torn_fragment;
                Ok(1)
            }
            Err(error) => {
                self.go_down(clock);
                self.judge(&error)
            }
        }
    }

    /// An archive may refuse to start because of a frame that a crash has torn, because of an archive that the driver still knows, and
    /// because its driver or disk fails.
    fn judge(&mut self, error: &ArchiveStartError) -> Result<usize, Finding> {
        let text = error.to_string();
        let is_torn = text.contains("aeron.archive.on.torn.fragment=truncate");
        if is_torn && self.has_crashed && self.on_torn_fragment == OnTornFragment::Refuse {
            // What the message tells its reader to do.
            self.on_torn_fragment = OnTornFragment::Truncate;
            return Ok(1);
        }
        lock(&self.errors).push(text);
        match error {
            ArchiveStartError::ArchiveIdInUse { .. } | ArchiveStartError::Client(_) => Ok(1),
            // The disk has failed; the next start finds what it kept.
            _ if self.is_disk_faulty => Ok(1),
            error => Err(format!(
                "the archive of host {} does not start: {error}",
                self.plan.host
            )),
        }
    }

    fn run(&mut self, clock: &VirtualClock) -> usize {
        let State::Up(agent) = &mut self.state else {
            return 0;
        };
        let must_end = !self.is_wanted || std::mem::take(&mut self.must_restart);
        if !must_end && let Ok(work_count) = agent.do_work() {
            return work_count;
        }
        // In this order, as a runner of the agent does.
        let _ = agent.on_close();
        self.go_down(clock);
        1
    }

    fn go_down(&mut self, clock: &VirtualClock) {
        self.state = State::Down;
        if let Some((client, _)) = self.client.take() {
            client.close();
        }
        self.starts_from_ns = clock.now_ns() + RETRY_NS;
    }

    /// Takes the mark file, as the owner of the directory does before anything else.
    fn reports(&self, now_ms: i64) -> OpenReports {
        let context = &self.plan.context;
        let owner = Owner {
            pid: self.lives as i64,
            start_timestamp_ms: now_ms,
            archive_id: context.archive_id,
            control_stream_id: context.control_stream_id,
            local_control_stream_id: context.local_control_stream_id,
            events_stream_id: context.recording_events_stream_id,
            control_channel: context.control_channel.clone(),
            local_control_channel: context.local_control_channel.clone(),
            events_channel: String::new(),
            aeron_directory: String::new(),
        };
        let errors = Arc::clone(&self.errors);
        // A disk that fails is what the schedule wants: the archive does without its mark file then.
        let taken =
            MarkFile::take_with_error_buffer(&self.disk, &owner, ERROR_BUFFER_LENGTH, now_ms);
        let mut mark_file = taken.ok();
        Box::new(move |now_ms, _| {
            if let Some(mark_file) = &mut mark_file {
                let _ = mark_file.ready(now_ms);
            }
            Ok(Box::new(Reports { mark_file, errors }))
        })
    }
}

/// Errors go to the mark file, and to whoever looks for a cause.
struct Reports {
    mark_file: Option<MarkFile<SimulatedFile>>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl ErrorReports for Reports {
    fn report(&mut self, now_ms: i64, error: &str) {
        lock(&self.errors).push(error.to_owned());
        if let Some(mark_file) = &mut self.mark_file {
            // A disk that fails is what the schedule wants.
            let _ = mark_file.record_error(now_ms, error);
        }
    }

    fn heartbeat(&mut self, now_ms: i64) {
        if let Some(mark_file) = &mut self.mark_file {
            let _ = mark_file.heartbeat(now_ms);
        }
    }

    fn close(&mut self) {
        if let Some(mark_file) = self.mark_file.take() {
            let _ = mark_file.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
