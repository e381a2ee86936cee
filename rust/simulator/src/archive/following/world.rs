//! The world of a schedule with followers, and the loop that advances time.

use super::super::plan::{ArchiveEvent, HEAL_NS};
use super::super::server::ArchiveServer;
use super::super::site::Site;
use super::follower::{Follower, FollowerStage};
use super::observed::ObservedRecordings;
use super::plan::{FollowingSchedule, NamedKill, Victim};
use super::source::FollowedSource;
use crate::clock::START_NS;
use crate::frame::Failure;
use crate::network::HostId;
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Time for which the sources publish after the last fault.
const CALM_WORK_NS: i64 = 4 * SECOND;
/// Time limit of the phase in which the followers read everything, and of the phase in which the archives end.
const PHASE_LIMIT_NS: i64 = 25 * SECOND;
/// Number of steps between two reads of the counters of recordings. The counters of a killed archive exist for more
/// steps than this.
const STEPS_BETWEEN_LOOKS: u64 = 8;
/// Maximum time between a death and the start of the next process.
const MAX_ABSENCE_NS: i64 = 1_500 * MS;

/// Results of a schedule with followers that had no finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowingOutcome {
    /// Number of messages published.
    pub published: u64,
    /// Number of messages in the recordings at the end.
    pub recorded: u64,
    /// Number of messages delivered to followers.
    pub delivered: u64,
    /// Number of recordings.
    pub recordings: u64,
    /// Number of recordings that were extended after a restart of the archive.
    pub extended: u64,
    /// Number of links between recordings at the end.
    pub links: u64,
    /// Number of granted commits.
    pub commits: u64,
    /// Number of changes from one recording to the next.
    pub changes: u64,
    /// Number of times that a live stream was joined.
    pub joined: u64,
    /// Number of positions that were found by time.
    pub found: u64,
    /// Number of archive processes.
    pub lives: u64,
    /// Number of kills at named points.
    pub named_kills: u64,
    /// Number of steps of virtual time.
    pub steps: u64,
}

impl FollowingOutcome {
    /// Adds the results of another schedule.
    pub fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.recorded += other.recorded;
        self.delivered += other.delivered;
        self.recordings += other.recordings;
        self.extended += other.extended;
        self.links += other.links;
        self.commits += other.commits;
        self.changes += other.changes;
        self.joined += other.joined;
        self.found += other.found;
        self.lives += other.lives;
        self.named_kills += other.named_kills;
        self.steps += other.steps;
    }
}

/// An event of the schedule.
#[derive(Clone, Debug)]
enum FollowingEvent {
    Archive(ArchiveEvent),
    Die(Victim),
    /// A follower pauses for this time.
    Stall(usize, i64),
    /// No datagram arrives at this port for this time.
    Silence(u16, i64),
}

impl From<ArchiveEvent> for FollowingEvent {
    fn from(event: ArchiveEvent) -> Self {
        Self::Archive(event)
    }
}

/// Phase of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowingPhase {
    /// Faults happen. Then, until this time, sources publish without faults.
    Working {
        until_ns: i64,
    },
    /// The schedule waits until everything that was published is recorded and read by the followers.
    Reading,
    /// The archives end.
    Closing,
    Over,
}

/// See the [module](self).
pub struct FollowingWorld {
    schedule: FollowingSchedule,
    site: Site<FollowingEvent>,
    sources: Vec<FollowedSource>,
    followers: Vec<Follower>,
    observed: ObservedRecordings,
    kill: Option<NamedKill>,
    named_kills: u64,
    phase: FollowingPhase,
    phase_since_ns: i64,
}

impl FollowingWorld {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: FollowingSchedule) -> Self {
        let plan = &schedule.archives;
        let mut site = Site::new(plan);
        for (after_ns, victim) in schedule.deaths.clone() {
            site.frame
                .arrange(START_NS + after_ns, FollowingEvent::Die(victim));
        }
        for (after_ns, follower, length_ns) in schedule.stalls.clone() {
            let stall = FollowingEvent::Stall(follower, length_ns);
            site.frame.arrange(START_NS + after_ns, stall);
        }
        for (after_ns, port, length_ns) in schedule.silences.clone() {
            let silence = FollowingEvent::Silence(port, length_ns);
            site.frame.arrange(START_NS + after_ns, silence);
        }
        if let Some(NamedKill::OnDisk(point)) = schedule.kill {
            site.archives[0].kill_at(point);
        }
        let seed = |at: usize| plan.seed ^ (at as u64 + 1) << 40;
        let streams = schedule.streams.iter().cloned().enumerate();
        let sources = streams
            .clone()
            .map(|(at, it)| FollowedSource::new(it, seed(at)));
        let followers = streams.map(|(at, it)| Follower::new(it, seed(at + 8)));
        Self {
            sources: sources.collect(),
            followers: followers.collect(),
            observed: ObservedRecordings::default(),
            kill: schedule.kill,
            named_kills: 0,
            phase: FollowingPhase::Working {
                until_ns: START_NS + HEAL_NS + CALM_WORK_NS,
            },
            phase_since_ns: START_NS,
            site,
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
    /// A message is missing, comes twice, or is not in order; or the archive has lost what it has acknowledged.
    pub fn run(mut self) -> Result<FollowingOutcome, Failure> {
        self.pass_time()
            .and_then(|()| self.outcome())
            .map_err(|finding| self.site.frame.failure(finding, self.state_text()))
    }

    fn outcome(&self) -> Result<FollowingOutcome, Finding> {
        let seed = self.schedule.archives.seed;
        let archive = &self.site.archives[0];
        let errors = archive.errors();
        if let Some(error) = errors.iter().find(|error| error.contains("scrub:")) {
            return Err(format!("a sound segment counts as damaged: {error}"));
        }
        let (recorded, links) =
            self.observed
                .check(archive, &self.sources, &self.followers, seed)?;
        let (recordings, extended) = self.observed.counts();
        let mut outcome = FollowingOutcome {
            recorded,
            links,
            recordings,
            extended,
            lives: archive.lives(),
            named_kills: self.named_kills,
            steps: self.site.frame.steps,
            ..FollowingOutcome::default()
        };
        for source in &self.sources {
            outcome.published += source.tape().count() as u64;
        }
        for follower in &self.followers {
            let counts = follower.counts();
            outcome.delivered += counts.delivered;
            outcome.commits += counts.commits;
            outcome.changes += counts.changes;
            outcome.joined += counts.joined;
            outcome.found += counts.found;
        }
        Ok(outcome)
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while self.phase != FollowingPhase::Over {
            let work_count = self.step()?;
            self.site.frame.pace(work_count);
            self.end_phase_if_over()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<usize, Finding> {
        let mut work_count = self.site.frame.advance();
        while let Some(event) = self.site.frame.next_event() {
            self.happen(event);
            work_count += 1;
        }
        self.site.check_timeouts()?;
        work_count += self.site.run()?;
        self.note_kill_on_disk();
        let seed = self.schedule.archives.seed;
        for source in &mut self.sources {
            let host = &self.site.frame.hosts[source.host()];
            work_count += source.do_work(host, &self.site.frame.clock, seed);
        }
        if self.site.frame.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) {
            let archive = &self.site.archives[0];
            let host = &self.site.frame.hosts[archive.plan().host];
            self.observed.observe(archive, host, &self.sources)?;
        }
        for at in 0..self.followers.len() {
            work_count += self.run_follower(at)?;
        }
        Ok(work_count)
    }

    fn run_follower(&mut self, at: usize) -> Result<usize, Finding> {
        let follower = &mut self.followers[at];
        let stage = FollowerStage {
            host: &self.site.frame.hosts[follower.host()],
            clock: &self.site.frame.clock,
            tape: self.sources[at].tape(),
            seed: self.schedule.archives.seed,
            archive_lives: self.site.archives[0].lives(),
        };
        let work_count = follower.do_work(&stage)?;
        if let (0, Some(NamedKill::InState(state, has_left_live, victim))) = (at, self.kill)
            && follower.state() == Some((state, has_left_live))
        {
            self.kill = None;
            self.named_kills += 1;
            self.die(victim);
        }
        Ok(work_count)
    }

    fn note_kill_on_disk(&mut self) {
        let is_pending = matches!(self.kill, Some(NamedKill::OnDisk(_)));
        if is_pending && self.site.archives[0].disk().was_killed_at_point() {
            self.kill = None;
            self.named_kills += 1;
        }
    }

    fn happen(&mut self, event: FollowingEvent) {
        let now_ns = self.site.frame.clock.now_ns();
        match event {
            FollowingEvent::Die(victim) => self.die(victim),
            FollowingEvent::Stall(follower, length_ns) => {
                self.followers[follower].stall(now_ns + length_ns);
                self.site.frame.graveyard.on_paused();
            }
            FollowingEvent::Silence(port, length_ns) => {
                self.site
                    .frame
                    .wire
                    .lock()
                    .silence(port, now_ns + length_ns);
            }
            FollowingEvent::Archive(event) => {
                self.site.happen(event.clone());
                match event {
                    ArchiveEvent::LosePower(host, away_ns) => {
                        self.crash_all(host, now_ns + away_ns)
                    }
                    // After its restart, an archive resumes the recordings that a full disk has ended.
                    ArchiveEvent::Heal => {
                        self.site
                            .archives
                            .iter_mut()
                            .for_each(ArchiveServer::restart);
                    }
                    _ => {}
                }
            }
        }
    }

    fn die(&mut self, victim: Victim) {
        let now_ns = self.site.frame.clock.now_ns();
        let until_ns = now_ns + now_ns % MAX_ABSENCE_NS;
        let graveyard = &mut self.site.frame.graveyard;
        match victim {
            Victim::Archive => self.site.archives[0].kill(until_ns, graveyard),
            Victim::Source(at) => self.sources[at].crash(until_ns, graveyard),
            Victim::Follower(at) => self.followers[at].crash(until_ns, graveyard),
        }
    }

    fn crash_all(&mut self, host: HostId, until_ns: i64) {
        let graveyard = &mut self.site.frame.graveyard;
        for source in self.sources.iter_mut().filter(|it| it.host() == host) {
            source.crash(until_ns, graveyard);
        }
        for follower in self.followers.iter_mut().filter(|it| it.host() == host) {
            follower.crash(until_ns, graveyard);
        }
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The reason why the current phase is not over although its time limit is reached.
    fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.site.frame.clock.now_ns();
        let complaint = match self.phase {
            FollowingPhase::Working { until_ns } if now_ns < until_ns => return Ok(()),
            FollowingPhase::Working { .. } | FollowingPhase::Over => None,
            FollowingPhase::Reading => self.unrecorded().or_else(|| self.unread()),
            FollowingPhase::Closing => self.site.running_archive(),
        };
        match complaint {
            None => self.begin_next_phase(),
            Some(complaint) if now_ns > self.phase_since_ns + PHASE_LIMIT_NS => {
                return Err(complaint);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Checks that the newest session of each stream is recorded up to its end.
    fn unrecorded(&self) -> Option<Finding> {
        self.sources.iter().find_map(|source| {
            let (session_id, position) = source.position()?;
            let last = self.observed.last_of(session_id);
            let is_recorded = last.is_some_and(|(_, last)| last.recorded >= position);
            (!is_recorded)
                .then(|| format!("session {session_id} up to {position} is not recorded: {last:?}"))
        })
    }

    /// Checks that each follower has read the newest recording of the newest session.
    fn unread(&self) -> Option<Finding> {
        let mut pairs = self.sources.iter().zip(&self.followers);
        pairs.find_map(|(source, follower)| {
            let (session_id, _) = source.position()?;
            let (id, last) = self.observed.last_of(session_id)?;
            follower.unread(source.tape(), id, last.recorded)
        })
    }

    fn begin_next_phase(&mut self) {
        self.phase_since_ns = self.site.frame.clock.now_ns();
        self.phase = match self.phase {
            FollowingPhase::Working { .. } => {
                self.sources.iter_mut().for_each(FollowedSource::stop);
                FollowingPhase::Reading
            }
            FollowingPhase::Reading => {
                let archives = &mut self.site.archives;
                archives.iter_mut().for_each(|it| it.set_wanted(false));
                FollowingPhase::Closing
            }
            FollowingPhase::Closing | FollowingPhase::Over => FollowingPhase::Over,
        };
    }

    /// Returns the counters, the errors, and the states of the followers.
    fn state_text(&self) -> String {
        let mut text = self.site.state_text();
        for follower in &self.followers {
            for error in follower.errors() {
                text += &format!("{error}\n");
            }
            text += &format!("{}\n", follower.summary());
        }
        text += &format!("{:#?}\n", self.observed);
        text
    }
}
