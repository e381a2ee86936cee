//! The world of a schedule with recorded publishers, and the loop that advances time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::plan::{ArchiveEvent, HEAL_NS};
use super::super::server::ArchiveServer;
use super::plan::PublishingSchedule;
use super::publisher::PublishingProcess;
use crate::clock::{START_NS, VirtualClock};
use crate::host::Host;
use crate::network::{HostId, HostNetwork, SharedWire, Wire, describe};
use crate::roles::Graveyard;
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;
use crate::world::Failure;

/// Time for which the publishers offer messages after the last fault.
const CALM_WORK_NS: i64 = 2 * SECOND;
/// Time limit until all messages are recorded, and time limit until the archives have ended.
const PHASE_LIMIT_NS: i64 = 25 * SECOND;
/// While nothing happens, each step is longer than the previous one by this factor.
const IDLE_GROWTH: i64 = 8;
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
    clock: VirtualClock,
    wire: SharedWire,
    hosts: Vec<Host>,
    archives: Vec<ArchiveServer>,
    publishers: Vec<PublishingProcess>,
    graveyard: Graveyard,
    /// Future events, ordered by time. Events at the same time are in the order of the schedule.
    agenda: BinaryHeap<Reverse<(i64, usize)>>,
    events: Vec<PublishingEvent>,
    phase: PublishingPhase,
    phase_since_ns: i64,
    steps: u64,
    step_ns: i64,
}

impl PublishingWorld {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: PublishingSchedule) -> Self {
        let clock = VirtualClock::new();
        let plan = &schedule.archives;
        let wire = Wire::new(
            plan.drivers.len(),
            plan.fair.clone(),
            plan.network_seed,
            START_NS,
        );
        let wire = SharedWire::new(wire);
        let drivers = plan.drivers.iter().enumerate();
        let hosts = drivers
            .map(|(id, plan)| {
                let network =
                    HostNetwork::new(wire.clone(), id, plan.has_segmentation, plan.link_mtu);
                let mut host = Host::new(id, plan.context.clone(), network, plan.seed);
                host.start(&clock);
                host
            })
            .collect();
        let archives = plan.archives.iter().cloned().map(ArchiveServer::new);
        let publishers = schedule.publishers.iter().cloned().enumerate();
        let publishers = publishers
            .map(|(at, it)| PublishingProcess::new(it, plan.seed ^ (at as u64 + 1) << 40));
        let mut world = Self {
            clock,
            wire,
            hosts,
            archives: archives.collect(),
            publishers: publishers.collect(),
            graveyard: Graveyard::default(),
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            phase: PublishingPhase::Working {
                until_ns: START_NS + HEAL_NS + CALM_WORK_NS,
            },
            phase_since_ns: START_NS,
            steps: 0,
            step_ns: plan.step_ns.0,
            schedule,
        };
        for (after_ns, event) in world.schedule.archives.events.clone() {
            world.arrange(START_NS + after_ns, PublishingEvent::Archive(event));
        }
        for (after_ns, publisher) in world.schedule.deaths.clone() {
            world.arrange(START_NS + after_ns, PublishingEvent::Die(publisher));
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
    /// A recording does not have the messages that its publisher has accepted, or a publisher failed.
    pub fn run(mut self) -> Result<PublishingOutcome, Failure> {
        self.pass_time()
            .and_then(|()| self.outcome())
            .map_err(|finding| Failure {
                finding,
                after_ns: self.clock.now_ns() - START_NS,
                counters: self.state_text(),
            })
    }

    fn outcome(&self) -> Result<PublishingOutcome, Finding> {
        let mut outcome = PublishingOutcome {
            lives: self.archives.iter().map(ArchiveServer::lives).sum(),
            steps: self.steps,
            ..PublishingOutcome::default()
        };
        let disk = self.archives[0].disk();
        // If there are checksums, a checksum replaces the session id of each frame.
        let has_sessions = self.archives[0].plan().context.record_checksum.is_empty();
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
            let (busy_ns, idle_ns) = self.schedule.archives.step_ns;
            self.step_ns = match work_count {
                0 => (self.step_ns * IDLE_GROWTH).min(idle_ns),
                _ => busy_ns,
            };
            self.end_phase_if_over()?;
        }
        Ok(())
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
            self.happen(self.events[number].clone());
            work_count += 1;
        }
        for host in &mut self.hosts {
            work_count += host.do_work(&self.clock);
        }
        for archive in &mut self.archives {
            let host = &self.hosts[archive.plan().host];
            work_count += archive.do_work(host, &self.clock, &mut self.graveyard)?;
        }
        for publisher in &mut self.publishers {
            let host = &self.hosts[publisher.host()];
            work_count += publisher.do_work(host, &self.clock, self.schedule.archives.seed)?;
        }
        Ok(work_count)
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

    fn arrange(&mut self, at_ns: i64, event: PublishingEvent) {
        self.agenda.push(Reverse((at_ns, self.events.len())));
        self.events.push(event);
    }

    fn happen(&mut self, event: PublishingEvent) {
        let now_ns = self.clock.now_ns();
        let event = match event {
            PublishingEvent::Archive(event) => event,
            PublishingEvent::Die(publisher) => {
                let starts_from_ns = now_ns + (now_ns % MAX_ABSENCE_NS);
                self.publishers[publisher].crash(starts_from_ns, &mut self.graveyard);
                return;
            }
        };
        match event {
            ArchiveEvent::Kill(archive, away_ns) => {
                self.archives[archive].kill(now_ns + away_ns, &mut self.graveyard);
            }
            ArchiveEvent::FailWrite(archive, steps, fault) => {
                self.archives[archive].fail_in(steps, fault);
            }
            ArchiveEvent::TearBlock(archive, pages) => self.archives[archive].tear_block(pages),
            ArchiveEvent::Restart(archive) => self.archives[archive].restart(),
            ArchiveEvent::FillDisk(archive, room) => self.archives[archive].limit_space(room),
            ArchiveEvent::HealDisk(archive) => self.archives[archive].heal_disk(),
            ArchiveEvent::CrashDriver(host, away_ns) => self.crash_driver(host, now_ns + away_ns),
            ArchiveEvent::StartDriver(host) => self.start_driver(host),
            ArchiveEvent::LosePower(host, away_ns) => self.lose_power(host, now_ns + away_ns),
            ArchiveEvent::Weather(weather) => *self.wire.lock().weather() = weather,
            ArchiveEvent::Heal => self.heal(),
            // These schedules have no operators and no flipped bits.
            ArchiveEvent::CrashOperator(_) | ArchiveEvent::Rot(_) => {}
        }
    }

    fn crash_driver(&mut self, host: HostId, until_ns: i64) {
        self.hosts[host].crash();
        let start = PublishingEvent::Archive(ArchiveEvent::StartDriver(host));
        self.arrange(until_ns, start);
    }

    fn start_driver(&mut self, host: HostId) {
        if !self.hosts[host].is_running() {
            self.hosts[host].start(&self.clock);
        }
    }

    /// Ends the driver, the archive and all clients on the host at once.
    fn lose_power(&mut self, host: HostId, until_ns: i64) {
        self.crash_driver(host, until_ns);
        for archive in &mut self.archives {
            if archive.plan().host == host {
                archive.lose_power(until_ns, &mut self.graveyard);
            }
        }
        for publisher in &mut self.publishers {
            if publisher.host() == host {
                publisher.crash(until_ns, &mut self.graveyard);
            }
        }
    }

    fn heal(&mut self) {
        *self.wire.lock().weather() = self.schedule.archives.fair.clone();
        self.agenda.clear();
        for host in 0..self.hosts.len() {
            self.start_driver(host);
        }
        for archive in &mut self.archives {
            archive.heal_disk();
            archive.start_at(self.clock.now_ns());
        }
    }

    /// Starts the next phase if the current one is over.
    ///
    /// # Errors
    /// The time limit of the current phase is reached, and the phase is not over. The finding is the reason.
    fn end_phase_if_over(&mut self) -> Result<(), Finding> {
        let now_ns = self.clock.now_ns();
        let complaint = match self.phase {
            PublishingPhase::Working { until_ns } if now_ns < until_ns => return Ok(()),
            PublishingPhase::Working { .. } | PublishingPhase::Over => None,
            PublishingPhase::Flushing => {
                let mut publishers = self.publishers.iter();
                let busy = publishers.find(|publisher| !publisher.is_done());
                busy.map(|publisher| format!("not everything is recorded: {}", publisher.summary()))
            }
            PublishingPhase::Closing => {
                let mut archives = self.archives.iter();
                let running = archives.find(|archive| archive.is_running());
                running.map(|archive| {
                    format!("the archive of host {} does not end", archive.plan().host)
                })
            }
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
        self.phase_since_ns = self.clock.now_ns();
        self.phase = match self.phase {
            PublishingPhase::Working { .. } => {
                self.publishers.iter_mut().for_each(PublishingProcess::stop);
                PublishingPhase::Flushing
            }
            PublishingPhase::Flushing => {
                let archives = &mut self.archives;
                archives.iter_mut().for_each(|it| it.set_wanted(false));
                PublishingPhase::Closing
            }
            PublishingPhase::Closing | PublishingPhase::Over => PublishingPhase::Over,
        };
    }

    /// Returns the counters, the errors, and the states of the publishers.
    fn state_text(&self) -> String {
        let mut text: String = self.hosts.iter().map(Host::counters_text).collect();
        for archive in &self.archives {
            let (host, errors) = (archive.plan().host, archive.errors());
            for error in errors.iter().rev().take(10).rev() {
                text += &format!("archive of host {host}: {error}\n");
            }
        }
        for publisher in &self.publishers {
            for error in publisher.errors().iter().rev().take(20).rev() {
                text += &format!("publisher on host {}: {error}\n", publisher.host());
            }
            text += &format!("{}\n", publisher.summary());
        }
        text
    }
}
