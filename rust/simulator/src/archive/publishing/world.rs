//! The world of a schedule with recorded publishers, and the loop that advances time.

use fastrand::Rng;

use super::super::cutting::CutFrames;
use super::super::plan::{ArchiveEvent, HEAL_NS};
use super::super::server::ArchiveServer;
use super::super::site::Site;
use super::plan::PublishingSchedule;
use super::publisher::PublishingProcess;
use crate::clock::START_NS;
use crate::frame::Failure;
use crate::network::HostId;
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Time for which the publishers offer messages after the last fault.
const CALM_WORK_NS: i64 = 2 * SECOND;
/// Time limit of each later phase: one records all messages, and one ends the archives.
const PHASE_LIMIT_NS: i64 = 25 * SECOND;
/// Maximum time between the death of a publisher and the start of the next process.
const MAX_ABSENCE_NS: i64 = 1_500 * MS;

/// Results of a schedule with recorded publishers that had no finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishingOutcome {
    /// Number of messages in the recordings.
    pub recorded: u64,
    /// Number of messages that were recorded partly before and partly after a loss, in archives without checksums.
    pub completed: u64,
    /// Number of extensions of recordings after a loss.
    pub reconnects: u64,
    /// Number of messages that were sent again.
    pub offered_again: u64,
    /// Padding that was removed after it was reported as recorded.
    pub cut_padding: u64,
    /// Fragments that were removed after they were reported as recorded.
    pub cut_fragments: u64,
    /// Number of archive processes.
    pub lives: u64,
    /// Number of steps of virtual time.
    pub steps: u64,
}

impl PublishingOutcome {
    /// Adds the results of another schedule.
    pub fn add(&mut self, other: &Self) {
        self.recorded += other.recorded;
        self.completed += other.completed;
        self.reconnects += other.reconnects;
        self.offered_again += other.offered_again;
        self.cut_padding += other.cut_padding;
        self.cut_fragments += other.cut_fragments;
        self.lives += other.lives;
        self.steps += other.steps;
    }
}

/// An event of the schedule.
#[derive(Clone, Debug)]
enum PublishingEvent {
    Archive(ArchiveEvent),
    /// A publisher dies.
    Die(usize),
    /// From now on, the first archive is killed as soon as the last recorded frame is not the end of a message. It
    /// starts again after this time, without this frame.
    Cut(i64),
}

impl From<ArchiveEvent> for PublishingEvent {
    fn from(event: ArchiveEvent) -> Self {
        Self::Archive(event)
    }
}

/// Phase of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishingPhase {
    /// Faults happen. Then, until this time, publishers work without faults.
    Working {
        until_ns: i64,
    },
    /// The publishers wait until all messages are recorded.
    Flushing,
    /// The archives end.
    Closing,
    Over,
}

/// See the [module](self).
pub struct PublishingWorld {
    schedule: PublishingSchedule,
    site: Site<PublishingEvent>,
    publishers: Vec<PublishingProcess>,
    /// See [`PublishingEvent::Cut`].
    next_cut: Option<i64>,
    random: Rng,
    cut: CutFrames,
    phase: PublishingPhase,
    phase_since_ns: i64,
}

impl PublishingWorld {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: PublishingSchedule) -> Self {
        let plan = &schedule.archives;
        let publishers = schedule.publishers.iter().cloned().enumerate();
        let publishers = publishers
            .map(|(at, it)| PublishingProcess::new(it, plan.seed ^ (at as u64 + 1) << 40));
        let mut site = Site::new(plan);
        for (after_ns, publisher) in schedule.deaths.clone() {
            site.frame
                .arrange(START_NS + after_ns, PublishingEvent::Die(publisher));
        }
        for (after_ns, away_ns) in schedule.cuts.clone() {
            site.frame
                .arrange(START_NS + after_ns, PublishingEvent::Cut(away_ns));
        }
        Self {
            site,
            publishers: publishers.collect(),
            next_cut: None,
            random: Rng::with_seed(schedule.archives.seed ^ 0xC0_77),
            cut: CutFrames::default(),
            phase: PublishingPhase::Working {
                until_ns: START_NS + HEAL_NS + CALM_WORK_NS,
            },
            phase_since_ns: START_NS,
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
    /// A recording does not have the messages that its publisher has accepted, or a publisher or an archive failed.
    pub fn run(mut self) -> Result<PublishingOutcome, Failure> {
        self.pass_time()
            .and_then(|()| self.outcome())
            .map_err(|finding| self.site.frame.failure(finding, self.state_text()))
    }

    fn outcome(&self) -> Result<PublishingOutcome, Finding> {
        let mut outcome = PublishingOutcome {
            lives: self.site.archives.iter().map(ArchiveServer::lives).sum(),
            cut_padding: self.cut.padding,
            cut_fragments: self.cut.fragments,
            steps: self.site.frame.steps,
            ..PublishingOutcome::default()
        };
        let disk = self.site.archives[0].disk();
        // If there are checksums, a checksum replaces the session id of each frame.
        let has_sessions = self.site.archives[0]
            .plan()
            .context
            .record_checksum
            .is_empty();
        for publisher in &self.publishers {
            let tape = publisher.tape();
            let (recorded, completed) = tape.check(disk, self.schedule.archives.seed)?;
            outcome.recorded += recorded;
            if has_sessions {
                outcome.completed += completed;
            }
            let (reconnects, offered_again) = publisher.repairs();
            outcome.reconnects += reconnects;
            outcome.offered_again += offered_again;
        }
        Ok(outcome)
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while self.phase != PublishingPhase::Over {
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
        for publisher in &mut self.publishers {
            let host = &self.site.frame.hosts[publisher.host()];
            work_count +=
                publisher.do_work(host, &self.site.frame.clock, self.schedule.archives.seed)?;
        }
        self.cut_if_due();
        Ok(work_count)
    }

    fn cut_if_due(&mut self) {
        let archive = &mut self.site.archives[0];
        let Some(away_ns) = self.next_cut else {
            return;
        };
        let mut publishers = self.publishers.iter();
        if !archive.is_running() || !publishers.any(PublishingProcess::has_recorded_a_part) {
            return;
        }
        let starts_from_ns = self.site.frame.clock.now_ns() + away_ns;
        let graveyard = &mut self.site.frame.graveyard;
        let cut = archive.kill_and_cut(starts_from_ns, graveyard, &mut self.random);
        self.cut.padding += cut.padding;
        self.cut.fragments += cut.fragments;
        self.next_cut = None;
    }

    fn happen(&mut self, event: PublishingEvent) {
        let now_ns = self.site.frame.clock.now_ns();
        match event {
            PublishingEvent::Die(publisher) => {
                let starts_from_ns = now_ns + (now_ns % MAX_ABSENCE_NS);
                self.publishers[publisher].crash(starts_from_ns, &mut self.site.frame.graveyard);
            }
            PublishingEvent::Cut(away_ns) => self.next_cut = Some(away_ns),
            PublishingEvent::Archive(event) => {
                if matches!(event, ArchiveEvent::Heal) {
                    self.next_cut = None;
                }
                self.site.happen(event.clone());
                if let ArchiveEvent::LosePower(host, away_ns) = event {
                    self.crash_publishers(host, now_ns + away_ns);
                }
            }
        }
    }

    fn crash_publishers(&mut self, host: HostId, until_ns: i64) {
        for publisher in &mut self.publishers {
            if publisher.host() == host {
                publisher.crash(until_ns, &mut self.site.frame.graveyard);
            }
        }
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The time limit of the current phase is reached, and the phase is not over. The finding says what is not done.
    fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.site.frame.clock.now_ns();
        let complaint = match self.phase {
            PublishingPhase::Working { until_ns } if now_ns < until_ns => return Ok(()),
            PublishingPhase::Working { .. } | PublishingPhase::Over => None,
            PublishingPhase::Flushing => {
                let mut publishers = self.publishers.iter();
                let busy = publishers.find(|publisher| !publisher.is_done());
                busy.map(|publisher| format!("not everything is recorded: {}", publisher.summary()))
            }
            PublishingPhase::Closing => self.site.running_archive(),
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

    fn begin_next_phase(&mut self) {
        self.phase_since_ns = self.site.frame.clock.now_ns();
        self.phase = match self.phase {
            PublishingPhase::Working { .. } => {
                self.publishers.iter_mut().for_each(PublishingProcess::stop);
                PublishingPhase::Flushing
            }
            PublishingPhase::Flushing => {
                let archives = &mut self.site.archives;
                archives.iter_mut().for_each(|it| it.set_wanted(false));
                PublishingPhase::Closing
            }
            PublishingPhase::Closing | PublishingPhase::Over => PublishingPhase::Over,
        };
    }

    /// Returns the counters, the errors, and the states of the publishers.
    fn state_text(&self) -> String {
        let mut text = self.site.state_text();
        for publisher in &self.publishers {
            for error in publisher.errors().iter().rev().take(20).rev() {
                text += &format!("publisher on host {}: {error}\n", publisher.host());
            }
            text += &format!("{}\n", publisher.summary());
        }
        text
    }
}
