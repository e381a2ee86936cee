//! The subscribers of a stream, their positions, and the states of untethered subscribers.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use crate::rules::{Rule, reach};

/// Identifies the link between a subscription and the streams that match it. Unique while the driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(pub u64);

/// Time that an untethered subscriber stays in each state, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TetherTimeouts {
    pub window_limit_timeout_ns: i64,
    pub linger_timeout_ns: i64,
    pub resting_timeout_ns: i64,
}

/// Positions that decide about untethered subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TetherPositions {
    /// A subscriber that stays at or before this position for too long is unlinked.
    pub limit: i64,
    /// Position at which an unlinked subscriber rejoins.
    pub rejoin: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubscriberState {
    Active,
    /// The subscriber's client has received the event for the end of the image, but may still be reading.
    Linger,
    /// The subscriber does not count for limits, and waits until it rejoins.
    Resting,
    /// The subscriber has ended and will not rejoin. The entry exists only so that the subscription is not linked
    /// again.
    Closed,
}

/// The parts of a subscription that its subscribers need.
#[derive(Clone, Debug)]
pub struct SubscriberConfig {
    pub link_id: LinkId,
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Channel of the subscription.
    pub channel: Arc<str>,
    /// Whether the stream waits for the subscriber. If not, the subscriber is untethered.
    pub is_tethered: bool,
    /// Whether the subscriber rejoins the stream after it was unlinked.
    pub rejoins: bool,
}

/// A subscriber of a stream: its position counter and its state.
#[derive(Debug)]
pub struct Subscriber {
    config: SubscriberConfig,
    position: Option<AtomicCounter<SharedBuffer>>,
    state: SubscriberState,
    last_update_ns: i64,
}

impl Subscriber {
    /// Creates a subscriber that joins at the value of its `position`.
    pub fn new(
        config: SubscriberConfig,
        position: AtomicCounter<SharedBuffer>,
        now_ns: i64,
    ) -> Self {
        Self {
            config,
            position: Some(position),
            state: SubscriberState::Active,
            last_update_ns: now_ns,
        }
    }

    pub fn registration_id(&self) -> i64 {
        self.config.registration_id
    }

    pub fn channel(&self) -> &str {
        &self.config.channel
    }

    /// Returns the id of the counter that is freed with the subscriber; `None` if the counter is already freed.
    pub fn position_counter_id(&self) -> Option<i32> {
        self.position.as_ref().map(AtomicCounter::id)
    }

    /// Returns the position; `None` if the subscriber does not count for limits.
    fn working_position(&self) -> Option<i64> {
        match (self.state, &self.position) {
            (SubscriberState::Active | SubscriberState::Linger, Some(position)) => {
                Some(position.get())
            }
            _ => None,
        }
    }

    fn enter(&mut self, state: SubscriberState, now_ns: i64) {
        debug_assert!(
            matches!(
                (self.state, state),
                (SubscriberState::Active, SubscriberState::Linger)
                    | (
                        SubscriberState::Linger,
                        SubscriberState::Resting | SubscriberState::Closed
                    )
                    | (SubscriberState::Resting, SubscriberState::Active)
            ),
            "a subscriber in the state {:?} cannot enter the state {state:?}",
            self.state
        );
        debug_assert_eq!(
            state == SubscriberState::Closed,
            self.position.is_none(),
            "a subscriber has a counter until it is closed, and not longer"
        );
        self.state = state;
        self.last_update_ns = now_ns;
    }
}

/// An action that [`Subscribers::check_untethered`] requires from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TetherAction {
    /// Announce to the subscription that its image has ended.
    Unavailable { registration_id: i64 },
    /// Announce to the subscription that its image is available again, with the same counter.
    Available {
        registration_id: i64,
        position_counter_id: i32,
    },
    /// Free the position counter of a subscriber that has ended.
    FreeCounter { position_counter_id: i32 },
}

#[derive(Debug, Default)]
pub struct Subscribers(Vec<Subscriber>);

impl Subscribers {
    pub fn add(&mut self, subscriber: Subscriber) {
        debug_assert!(
            !self.contains(subscriber.config.link_id),
            "the stream has a subscriber of {:?} already",
            subscriber.config.link_id
        );
        self.0.push(subscriber);
    }

    /// Removes and returns the subscriber of a link.
    pub fn remove(&mut self, link_id: LinkId) -> Option<Subscriber> {
        let index = self
            .0
            .iter()
            .position(|subscriber| subscriber.config.link_id == link_id)?;
        Some(self.0.remove(index))
    }

    /// Removes and returns all subscribers.
    pub fn remove_all(&mut self) -> Vec<Subscriber> {
        std::mem::take(&mut self.0)
    }

    /// Returns all subscribers, in the order of their addition.
    pub fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        self.0.iter()
    }

    /// Returns whether the stream has a subscriber of this link, in any state.
    pub fn contains(&self, link_id: LinkId) -> bool {
        self.0
            .iter()
            .any(|subscriber| subscriber.config.link_id == link_id)
    }

    /// Returns whether the subscriber that was added last rejoins a stream after it was unlinked.
    ///
    /// `true` if there is no subscriber.
    pub fn last_rejoins(&self) -> bool {
        self.0
            .last()
            .is_none_or(|subscriber| subscriber.config.rejoins)
    }

    /// Returns whether any subscriber counts for limits, for the connection and for draining.
    pub fn has_working(&self) -> bool {
        self.0
            .iter()
            .any(|subscriber| subscriber.working_position().is_some())
    }

    /// Returns the lowest and the highest position of the subscribers that count for limits.
    pub fn position_range(&self) -> Option<(i64, i64)> {
        self.0
            .iter()
            .filter_map(Subscriber::working_position)
            .fold(None, |range, position| {
                let (min, max) = range.unwrap_or((position, position));
                Some((min.min(position), max.max(position)))
            })
    }

    /// Changes the states of untethered subscribers if the time or their positions require it.
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
                debug_assert_eq!(
                    subscriber.state,
                    SubscriberState::Active,
                    "a stream never drops a tethered subscriber"
                );
                subscriber.last_update_ns = now_ns;
                continue;
            }
            let Some(position) = &subscriber.position else {
                reach(Rule::TetherClosed);
                continue;
            };
            let elapsed_ns = now_ns - subscriber.last_update_ns;
            debug_assert!(
                elapsed_ns >= 0,
                "the state of a subscriber changed {} ns in the future",
                -elapsed_ns
            );
            let (registration_id, position_counter_id) =
                (subscriber.config.registration_id, position.id());
            match subscriber.state {
                SubscriberState::Active if position.get() > positions.limit => {
                    reach(Rule::TetherKeepsUp);
                    subscriber.last_update_ns = now_ns;
                }
                SubscriberState::Active if elapsed_ns > timeouts.window_limit_timeout_ns => {
                    reach(Rule::TetherDropped);
                    act(TetherAction::Unavailable { registration_id });
                    subscriber.enter(SubscriberState::Linger, now_ns);
                }
                SubscriberState::Linger
                    if elapsed_ns > timeouts.linger_timeout_ns && subscriber.config.rejoins =>
                {
                    reach(Rule::TetherRests);
                    subscriber.enter(SubscriberState::Resting, now_ns);
                }
                SubscriberState::Linger if elapsed_ns > timeouts.linger_timeout_ns => {
                    reach(Rule::TetherCloses);
                    subscriber.position = None;
                    act(TetherAction::FreeCounter {
                        position_counter_id,
                    });
                    subscriber.enter(SubscriberState::Closed, now_ns);
                }
                SubscriberState::Resting if elapsed_ns > timeouts.resting_timeout_ns => {
                    reach(Rule::TetherRejoins);
                    position.set(positions.rejoin);
                    act(TetherAction::Available {
                        registration_id,
                        position_counter_id,
                    });
                    subscriber.enter(SubscriberState::Active, now_ns);
                }
                _ => {}
            }
        }
    }
}
