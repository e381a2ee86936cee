//! [`ArchiveServer`]: an archive of a host. The archive can be killed, and starts again with the files on its disk.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aeron_agent::Agent;
use aeron_archive::catalog::Catalog;
use aeron_archive::mark_file::{MarkFile, Owner};
use aeron_archive::memory_storage::{StorageFault, Survival};
use aeron_archive::ownership::BootId;
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::segments::SegmentFileName;
use aeron_archive::server::context::ArchiveContext;
use aeron_archive::server::{
    ArchiveEnvironment, ArchiveStart, ArchiveStartError, ErrorReports, OpenReports,
};
use aeron_archive::storage::SyncLevel;
use aeron_client::Aeron;
use fastrand::Rng;

use super::compacting::{CompactionFault, ENTRIES_OF_A_COMPACTION, PowerLoss, add_deleted_entries};
use super::cutting::{CutFrames, cut_last_frames};
use super::disk::{DiskPoint, FileKind, Killed, SimulatedDisk, SimulatedFile, run_until_killed};
use super::objects::ObjectBucket;
use super::stock::Stock;
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::roles::{Graveyard, client_context};
use crate::schedule::MS;
use crate::truth::Finding;

/// Time between two attempts to start.
const RETRY_NS: i64 = 100 * MS;
/// Maximum age of the driver's heartbeat. If the heartbeat is older, the archive ends.
const DRIVER_TIMEOUT_MS: u64 = 1_500;
/// Length of the error log in the mark file, in bytes.
const ERROR_BUFFER_LENGTH: usize = 16 * 1024;

/// An archive of a schedule.
#[derive(Clone, Debug)]
pub struct ArchivePlan {
    /// Host of the archive.
    pub host: HostId,
    /// Configuration of the archive.
    pub context: ArchiveContext,
    /// Seed of the archive's random numbers.
    pub seed: u64,
    /// Maximum number of bytes that one read of the disk returns.
    pub longest_read: Option<usize>,
    /// Whether clients set retention policies. If so, no client purges segments.
    pub retains: bool,
    /// Recordings with which the disk begins.
    pub stock: Option<Stock>,
    /// Whether the archive copies sealed segments to object storage, and then deletes their local files.
    pub has_copies: bool,
    /// Whether the catalog has so many deleted entries that the archive compacts it at the start, or after a few
    /// deletions.
    pub compacts: bool,
}

/// See the [module](self).
pub struct ArchiveServer {
    plan: ArchivePlan,
    disk: SimulatedDisk,
    bucket: ObjectBucket,
    random: Rng,
    state: ArchiveServerState,
    /// The client, and the number of driver starts on its host when the client connected.
    client: Option<(Aeron, u64)>,
    /// Number of processes that were started.
    lives: u64,
    starts_from_ns: i64,
    /// Time until which the process waits for its disk, in nanoseconds.
    waits_until_ns: i64,
    /// Time at which the process began to start, in milliseconds since the epoch.
    running_since_ms: i64,
    is_wanted: bool,
    must_restart: bool,
    /// Whether the previous process did not end cleanly.
    has_crashed: bool,
    on_torn_fragment: OnTornFragment,
    /// Number of starts of the archive's machine.
    boots: u128,
    /// Whether the disk may return errors.
    is_disk_faulty: bool,
    /// Number of times that faults of the disk began or ended.
    disk_changes: u64,
    /// Whether the disk may ever have been full.
    was_full: bool,
    /// Errors that the archive reported. They help to find the cause of a finding.
    errors: Arc<Mutex<Vec<String>>>,
}

enum ArchiveServerState {
    Down,
    Starting(Box<ArchiveStart<SimulatedDisk>>),
    Up(Box<dyn Agent>),
}

impl ArchiveServer {
    /// Creates an archive with an empty disk. It starts in its first turn.
    pub fn new(plan: ArchivePlan) -> Self {
        let disk = SimulatedDisk::default();
        disk.storage.shorten_reads(plan.longest_read);
        Self {
            random: Rng::with_seed(plan.seed),
            disk,
            bucket: ObjectBucket::default(),
            state: ArchiveServerState::Down,
            client: None,
            lives: 0,
            starts_from_ns: i64::MIN,
            waits_until_ns: i64::MIN,
            running_since_ms: i64::MAX,
            is_wanted: true,
            must_restart: false,
            has_crashed: false,
            on_torn_fragment: plan.context.on_torn_fragment,
            boots: 1,
            is_disk_faulty: false,
            disk_changes: 0,
            was_full: false,
            errors: Arc::default(),
            plan,
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &ArchivePlan {
        &self.plan
    }

    /// Returns the disk.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// Returns the number of processes that were started.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// Returns the errors that the processes reported.
    pub fn errors(&self) -> Vec<String> {
        lock(&self.errors).clone()
    }

    /// Returns the time at which the process began to start, in milliseconds since the epoch. While no process runs,
    /// the time is far in the future.
    pub fn running_since_ms(&self) -> i64 {
        match self.is_running() {
            true => self.running_since_ms,
            false => i64::MAX,
        }
    }

    /// Whether a process of the archive runs.
    pub fn is_running(&self) -> bool {
        !matches!(self.state, ArchiveServerState::Down)
    }

    /// Returns a number that stays the same while the archive runs without faults; `None` if the archive does not run,
    /// or if its disk may return errors.
    pub fn undisturbed(&self) -> Option<u64> {
        let is_undisturbed =
            matches!(self.state, ArchiveServerState::Up(_)) && !self.is_disk_faulty;
        is_undisturbed.then_some(self.lives + self.disk_changes)
    }

    /// Ends the process cleanly and starts another one.
    pub fn restart(&mut self) {
        self.must_restart = self.is_running();
    }

    /// Sets the earliest time of the next start. If the archive is already running, this has no effect.
    pub fn start_at(&mut self, starts_from_ns: i64) {
        self.starts_from_ns = starts_from_ns;
    }

    /// Sets whether the archive must run.
    pub fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Makes a fault occur after `steps` further steps of the disk.
    pub fn fail_in(&mut self, steps: u64, fault: StorageFault) {
        self.is_disk_faulty |= !matches!(fault, StorageFault::Kill { .. });
        self.was_full |= matches!(fault, StorageFault::Error(ErrorKind::StorageFull));
        self.disk_changes += 1;
        let storage = &self.disk.storage;
        storage.fail_at(storage.steps() + steps, fault);
    }

    /// Kills the process in the next write that crosses the end of a page in a file of this kind. At most `pages` pages
    /// are written.
    pub fn tear_write(&mut self, file: FileKind, pages: usize) {
        self.disk.tear_write(file, pages);
    }

    /// Makes a fault occur in the next compaction of the catalog.
    pub fn fail_compaction(&mut self, steps: u64, fault: CompactionFault) {
        let is_kill = match fault {
            CompactionFault::Disk(fault) => matches!(fault, StorageFault::Kill { .. }),
            CompactionFault::PowerLoss(_) => true,
            CompactionFault::Removal => false,
        };
        self.is_disk_faulty |= !is_kill;
        self.disk_changes += 1;
        self.disk.fail_compaction(steps, fault);
    }

    /// Returns the loss of power that a compaction has caused.
    pub fn take_power_loss(&self) -> Option<PowerLoss> {
        self.disk.take_power_loss()
    }

    /// Kills the process when it reaches a point on its disk.
    pub fn kill_at(&self, point: DiskPoint) {
        self.disk.kill_at(point);
    }

    /// Whether the disk may ever have been full. The archive continues recordings that have failed for lack of space.
    pub fn was_full(&self) -> bool {
        self.was_full
    }

    /// Limits the free bytes of the disk.
    pub fn limit_space(&mut self, free: u64) {
        self.was_full = true;
        self.is_disk_faulty = true;
        self.disk_changes += 1;
        let storage = &self.disk.storage;
        storage.set_capacity(storage.used_bytes() + free);
    }

    /// Ends all faults of the disk.
    pub fn heal_disk(&mut self) {
        self.is_disk_faulty = false;
        self.disk_changes += 1;
        self.disk.storage.forget_faults();
        self.disk.forget_tear();
        self.disk.forget_compaction_fault();
        self.disk.forget_defects();
        self.disk.storage.set_capacity(i64::MAX as u64);
    }

    /// Makes the next sync of a file of this kind fail. The bytes that were not synced are lost.
    pub fn fail_sync(&mut self, file: FileKind) {
        self.is_disk_faulty = true;
        self.disk_changes += 1;
        self.disk.fail_sync(file);
    }

    /// Makes some writes take up to a second.
    pub fn slow_down(&mut self) {
        self.disk_changes += 1;
        self.disk.slow_down(self.plan.seed);
    }

    /// Kills the process at once. It starts again at the given time.
    pub fn kill(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        self.bury(graveyard);
        self.disk.storage.restart();
        self.disk.forget_tear();
        self.starts_from_ns = starts_from_ns;
    }

    /// Kills the process, and removes the last frames of its recordings if they are not the end of a message. Frames
    /// with checksums stay: a correct checksum proves that a frame is whole.
    pub fn kill_and_cut(
        &mut self,
        starts_from_ns: i64,
        graveyard: &mut Graveyard,
        random: &mut Rng,
    ) -> CutFrames {
        self.kill(starts_from_ns, graveyard);
        let context = &self.plan.context;
        match context.record_checksum.is_empty() {
            true => {
                let is_synced = context.file_sync_level > SyncLevel::None;
                cut_last_frames(&self.disk.storage, is_synced, random)
            }
            false => CutFrames::default(),
        }
    }

    /// Cuts the power of the archive's machine. The machine starts again at the given time.
    ///
    /// If the process was killed before the power loss, some of its changes were not forced to the disk. The simulation
    /// keeps either all of these changes or none. If it kept only some, a sector between frames of the last block could
    /// be missing. That block was not acknowledged, and no start of an archive detects the missing sector.
    pub fn lose_power(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        // If the next process has not started yet, the changes of the killed process are still not forced to the disk.
        let was_killed = self.has_crashed;
        self.bury(graveyard);
        self.boots += 1;
        self.disk.forget_tear();
        let random = &mut self.random;
        let survives_kill = random.bool();
        self.disk
            .storage
            .lose_power_in_sectors(|| match random.u8(..4) {
                _ if was_killed && survives_kill => Survival::Kept,
                _ if was_killed => Survival::Lost,
                0 => Survival::Kept,
                1 => Survival::Sectors(random.u8(..)),
                _ => Survival::Lost,
            });
        self.starts_from_ns = starts_from_ns;
    }

    /// Ends the process without a clean close of its objects.
    fn bury(&mut self, graveyard: &mut Graveyard) {
        let state = std::mem::replace(&mut self.state, ArchiveServerState::Down);
        self.waits_until_ns = i64::MIN;
        self.has_crashed |= !matches!(state, ArchiveServerState::Down);
        if let Some((client, _)) = self.client.take() {
            let state: Box<dyn std::any::Any> = match state {
                ArchiveServerState::Down => Box::new(()),
                ArchiveServerState::Starting(start) => Box::new(start),
                ArchiveServerState::Up(agent) => Box::new(agent),
            };
            graveyard.bury(client, state);
        }
    }

    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// The archive does not start although it must.
    pub fn do_work(
        &mut self,
        host: &Host,
        clock: &VirtualClock,
        graveyard: &mut Graveyard,
    ) -> Result<usize, Finding> {
        let since_epoch = Duration::from_millis(clock.now_ms(self.plan.host).unsigned_abs());
        self.disk.storage.set_time(since_epoch);
        if clock.now_ns() < self.waits_until_ns {
            return Ok(0);
        }
        let outcome = match &mut self.state {
            ArchiveServerState::Down if !self.is_wanted || clock.now_ns() < self.starts_from_ns => {
                Ok(Ok(0))
            }
            ArchiveServerState::Down => run_until_killed(|| self.begin(host, clock)),
            ArchiveServerState::Starting(_) => run_until_killed(|| self.go_on(clock)),
            ArchiveServerState::Up(_) => run_until_killed(|| self.run(host, clock)),
        };
        self.waits_until_ns = clock.now_ns() + self.disk.take_delay_ns();
        match outcome {
            Ok(outcome) => outcome,
            // The caller cuts the power of the machine.
            Err(Killed) if self.disk.loses_power() => Ok(1),
            Err(Killed) => {
                let pause_ns = self.random.i64(0..2_000 * MS);
                self.kill(clock.now_ns() + pause_ns, graveyard);
                Ok(1)
            }
        }
    }

    fn begin(&mut self, host: &Host, clock: &VirtualClock) -> Result<usize, Finding> {
        let mut context = client_context(clock, self.plan.host);
        context.driver_timeout_ms = DRIVER_TIMEOUT_MS;
        context.keepalive_interval_ns = 200 * MS as u64;
        context.client_name = "archive".to_owned();
        let Some(aeron) = host.connect(context) else {
            return Ok(0);
        };
        self.client = Some((aeron.clone(), host.starts()));
        if let Some(stock) = self.plan.stock
            && self.lives == 0
            && self.disk.names().is_empty()
        {
            // The disk has no faults yet.
            let _ = stock.write(&self.disk.storage, self.plan.context.catalog_capacity);
        }
        if self.plan.compacts {
            let count = ENTRIES_OF_A_COMPACTION - self.random.usize(..3);
            let capacity = self.plan.context.catalog_capacity;
            // If the disk fails here, the archive finds the same fault.
            let _ = add_deleted_entries(&self.disk.storage, capacity, count);
        }
        let objects = match self.plan.has_copies {
            true => {
                let seed = self.random.u64(..);
                let opened = self.bucket.open(&self.disk, clock.nano_clock(), seed);
                match opened {
                    Ok(objects) => Some(objects),
                    Err(error) if self.is_disk_faulty => {
                        lock(&self.errors).push(error);
                        self.go_down(clock);
                        return Ok(1);
                    }
                    Err(error) => {
                        return Err(format!("the object storage does not open: {error}"));
                    }
                }
            }
            false => None,
        };
        let mut random = self.random.fork();
        let environment = ArchiveEnvironment {
            storage: self.disk.clone(),
            aeron,
            archive_id: self.plan.context.archive_id,
            epoch_clock: clock.epoch_clock(self.plan.host),
            nano_clock: clock.nano_clock(),
            random: Box::new(move || random.i64(..)),
            boot_id: BootId::from_bytes(self.boots.to_be_bytes()),
            reports: self.reports(clock.now_ms(self.plan.host)),
        };
        let context = ArchiveContext {
            on_torn_fragment: self.on_torn_fragment,
            ..self.plan.context.clone()
        };
        let start = ArchiveStart::new(context, environment)
            .map_err(|error| format!("archive of host {}: {error}", self.plan.host))?
            .with_objects(objects);
        self.state = ArchiveServerState::Starting(Box::new(start));
        self.running_since_ms = clock.true_ms();
        Ok(1)
    }

    fn go_on(&mut self, clock: &VirtualClock) -> Result<usize, Finding> {
        let ArchiveServerState::Starting(start) = &mut self.state else {
            return Ok(0);
        };
        match start.poll() {
            Ok(None) => Ok(0),
            Ok(Some(core)) => {
                self.state = ArchiveServerState::Up(Box::new(core.into_agent()));
                self.lives += 1;
                self.has_crashed = false;
                self.on_torn_fragment = self.plan.context.on_torn_fragment;
                self.check_segments()?;
                Ok(1)
            }
            Err(error) => {
                self.go_down(clock);
                self.judge(&error)
            }
        }
    }

    /// Checks that the start has completed the deletions of retention that a kill interrupted.
    ///
    /// # Errors
    /// A segment before the start of its recording still exists.
    fn check_segments(&self) -> Result<(), Finding> {
        if !self.plan.retains {
            return Ok(());
        }
        let Ok(catalog) = Catalog::open_read_only(&self.disk.storage) else {
            return Ok(());
        };
        let names = self.disk.names();
        let mut files = names.iter().filter_map(|name| SegmentFileName::parse(name));
        let is_left = |file: &SegmentFileName<'_>| {
            let recording = catalog.recording(file.recording_id);
            recording.is_ok_and(|it| file.base < it.first_segment_base())
        };
        match files.find(is_left) {
            None => Ok(()),
            Some(file) => Err(format!(
                "the archive of host {} starts, and {file:?} is left by retention",
                self.plan.host
            )),
        }
    }

    /// Decides whether a failed start is allowed. It is allowed if the driver still has resources of the previous
    /// archive, or if the driver or the disk fails. Without indexes, it is also allowed if a crash has torn a frame.
    fn judge(&mut self, error: &ArchiveStartError) -> Result<usize, Finding> {
        let text = error.to_string();
        let is_torn = text.contains("straddling page boundary");
        let is_damaged = text.contains("aeron.archive.on.torn.fragment=truncate");
        if is_torn && self.plan.context.index {
            return Err(format!(
                "the index of the archive of host {} does not decide: {text}",
                self.plan.host
            ));
        }
        if is_damaged && self.has_crashed && self.on_torn_fragment == OnTornFragment::Refuse {
            // The error text tells the user to do this.
            self.on_torn_fragment = OnTornFragment::Truncate;
            return Ok(1);
        }
        lock(&self.errors).push(text);
        match error {
            ArchiveStartError::ArchiveIdInUse { .. } | ArchiveStartError::Client(_) => Ok(1),
            // The disk has failed. The next start uses the files that are on the disk.
            _ if self.is_disk_faulty => Ok(1),
            error => Err(format!(
                "the archive of host {} does not start: {error}",
                self.plan.host
            )),
        }
    }

    /// Runs one duty cycle, and ends the archive if it must end.
    ///
    /// # Errors
    /// The archive ends by itself although its driver runs.
    fn run(&mut self, host: &Host, clock: &VirtualClock) -> Result<usize, Finding> {
        let ArchiveServerState::Up(agent) = &mut self.state else {
            return Ok(0);
        };
        let must_end = !self.is_wanted || std::mem::take(&mut self.must_restart);
        if !must_end {
            match agent.do_work() {
                Ok(work_count) => return Ok(work_count),
                Err(error) => {
                    let starts = self.client.as_ref().map(|(_, starts)| *starts);
                    if host.is_running() && starts == Some(host.starts()) {
                        return Err(format!(
                            "the archive of host {} ends by itself: {error:?}",
                            self.plan.host
                        ));
                    }
                }
            }
        }
        // The order of the calls is the same as in a runner of the agent.
        let _ = agent.on_close();
        self.go_down(clock);
        Ok(1)
    }

    fn go_down(&mut self, clock: &VirtualClock) {
        self.state = ArchiveServerState::Down;
        if let Some((client, _)) = self.client.take() {
            client.close();
        }
        self.starts_from_ns = clock.now_ns() + RETRY_NS;
    }

    /// Takes over the mark file, because the owner of a directory does this first. Returns the function that opens the
    /// error reports.
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
        // If the schedule makes the disk fail here, the archive runs without its mark file.
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

/// Writes errors to the mark file and to a list. The list helps to find the cause of a finding.
struct Reports {
    mark_file: Option<MarkFile<SimulatedFile>>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl ErrorReports for Reports {
    fn report(&mut self, now_ms: i64, error: &str) {
        lock(&self.errors).push(error.to_owned());
        if let Some(mark_file) = &mut self.mark_file {
            // The write may fail, because the schedule causes disk failures.
            let _ = mark_file.record_error(now_ms, error);
        }
    }

    fn report_client(&mut self, now_ms: i64, error: &str) {
        lock(&self.errors).push(error.to_owned());
        if let Some(mark_file) = &mut self.mark_file {
            let _ = mark_file.record_client_error(now_ms, error);
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
