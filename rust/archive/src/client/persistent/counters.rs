//! Adds and updates the counters of a persistent subscription.

use aeron_client::{Aeron, Counter};
use aeron_memory::counters::MAX_LABEL_LENGTH;
use aeron_memory::counters::types::{
    PERSISTENT_SUBSCRIPTION_JOIN_DIFFERENCE, PERSISTENT_SUBSCRIPTION_LIVE_JOINED,
    PERSISTENT_SUBSCRIPTION_LIVE_LEFT, PERSISTENT_SUBSCRIPTION_STATE,
};

use super::status::PersistentSubscriptionState;

/// Value of the join difference while there is no live image: before the first one, and after the live stream was lost.
pub const NO_JOIN_DIFFERENCE: i64 = i64::MIN;

/// Counters that the application provides for a persistent subscription. If a counter is `None`,
/// the subscription adds a new counter, and closes this counter when the subscription is closed.
#[derive(Clone, Debug, Default)]
pub struct PersistentSubscriptionCounters {
    /// Code of the state: see [`super::PersistentSubscriptionState`].
    pub state: Option<Counter>,
    /// Join difference in bytes: see
    /// [`PersistentSubscriptionStatus::join_difference`](super::PersistentSubscriptionStatus::join_difference).
    pub join_difference: Option<Counter>,
    /// Number of times that the live stream was lost.
    pub live_left: Option<Counter>,
    /// Number of times that the live stream was joined.
    pub live_joined: Option<Counter>,
}

/// The counters of one subscription.
pub(super) struct Counters {
    state: UsedCounter,
    join_difference: UsedCounter,
    live_left: UsedCounter,
    live_joined: UsedCounter,
}

struct UsedCounter {
    counter: Counter,
    is_given: bool,
}

impl Counters {
    /// Adds the counters that the application has not provided. Waits for the driver.
    pub(super) fn add(
        aeron: &Aeron,
        given: PersistentSubscriptionCounters,
        streams: &str,
    ) -> aeron_client::Result<Self> {
        let add = |given: Option<Counter>, type_id, name| {
            let is_given = given.is_some();
            let counter = match given {
                Some(counter) => counter,
                None => aeron.add_counter(type_id, &[], &label(name, streams))?,
            };
            Ok::<_, aeron_client::Error>(UsedCounter { counter, is_given })
        };
        let counters = Self {
            state: add(given.state, PERSISTENT_SUBSCRIPTION_STATE, "State")?,
            join_difference: add(
                given.join_difference,
                PERSISTENT_SUBSCRIPTION_JOIN_DIFFERENCE,
                "Join Difference",
            )?,
            live_left: add(
                given.live_left,
                PERSISTENT_SUBSCRIPTION_LIVE_LEFT,
                "Live Left Count",
            )?,
            live_joined: add(
                given.live_joined,
                PERSISTENT_SUBSCRIPTION_LIVE_JOINED,
                "Live Joined Count",
            )?,
        };
        counters.show_state(PersistentSubscriptionState::AwaitArchiveConnection);
        counters.show_join_difference(NO_JOIN_DIFFERENCE);
        Ok(counters)
    }

    /// Closes the counters that the subscription has added.
    pub(super) fn close(&self) {
        let all = [
            &self.state,
            &self.join_difference,
            &self.live_left,
            &self.live_joined,
        ];
        for used in all.into_iter().filter(|used| !used.is_given) {
            used.counter.close();
        }
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> [i64; 4] {
        let all = [
            &self.state,
            &self.join_difference,
            &self.live_left,
            &self.live_joined,
        ];
        all.map(|used| used.counter.get())
    }

    pub(super) fn show_state(&self, state: PersistentSubscriptionState) {
        self.state.set(state.code());
    }

    pub(super) fn show_join_difference(&self, difference: i64) {
        self.join_difference.set(difference);
    }

    pub(super) fn count_live_left(&self) {
        self.live_left.count();
    }

    pub(super) fn count_live_joined(&self) {
        self.live_joined.count();
    }
}

impl UsedCounter {
    /// Stores a value, unless the counter is closed. The id of a closed counter may now belong to
    /// another counter.
    fn set(&self, value: i64) {
        if !self.counter.is_closed() {
            self.counter.set(value);
        }
    }

    fn count(&self) {
        self.set(self.counter.get().wrapping_add(1));
    }
}

/// Returns the label of a counter, shortened to the maximum length of a label.
fn label(name: &str, streams: &str) -> String {
    let mut label = format!("Persistent Subscription {name}: {streams}");
    while label.len() > MAX_LABEL_LENGTH {
        label.pop();
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 11-67
    #[test]
    fn a_label_has_the_streams_and_is_shortened_at_the_end_of_a_character() {
        let streams = "1 aeron:ipc?rejoin=false 2 aeron:ipc";
        assert_eq!(
            label("State", streams),
            "Persistent Subscription State: 1 aeron:ipc?rejoin=false 2 aeron:ipc"
        );
        let long = label("State", &"\u{e4}".repeat(MAX_LABEL_LENGTH));
        assert_eq!(long.len(), MAX_LABEL_LENGTH - 1);
    }
}
