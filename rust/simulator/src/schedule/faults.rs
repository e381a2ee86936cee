//! Generates the faults of a schedule, and the times at which its messages are published.

use fastrand::Rng;

use super::{
    FAULT_KINDS, FAULTS_BEGIN_NS, HEAL_NS, LAST_MESSAGES, MESSAGES, MS, SECOND, StreamPlan, one_of,
};
use crate::host::AgentKind;
use crate::network::{HostId, LossPattern, Weather};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    UniformLoss,
    BurstyLoss,
    Duplication,
    Reordering,
    Corruption,
    Delay,
    Partition,
    FullSockets,
    PausedAgent,
    CrashedPublisher,
    CrashedSubscriber,
    CrashedDriver,
    LateSubscriber,
    LeavingSubscriber,
    LeavingPublisher,
    StalledSubscriber,
    AbandonedClaim,
    Revocation,
    Rejection,
    ForgedRoundTrip,
}

/// Identifies a publisher or subscriber: the index of the stream, and for a subscriber also the index within the
/// stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleId {
    Publisher(usize),
    Subscriber(usize, usize),
}

/// An event of the schedule. Durations are in nanoseconds.
#[derive(Clone, Debug)]
pub enum Event {
    /// The network conditions change.
    Weather(Weather),
    /// Faults end, and all roles must be present.
    Heal,
    /// An agent is paused for this time.
    Pause(HostId, AgentKind, i64),
    /// All agents of a driver are paused for this time, as by a stopped process or a frozen machine.
    PauseDriver(HostId, i64),
    /// A driver dies, and starts again after this time.
    CrashDriver(HostId, i64),
    /// A driver starts.
    StartDriver(HostId),
    /// A client dies, and a new one replaces it after this time.
    CrashClient(RoleId, i64),
    /// A role becomes present.
    Join(RoleId),
    /// A role leaves, and becomes present again after this time.
    Part(RoleId, i64),
    /// A subscriber reads nothing for this time.
    Stall(usize, usize, i64),
    /// The publisher of a stream claims a message and never commits or aborts the claim.
    AbandonClaim(usize),
    /// A publisher revokes its stream, and starts another one after this time. The time is longer than the timer
    /// interval of the driver. A new publication before the driver's next timer event would share the log of the
    /// revoked publication.
    Revoke(usize, i64),
    /// A subscriber rejects its images.
    Reject(usize, usize),
    /// A forged request for a round-trip measurement is sent to the receivers of a stream.
    ForgeRoundTrip(usize),
    /// Forged NAKs are sent to the sender of a stream.
    ForgeNaks(usize),
    /// A process of the conversation dies: the server if the number is 0, otherwise a client.
    CrashConversation(usize),
    /// The publisher of a stream must publish this number of messages.
    Publish(usize, usize),
}

impl FaultKind {
    /// All kinds of faults.
    pub const ALL: [Self; 20] = [
        Self::UniformLoss,
        Self::BurstyLoss,
        Self::Duplication,
        Self::Reordering,
        Self::Corruption,
        Self::Delay,
        Self::Partition,
        Self::FullSockets,
        Self::PausedAgent,
        Self::CrashedPublisher,
        Self::CrashedSubscriber,
        Self::CrashedDriver,
        Self::LateSubscriber,
        Self::LeavingSubscriber,
        Self::LeavingPublisher,
        Self::StalledSubscriber,
        Self::AbandonedClaim,
        Self::Revocation,
        Self::Rejection,
        Self::ForgedRoundTrip,
    ];
}

/// Generates kinds of faults and all events.
pub fn draw(
    random: &mut Rng,
    hosts: usize,
    streams: &[StreamPlan],
    fair: &Weather,
) -> (Vec<FaultKind>, Vec<(i64, Event)>) {
    let mut kinds = FaultKind::ALL;
    random.shuffle(&mut kinds);
    let kinds = kinds[..random.usize(FAULT_KINDS..=2 * FAULT_KINDS)].to_vec();
    let mut draw = Draw {
        random,
        hosts,
        streams,
        fair,
        kinds: &kinds,
        events: Vec::new(),
    };
    draw.arrivals();
    draw.messages();
    draw.weathers();
    for kind in &kinds {
        draw.fault(*kind);
    }
    draw.ending();
    let mut events = draw.events;
    events.sort_by_key(|(at_ns, _)| *at_ns);
    (kinds, events)
}

struct Draw<'a> {
    random: &'a mut Rng,
    hosts: usize,
    streams: &'a [StreamPlan],
    fair: &'a Weather,
    kinds: &'a [FaultKind],
    events: Vec<(i64, Event)>,
}

impl Draw<'_> {
    fn at(&mut self, at_ns: i64, event: Event) {
        self.events.push((at_ns, event));
    }

    fn has(&self, kind: FaultKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns a random time in the period of faults.
    fn time(&mut self) -> i64 {
        self.random.i64(FAULTS_BEGIN_NS..HEAL_NS)
    }

    fn host(&mut self) -> HostId {
        self.random.usize(..self.hosts)
    }

    fn stream(&mut self) -> usize {
        self.random.usize(..self.streams.len())
    }

    fn subscriber(&mut self) -> (usize, usize) {
        let stream = self.stream();
        (
            stream,
            self.random.usize(..self.streams[stream].subscribers.len()),
        )
    }

    fn arrivals(&mut self) {
        let are_some_late = self.has(FaultKind::LateSubscriber);
        for stream in 0..self.streams.len() {
            let at_ns = self.random.i64(0..SECOND);
            self.at(at_ns, Event::Join(RoleId::Publisher(stream)));
            for number in 0..self.streams[stream].subscribers.len() {
                let at_ns = match are_some_late && self.random.bool() {
                    true => self.time(),
                    false => self.random.i64(0..SECOND),
                };
                self.at(at_ns, Event::Join(RoleId::Subscriber(stream, number)));
            }
        }
    }

    /// Generates bursts of messages until the network heals. Leaves `LAST_MESSAGES` messages of each stream for the
    /// time after that.
    fn messages(&mut self) {
        let streams = self.streams.len();
        for stream in 0..streams {
            let mut left = (MESSAGES - streams * LAST_MESSAGES).div_ceil(streams);
            while left > 0 {
                let burst = self.random.usize(1..=120).min(left);
                let at_ns = self.random.i64(SECOND..HEAL_NS);
                self.at(at_ns, Event::Publish(stream, burst));
                left -= burst;
            }
        }
    }

    /// Generates several changes of the network conditions. Each change has some of the kinds of faults.
    fn weathers(&mut self) {
        for _ in 0..self.random.usize(2..=6) {
            let at_ns = self.time();
            let mut weather = self.fair.clone();
            for kind in self.kinds {
                if self.random.u8(..3) > 0 {
                    self.worsen(&mut weather, *kind);
                }
            }
            self.at(at_ns, Event::Weather(weather));
        }
    }

    fn worsen(&mut self, weather: &mut Weather, kind: FaultKind) {
        let random = &mut *self.random;
        match kind {
            FaultKind::UniformLoss => {
                weather.loss = LossPattern::Uniform(one_of(random, &[0.01, 0.05, 0.2]))
            }
            FaultKind::BurstyLoss => {
                weather.loss = LossPattern::Bursts {
                    begin: 0.02,
                    end: one_of(random, &[0.1, 0.3]),
                };
            }
            FaultKind::Duplication => weather.duplication = one_of(random, &[0.01, 0.1, 0.5]),
            FaultKind::Reordering => weather.reordering = one_of(random, &[0.01, 0.1, 0.5]),
            FaultKind::Corruption => weather.corruption = one_of(random, &[0.01, 0.1]),
            FaultKind::Delay => {
                weather.delay_ns = random.i64(MS..30 * MS);
                weather.jitter_ns = one_of(random, &[0, MS, 20 * MS]);
            }
            FaultKind::FullSockets => weather.short_sends = one_of(random, &[0.05, 0.3]),
            FaultKind::Partition => {
                let one = random.usize(..self.hosts);
                let is_one_way = random.u8(..3) == 0;
                for other in (0..self.hosts).filter(|other| *other != one) {
                    weather.cut.push((one, other));
                    if !is_one_way {
                        weather.cut.push((other, one));
                    }
                }
            }
            _ => {}
        }
    }

    fn fault(&mut self, kind: FaultKind) {
        let count = self.random.usize(1..=3);
        for _ in 0..count {
            let at_ns = self.time();
            if let Some(event) = self.event(kind) {
                if let Event::Part(RoleId::Publisher(stream), _) = event {
                    self.hold_back(stream, at_ns);
                }
                // When the network heals, all roles return immediately. Subscribers must know the end of the
                // revoked stream before this time.
                let at_ns = match event {
                    Event::Revoke(..) => at_ns.min(HEAL_NS - SECOND),
                    // A rejected image exists until its liveness timeout. A new image can come only after that.
                    Event::Reject(..) => at_ns.min(HEAL_NS - 6 * SECOND),
                    _ => at_ns,
                };
                self.at(at_ns, event);
            }
        }
    }

    /// In half of the calls, makes the subscribers of a publisher stop reading before the publisher leaves. The
    /// publisher then leaves with unsent data.
    fn hold_back(&mut self, stream: usize, at_ns: i64) {
        if self.random.bool() {
            for number in 0..self.streams[stream].subscribers.len() {
                self.at(at_ns - 400 * MS, Event::Stall(stream, number, 2 * SECOND));
            }
            self.at(at_ns - 300 * MS, Event::Publish(stream, 3 * LAST_MESSAGES));
        }
    }

    fn event(&mut self, kind: FaultKind) -> Option<Event> {
        let away_ns = self.random.i64(100 * MS..8 * SECOND);
        let publisher = RoleId::Publisher(self.stream());
        let (stream, number) = self.subscriber();
        let subscriber = RoleId::Subscriber(stream, number);
        Some(match kind {
            FaultKind::PausedAgent => {
                let agent = one_of(self.random, &AgentKind::ALL);
                Event::Pause(self.host(), agent, self.random.i64(MS..2 * SECOND))
            }
            FaultKind::CrashedDriver => Event::CrashDriver(self.host(), away_ns),
            FaultKind::CrashedPublisher => Event::CrashClient(publisher, away_ns),
            FaultKind::CrashedSubscriber => Event::CrashClient(subscriber, away_ns),
            FaultKind::LeavingPublisher => Event::Part(publisher, away_ns),
            FaultKind::LeavingSubscriber => Event::Part(subscriber, away_ns),
            FaultKind::StalledSubscriber => Event::Stall(stream, number, away_ns),
            FaultKind::AbandonedClaim => Event::AbandonClaim(stream),
            FaultKind::Revocation => Event::Revoke(stream, SECOND + away_ns),
            FaultKind::Rejection => Event::Reject(stream, number),
            FaultKind::ForgedRoundTrip => Event::ForgeRoundTrip(stream),
            _ => return None,
        })
    }

    fn ending(&mut self) {
        self.at(HEAL_NS, Event::Heal);
    }
}
