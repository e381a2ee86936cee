//! The world of a schedule with archives, and the loop that advances time.

use aeron_archive::objects::FETCHED_EXTENSION;
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};
use fastrand::Rng;

use super::damage::check_damaged_catalog;
use super::disk::StrayWrite;
use super::ledger::Ledger;
use super::operator::{Goal, Operator, Stage};
use super::plan::{ArchiveEvent, ArchiveSchedule, HEAL_NS};
use super::server::ArchiveServer;
use super::site::Site;
use crate::checks::CounterChecks;
use crate::clock::START_NS;
use crate::frame::Failure;
use crate::schedule::SECOND;
use crate::truth::Finding;

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
    site: Site<ArchiveEvent>,
    operators: Vec<Operator>,
    ledger: Ledger,
    checks: CounterChecks,
    phase: ArchivePhase,
    phase_since_ns: i64,
    /// A failure of an activity that began before this time is excused.
    calm_since_ns: i64,
    /// Random numbers that select the bits to flip.
    random: Rng,
}

impl ArchiveWorld {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: ArchiveSchedule) -> Self {
        let operators = schedule.operators.iter().cloned().enumerate();
        let operators =
            operators.map(|(at, plan)| Operator::new(plan, schedule.seed ^ (at as u64 + 1) << 40));
        Self {
            site: Site::new(&schedule),
            operators: operators.collect(),
            ledger: Ledger::default(),
            checks: CounterChecks::with_blocks(BLOCK_LENGTH),
            phase: ArchivePhase::Faults,
            phase_since_ns: START_NS,
            calm_since_ns: START_NS + HEAL_NS + AFTERMATH_NS,
            random: Rng::with_seed(!schedule.network_seed),
            schedule,
        }
    }

    /// Calls `tell` with a line for each datagram that is sent.
    #[must_use]
    pub fn traced(self, tell: impl FnMut(String) + Send + 'static) -> Self {
        self.site.frame.trace(tell);
        self
    }

    /// Runs the whole schedule.
    ///
    /// # Errors
    /// An archive, a driver or a client broke a rule.
    pub fn run(mut self) -> Result<ArchiveOutcome, Failure> {
        self.pass_time()
            .map_err(|finding| self.site.frame.failure(finding, self.state_text()))?;
        Ok(ArchiveOutcome {
            published: self.ledger.published(),
            received: self.ledger.received(),
            granted: self.operators.iter().map(Operator::granted).sum(),
            lives: self.site.archives.iter().map(ArchiveServer::lives).sum(),
            recordings: self.ledger.tapes().len() as u64,
            compactions: self
                .site
                .archives
                .iter()
                .map(|it| it.disk().compactions())
                .sum(),
            steps: self.site.frame.steps,
            fingerprint: self.checks.fingerprint(),
        })
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while self.phase != ArchivePhase::Over {
            let work_count = self.step()?;
            self.site.frame.pace(work_count);
            self.end_phase_if_over()?;
        }
        self.check_errors()
    }

    /// Checks that no archive tried to delete a segment that a replay still needed. The store refuses such a deletion
    /// and reports an error.
    fn check_errors(&self) -> Result<(), Finding> {
        let mut errors = self.site.archives.iter().flat_map(ArchiveServer::errors);
        let is_wrong = |error: &String| {
            error.starts_with("retention of recording") && error.contains("replay")
        };
        match errors.find(is_wrong) {
            None => Ok(()),
            Some(error) => Err(format!("a deletion does not heed a replay: {error}")),
        }
    }

    fn step(&mut self) -> Result<usize, Finding> {
        let mut work_count = self.site.frame.advance();
        while let Some(event) = self.site.frame.next_event() {
            self.happen(event)?;
            work_count += 1;
        }
        work_count += self.site.run()?;
        self.lose_power_in_compactions()?;
        let mut stage = Stage {
            hosts: &self.site.frame.hosts,
            archives: &self.site.archives,
            clock: &self.site.frame.clock,
            ledger: &mut self.ledger,
            seed: self.schedule.seed,
            calm_since_ns: self.calm_since_ns,
        };
        for operator in &mut self.operators {
            work_count += operator.do_work(&mut stage)?;
        }
        if self.site.frame.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.checks.look(&self.site.frame.hosts)?;
            self.site.check_timeouts()?;
        }
        Ok(work_count)
    }

    fn lose_power_in_compactions(&mut self) -> Result<(), Finding> {
        for archive in 0..self.site.archives.len() {
            let host = self.site.archives[archive].plan().host;
            let Some(loss) = self.site.archives[archive].take_power_loss() else {
                continue;
            };
            let event = ArchiveEvent::LosePower(host, loss.away_ns);
            match loss.after_ns {
                0 => self.happen(event)?,
                after_ns => {
                    let at_ns = self.site.frame.clock.now_ns() + after_ns;
                    self.site.frame.arrange(at_ns, event);
                }
            }
        }
        Ok(())
    }

    /// Makes an event happen.
    ///
    /// # Errors
    /// A deleted file exists again after a loss of power.
    fn happen(&mut self, event: ArchiveEvent) -> Result<(), Finding> {
        self.site.happen(event.clone());
        match event {
            ArchiveEvent::CrashDriver(host, _) => self.checks.forget(host),
            ArchiveEvent::LosePower(host, _) => {
                self.checks.forget(host);
                let operators = self.operators.iter_mut();
                for operator in operators.filter(|it| it.host() == host) {
                    operator.crash(&mut self.ledger, &mut self.site.frame.graveyard);
                }
                return self.check_files();
            }
            ArchiveEvent::CrashOperator(operator) => {
                self.operators[operator].crash(&mut self.ledger, &mut self.site.frame.graveyard);
            }
            ArchiveEvent::Rot(archive) => self.rot(archive),
            ArchiveEvent::Stray(archive, is_doubled) => self.stray(archive, is_doubled),
            ArchiveEvent::Heal => {
                self.calm_since_ns = self.site.frame.clock.now_ns() + AFTERMATH_NS;
            }
            _ => {}
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), Finding> {
        let mut archives = self.site.archives.iter().enumerate();
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
        let storage = &self.site.archives[archive].disk().storage;
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
        self.site.archives[archive].disk().go_astray(stray);
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The time limit of the current phase is reached, and the phase is not over. The finding says what is not done.
    fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.site.frame.clock.now_ns();
        let complaint = match self.phase {
            ArchivePhase::Faults if now_ns >= self.calm_since_ns => None,
            ArchivePhase::Calm if now_ns >= self.phase_since_ns + CALM_WORK_NS => None,
            ArchivePhase::Faults | ArchivePhase::Calm => return Ok(()),
            ArchivePhase::Verifying | ArchivePhase::Deleting => self.unfinished(),
            ArchivePhase::VerifyingAgain => self.unfinished().or_else(|| self.unretained()),
            ArchivePhase::Closing => self.site.running_archive(),
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
        let now_ms = self.site.frame.clock.true_ms();
        let mut archives = self.site.archives.iter();
        archives.try_for_each(|archive| check_damaged_catalog(archive, &mut self.random, now_ms))
    }

    fn begin_next_phase(&mut self) {
        self.phase_since_ns = self.site.frame.clock.now_ns();
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
        for archive in &mut self.site.archives {
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
        let mut archives = self.site.archives.iter();
        let of_stock = archives.find_map(|it| it.plan().stock?.unretained(it.disk()));
        if of_stock.is_some() {
            return of_stock;
        }
        self.ledger.tapes().iter().find_map(|tape| {
            let names = self.site.archives[tape.archive].disk().names();
            let files = names.iter().filter_map(|name| SegmentFileName::parse(name));
            let own = files.filter(|file| {
                tape.recording_id == Some(file.recording_id) && file.extension == SEGMENT_EXTENSION
            });
            let bases: Vec<_> = own.map(|file| file.base).collect();
            let kept = self.site.archives[tape.archive]
                .plan()
                .context
                .objects_local_bytes as i64;
            tape.unretained(&bases)
                .or_else(|| tape.uncopied(&bases, kept))
        })
    }

    /// Checks that sessions and replays ended with their clients, and that files were deleted with their recordings.
    fn sessions_left(&self) -> Option<Finding> {
        for archive in &self.site.archives {
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
            let cnc = self.site.frame.hosts[host].cnc()?;
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
            .site
            .frame
            .hosts
            .iter()
            .find_map(|host| self.checks.check_left(host).err());
        let sockets = self.site.frame.wire.lock().socket_count();
        left.or_else(|| (sockets > 0).then(|| format!("{sockets} sockets are still open")))
            .or_else(|| self.site.running_archive())
    }

    /// Returns the counters, the errors of the archives, and the known state of the recordings.
    fn state_text(&self) -> String {
        let mut text = self.site.state_text();
        for archive in &self.site.archives {
            let host = archive.plan().host;
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
