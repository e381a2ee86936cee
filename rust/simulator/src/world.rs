//! The world of a schedule: hosts, network and applications, and the loop that advances time.

mod ending;
mod probing;

use aeron_driver::rules::Reached;
use aeron_protocol::frame::{Nak, Rttm};
use fastrand::Rng;

use crate::checks::{CounterChecks, CounterIdChecks, DatagramChecks, check_timeouts};
use crate::clock::START_NS;
use crate::frame::{Failure, FramePlan, WorldFrame};
use crate::host::Host;
use crate::network::WireCounts;
use crate::roles::{Conversation, Publisher, RoleEnvironment, SimulatedSubscriber};
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
    frame: WorldFrame<Event>,
    streams: Vec<SimulatedStream>,
    conversation: Option<Conversation>,
    truth: Truth,
    checks: CounterChecks,
    id_checks: CounterIdChecks,
    datagram_checks: DatagramChecks,
    phase: Phase,
    /// Durations of recovery, parting and leaving, in nanoseconds.
    phase_times_ns: [i64; 3],
    /// Random numbers for the forged datagrams.
    random: Rng,
}

/// Number of steps between two checks of all positions.
const STEPS_BETWEEN_CHECKS: u64 = 16;
/// Number of steps between two checks of the ids of all counters.
const STEPS_BETWEEN_ID_CHECKS: u64 = 64;
/// Maximum number of NAKs that are forged at a time.
const MAX_FORGED_NAKS: usize = 8;

impl World {
    /// Creates the world at the beginning of a schedule.
    pub fn new(schedule: Schedule) -> Self {
        let mut frame = WorldFrame::new(FramePlan {
            drivers: &schedule.drivers,
            clocks: &schedule.clocks,
            names: schedule.names.clone(),
            fair: &schedule.fair,
            network_seed: schedule.network_seed,
            step_ns: schedule.step_ns,
        });
        for (after_ns, event) in schedule.events.clone() {
            frame.arrange(START_NS + after_ns, event);
        }
        let datagram_checks = DatagramChecks::default();
        let observing = datagram_checks.clone();
        let mut wire = frame.wire.lock();
        wire.observe(Box::new(move |_, passing| observing.on_sent(passing)));
        drop(wire);
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
        Self {
            conversation: conversation.map(|plan| Conversation::new(plan, schedule.seed)),
            frame,
            streams,
            truth: Truth::default(),
            checks: CounterChecks::default(),
            id_checks: CounterIdChecks::default(),
            datagram_checks,
            phase: Phase::Faults,
            phase_times_ns: [0; 3],
            random: Rng::with_seed(schedule.network_seed),
            schedule,
        }
    }

    /// Calls `tell` with a line for each datagram that is sent.
    #[must_use]
    pub fn traced(self, tell: impl FnMut(String) + Send + 'static) -> Self {
        self.frame.trace(tell);
        self
    }

    /// Runs the whole schedule.
    ///
    /// # Errors
    /// A driver or client broke a rule.
    pub fn run(mut self) -> Result<Outcome, Failure> {
        // Discards the rows that another schedule on this thread has reached.
        Reached::take();
        self.pass_time()
            .map_err(|finding| self.frame.failure(finding, self.frame.counters_text()))?;
        Ok(Outcome {
            published: self.truth.published(),
            received: self.truth.received(),
            wire: self.frame.wire.lock().counts(),
            steps: self.frame.steps,
            reached: Reached::take(),
            slowest_ns: self.phase_times_ns,
            fingerprint: self.checks.fingerprint(),
        })
    }

    fn pass_time(&mut self) -> Result<(), Finding> {
        while !matches!(self.phase, Phase::Over) {
            let work_count = self.step()?;
            self.frame.pace(work_count);
            self.end_phase_if_over()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<usize, Finding> {
        let mut work_count = self.frame.advance();
        while let Some(event) = self.frame.next_event() {
            self.happen(event)?;
            work_count += 1;
        }
        work_count += self.frame.run_drivers();
        work_count += self.run_roles()?;
        self.datagram_checks.result()?;
        if self.frame.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.checks.look(&self.frame.hosts)?;
            check_timeouts(&self.frame.hosts, &self.frame.graveyard)?;
        }
        if self.frame.steps.is_multiple_of(STEPS_BETWEEN_ID_CHECKS) {
            for host in &self.frame.hosts {
                self.id_checks.look(host, &self.frame.clock)?;
            }
        }
        Ok(work_count)
    }

    fn run_roles(&mut self) -> Result<usize, Finding> {
        let mut environment = RoleEnvironment {
            hosts: &self.frame.hosts,
            clock: &self.frame.clock,
            truth: &mut self.truth,
            seed: self.schedule.seed,
        };
        let mut work_count = 0;
        for stream in &mut self.streams {
            work_count += stream.publisher.do_work(&mut environment)?;
            for subscriber in &mut stream.subscribers {
                work_count += subscriber.do_work(&mut environment)?;
            }
        }
        if let Some(conversation) = &mut self.conversation {
            work_count += conversation.do_work(&environment)?;
        }
        Ok(work_count)
    }

    fn happen(&mut self, event: Event) -> Result<(), Finding> {
        let now_ns = self.frame.clock.now_ns();
        match event {
            Event::Weather(weather) => *self.frame.wire.lock().weather() = weather,
            Event::Heal => self.heal(),
            Event::Pause(host, agent, for_ns) => {
                self.frame.hosts[host].pause(agent, now_ns + for_ns)
            }
            Event::PauseDriver(host, for_ns) => self.pause_driver(host, now_ns + for_ns),
            Event::CrashDriver(host, away_ns) => {
                self.frame.hosts[host].crash();
                self.checks.forget(host);
                self.id_checks.forget(host);
                self.frame
                    .arrange(now_ns + away_ns, Event::StartDriver(host));
            }
            Event::StartDriver(host) => self.frame.start_driver(host),
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
                    conversation.crash(victim, &mut self.frame.graveyard);
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
        self.frame.arrange(until_ns, Event::Join(role));
    }

    fn crash_client(&mut self, role: RoleId) {
        match role {
            RoleId::Publisher(stream) => self.streams[stream]
                .publisher
                .crash(&mut self.frame.graveyard),
            RoleId::Subscriber(stream, number) => {
                self.streams[stream].subscribers[number].crash(&mut self.frame.graveyard);
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
            echo_timestamp_ns: self.frame.clock.now_ns(),
            reception_delta_ns: 0,
            receiver_id: 0,
        };
        let mut bytes = [0; Rttm::LENGTH];
        rttm.encode(&mut bytes);
        self.frame.wire.lock().flood(&bytes);
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
            self.frame.wire.lock().flood(&bytes);
        }
    }

    /// Pauses all agents of a driver. When the driver goes on, it may time out the clients that have lost it.
    fn pause_driver(&mut self, host: usize, until_ns: i64) {
        self.frame.hosts[host].pause_all(until_ns);
        let streams = self.streams.iter();
        let clients = streams.flat_map(|stream| {
            let subscribers = stream.subscribers.iter().map(|it| it.plan().host);
            subscribers.chain([stream.publisher.host()])
        });
        let processes = self.conversation.iter().flat_map(Conversation::hosts);
        for _ in clients.chain(processes).filter(|other| *other == host) {
            self.frame.graveyard.on_paused();
        }
    }

    /// Ends all faults. Absent roles return, and paused agents resume.
    fn heal(&mut self) {
        self.frame.heal();
        self.frame.hosts.iter_mut().for_each(Host::resume);
        let now_ns = self.frame.clock.now_ns();
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
