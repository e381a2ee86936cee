//! [`WorldFrame`]: the hosts of a schedule with their drivers and network, the future events, and the steps of virtual
//! time. All worlds share it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::{ClockPlan, START_NS, VirtualClock};
use crate::host::Host;
use crate::network::{HostId, HostNetwork, SharedWire, Weather, Wire, describe};
use crate::roles::Graveyard;
use crate::schedule::{DriverPlan, NamePlan};
use crate::truth::Finding;

/// While nothing happens, each step is longer than the previous one by this factor.
const IDLE_GROWTH: i64 = 8;

/// The part of a schedule that all schedules have.
pub struct FramePlan<'a> {
    pub drivers: &'a [DriverPlan],
    pub clocks: &'a [ClockPlan],
    pub names: NamePlan,
    /// The network conditions without faults.
    pub fair: &'a Weather,
    pub network_seed: u64,
    /// Shortest and longest step in nanoseconds.
    pub step_ns: (i64, i64),
}

/// The finding of a schedule.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The broken rule.
    pub finding: Finding,
    /// Time of the finding, in nanoseconds after the start of the schedule.
    pub after_ns: i64,
    /// All counters of all drivers at that time.
    pub counters: String,
}

/// The hosts of a schedule with events of the type `E`.
pub struct WorldFrame<E> {
    pub clock: VirtualClock,
    pub wire: SharedWire,
    pub hosts: Vec<Host>,
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

impl<E: Clone> WorldFrame<E> {
    /// Creates the hosts at the beginning of a schedule, without its events, and starts their drivers.
    pub fn new(plan: FramePlan<'_>) -> Self {
        let clock = VirtualClock::new(plan.clocks);
        let wire = SharedWire::new(Wire::new(
            plan.drivers.len(),
            plan.fair.clone(),
            plan.network_seed,
            START_NS,
        ));
        let drivers = plan.drivers.iter().enumerate();
        let hosts = drivers
            .map(|(id, driver)| {
                let network =
                    HostNetwork::new(wire.clone(), id, driver.has_segmentation, driver.link_mtu);
                let mut host = Host::new(id, driver.context.clone(), network, driver.seed)
                    .with_names(plan.names.clone());
                host.start(&clock);
                host
            })
            .collect();
        Self {
            clock,
            wire,
            hosts,
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

    /// Returns a finding of this moment as the failure of the schedule.
    pub fn failure(&self, finding: Finding, counters: String) -> Failure {
        Failure {
            finding,
            after_ns: self.clock.now_ns() - START_NS,
            counters,
        }
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

    /// Returns the next event that happens now.
    pub fn next_event(&mut self) -> Option<E> {
        let Reverse((at_ns, number)) = self.agenda.peek().copied()?;
        if at_ns > self.clock.now_ns() {
            return None;
        }
        self.agenda.pop();
        self.events.get(number).cloned()
    }

    /// Runs the drivers. Returns a work count.
    pub fn run_drivers(&mut self) -> usize {
        let hosts = self.hosts.iter_mut();
        hosts.map(|host| host.do_work(&self.clock)).sum()
    }

    /// Sets the length of the next step: longer after a step without work.
    pub fn pace(&mut self, work_count: usize) {
        let (busy_ns, idle_ns) = self.step_range_ns;
        self.step_ns = match work_count {
            0 => (self.step_ns * IDLE_GROWTH).min(idle_ns),
            _ => busy_ns,
        };
    }

    /// Starts a driver, unless it runs.
    pub fn start_driver(&mut self, host: HostId) {
        if !self.hosts[host].is_running() {
            self.hosts[host].start(&self.clock);
        }
    }

    /// Ends the faults of the network, removes all events, and starts the drivers that do not run.
    pub fn heal(&mut self) {
        *self.wire.lock().weather() = self.fair.clone();
        self.agenda.clear();
        (0..self.hosts.len()).for_each(|host| self.start_driver(host));
    }

    /// Returns all counters of all drivers.
    pub fn counters_text(&self) -> String {
        self.hosts.iter().map(Host::counters_text).collect()
    }
}
