//! [`PublicationStatus`]: what conductor and sender tell each other about a network publication.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogMetadata;

/// Facts about one publication, each stored (release) by one of the two agents and read (acquire) by both.
#[derive(Debug)]
pub struct PublicationStatus {
    spies_simulate_connection: bool,
    is_open: AtomicBool,
    has_receivers: AtomicBool,
    has_required_receivers: AtomicBool,
    has_received_unicast_eos: AtomicBool,
    has_spies: AtomicBool,
    is_end_of_stream: AtomicBool,
    max_spy_position: AtomicI64,
}

impl PublicationStatus {
    /// Nobody receives, nobody spies; with `spies_simulate_connection` spies are as good as receivers.
    pub fn new(spies_simulate_connection: bool, start_position: i64) -> Self {
        Self {
            spies_simulate_connection,
            is_open: AtomicBool::new(false),
            has_receivers: AtomicBool::new(false),
            has_required_receivers: AtomicBool::new(false),
            has_received_unicast_eos: AtomicBool::new(false),
            has_spies: AtomicBool::new(false),
            is_end_of_stream: AtomicBool::new(false),
            max_spy_position: AtomicI64::new(start_position),
        }
    }

    /// Whether anybody receives what is published.
    pub fn has_subscribers(&self) -> bool {
        (self.has_receivers() && self.has_required_receivers.load(Ordering::Acquire))
            || self.has_spies_that_count()
    }

    /// Whether there are spies, and spies simulate a connection.
    pub fn has_spies_that_count(&self) -> bool {
        self.spies_simulate_connection && self.has_spies.load(Ordering::Acquire)
    }

    /// Shows publishers whether anybody receives and they have room; stores only a change. Both agents may call it at any time.
    pub fn update_connection(&self, metadata: &LogMetadata<SharedBuffer>) {
        let is_connected = self.has_subscribers() && self.is_open();
        if metadata.is_connected() != is_connected {
            metadata.set_is_connected(is_connected);
        }
    }

    /// Whether publishers may see the subscribers: they were given the window, or there is no memory for it.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether a receiver's status message came within the connection timeout.
    pub fn has_receivers(&self) -> bool {
        self.has_receivers.load(Ordering::Acquire)
    }

    /// Whether a receiver ever said that it drained or left, on a unicast channel: lingering is pointless then.
    pub fn has_received_unicast_eos(&self) -> bool {
        self.has_received_unicast_eos.load(Ordering::Acquire)
    }

    /// Whether the publication is closed and everything was sent.
    pub fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream.load(Ordering::Acquire)
    }

    /// How far the fastest spy got.
    pub fn max_spy_position(&self) -> i64 {
        self.max_spy_position.load(Ordering::Acquire)
    }

    /// By the conductor: whether publishers may see the subscribers.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    /// By the conductor: whether there are working spies.
    pub fn set_has_spies(&self, has_spies: bool) {
        self.has_spies.store(has_spies, Ordering::Release);
    }

    /// By the conductor: the publication is closed and everything was sent.
    pub fn set_end_of_stream(&self) {
        self.is_end_of_stream.store(true, Ordering::Release);
    }

    /// By the conductor: how far the fastest spy got.
    pub fn set_max_spy_position(&self, position: i64) {
        self.max_spy_position.store(position, Ordering::Release);
    }

    /// By the sender.
    pub(crate) fn set_has_receivers(&self, has_receivers: bool) {
        self.has_receivers.store(has_receivers, Ordering::Release);
    }

    /// By the sender: whether flow control has the receivers that it requires.
    pub(crate) fn set_has_required_receivers(&self, has_required: bool) {
        self.has_required_receivers
            .store(has_required, Ordering::Release);
    }

    /// By the sender.
    pub(crate) fn set_received_unicast_eos(&self) {
        self.has_received_unicast_eos.store(true, Ordering::Release);
    }
}
