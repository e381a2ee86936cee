//! The world of a schedule with archives, and the loop that advances time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aeron_archive::objects::FETCHED_EXTENSION;
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};
use fastrand::Rng;

use super::damage::check_damaged_catalog;
use super::disk::StrayWrite;
use super::ledger::Ledger;
use super::operator::{Goal, Operator, Stage};
use super::plan::{ArchiveEvent, ArchiveSchedule, HEAL_NS};
use super::server::ArchiveServer;
use crate::checks::{CounterChecks, check_timeouts};
use crate::clock::{START_NS, VirtualClock};
use crate::host::Host;
use crate::network::{HostId, HostNetwork, SharedWire, Wire, describe};
use crate::roles::Graveyard;
use crate::schedule::SECOND;
use crate::truth::Finding;
use crate::world::Failure;

/// Time for which a fault may still cause failures after its end.
const AFTERMATH_NS: i64 = 6 * SECOND;
/// Time for which operators work while no failure is excused.
const CALM_WORK_NS: i64 = 2 * SECOND;
/// Time limit for each later phase.
const PHASE_LIMIT_NS: i64 = 15 * SECOND;
/// Number of steps between two checks of all positions.
const STEPS_BETWEEN_CHECKS: u64 = 16;
/// Maximum length of a block that a replay appends at once, in bytes.
const BLOCK_LENGTH: i64 = 64 * 1_024;
/// While nothing happens, each step is longer than the previous one by this factor.
const IDLE_GROWTH: i64 = 8;
/// Files that remain after all recordings are deleted.
const LASTING_FILES: [&str; 2] = ["archive.catalog", "archive-mark.dat"];

/// Results of a schedule with archives that had no finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveOutcome {
    /// Number of messages published.
    pub published: u64,
    /// Number of messages received from replays.
    pub received: u64,
    /// Number of successful requests.
    pub granted: u64,
    /// Number of archive processes.
    pub lives: u64,
    /// Number of recordings.
    pub recordings: u64,
    /// Number of new catalogs that the archives began to write.
    pub compactions: u64,
    /// Number of steps of virtual time.
    pub steps: u64,
    /// A fingerprint of the whole run. Equal seeds give equal fingerprints.
    pub fingerprint: u64,
}

impl ArchiveOutcome {
    /// Adds the results of another schedule.
    pub fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.received += other.received;
        self.granted += other.granted;
        self.lives += other.lives;
        self.recordings += other.recordings;
        self.compactions += other.compactions;
        self.steps += other.steps;
        self.fingerprint ^= other.fingerprint;
    }
}

/// Phase of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ArchivePhase {
    /// Faults happen, and their consequences end.
    Faults,
    /// All clients work without faults.
    Calm,
    /// All recordings are read.
    Verifying,
    /// The archives end cleanly.
    Closing,
    /// The archives start again, and all recordings are read.
    VerifyingAgain,
    /// All recordings are deleted.
    Deleting,
    /// The operators close their clients.
    Leaving,
    /// The archives end. After that, no resource may exist.
    Ending,
    /// The schedule is complete.
    Over,
}

/// See the [module](self).
pub struct ArchiveWorld {
    schedule: ArchiveSchedule,
    clock: VirtualClock,
    wire: SharedWire,
    hosts: Vec<Host>,
    archives: Vec<ArchiveServer>,
    operators: Vec<Operator>,
    ledger: Ledger,
    graveyard: Graveyard,
    /// Future events, ordered by time. Events at the same time are in the order of the schedule.
    agenda: BinaryHeap<Reverse<(i64, usize)>>,
    events: Vec<ArchiveEvent>,
    checks: CounterChecks,
    phase: ArchivePhase,
    phase_since_ns: i64,
    /// A failure of an activity that began before this time is excused.
    calm_since_ns: i64,
    /// Random numbers that select the bits to flip.
    random: Rng,
    steps: u64,
    step_ns: i64,
}

impl ArchiveWorld {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: ArchiveSchedule) -> Self {
        let clock = VirtualClock::new(&schedule.clocks);
        let wire = SharedWire::new(Wire::new(
            schedule.drivers.len(),
            schedule.fair.clone(),
            schedule.network_seed,
            START_NS,
        ));
        let drivers = schedule.drivers.iter().enumerate();
        let hosts = drivers
            .map(|(id, plan)| {
                let network =
                    HostNetwork::new(wire.clone(), id, plan.has_segmentation, plan.link_mtu);
                let mut host = Host::new(id, plan.context.clone(), network, plan.seed);
                host.start(&clock);
                host
            })
            .collect();
        let archives = schedule.archives.iter().cloned().map(ArchiveServer::new);
        let operators = schedule.operators.iter().cloned().enumerate();
        let operators =
            operators.map(|(at, plan)| Operator::new(plan, schedule.seed ^ (at as u64 + 1) << 40));
        let mut world = Self {
            clock,
            wire,
            hosts,
            archives: archives.collect(),
            operators: operators.collect(),
            ledger: Ledger::default(),
            graveyard: Graveyard::default(),
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            checks: CounterChecks::with_blocks(BLOCK_LENGTH),
            phase: ArchivePhase::Faults,
            phase_since_ns: START_NS,
            calm_since_ns: START_NS + HEAL_NS + AFTERMATH_NS,
            random: Rng::with_seed(!schedule.network_seed),
            steps: 0,
            step_ns: schedule.step_ns.0,
            schedule,
        };
        for (after_ns, event) in world.schedule.events.clone() {
            world.arrange(START_NS + after_ns, event);
        }
        world
    }

    /// Calls `tell` with a line for each datagram that is sent.
    #[must_use]
    pub fn traced(self, mut tell: impl FnMut(String) + Send + 'static) -> Self {
        self.wire.lock().observe(Box::new(move |now_ns, passing| {
            let after = (now_ns - START_NS) as f64 / 1e9;
            tell(format!("{after:.6} {}", describe(passing)));
        }));
        self
    }

    /// Runs the whole schedule.
    ///
    /// # Errors
    /// An archive, a driver or a client broke a rule.
    pub fn run(mut self) -> Result<ArchiveOutcome, Failure> {
        self.pass_time().map_err(|finding| Failure {
            finding,
            after_ns: self.clock.now_ns() - START_NS,
            counters: self.state_text(),
        })?;
        Ok(ArchiveOutcome {
            published: self.ledger.published(),
            received: self.ledger.received(),
            granted: self.operators.iter().map(Operator::granted).sum(),
            lives: self.archives.iter().map(ArchiveServer::lives).sum(),
            recordings: self.ledger.tapes().len() as u64,
            compactions: self.archives.iter().map(|it| it.disk().compactions()).sum(),
            steps: self.steps,
            fingerprint: self.checks.fingerprint(),
        })
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while self.phase != ArchivePhase::Over {
            let work_count = self.step()?;
            let (busy_ns, idle_ns) = self.schedule.step_ns;
            self.step_ns = match work_count {
                0 => (self.step_ns * IDLE_GROWTH).min(idle_ns),
                _ => busy_ns,
            };
            self.end_phase_if_over()?;
        }
        self.check_errors()
    }

    /// Checks that no archive tried to delete a segment that a replay still needed. The store refuses such a deletion
    /// and reports an error.
    fn check_errors(&self) -> Result<(), Finding> {
        let mut errors = self.archives.iter().flat_map(ArchiveServer::errors);
        let is_wrong = |error: &String| {
            error.starts_with("retention of recording") && error.contains("replay")
        };
        match errors.find(is_wrong) {
            None => Ok(()),
            Some(error) => Err(format!("a deletion does not heed a replay: {error}")),
        }
    }

    fn step(&mut self) -> Result<usize, Finding> {
        let now_ns = self.next_time_ns();
        self.clock.advance_to(now_ns);
        self.steps += 1;
        let mut work_count = self.wire.lock().advance(now_ns);
        while let Some(Reverse((at_ns, number))) = self.agenda.peek().copied()
            && at_ns <= now_ns
        {
            self.agenda.pop();
            self.happen(self.events[number].clone())?;
            work_count += 1;
        }
        for host in &mut self.hosts {
            work_count += host.do_work(&self.clock);
        }
        for archive in &mut self.archives {
            let host = &self.hosts[archive.plan().host];
            work_count += archive.do_work(host, &self.clock, &mut self.graveyard)?;
        }
        self.lose_power_in_compactions()?;
        let mut stage = Stage {
            hosts: &self.hosts,
            archives: &self.archives,
            clock: &self.clock,
            ledger: &mut self.ledger,
            seed: self.schedule.seed,
            calm_since_ns: self.calm_since_ns,
        };
        for operator in &mut self.operators {
            work_count += operator.do_work(&mut stage)?;
        }
        if self.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.checks.look(&self.hosts)?;
            check_timeouts(&self.hosts, &self.graveyard)?;
        }
        Ok(work_count)
    }

    fn lose_power_in_compactions(&mut self) -> Result<(), Finding> {
        for archive in 0..self.archives.len() {
            let host = self.archives[archive].plan().host;
            let Some(loss) = self.archives[archive].take_power_loss() else {
                continue;
            };
            let event = ArchiveEvent::LosePower(host, loss.away_ns);
            match loss.after_ns {
                0 => self.happen(event)?,
                after_ns => self.arrange(self.clock.now_ns() + after_ns, event),
            }
        }
        Ok(())
    }

    /// Returns the end of the next step, or the time of an event before it.
    fn next_time_ns(&self) -> i64 {
        let now_ns = self.clock.now_ns();
        let arrival_ns = self.wire.lock().next_arrival_ns();
        let event_ns = self.agenda.peek().map(|Reverse((at_ns, _))| *at_ns);
        let next_ns = [arrival_ns, event_ns]
            .into_iter()
            .flatten()
            .fold(now_ns + self.step_ns, i64::min);
        next_ns.max(now_ns + 1)
    }

    fn arrange(&mut self, at_ns: i64, event: ArchiveEvent) {
        self.agenda.push(Reverse((at_ns, self.events.len())));
        self.events.push(event);
    }

    /// Makes an event happen.
    ///
    /// # Errors
    /// A deleted file exists again after a loss of power.
    fn happen(&mut self, event: ArchiveEvent) -> Result<(), Finding> {
        let now_ns = self.clock.now_ns();
        match event {
            ArchiveEvent::Kill(archive, away_ns) => {
                self.archives[archive].kill(now_ns + away_ns, &mut self.graveyard);
            }
            ArchiveEvent::FailWrite(archive, steps, fault) => {
                self.archives[archive].fail_in(steps, fault);
            }
            ArchiveEvent::TearWrite(archive, file, pages) => {
                self.archives[archive].tear_write(file, pages);
            }
            ArchiveEvent::FailCompaction(archive, steps, fault) => {
                self.archives[archive].fail_compaction(steps, fault);
            }
            ArchiveEvent::Restart(archive) => self.archives[archive].restart(),
            ArchiveEvent::FillDisk(archive, room) => self.archives[archive].limit_space(room),
            ArchiveEvent::HealDisk(archive) => self.archives[archive].heal_disk(),
            ArchiveEvent::CrashDriver(host, away_ns) => self.crash_driver(host, now_ns + away_ns),
            ArchiveEvent::StartDriver(host) => self.start_driver(host),
            ArchiveEvent::LosePower(host, away_ns) => {
                self.lose_power(host, now_ns + away_ns);
                return self.check_files();
            }
            ArchiveEvent::CrashOperator(operator) => {
                self.operators[operator].crash(&mut self.ledger, &mut self.graveyard);
            }
            ArchiveEvent::Rot(archive) => self.rot(archive),
            ArchiveEvent::Stray(archive, is_doubled) => self.stray(archive, is_doubled),
            ArchiveEvent::FailSync(archive, file) => self.archives[archive].fail_sync(file),
            ArchiveEvent::SlowDown(archive) => self.archives[archive].slow_down(),
            ArchiveEvent::Weather(weather) => *self.wire.lock().weather() = weather,
            ArchiveEvent::Heal => self.heal(),
        }
        Ok(())
    }

    fn crash_driver(&mut self, host: HostId, until_ns: i64) {
        self.hosts[host].crash();
        self.checks.forget(host);
        self.arrange(until_ns, ArchiveEvent::StartDriver(host));
    }

    fn start_driver(&mut self, host: HostId) {
        if !self.hosts[host].is_running() {
            self.hosts[host].start(&self.clock);
        }
    }

    /// Ends the driver, the archive and all clients on the host at once.
    fn lose_power(&mut self, host: HostId, until_ns: i64) {
        self.crash_driver(host, until_ns);
        let graveyard = &mut self.graveyard;
        for archive in &mut self.archives {
            if archive.plan().host == host {
                archive.lose_power(until_ns, graveyard);
            }
        }
        for operator in &mut self.operators {
            if operator.host() == host {
                operator.crash(&mut self.ledger, graveyard);
            }
        }
    }

    fn check_files(&self) -> Result<(), Finding> {
        let mut archives = self.archives.iter().enumerate();
        archives.try_for_each(|(number, archive)| {
            self.ledger.check_files(number, &archive.disk().names())
        })
    }

    fn rot(&mut self, archive: usize) {
        let Some((tape, position)) = self.ledger.any_byte(archive, &mut self.random) else {
            return;
        };
        let tape = self.ledger.tape_mut(tape);
        let base = tape.segment_base(position);
        let name = format!("{}-{base}.rec", tape.recording_id.unwrap_or_default());
        let bit = self.random.u32(..8);
        let storage = &self.archives[archive].disk().storage;
        tape.is_rotten |= storage.flip_bit(&name, (position - base) as u64, bit);
    }

    /// Makes the next write to an active recording go astray, to a place in a stopped recording.
    fn stray(&mut self, archive: usize, is_doubled: bool) {
        let Some(source) = self.ledger.any_active(archive, &mut self.random) else {
            return;
        };
        let Some((victim, position)) = self.ledger.any_sector(archive, &mut self.random) else {
            return;
        };
        let tape = self.ledger.tape_mut(victim);
        tape.is_rotten = true;
        let base = tape.segment_base(position);
        let name = format!("{}-{base}.rec", tape.recording_id.unwrap_or_default());
        let source = self.ledger.tape_mut(source);
        source.is_rotten |= !is_doubled;
        let stray = StrayWrite {
            recording_id: source.recording_id.unwrap_or_default(),
            victim: name,
            offset: (position - base) as u64,
            is_doubled,
        };
        self.archives[archive].disk().go_astray(stray);
    }

    fn heal(&mut self) {
        *self.wire.lock().weather() = self.schedule.fair.clone();
        self.agenda.clear();
        for host in 0..self.hosts.len() {
            self.start_driver(host);
        }
        for archive in &mut self.archives {
            archive.heal_disk();
            archive.start_at(self.clock.now_ns());
        }
        self.calm_since_ns = self.clock.now_ns() + AFTERMATH_NS;
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The time limit of the current phase is reached, and the phase is not over. The finding says what is not done.
    fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.clock.now_ns();
        let complaint = match self.phase {
            ArchivePhase::Faults if now_ns >= self.calm_since_ns => None,
            ArchivePhase::Calm if now_ns >= self.phase_since_ns + CALM_WORK_NS => None,
            ArchivePhase::Faults | ArchivePhase::Calm => return Ok(()),
            ArchivePhase::Verifying | ArchivePhase::Deleting => self.unfinished(),
            ArchivePhase::VerifyingAgain => self.unfinished().or_else(|| self.unretained()),
            ArchivePhase::Closing => self.archives_that_run(),
            ArchivePhase::Leaving => self.sessions_left(),
            ArchivePhase::Ending => self.anything_left(),
            ArchivePhase::Over => return Ok(()),
        };
        match complaint {
            None => {
                self.check_files()?;
                if self.phase == ArchivePhase::Closing {
                    self.check_damaged_catalogs()?;
                }
                self.begin_next_phase();
                Ok(())
            }
            Some(complaint)
                if now_ns > self.phase_since_ns.max(self.calm_since_ns) + PHASE_LIMIT_NS =>
            {
                Err(complaint)
            }
            Some(_) => Ok(()),
        }
    }

    /// Copies each archive's directory, damages the catalog in the copy, and opens the copy.
    fn check_damaged_catalogs(&mut self) -> Result<(), Finding> {
        let now_ms = self.clock.true_ms();
        let mut archives = self.archives.iter();
        archives.try_for_each(|archive| check_damaged_catalog(archive, &mut self.random, now_ms))
    }

    fn begin_next_phase(&mut self) {
        self.phase_since_ns = self.clock.now_ns();
        self.phase = match self.phase {
            ArchivePhase::Faults => ArchivePhase::Calm,
            ArchivePhase::Calm => {
                self.set_goal(Goal::Verify);
                ArchivePhase::Verifying
            }
            ArchivePhase::Verifying => {
                self.calm_since_ns = i64::MAX;
                self.set_archives_wanted(false);
                ArchivePhase::Closing
            }
            ArchivePhase::Closing => {
                self.set_archives_wanted(true);
                self.calm_since_ns = self.phase_since_ns + AFTERMATH_NS;
                self.set_goal(Goal::Verify);
                ArchivePhase::VerifyingAgain
            }
            ArchivePhase::VerifyingAgain => {
                self.set_goal(Goal::Delete);
                ArchivePhase::Deleting
            }
            ArchivePhase::Deleting => {
                self.set_goal(Goal::Leave);
                ArchivePhase::Leaving
            }
            ArchivePhase::Leaving => {
                self.set_archives_wanted(false);
                ArchivePhase::Ending
            }
            ArchivePhase::Ending | ArchivePhase::Over => ArchivePhase::Over,
        };
    }

    fn set_goal(&mut self, goal: Goal) {
        for operator in &mut self.operators {
            operator.set_goal(goal);
        }
    }

    fn set_archives_wanted(&mut self, is_wanted: bool) {
        for archive in &mut self.archives {
            archive.set_wanted(is_wanted);
        }
    }

    fn unfinished(&self) -> Option<Finding> {
        let mut operators = self.operators.iter();
        let operator = operators.find(|operator| !operator.is_done(&self.ledger))?;
        Some(operator.complaint(&self.ledger))
    }

    /// Checks that retention has deleted all data beyond the limits of the policies, and the files of this data. Also
    /// checks that files with copies in object storage are deleted, except those of the last `objects_local_bytes`.
    fn unretained(&self) -> Option<Finding> {
        let mut archives = self.archives.iter();
        let of_stock = archives.find_map(|it| it.plan().stock?.unretained(it.disk()));
        if of_stock.is_some() {
            return of_stock;
        }
        self.ledger.tapes().iter().find_map(|tape| {
            let names = self.archives[tape.archive].disk().names();
            let files = names.iter().filter_map(|name| SegmentFileName::parse(name));
            let own = files.filter(|file| {
                tape.recording_id == Some(file.recording_id) && file.extension == SEGMENT_EXTENSION
            });
            let bases: Vec<_> = own.map(|file| file.base).collect();
            let kept = self.archives[tape.archive]
                .plan()
                .context
                .objects_local_bytes as i64;
            tape.unretained(&bases)
                .or_else(|| tape.uncopied(&bases, kept))
        })
    }

    fn archives_that_run(&self) -> Option<Finding> {
        let mut archives = self.archives.iter();
        let archive = archives.find(|archive| archive.is_running())?;
        Some(format!(
            "the archive of host {} does not end",
            archive.plan().host
        ))
    }

    /// Checks that sessions and replays ended with their clients, and that files were deleted with their recordings.
    fn sessions_left(&self) -> Option<Finding> {
        for archive in &self.archives {
            let host = archive.plan().host;
            let names = archive.disk().names();
            let is_file_left = |name: &&String| {
                let is_fetched = name.ends_with(FETCHED_EXTENSION);
                !LASTING_FILES.contains(&name.as_str())
                    && !name.starts_with("archive-")
                    && !is_fetched
            };
            if let Some(name) = names.iter().find(is_file_left) {
                return Some(format!(
                    "the archive of host {host} still has {name}, and no recording"
                ));
            }
            let cnc = self.hosts[host].cnc()?;
            let mut records = cnc.counters().records();
            let sessions = records
                .find(|record| [102, 111, 112].contains(&record.type_id) && record.value != 0);
            if let Some(record) = sessions {
                return Some(format!("host {host}: {}: {}", record.label, record.value));
            }
        }
        None
    }

    fn anything_left(&self) -> Option<Finding> {
        let left = self
            .hosts
            .iter()
            .find_map(|host| self.checks.check_left(host).err());
        let sockets = self.wire.lock().socket_count();
        left.or_else(|| (sockets > 0).then(|| format!("{sockets} sockets are still open")))
            .or_else(|| self.archives_that_run())
    }

    /// Returns the counters, the errors of the archives, and the known state of the recordings.
    fn state_text(&self) -> String {
        let mut text: String = self.hosts.iter().map(Host::counters_text).collect();
        for archive in &self.archives {
            let (host, errors) = (archive.plan().host, archive.errors());
            for error in errors.iter().rev().take(10).rev() {
                text += &format!("archive of host {host}: {error}\n");
            }
            let log = archive.disk().storage.bytes("archive-retention.log");
            let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
            for line in log.lines() {
                text += &format!("retention of host {host}: {line}\n");
            }
        }
        for (number, tape) in self.ledger.tapes().iter().enumerate() {
            text += &format!(
                "tape {number} of archive {}: {}\n",
                tape.archive,
                tape.summary()
            );
        }
        text
    }
}
