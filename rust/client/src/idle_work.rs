//! [`IdleWork`]: what a client does while there is nothing for it.
//!
//! A driver in the same process can be run by whoever waits for it, and then no message waits for the driver's thread. But
//! one look at the network costs as much as a hundred polls of memory, so a client that has anything else to do leaves it to the
//! driver: it looks itself once its polls of network channels have found nothing as often in a row as it has subscriptions to such
//! channels, and whatever else it polls, over IPC, has found nothing meanwhile either.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aeron_protocol::uri::Transport;

use crate::process::ProcessStamp;

/// Runs sender and receiver of a driver in the same process for one duty cycle, on the thread of a poll that found nothing; answers
/// its work count. It must not wait for anything.
pub type DriverTurn = Arc<dyn Fn() -> usize + Send + Sync>;

/// The idle work of one client.
pub(crate) struct IdleWork {
    turn: DriverTurn,
    network_subscriptions: AtomicUsize,
    /// Polls of network channels that found nothing, since any poll found something. Counted by loads and stores, so that pollers of
    /// several threads may lose some: the next look is then a little later.
    empty_polls: AtomicUsize,
    process: ProcessStamp,
}

/// The part that one subscription has in it.
pub(crate) struct IdlePart {
    work: Arc<IdleWork>,
    is_network: bool,
}

impl IdleWork {
    /// Idle work that is `turn`.
    pub(crate) fn new(turn: DriverTurn) -> Arc<Self> {
        Arc::new(Self {
            turn,
            network_subscriptions: AtomicUsize::new(0),
            empty_polls: AtomicUsize::new(0),
            process: ProcessStamp::now(),
        })
    }

    /// The part of a subscription to `channel`.
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
    /// Does idle work if it is time for it, so that the poll finds what it brings.
    #[inline]
    pub(crate) fn before_poll(&self) {
        if self.is_network && self.work.is_idle() && !self.work.process.is_foreign() {
            (self.work.turn)();
        }
    }

    /// A poll found so many fragments or bytes.
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
            subscriptions.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
