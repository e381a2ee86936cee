//! [`ClientProxy`]: encodes and broadcasts all responses and events for the clients.

use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::buffer::SharedBuffer;
use aeron_protocol::event::{self, Event};

use crate::error::DriverError;
use crate::publication::PublicationConfig;
use crate::sender::PublicationErrorReport;
use crate::stream::StreamIdentity;

/// Longest text of an error, in bytes.
const MAX_ERROR_TEXT_LENGTH: usize = 8191;

/// Ids of the counters that the event for an added publication contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationCounterIds {
    pub limit: i32,
    /// Counter id of the channel status, -1 for IPC.
    pub channel_status: i32,
}

#[derive(Debug)]
pub struct ClientProxy {
    transmitter: BroadcastTransmitter<SharedBuffer>,
    buffer: Vec<u8>,
}

impl ClientProxy {
    /// Creates a proxy that sends to the readers of `transmitter`.
    pub fn new(transmitter: BroadcastTransmitter<SharedBuffer>) -> Self {
        let buffer = vec![0; transmitter.max_message_length()];
        Self {
            transmitter,
            buffer,
        }
    }

    pub fn on_error(&mut self, correlation_id: i64, error: &DriverError) {
        let text = error.text().as_bytes();
        self.send(&Event::Error(event::Error {
            offending_command_correlation_id: correlation_id,
            error_code: error.code(),
            error_message: &text[..text.len().min(MAX_ERROR_TEXT_LENGTH)],
        }));
    }

    pub fn on_publication_ready(
        &mut self,
        correlation_id: i64,
        config: &PublicationConfig,
        counters: PublicationCounterIds,
    ) {
        let ready = event::PublicationReady {
            correlation_id,
            registration_id: config.registration_id,
            session_id: config.session_id,
            stream_id: config.stream_id,
            publication_limit_counter_id: counters.limit,
            channel_status_indicator_id: counters.channel_status,
            log_file_name: config.log_file_name.as_bytes(),
        };
        self.send(&match config.is_exclusive {
            true => Event::ExclusivePublicationReady(ready),
            false => Event::PublicationReady(ready),
        });
    }

    pub fn on_subscription_ready(&mut self, correlation_id: i64, channel_status_indicator_id: i32) {
        self.send(&Event::SubscriptionReady(event::SubscriptionReady {
            correlation_id,
            channel_status_indicator_id,
        }));
    }

    pub fn on_available_image(
        &mut self,
        stream: StreamIdentity<'_>,
        subscription_registration_id: i64,
        subscriber_position_id: i32,
    ) {
        self.send(&Event::AvailableImage(event::AvailableImage {
            correlation_id: stream.correlation_id,
            session_id: stream.session_id,
            stream_id: stream.stream_id,
            subscription_registration_id,
            subscriber_position_id,
            log_file_name: stream.log_file_name.as_bytes(),
            source_identity: stream.source_identity.as_bytes(),
        }));
    }

    pub fn on_unavailable_image(
        &mut self,
        stream: StreamIdentity<'_>,
        subscription_registration_id: i64,
        channel: &str,
    ) {
        self.send(&Event::UnavailableImage(event::UnavailableImage {
            correlation_id: stream.correlation_id,
            subscription_registration_id,
            stream_id: stream.stream_id,
            channel: channel.as_bytes(),
        }));
    }

    pub fn on_operation_success(&mut self, correlation_id: i64) {
        self.send(&Event::OperationSuccess(event::OperationSuccess {
            correlation_id,
        }));
    }

    pub fn on_counter_ready(&mut self, registration_id: i64, counter_id: i32) {
        self.send(&Event::CounterReady(event::CounterUpdate {
            correlation_id: registration_id,
            counter_id,
        }));
    }

    pub fn on_unavailable_counter(&mut self, registration_id: i64, counter_id: i32) {
        self.send(&Event::UnavailableCounter(event::CounterUpdate {
            correlation_id: registration_id,
            counter_id,
        }));
    }

    pub fn on_static_counter(&mut self, correlation_id: i64, counter_id: i32) {
        self.send(&Event::StaticCounter(event::StaticCounter {
            correlation_id,
            counter_id,
        }));
    }

    pub fn on_client_timeout(&mut self, client_id: i64) {
        self.send(&Event::ClientTimeout(event::ClientTimeout { client_id }));
    }

    pub fn on_next_available_session_id(&mut self, correlation_id: i64, next_session_id: i32) {
        self.send(&Event::NextAvailableSessionId(
            event::NextAvailableSessionId {
                correlation_id,
                next_session_id,
            },
        ));
    }

    /// Announces that a receiver, or a subscriber of an IPC publication, has rejected the publication.
    pub fn on_publication_error(&mut self, report: &PublicationErrorReport) {
        self.send(&Event::PublicationError(event::PublicationError {
            registration_id: report.registration_id,
            destination_registration_id: report.destination_registration_id,
            session_id: report.session_id,
            stream_id: report.stream_id,
            receiver_id: report.receiver_id,
            group_tag: report.group_tag,
            source_address: Some(report.source),
            error_code: report.error_code,
            error_message: &report.message,
        }));
    }

    /// Sends an event. The whole event is far shorter than the longest message, which is at least 128 KiB.
    fn send(&mut self, event: &Event<'_>) {
        let sent = event.encode(&mut self.buffer).map(|length| {
            self.transmitter
                .transmit(event.type_id(), &self.buffer[..length])
        });
        debug_assert!(matches!(sent, Ok(Ok(()))), "{event:?}: {sent:?}");
    }
}
