//! [`PublicationStatus`]: the state of a network publication that the conductor and the sender share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogMetadata;

/// State of one publication. One of the two agents stores each value (release), and both agents read it (acquire).
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
    slowest_receiver_position: AtomicI64,
}

impl PublicationStatus {
    /// Creates the status without receivers and spies. If `spies_simulate_connection` is set, spies count like
    /// receivers.
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
            slowest_receiver_position: AtomicI64::new(start_position),
        }
    }

    /// Returns whether the publication has receivers, or spies that count like receivers.
    pub fn has_subscribers(&self) -> bool {
        (self.has_receivers() && self.has_required_receivers.load(Ordering::Acquire))
            || self.has_spies_that_count()
    }

    /// Returns whether there are spies that count like receivers.
    pub fn has_spies_that_count(&self) -> bool {
        self.spies_simulate_connection && self.has_spies.load(Ordering::Acquire)
    }

    /// Shows publishers whether they are connected: there must be subscribers and a window. Stores only a change.
    ///
    /// Both agents call this method after a change of the status. They may call it at the same time.
    pub fn update_connection(&self, metadata: &LogMetadata<SharedBuffer>) {
        metadata.show_connected(|| self.has_subscribers() && self.is_open());
    }

    /// Returns whether publishers may see their subscribers. The conductor sets this value.
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns whether a status message has arrived within the connection timeout.
    pub fn has_receivers(&self) -> bool {
        self.has_receivers.load(Ordering::Acquire)
    }

    /// Returns whether the receiver of a unicast channel knows the end of the stream or has left.
    ///
    /// If so, lingering is useless. The value becomes false again if a receiver returns.
    pub fn has_received_unicast_eos(&self) -> bool {
        self.has_received_unicast_eos.load(Ordering::Acquire)
    }

    /// Returns whether the publication is closed and all data was sent.
    pub fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream.load(Ordering::Acquire)
    }

    /// Returns the consumed position in the last report of the slowest live receiver.
    pub fn slowest_receiver_position(&self) -> i64 {
        self.slowest_receiver_position.load(Ordering::Acquire)
    }

    /// Returns the position of the fastest spy.
    pub fn max_spy_position(&self) -> i64 {
        self.max_spy_position.load(Ordering::Acquire)
    }

    /// Sets whether publishers may see their subscribers. Called by the conductor.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    /// Sets whether spies are active. Called by the conductor.
    pub fn set_has_spies(&self, has_spies: bool) {
        self.has_spies.store(has_spies, Ordering::Release);
    }

    /// Records that the publication is closed and all data was sent. Called by the conductor.
    pub fn set_end_of_stream(&self) {
        self.is_end_of_stream.store(true, Ordering::Release);
    }

    /// Sets the position of the fastest spy. Called by the conductor.
    pub fn set_max_spy_position(&self, position: i64) {
        self.max_spy_position.store(position, Ordering::Release);
    }

    /// Sets whether a status message has arrived within the connection timeout. Called by the sender.
    pub(crate) fn set_has_receivers(&self, has_receivers: bool) {
        self.has_receivers.store(has_receivers, Ordering::Release);
    }

    /// Sets the position of the slowest receiver. Called by the sender before it reports the first receiver, and after
    /// each change.
    pub(crate) fn set_slowest_receiver_position(&self, position: i64) {
        self.slowest_receiver_position
            .store(position, Ordering::Release);
    }

    /// Sets whether flow control has the receivers that it requires. Called by the sender.
    pub(crate) fn set_has_required_receivers(&self, has_required: bool) {
        self.has_required_receivers
            .store(has_required, Ordering::Release);
    }

    /// Sets whether the receiver of a unicast channel knows the end of the stream or has left. Called by the sender.
    pub(crate) fn set_received_unicast_eos(&self, has_received: bool) {
        self.has_received_unicast_eos
            .store(has_received, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::{hint, thread};

    use aeron_memory::log::buffers::log_length;
    use aeron_memory::log::{LogBuffers, LogDescription, LogType};

    use super::*;

    /// A stream becomes connected again. The sender handles the stream's first status message at the same time as the
    /// conductor provides the window.
    #[test]
    fn simultaneous_changes_of_both_agents_connect_the_publication() {
        const TERM_LENGTH: i32 = 64 * 1024;
        const ROUNDS: usize = 100_000;
        let description = LogDescription {
            mtu_length: 1408,
            term_length: TERM_LENGTH,
            ..LogDescription::new(LogType::ExclusivePublication, 1, 1, 1)
        };
        let length = log_length(TERM_LENGTH.into(), 4096).unwrap();
        let log = LogBuffers::create(&SharedBuffer::heap(length), &description, 0).unwrap();
        let status = PublicationStatus::new(false, 0);
        let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let wait_for = |count: &AtomicUsize, round| {
            while count.load(Ordering::Acquire) < round {
                hint::spin_loop();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    wait_for(&begun, round);
                    status.set_has_receivers(true);
                    status.set_has_required_receivers(true);
                    status.update_connection(log.metadata());
                    done.store(round, Ordering::Release);
                }
            });
            let mut lost = 0;
            for round in 1..=ROUNDS {
                status.set_has_receivers(false);
                status.set_open(false);
                status.update_connection(log.metadata());
                begun.store(round, Ordering::Release);
                while !status.has_subscribers() {
                    hint::spin_loop();
                }
                status.set_open(true);
                status.update_connection(log.metadata());
                wait_for(&done, round);
                lost += usize::from(!log.metadata().is_connected());
            }
            assert_eq!(lost, 0, "of {ROUNDS}");
        });
    }
}
