//! [`IdleWork`]: runs the network of an embedded driver while the client's polls find nothing.
//!
//! While a client waits for messages, it can run the network of a driver in the same process. Then no message waits for
//! the driver's thread. But one check of the network costs as much as a hundred polls of memory. A client with other
//! work therefore leaves the network to the driver. With *n* subscriptions to network channels, the client checks the
//! network after *n* consecutive empty polls of these subscriptions. Polls of other channels (IPC) must have been empty
//! too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_protocol::uri::Transport;

use crate::process::ProcessStamp;

/// Runs one duty cycle of the sender and receiver of a driver in the same process. Called on the thread of a poll that
/// found nothing; must not block. Returns a work count.
pub type DriverTurn = Arc<dyn Fn() -> usize + Send + Sync>;

/// The idle work of one client.
pub(crate) struct IdleWork {
    turn: DriverTurn,
    network_subscriptions: AtomicUsize,
    /// Number of polls of network channels since a poll last found something. Changed by plain loads and stores:
    /// concurrent pollers may lose counts, which only delays the next turn a little.
    empty_polls: AtomicUsize,
    process: ProcessStamp,
}

/// Idle work of one subscription: counts the empty polls of the subscription, and runs turns before its polls.
pub(crate) struct IdlePart {
    work: Arc<IdleWork>,
    is_network: bool,
}

impl IdleWork {
    /// Creates idle work that runs `turn`.
    pub(crate) fn new(turn: DriverTurn) -> Arc<Self> {
        Arc::new(Self {
            turn,
            network_subscriptions: AtomicUsize::new(0),
            empty_polls: AtomicUsize::new(0),
            process: ProcessStamp::now(),
        })
    }

    /// Returns the idle work for a subscription to `channel`.
    pub(crate) fn part_of(self: &Arc<Self>, channel: &str) -> IdlePart {
        let is_network = Transport::of(channel.as_bytes()) == Transport::Network;
        if is_network {
            self.network_subscriptions.fetch_add(1, Ordering::Relaxed);
        }
        IdlePart {
            work: Arc::clone(self),
            is_network,
        }
    }

    fn empty_polls(&self) -> usize {
        self.empty_polls.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.empty_polls() >= self.network_subscriptions.load(Ordering::Relaxed)
    }
}

impl IdlePart {
    /// Does idle work if it is due, so that the following poll finds the data that the idle work received.
    #[inline]
    pub(crate) fn before_poll(&self) {
        if self.is_network && self.work.is_idle() && !self.work.process.is_foreign() {
            (self.work.turn)();
        }
    }

    /// Counts an empty poll. Resets the count if the poll found fragments or bytes; `found` is their number.
    #[inline]
    pub(crate) fn after_poll(&self, found: usize) {
        let empty_polls = match (found, self.is_network) {
            (0, false) => return,
            (0, true) if self.work.is_idle() => return,
            (0, true) => self.work.empty_polls() + 1,
            _ => 0,
        };
        if self.work.empty_polls() != empty_polls {
            self.work.empty_polls.store(empty_polls, Ordering::Relaxed);
        }
    }
}

impl Drop for IdlePart {
    fn drop(&mut self) {
        if self.is_network {
            let subscriptions = &self.work.network_subscriptions;
            let before = subscriptions.fetch_sub(1, Ordering::Relaxed);
            debug_assert!(
                before > 0,
                "more network subscriptions have ended than were added"
            );
        }
    }
}
