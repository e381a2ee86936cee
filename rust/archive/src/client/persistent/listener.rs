//! [`PersistentSubscriptionListener`]: the events of a persistent subscription.

use super::error::PersistentSubscriptionError;

/// Receives the events of a persistent subscription. All methods are called during a poll. By
/// default, each method does nothing.
///
/// When a method is called, [`PersistentSubscriptionStatus`](super::PersistentSubscriptionStatus) already has the new
/// state.
pub trait PersistentSubscriptionListener: Send {
    /// Called when the live stream was joined. The next messages are from the live stream.
    fn on_live_joined(&mut self) {}

    /// Called when the live stream was lost. The next messages are from a replay, unless the recording has no further
    /// messages. In that case, the subscription waits for the live stream.
    fn on_live_left(&mut self) {}

    /// Called with an error. The status shows whether the subscription has failed or continues.
    fn on_error(&mut self, error: &PersistentSubscriptionError) {
        let _ = error;
    }
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoListener;

impl PersistentSubscriptionListener for NoListener {}
