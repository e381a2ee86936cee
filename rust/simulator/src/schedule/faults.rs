//! The faults of a schedule, and when its messages are published.

use fastrand::Rng;

use super::{
    FAULT_KINDS, FAULTS_BEGIN_NS, HEAL_NS, LAST_MESSAGES, MESSAGES, MS, SECOND, StreamPlan, one_of,
};
use crate::host::AgentKind;
use crate::network::{HostId, Loss, Weather};

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

/// A publisher or subscriber: number of its stream, and for subscribers its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Publisher(usize),
    Subscriber(usize, usize),
}

/// What happens at one time.
#[derive(Clone, Debug)]
pub enum Event {
    /// The weather changes.
    Weather(Weather),
    /// Faults end, and everybody is to be there.
    Heal,
    /// An agent stands still for so long.
    Pause(HostId, AgentKind, i64),
    /// A driver dies, and starts again after so long.
    CrashDriver(HostId, i64),
    /// A driver starts.
    StartDriver(HostId),
    /// A client dies, and another takes its place after so long.
    CrashClient(Role, i64),
    /// Somebody comes.
    Join(Role),
    /// Somebody goes, and comes again after so long.
    Part(Role, i64),
    /// A subscriber reads nothing for so long.
    Stall(usize, usize, i64),
    /// A publisher of a stream claims a message and forgets it.
    AbandonClaim(usize),
    /// A publisher revokes its stream, and begins another after so long: until the next timer tick of its driver it would share
    /// the revoked one.
    Revoke(usize, i64),
    /// A subscriber rejects its images.
    Reject(usize, usize),
    /// A stranger asks the receivers of a stream for a round trip.
    ForgeRoundTrip(usize),
    /// A stranger asks the sender of a stream for bytes.
    ForgeNaks(usize),
    /// A stream gets messages.
    Publish(usize, usize),
}

impl FaultKind {
    /// All kinds.
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

/// Draws kinds of faults and everything that happens.
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

    /// Some time while there are faults.
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
            self.at(at_ns, Event::Join(Role::Publisher(stream)));
            for number in 0..self.streams[stream].subscribers.len() {
                let at_ns = match are_some_late && self.random.bool() {
                    true => self.time(),
                    false => self.random.i64(0..SECOND),
                };
                self.at(at_ns, Event::Join(Role::Subscriber(stream, number)));
            }
        }
    }

    /// Bursts at any time, and some messages at the end that all must get.
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

    /// The weather changes some times; each time some of the kinds are in it.
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
                weather.loss = Loss::Uniform(one_of(random, &[0.01, 0.05, 0.2]))
            }
            FaultKind::BurstyLoss => {
                weather.loss = Loss::Bursts {
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
                if let Event::Part(Role::Publisher(stream), _) = event {
                    self.hold_back(stream, at_ns);
                }
                // When all is healed everybody is back at once: the revoked stream must be noticed by then.
                let at_ns = match event {
                    Event::Revoke(..) => at_ns.min(HEAL_NS - SECOND),
                    // A rejected image stays until its liveness timeout, and only then comes another.
                    Event::Reject(..) => at_ns.min(HEAL_NS - 6 * SECOND),
                    _ => at_ns,
                };
                self.at(at_ns, event);
            }
        }
    }

    /// Before a publisher leaves, its subscribers may read nothing for a while, so that it leaves with something unsent.
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
        let publisher = Role::Publisher(self.stream());
        let (stream, number) = self.subscriber();
        let subscriber = Role::Subscriber(stream, number);
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
