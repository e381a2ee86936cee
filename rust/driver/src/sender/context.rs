//! What all parts of the sender share.

use std::io;

use super::counters::SenderCounters;
use super::event::SenderEvent;
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::timestamps::EpochNanos;
use crate::queue::QueueProducer;

/// Settings of the driver that the sender goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings {
    /// A status message is due from every receiver in this time.
    pub status_message_timeout_ns: i64,
    /// Duty cycles in a row that may send without looking for control frames.
    pub send_to_status_poll_ratio: usize,
    /// Messages that are taken out of a socket at a time.
    pub io_vector_capacity: usize,
    /// GSO batches that one publication may send in a duty cycle.
    pub max_messages_per_send: usize,
    /// A receiver that is silent for so long is gone.
    pub publication_connection_timeout_ns: i64,
    /// How long small messages may wait for others that share their datagram; 0 for not at all.
    pub batch_wait_ns: i64,
    /// Time between two looks for endpoints that nobody answers; 0 for never.
    pub re_resolution_check_interval_ns: i64,
}

impl SenderSettings {
    /// The sender's share of a driver's settings.
    pub fn of(context: &Context) -> Self {
        let count = |count: i32| count.max(1) as usize;
        Self {
            status_message_timeout_ns: context.status_message_timeout_ns,
            send_to_status_poll_ratio: count(context.send_to_status_poll_ratio),
            io_vector_capacity: count(context.sender_io_vector_capacity),
            max_messages_per_send: count(context.network_publication_max_messages_per_send),
            publication_connection_timeout_ns: context.publication_connection_timeout_ns,
            batch_wait_ns: context.sender_batch_wait_ns,
            re_resolution_check_interval_ns: context.re_resolution_check_interval_ns,
        }
    }
}

/// Handed to endpoints and publications with everything that they are asked to do.
pub(super) struct SenderContext {
    pub settings: SenderSettings,
    pub counters: SenderCounters,
    pub events: QueueProducer<SenderEvent>,
    pub errors: ErrorRecorder,
    pub epoch_nanos: EpochNanos,
    /// The time at which the duty cycle began.
    pub now_ns: i64,
}

impl SenderContext {
    /// Tells the conductor what some peer says over and over, unless the conductor has too much to do: what comes from outside
    /// must not fill the memory meanwhile.
    pub fn tell_again(&mut self, event: SenderEvent) {
        if self.events.has_room() {
            self.events.send(event);
        }
    }

    /// A socket took less than it was given.
    pub fn on_short_send(&self) {
        self.counters.short_sends.fetch_add(1);
    }

    /// What a socket said when it was asked to send to an unvalidated destination. The stream does not wait for such a
    /// destination, because its address may be anything.
    pub fn note_unvalidated(&self, error: Option<io::Error>) {
        if let Some(error) = error {
            self.on_socket_error(&error, "failed to send to a new destination");
        }
    }

    /// A socket failed while it was asked to do `what`.
    pub fn on_socket_error(&self, error: &io::Error, what: &str) {
        self.errors.record(&DriverError::io(error, what));
    }
}
