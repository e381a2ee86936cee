//! The settings, counters and outputs that all parts of the sender share.

use std::io;

use super::counters::SenderCounters;
use super::event::SenderEvent;
use crate::config::Context;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::media::timestamps::EpochNanos;
use crate::queue::QueueProducer;

/// The driver's settings for the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings {
    /// Maximum time between two status messages of a receiver.
    pub status_message_timeout_ns: i64,
    /// Maximum number of consecutive duty cycles that send without polling for control frames.
    pub send_to_status_poll_ratio: usize,
    /// Maximum number of messages that are read from a socket with one call.
    pub io_vector_capacity: usize,
    /// Maximum number of GSO batches that a publication may send in a duty cycle.
    pub max_messages_per_send: usize,
    /// Maximum time that small messages wait for others to share their datagram; 0 to send them at once.
    pub batch_wait_ns: i64,
    /// Interval between two checks for endpoints that receive no control frames; 0 turns the checks off.
    pub re_resolution_check_interval_ns: i64,
}

impl SenderSettings {
    /// Takes the sender's settings from the configuration.
    pub fn of(context: &Context) -> Self {
        let count = |count: i32| count.max(1) as usize;
        Self {
            status_message_timeout_ns: context.status_message_timeout_ns,
            send_to_status_poll_ratio: count(context.send_to_status_poll_ratio),
            io_vector_capacity: count(context.sender_io_vector_capacity),
            max_messages_per_send: count(context.network_publication_max_messages_per_send),
            batch_wait_ns: context.sender_batch_wait_ns,
            re_resolution_check_interval_ns: context.re_resolution_check_interval_ns,
        }
    }
}

/// The state that the parts of the sender share. It is an argument of most operations of endpoints and publications.
pub(super) struct SenderContext {
    pub settings: SenderSettings,
    pub counters: SenderCounters,
    pub events: QueueProducer<SenderEvent>,
    pub errors: ErrorRecorder,
    pub epoch_nanos: EpochNanos,
    /// Start of the duty cycle.
    pub now_ns: i64,
}

impl SenderContext {
    /// Sends the conductor an event that a peer can cause repeatedly.
    ///
    /// If the queue is full, drops the event, because a peer must not be able to fill the memory.
    pub fn report_again(&mut self, event: SenderEvent) {
        if self.events.has_room() {
            self.events.send(event);
        }
    }

    /// Counts a send call that accepted only a part of its data.
    pub fn on_short_send(&self) {
        self.counters.short_sends.fetch_add(1);
    }

    /// Records an error of a send to an unvalidated destination.
    ///
    /// Such an error does not stop the stream, because the address may be forged.
    pub fn note_unvalidated(&self, error: Option<io::Error>) {
        if let Some(error) = error {
            self.on_socket_error(&error, "failed to send to a new destination");
        }
    }

    /// Records an error of a socket; `what` is the operation that failed.
    pub fn on_socket_error(&self, error: &io::Error, what: &str) {
        self.errors.record(&DriverError::io(error, what));
    }
}
