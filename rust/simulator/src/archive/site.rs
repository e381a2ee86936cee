//! [`Site`]: the hosts of a schedule with their drivers, archives and network.

use super::plan::{ArchiveEvent, ArchiveSchedule};
use super::server::ArchiveServer;
use crate::checks::check_timeouts;
use crate::clock::START_NS;
use crate::frame::{FramePlan, WorldFrame};
use crate::network::HostId;
use crate::schedule::NamePlan;
use crate::truth::Finding;

/// The machines of a schedule with events of the type `E`.
pub struct Site<E> {
    pub frame: WorldFrame<E>,
    pub archives: Vec<ArchiveServer>,
}

impl<E: Clone + From<ArchiveEvent>> Site<E> {
    /// Creates the machines at the beginning of a schedule, with the events of the archives.
    pub fn new(plan: &ArchiveSchedule) -> Self {
        let mut frame = WorldFrame::new(FramePlan {
            drivers: &plan.drivers,
            clocks: &plan.clocks,
            names: NamePlan::default(),
            fair: &plan.fair,
            network_seed: plan.network_seed,
            step_ns: plan.step_ns,
        });
        for (after_ns, event) in plan.events.clone() {
            frame.arrange(START_NS + after_ns, event.into());
        }
        let archives = plan.archives.iter().cloned().map(ArchiveServer::new);
        Self {
            frame,
            archives: archives.collect(),
        }
    }

    /// Runs drivers and archives. Returns a work count.
    ///
    /// # Errors
    /// An archive does not start although it must.
    pub fn run(&mut self) -> Result<usize, Finding> {
        let mut work_count = self.frame.run_drivers();
        for archive in &mut self.archives {
            let host = &self.frame.hosts[archive.plan().host];
            work_count += archive.do_work(host, &self.frame.clock, &mut self.frame.graveyard)?;
        }
        Ok(work_count)
    }

    /// Checks that no driver has timed out a living client.
    pub fn check_timeouts(&self) -> Result<(), Finding> {
        check_timeouts(&self.frame.hosts, &self.frame.graveyard)
    }

    /// Makes an event of the machines happen.
    pub fn happen(&mut self, event: ArchiveEvent) {
        let now_ns = self.frame.clock.now_ns();
        match event {
            ArchiveEvent::Kill(archive, away_ns) => {
                self.archives[archive].kill(now_ns + away_ns, &mut self.frame.graveyard);
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
            ArchiveEvent::StartDriver(host) => self.frame.start_driver(host),
            ArchiveEvent::LosePower(host, away_ns) => self.lose_power(host, now_ns + away_ns),
            ArchiveEvent::Weather(weather) => *self.frame.wire.lock().weather() = weather,
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
        let mut text: String = self.frame.counters_text();
        for archive in &self.archives {
            let (host, errors) = (archive.plan().host, archive.errors());
            for error in errors.iter().rev().take(10).rev() {
                text += &format!("archive of host {host}: {error}\n");
            }
        }
        text
    }

    fn crash_driver(&mut self, host: HostId, until_ns: i64) {
        self.frame.hosts[host].crash();
        self.frame
            .arrange(until_ns, ArchiveEvent::StartDriver(host).into());
    }

    /// Ends driver and archive of a host at once.
    fn lose_power(&mut self, host: HostId, until_ns: i64) {
        self.crash_driver(host, until_ns);
        for archive in &mut self.archives {
            if archive.plan().host == host {
                archive.lose_power(until_ns, &mut self.frame.graveyard);
            }
        }
    }

    fn heal(&mut self) {
        self.frame.heal();
        for archive in &mut self.archives {
            archive.heal_disk();
            archive.start_at(self.frame.clock.now_ns());
        }
    }
}
