//! [`PersistentSubscriptionListener`]: what the application learns of a persistent subscription.

use super::error::PersistentSubscriptionError;

/// Learns what a persistent subscription does. All methods are called inside a poll; each does nothing by default.
///
/// A [`PersistentSubscriptionStatus`](super::PersistentSubscriptionStatus) has the new state already.
pub trait PersistentSubscriptionListener: Send {
    /// Messages come from the live stream from now on.
    fn on_live_joined(&mut self) {}

    /// The live stream was lost: messages come from a replay next.
    fn on_live_left(&mut self) {}

    /// An error: the subscription has ended by it, or goes on.
    fn on_error(&mut self, error: &PersistentSubscriptionError) {
        let _ = error;
    }
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoListener;

impl PersistentSubscriptionListener for NoListener {}
