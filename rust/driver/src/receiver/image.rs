//! [`ReceiverImage`]: the receiver's half of an image, which inserts datagrams into the log.
//!
//! Inserted data begins at or after the position of the last status message, and ends at most half a term after this
//! position. It is within one term and on allocated pages. All other data is dropped.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::log::LogBuffers;
use aeron_memory::log::rebuild::insert;
use aeron_protocol::frame::{DataHeader, FrameError, Rttm, walk_from};

use super::connections::SourceConnections;
use super::endpoint::ReceiverIdentity;
use super::feedback::Feedback;
use super::ids::{DestinationId, ReceiveEndpointId};
use crate::congestion::RttMeter;
use crate::image::ImageStatus;
use crate::stream::StreamSession;

/// Parameters of the receiver's half of an image.
#[derive(Debug)]
pub struct ReceiverImageConfig {
    pub correlation_id: i64,
    pub endpoint: ReceiveEndpointId,
    /// The destination at which the SETUP arrived.
    pub destination: DestinationId,
    /// Source address of the SETUP.
    pub source_address: SocketAddr,
    pub session_id: i32,
    pub stream_id: i32,
    pub log: LogBuffers<SharedBuffer>,
    /// Position of the stream when the image was created.
    pub join_position: i64,
    /// Maximum window that the receiver offers, in bytes.
    pub max_window_length: i64,
    /// Whether missing bytes are requested. If not, gaps are filled with padding.
    pub is_reliable: bool,
    /// Counter of the highest position received, with or without gaps before it.
    pub high_water_mark: AtomicCounter<SharedBuffer>,
    /// Counter of NAKs.
    pub naks_sent: AtomicCounter<SharedBuffer>,
    /// Measures round trips, if the congestion control uses them.
    pub rtt_meter: Option<RttMeter>,
    pub status: Arc<ImageStatus>,
}

/// The receiver's half of an image.
#[derive(Debug)]
pub struct ReceiverImage {
    pub(super) config: ReceiverImageConfig,
    /// Key of the endpoint in the receiver, and the identity for control frames; `None` after the endpoint was removed.
    pub(super) endpoint: Option<(usize, ReceiverIdentity)>,
    pub(super) connections: SourceConnections,
    pub(super) feedback: Feedback,
    high_water_mark: i64,
}

/// Source and time of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Key of the destination.
    pub destination: usize,
    pub source: SocketAddr,
    pub now_ns: i64,
}

impl ReceiverImage {
    /// Creates an image that has received nothing.
    pub fn new(config: ReceiverImageConfig) -> Self {
        config.high_water_mark.set(config.join_position);
        Self {
            endpoint: None,
            connections: SourceConnections::default(),
            feedback: Feedback::new(config.join_position, config.log.term_length()),
            high_water_mark: config.join_position,
            config,
        }
    }

    pub(super) fn session(&self) -> StreamSession {
        StreamSession {
            stream_id: self.config.stream_id,
            session_id: self.config.session_id,
        }
    }

    /// Returns whether the image belongs to the endpoint with this key.
    pub(super) fn belongs_to(&self, endpoint: usize) -> bool {
        self.endpoint.is_some_and(|(key, _)| key == endpoint)
    }

    /// Records that the source of a datagram is active.
    pub(super) fn track(&mut self, arrival: &Arrival) {
        self.connections
            .track(arrival.destination, arrival.source, arrival.now_ns);
    }

    /// Inserts a datagram. `header` is the header of its first frame.
    ///
    /// # Errors
    /// The frames of the datagram are not a valid part of a term. Nothing was inserted.
    pub(super) fn on_data(
        &mut self,
        header: &DataHeader,
        datagram: &[u8],
        arrival: &Arrival,
        system: &SystemCounters<SharedBuffer>,
    ) -> Result<(), FrameError> {
        let covered = walk_from(header, datagram, self.config.log.term_length())?;
        let positions = self.config.log.positions();
        if positions.term_count(header.term_id) < 0 || self.feedback.is_rejected() {
            return Ok(());
        }
        let position = positions.position(header.term_id, header.term_offset as usize);
        let end = position + covered.length as i64;
        let limit = self.feedback.over_run_threshold();
        if end > limit.min(self.config.status.allocated_end()) {
            system
                .get(SystemCounter::FlowControlOverRuns)
                .add_release(1);
        } else if covered.is_heartbeat {
            self.on_heartbeat(header, position, arrival, system);
        } else {
            self.on_frames(datagram, position, end, arrival, system);
        }
        Ok(())
    }

    /// Handles the reply to an RTT measurement of this image.
    pub(super) fn on_round_trip(&mut self, answer: &Rttm, now_ns: i64) {
        if let Some(meter) = &mut self.config.rtt_meter {
            meter.on_answer(answer.echo_timestamp_ns, answer.reception_delta_ns, now_ns);
        }
    }

    fn on_heartbeat(
        &mut self,
        header: &DataHeader,
        position: i64,
        arrival: &Arrival,
        system: &SystemCounters<SharedBuffer>,
    ) {
        let term_length = self.config.log.term_length() as i64;
        if position < (self.feedback.last_position - term_length).max(0) {
            system
                .get(SystemCounter::FlowControlUnderRuns)
                .add_release(1);
            return;
        }
        self.on_packet(arrival);
        if header.is_end_of_stream() && !self.config.status.is_end_of_stream() {
            self.on_end_of_stream(header.is_revoked(), position, arrival, system);
        }
        self.raise_high_water_mark(position);
        system.get(SystemCounter::HeartbeatsReceived).add_release(1);
    }

    fn on_frames(
        &mut self,
        datagram: &[u8],
        position: i64,
        end: i64,
        arrival: &Arrival,
        system: &SystemCounters<SharedBuffer>,
    ) {
        let last_position = self.feedback.last_position;
        if position < last_position {
            system
                .get(SystemCounter::FlowControlUnderRuns)
                .add_release(1);
            if end >= last_position - self.config.max_window_length {
                self.track(arrival);
            }
            return;
        }
        self.on_packet(arrival);
        let offset = self.config.log.positions().term_offset(position);
        insert(self.config.log.term_at(position), offset, datagram);
        self.raise_high_water_mark(end);
    }

    fn on_packet(&mut self, arrival: &Arrival) {
        self.track(arrival);
        self.config.status.on_packet(arrival.now_ns);
    }

    fn raise_high_water_mark(&mut self, position: i64) {
        if position > self.high_water_mark {
            self.high_water_mark = position;
            self.config.status.set_high_water_mark(position);
            self.config.high_water_mark.set(position);
        }
    }

    fn on_end_of_stream(
        &mut self,
        is_revoked: bool,
        position: i64,
        arrival: &Arrival,
        system: &SystemCounters<SharedBuffer>,
    ) {
        let end = self
            .connections
            .end(arrival.destination, position, arrival.now_ns);
        let Some(end) = end else {
            return;
        };
        let metadata = self.config.log.metadata();
        if is_revoked {
            metadata.set_publication_revoked();
            system
                .get(SystemCounter::PublicationImagesRevoked)
                .add_release(1);
        }
        metadata.set_end_of_stream_position(end);
        self.config.status.end_stream(is_revoked);
    }
}
