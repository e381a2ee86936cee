//! The world of a schedule: hosts, network and applications, and the loop that advances time.

mod ending;
mod probing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aeron_driver::rules::Reached;
use aeron_protocol::frame::{Nak, Rttm};
use fastrand::Rng;

use crate::checks::{CounterChecks, CounterIdChecks, DatagramChecks, check_timeouts};
use crate::clock::{START_NS, VirtualClock};
use crate::host::Host;
use crate::network::{HostNetwork, SharedWire, Weather, Wire, WireCounts, describe};
use crate::roles::{Conversation, Graveyard, Publisher, RoleEnvironment, SimulatedSubscriber};
use crate::schedule::{Event, RoleId, Schedule};
use crate::truth::{Finding, Truth};
use ending::Phase;

/// Results of a schedule without a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of messages published.
    pub published: u64,
    /// Number of messages received by all subscribers together.
    pub received: u64,
    /// Counts of network events.
    pub wire: WireCounts,
    /// Number of steps of virtual time.
    pub steps: u64,
    /// Rows of the drivers' state tables that were reached.
    pub reached: Reached,
    /// Longest durations of recovery, parting and leaving, in nanoseconds.
    pub slowest_ns: [i64; 3],
    /// A fingerprint of the whole run. Equal seeds give equal fingerprints.
    pub fingerprint: u64,
}

impl Outcome {
    /// Adds the results of another schedule.
    pub fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.received += other.received;
        self.wire.add(&other.wire);
        self.steps += other.steps;
        self.reached = self.reached.and(other.reached);
        self.fingerprint ^= other.fingerprint;
        for (slowest, other) in self.slowest_ns.iter_mut().zip(other.slowest_ns) {
            *slowest = other.max(*slowest);
        }
    }
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

/// A stream's publisher and subscribers.
struct SimulatedStream {
    publisher: Publisher,
    subscribers: Vec<SimulatedSubscriber>,
    /// Number of the publication with the last messages; `None` until all of them are published.
    last_publication: Option<u32>,
}

impl SimulatedStream {
    /// Whether the stream must have a receiver when there are no faults.
    fn is_served(&self) -> bool {
        let mut plans = self.subscribers.iter().map(SimulatedSubscriber::plan);
        plans.any(|plan| plan.is_served)
    }
}

/// See the [module](self).
pub struct World {
    schedule: Schedule,
    clock: VirtualClock,
    wire: SharedWire,
    hosts: Vec<Host>,
    streams: Vec<SimulatedStream>,
    conversation: Option<Conversation>,
    truth: Truth,
    graveyard: Graveyard,
    /// Future events, ordered by time. Events at the same time are in the order of the schedule.
    agenda: BinaryHeap<Reverse<Appointment>>,
    events: Vec<Event>,
    checks: CounterChecks,
    id_checks: CounterIdChecks,
    datagram_checks: DatagramChecks,
    phase: Phase,
    /// Durations of recovery, parting and leaving, in nanoseconds.
    phase_times_ns: [i64; 3],
    /// Random numbers for the forged datagrams.
    random: Rng,
    steps: u64,
    step_ns: i64,
}

/// Time and number of an event.
type Appointment = (i64, usize);

/// Number of steps between two checks of all positions.
const STEPS_BETWEEN_CHECKS: u64 = 16;
/// Number of steps between two checks of the ids of all counters.
const STEPS_BETWEEN_ID_CHECKS: u64 = 64;
/// Maximum number of NAKs that are forged at a time.
const MAX_FORGED_NAKS: usize = 8;
/// While nothing happens, each step is longer than the previous one by this factor.
const IDLE_GROWTH: i64 = 8;

impl World {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: Schedule) -> Self {
        let clock = VirtualClock::new(&schedule.clocks);
        let hosts = schedule.drivers.len();
        let mut wire = Wire::new(
            hosts,
            schedule.fair.clone(),
            schedule.network_seed,
            START_NS,
        );
        let datagram_checks = DatagramChecks::default();
        let observing = datagram_checks.clone();
        wire.observe(Box::new(move |_, passing| observing.on_sent(passing)));
        let wire = SharedWire::new(wire);
        let hosts = schedule
            .drivers
            .iter()
            .enumerate()
            .map(|(id, plan)| {
                let network =
                    HostNetwork::new(wire.clone(), id, plan.has_segmentation, plan.link_mtu);
                let mut host = Host::new(id, plan.context.clone(), network, plan.seed)
                    .with_names(schedule.names.clone());
                host.start(&clock);
                host
            })
            .collect();
        let streams = schedule
            .streams
            .iter()
            .enumerate()
            .map(|(index, plan)| SimulatedStream {
                publisher: Publisher::new(plan.publisher.clone(), schedule.seed ^ index as u64),
                subscribers: plan
                    .subscribers
                    .iter()
                    .cloned()
                    .map(SimulatedSubscriber::new)
                    .collect(),
                last_publication: None,
            })
            .collect();
        let conversation = schedule.conversation.as_ref();
        let mut world = Self {
            conversation: conversation.map(|plan| Conversation::new(plan, schedule.seed)),
            clock,
            wire,
            hosts,
            streams,
            truth: Truth::default(),
            graveyard: Graveyard::default(),
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            checks: CounterChecks::default(),
            id_checks: CounterIdChecks::default(),
            datagram_checks,
            phase: Phase::Faults,
            phase_times_ns: [0; 3],
            random: Rng::with_seed(schedule.network_seed),
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
    /// A driver or client broke a rule.
    pub fn run(mut self) -> Result<Outcome, Failure> {
        // Discards the rows that another schedule on this thread has reached.
        Reached::take();
        self.pass_time().map_err(|finding| Failure {
            finding,
            after_ns: self.clock.now_ns() - START_NS,
            counters: self.hosts.iter().map(Host::counters_text).collect(),
        })?;
        Ok(Outcome {
            published: self.truth.published(),
            received: self.truth.received(),
            wire: self.wire.lock().counts(),
            steps: self.steps,
            reached: Reached::take(),
            slowest_ns: self.phase_times_ns,
            fingerprint: self.checks.fingerprint(),
        })
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while !matches!(self.phase, Phase::Over) {
            let work_count = self.step()?;
            self.choose_step(work_count);
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
            let event = self.events[number].clone();
            self.happen(event)?;
            work_count += 1;
        }
        for host in &mut self.hosts {
            work_count += host.do_work(&self.clock);
        }
        work_count += self.run_roles()?;
        self.datagram_checks.result()?;
        if self.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.checks.look(&self.hosts)?;
            check_timeouts(&self.hosts, &self.graveyard)?;
        }
        if self.steps.is_multiple_of(STEPS_BETWEEN_ID_CHECKS) {
            for host in &self.hosts {
                self.id_checks.look(host, &self.clock)?;
            }
        }
        Ok(work_count)
    }

    /// Returns the end of the next step, or the time of an event before it.
    fn next_time_ns(&self) -> i64 {
        let now_ns = self.clock.now_ns();
        let mut next_ns = now_ns + self.step_ns;
        if let Some(arrival_ns) = self.wire.lock().next_arrival_ns() {
            next_ns = next_ns.min(arrival_ns);
        }
        if let Some(Reverse((at_ns, _))) = self.agenda.peek() {
            next_ns = next_ns.min(*at_ns);
        }
        next_ns.max(now_ns + 1)
    }

    fn choose_step(&mut self, work_count: usize) {
        let (busy_ns, idle_ns) = self.schedule.step_ns;
        self.step_ns = match work_count {
            0 => (self.step_ns * IDLE_GROWTH).min(idle_ns),
            _ => busy_ns,
        };
    }

    fn run_roles(&mut self) -> Result<usize, Finding> {
        let mut surroundings = RoleEnvironment {
            hosts: &self.hosts,
            clock: &self.clock,
            truth: &mut self.truth,
            seed: self.schedule.seed,
        };
        let mut work_count = 0;
        for stream in &mut self.streams {
            work_count += stream.publisher.do_work(&mut surroundings)?;
            for subscriber in &mut stream.subscribers {
                work_count += subscriber.do_work(&mut surroundings)?;
            }
        }
        if let Some(conversation) = &mut self.conversation {
            work_count += conversation.do_work(&surroundings)?;
        }
        Ok(work_count)
    }

    fn arrange(&mut self, at_ns: i64, event: Event) {
        self.agenda.push(Reverse((at_ns, self.events.len())));
        self.events.push(event);
    }

    fn happen(&mut self, event: Event) -> Result<(), Finding> {
        let now_ns = self.clock.now_ns();
        match event {
            Event::Weather(weather) => *self.wire.lock().weather() = weather,
            Event::Heal => self.heal(),
            Event::Pause(host, agent, for_ns) => self.hosts[host].pause(agent, now_ns + for_ns),
            Event::PauseDriver(host, for_ns) => self.pause_driver(host, now_ns + for_ns),
            Event::CrashDriver(host, away_ns) => {
                self.hosts[host].crash();
                self.checks.forget(host);
                self.id_checks.forget(host);
                self.arrange(now_ns + away_ns, Event::StartDriver(host));
            }
            Event::StartDriver(host) => self.start_driver(host),
            Event::CrashClient(role, away_ns) => {
                self.crash_client(role);
                self.part(role, now_ns + away_ns);
            }
            Event::Join(role) => self.set_wanted(role, true),
            Event::Part(role, away_ns) => self.part(role, now_ns + away_ns),
            Event::Stall(stream, number, for_ns) => {
                self.streams[stream].subscribers[number].stall(now_ns + for_ns);
            }
            Event::AbandonClaim(stream) => self.streams[stream].publisher.abandon_claim(),
            Event::Revoke(stream, away_ns) => {
                self.streams[stream].publisher.revoke();
                self.part(RoleId::Publisher(stream), now_ns + away_ns);
            }
            Event::Reject(stream, number) => self.streams[stream].subscribers[number].reject(),
            Event::ForgeRoundTrip(stream) => self.forge_round_trip(stream),
            Event::ForgeNaks(stream) => self.forge_naks(stream),
            Event::CrashConversation(victim) => {
                if let Some(conversation) = &mut self.conversation {
                    conversation.crash(victim, &mut self.graveyard);
                }
            }
            Event::Publish(stream, count) => self.streams[stream].publisher.publish(count),
        }
        Ok(())
    }

    fn set_wanted(&mut self, role: RoleId, is_wanted: bool) {
        match role {
            RoleId::Publisher(stream) => self.streams[stream].publisher.set_wanted(is_wanted),
            RoleId::Subscriber(stream, number) => {
                self.streams[stream].subscribers[number].set_wanted(is_wanted);
            }
        }
    }

    fn part(&mut self, role: RoleId, until_ns: i64) {
        self.set_wanted(role, false);
        self.arrange(until_ns, Event::Join(role));
    }

    fn crash_client(&mut self, role: RoleId) {
        match role {
            RoleId::Publisher(stream) => self.streams[stream].publisher.crash(&mut self.graveyard),
            RoleId::Subscriber(stream, number) => {
                self.streams[stream].subscribers[number].crash(&mut self.graveyard);
            }
        }
    }

    /// Sends a forged request for a round-trip measurement of a stream to all sockets.
    fn forge_round_trip(&mut self, stream: usize) {
        let Some(number) = self.streams[stream].publisher.publication() else {
            return;
        };
        let record = self.truth.publication(number);
        let rttm = Rttm {
            is_request: true,
            session_id: record.stream.session_id,
            stream_id: record.stream.stream_id,
            echo_timestamp_ns: self.clock.now_ns(),
            reception_delta_ns: 0,
            receiver_id: 0,
        };
        let mut bytes = [0; Rttm::LENGTH];
        rttm.encode(&mut bytes);
        self.wire.lock().flood(&bytes);
    }

    /// Sends forged NAKs for a stream to all sockets. The requested bytes need not be missing, and may never have been
    /// sent.
    fn forge_naks(&mut self, stream: usize) {
        let Some(number) = self.streams[stream].publisher.publication() else {
            return;
        };
        for _ in 0..self.random.usize(1..=MAX_FORGED_NAKS) {
            let nak = self.truth.publication(number).any_nak(&mut self.random);
            let mut bytes = [0; Nak::LENGTH];
            nak.encode(&mut bytes);
            self.wire.lock().flood(&bytes);
        }
    }

    /// Pauses all agents of a driver. When the driver goes on, it may time out the clients that have lost it.
    fn pause_driver(&mut self, host: usize, until_ns: i64) {
        self.hosts[host].pause_all(until_ns);
        let streams = self.streams.iter();
        let clients = streams.flat_map(|stream| {
            let subscribers = stream.subscribers.iter().map(|it| it.plan().host);
            subscribers.chain([stream.publisher.host()])
        });
        let processes = self.conversation.iter().flat_map(Conversation::hosts);
        for _ in clients.chain(processes).filter(|other| *other == host) {
            self.graveyard.on_paused();
        }
    }

    fn start_driver(&mut self, host: usize) {
        if !self.hosts[host].is_running() {
            self.hosts[host].start(&self.clock);
        }
    }

    /// Ends all faults. Absent roles return, and paused agents resume.
    fn heal(&mut self) {
        let fair: Weather = self.schedule.fair.clone();
        *self.wire.lock().weather() = fair;
        self.agenda.clear();
        let now_ns = self.clock.now_ns();
        for host in 0..self.hosts.len() {
            self.start_driver(host);
            self.hosts[host].resume();
        }
        for stream in &mut self.streams {
            stream.publisher.set_wanted(true);
            for subscriber in &mut stream.subscribers {
                subscriber.set_wanted(true);
                subscriber.stall(now_ns);
            }
        }
        if let Some(conversation) = &mut self.conversation {
            conversation.expect_replies();
        }
        self.begin_recovery();
    }
}
