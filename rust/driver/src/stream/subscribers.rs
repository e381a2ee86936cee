//! The subscribers of a stream and how far they are, with the states of those that may be left behind (untethered).

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use crate::rules::{Rule, reach};

/// Names the link between a subscription and the streams that match it; unique while the driver lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(pub u64);

/// How long an untethered subscriber stays in each state, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TetherTimeouts {
    pub window_limit_timeout_ns: i64,
    pub linger_timeout_ns: i64,
    pub resting_timeout_ns: i64,
}

/// Positions that decide about untethered subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TetherPositions {
    /// A subscriber that is here or before for too long is dropped.
    pub limit: i64,
    /// Where a subscriber that was dropped rejoins.
    pub rejoin: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    /// Told that its image is gone, but it may still be reading.
    Linger,
    /// Not counted, waiting to rejoin.
    Resting,
    /// Gone for good; only remembered so that it is not linked again.
    Closed,
}

/// What a subscriber has of its subscription.
#[derive(Clone, Debug)]
pub struct SubscriberConfig {
    pub link_id: LinkId,
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Channel of the subscription.
    pub channel: Arc<str>,
    /// It is never left behind.
    pub is_tethered: bool,
    /// It comes back after it was left behind.
    pub rejoins: bool,
}

/// A subscriber of a stream: the counter that it moves, and its state.
#[derive(Debug)]
pub struct Subscriber {
    config: SubscriberConfig,
    position: Option<AtomicCounter<SharedBuffer>>,
    state: State,
    last_update_ns: i64,
}

impl Subscriber {
    /// A subscriber that joins at the value of its `position`.
    pub fn new(
        config: SubscriberConfig,
        position: AtomicCounter<SharedBuffer>,
        now_ns: i64,
    ) -> Self {
        Self {
            config,
            position: Some(position),
            state: State::Active,
            last_update_ns: now_ns,
        }
    }

    /// Registration id of the subscription.
    pub fn registration_id(&self) -> i64 {
        self.config.registration_id
    }

    /// Channel of the subscription.
    pub fn channel(&self) -> &str {
        &self.config.channel
    }

    /// The counter to free with the subscriber; none when that has happened.
    pub fn position_counter_id(&self) -> Option<i32> {
        self.position.as_ref().map(AtomicCounter::id)
    }

    /// How far it is, when it counts.
    fn working_position(&self) -> Option<i64> {
        match (self.state, &self.position) {
            (State::Active | State::Linger, Some(position)) => Some(position.get()),
            _ => None,
        }
    }

    fn enter(&mut self, state: State, now_ns: i64) {
        self.state = state;
        self.last_update_ns = now_ns;
    }
}

/// What [`Subscribers::check_untethered`] asks its caller to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TetherAction {
    /// Tell the subscription that its image is gone.
    Unavailable { registration_id: i64 },
    /// Tell the subscription that its image is back, with the counter it had.
    Available {
        registration_id: i64,
        position_counter_id: i32,
    },
    /// Free the counter.
    FreeCounter { position_counter_id: i32 },
}

/// All subscribers of one stream.
#[derive(Debug, Default)]
pub struct Subscribers(Vec<Subscriber>);

impl Subscribers {
    /// Adds a subscriber.
    pub fn add(&mut self, subscriber: Subscriber) {
        self.0.push(subscriber);
    }

    /// Takes the subscriber of a link out.
    pub fn remove(&mut self, link_id: LinkId) -> Option<Subscriber> {
        let index = self
            .0
            .iter()
            .position(|subscriber| subscriber.config.link_id == link_id)?;
        Some(self.0.remove(index))
    }

    /// Takes all subscribers out.
    pub fn remove_all(&mut self) -> Vec<Subscriber> {
        std::mem::take(&mut self.0)
    }

    /// All subscribers, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        self.0.iter()
    }

    /// Whether a link has a subscriber here, in whatever state.
    pub fn contains(&self, link_id: LinkId) -> bool {
        self.0
            .iter()
            .any(|subscriber| subscriber.config.link_id == link_id)
    }

    /// Whether the subscriber that came last comes back to a stream that it lost; true when there is none.
    pub fn last_rejoins(&self) -> bool {
        self.0
            .last()
            .is_none_or(|subscriber| subscriber.config.rejoins)
    }

    /// Whether any subscriber counts for limits, connection and draining.
    pub fn has_working(&self) -> bool {
        self.0
            .iter()
            .any(|subscriber| subscriber.working_position().is_some())
    }

    /// The lowest and the highest position of those that count.
    pub fn position_range(&self) -> Option<(i64, i64)> {
        self.0
            .iter()
            .filter_map(Subscriber::working_position)
            .fold(None, |range, position| {
                let (min, max) = range.unwrap_or((position, position));
                Some((min.min(position), max.max(position)))
            })
    }

    /// Moves untethered subscribers through their states.
    pub fn check_untethered(
        &mut self,
        now_ns: i64,
        positions: TetherPositions,
        timeouts: TetherTimeouts,
        mut act: impl FnMut(TetherAction),
    ) {
        for subscriber in &mut self.0 {
            if subscriber.config.is_tethered {
                reach(Rule::TetherTethered);
                subscriber.last_update_ns = now_ns;
                continue;
            }
            let Some(position) = &subscriber.position else {
                reach(Rule::TetherClosed);
                continue;
            };
            let elapsed_ns = now_ns - subscriber.last_update_ns;
            let (registration_id, position_counter_id) =
                (subscriber.config.registration_id, position.id());
            match subscriber.state {
                State::Active if position.get() > positions.limit => {
                    reach(Rule::TetherKeepsUp);
                    subscriber.last_update_ns = now_ns;
                }
                State::Active if elapsed_ns > timeouts.window_limit_timeout_ns => {
                    reach(Rule::TetherDropped);
                    act(TetherAction::Unavailable { registration_id });
                    subscriber.enter(State::Linger, now_ns);
                }
                State::Linger
                    if elapsed_ns > timeouts.linger_timeout_ns && subscriber.config.rejoins =>
                {
                    reach(Rule::TetherRests);
                    subscriber.enter(State::Resting, now_ns);
                }
                State::Linger if elapsed_ns > timeouts.linger_timeout_ns => {
                    reach(Rule::TetherCloses);
                    subscriber.position = None;
                    act(TetherAction::FreeCounter {
                        position_counter_id,
                    });
                    subscriber.enter(State::Closed, now_ns);
                }
                State::Resting if elapsed_ns > timeouts.resting_timeout_ns => {
                    reach(Rule::TetherRejoins);
                    position.set(positions.rejoin);
                    act(TetherAction::Available {
                        registration_id,
                        position_counter_id,
                    });
                    subscriber.enter(State::Active, now_ns);
                }
                _ => {}
            }
        }
    }
}
