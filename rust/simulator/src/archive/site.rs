//! [`Site`]: the hosts of a schedule with their drivers, archives and network, and the loop that advances time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::plan::{ArchiveEvent, ArchiveSchedule};
use super::server::ArchiveServer;
use crate::checks::check_timeouts;
use crate::clock::{START_NS, VirtualClock};
use crate::host::Host;
use crate::network::{HostId, HostNetwork, SharedWire, Weather, Wire, describe};
use crate::roles::Graveyard;
use crate::truth::Finding;

/// While nothing happens, each step is longer than the previous one by this factor.
const IDLE_GROWTH: i64 = 8;

/// The machines of a schedule with events of the type `E`.
pub struct Site<E> {
    pub clock: VirtualClock,
    pub wire: SharedWire,
    pub hosts: Vec<Host>,
    pub archives: Vec<ArchiveServer>,
    pub graveyard: Graveyard,
    /// Number of steps so far.
    pub steps: u64,
    /// Future events, ordered by time. Events at the same time are in the order of the schedule.
    agenda: BinaryHeap<Reverse<(i64, usize)>>,
    events: Vec<E>,
    fair: Weather,
    /// Shortest and longest step in nanoseconds.
    step_range_ns: (i64, i64),
    step_ns: i64,
}

impl<E: Clone + From<ArchiveEvent>> Site<E> {
    /// Creates the machines at the beginning of a schedule, without its events.
    pub fn new(plan: &ArchiveSchedule) -> Self {
        let clock = VirtualClock::new(&plan.clocks);
        let wire = SharedWire::new(Wire::new(
            plan.drivers.len(),
            plan.fair.clone(),
            plan.network_seed,
            START_NS,
        ));
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
        Self {
            clock,
            wire,
            hosts,
            archives: archives.collect(),
            graveyard: Graveyard::default(),
            steps: 0,
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            fair: plan.fair.clone(),
            step_range_ns: plan.step_ns,
            step_ns: plan.step_ns.0,
        }
    }

    /// Calls `tell` with a line for each datagram that is sent.
    pub fn trace(&self, mut tell: impl FnMut(String) + Send + 'static) {
        self.wire.lock().observe(Box::new(move |now_ns, passing| {
            let after = (now_ns - START_NS) as f64 / 1e9;
            tell(format!("{after:.6} {}", describe(passing)));
        }));
    }

    /// Arranges that an event happens at a time.
    pub fn arrange(&mut self, at_ns: i64, event: E) {
        self.agenda.push(Reverse((at_ns, self.events.len())));
        self.events.push(event);
    }

    /// Advances time to the end of the step or to an earlier event. Returns the work count of the network.
    pub fn advance(&mut self) -> usize {
        let now_ns = self.next_time_ns();
        self.clock.advance_to(now_ns);
        self.steps += 1;
        self.wire.lock().advance(now_ns)
    }

    /// Returns the next event that happens now.
    pub fn next_event(&mut self) -> Option<E> {
        let Reverse((at_ns, number)) = self.agenda.peek().copied()?;
        if at_ns > self.clock.now_ns() {
            return None;
        }
        self.agenda.pop();
        self.events.get(number).cloned()
    }

    /// Runs drivers and archives. Returns a work count.
    ///
    /// # Errors
    /// An archive does not start although it must, or a driver has timed out a living client.
    pub fn run(&mut self) -> Result<usize, Finding> {
        check_timeouts(&self.hosts, &self.graveyard)?;
        let mut work_count = 0;
        for host in &mut self.hosts {
            work_count += host.do_work(&self.clock);
        }
        for archive in &mut self.archives {
            let host = &self.hosts[archive.plan().host];
            work_count += archive.do_work(host, &self.clock, &mut self.graveyard)?;
        }
        Ok(work_count)
    }

    /// Sets the length of the next step: longer after a step without work.
    pub fn pace(&mut self, work_count: usize) {
        let (busy_ns, idle_ns) = self.step_range_ns;
        self.step_ns = match work_count {
            0 => (self.step_ns * IDLE_GROWTH).min(idle_ns),
            _ => busy_ns,
        };
    }

    /// Makes an event of the machines happen.
    pub fn happen(&mut self, event: ArchiveEvent) {
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
            ArchiveEvent::FailSync(archive, file) => self.archives[archive].fail_sync(file),
            ArchiveEvent::SlowDown(archive) => self.archives[archive].slow_down(),
            ArchiveEvent::FillDisk(archive, room) => self.archives[archive].limit_space(room),
            ArchiveEvent::HealDisk(archive) => self.archives[archive].heal_disk(),
            ArchiveEvent::CrashDriver(host, away_ns) => self.crash_driver(host, now_ns + away_ns),
            ArchiveEvent::StartDriver(host) => self.start_driver(host),
            ArchiveEvent::LosePower(host, away_ns) => self.lose_power(host, now_ns + away_ns),
            ArchiveEvent::Weather(weather) => *self.wire.lock().weather() = weather,
            ArchiveEvent::Heal => self.heal(),
            // A site has no operators, and it does not change recordings.
            ArchiveEvent::CrashOperator(_) | ArchiveEvent::Rot(_) | ArchiveEvent::Stray(..) => {}
        }
    }

    /// Returns the first archive that runs, as a reason why the schedule is not over.
    pub fn running_archive(&self) -> Option<Finding> {
        let archive = self.archives.iter().find(|archive| archive.is_running())?;
        let host = archive.plan().host;
        Some(format!("the archive of host {host} does not end"))
    }

    /// Returns the counters, and the last errors of the archives.
    pub fn state_text(&self) -> String {
        let mut text: String = self.hosts.iter().map(Host::counters_text).collect();
        for archive in &self.archives {
            let (host, errors) = (archive.plan().host, archive.errors());
            for error in errors.iter().rev().take(10).rev() {
                text += &format!("archive of host {host}: {error}\n");
            }
        }
        text
    }

    /// Returns the end of the step, or the time of an earlier event.
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

    fn crash_driver(&mut self, host: HostId, until_ns: i64) {
        self.hosts[host].crash();
        self.arrange(until_ns, ArchiveEvent::StartDriver(host).into());
    }

    fn start_driver(&mut self, host: HostId) {
        if !self.hosts[host].is_running() {
            self.hosts[host].start(&self.clock);
        }
    }

    /// Ends driver and archive of a host at once.
    fn lose_power(&mut self, host: HostId, until_ns: i64) {
        self.crash_driver(host, until_ns);
        for archive in &mut self.archives {
            if archive.plan().host == host {
                archive.lose_power(until_ns, &mut self.graveyard);
            }
        }
    }

    fn heal(&mut self) {
        *self.wire.lock().weather() = self.fair.clone();
        self.agenda.clear();
        for host in 0..self.hosts.len() {
            self.start_driver(host);
        }
        for archive in &mut self.archives {
            archive.heal_disk();
            archive.start_at(self.clock.now_ns());
        }
    }
}
