//! [`ReceiverImage`]: the receiver's half of an image; datagrams go into the log here.
//!
//! What is stored lies within the window that the sender was told, within the term that the frames name, and on pages that exist;
//! everything else is dropped and counted.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::log::LogBuffers;
use aeron_memory::log::rebuild::insert;
use aeron_protocol::frame::{DataHeader, FrameError, Rttm, walk_from};

use super::connections::Connections;
use super::endpoint::ReceiverIdentity;
use super::feedback::Feedback;
use super::ids::{DestinationId, EndpointId};
use crate::congestion::RttMeter;
use crate::image::ImageStatus;
use crate::stream::StreamSession;

/// What makes the receiver's half of an image.
#[derive(Debug)]
pub struct ReceiverImageConfig {
    pub correlation_id: i64,
    pub endpoint: EndpointId,
    /// The destination whose SETUP made the image.
    pub destination: DestinationId,
    /// Where the SETUP came from.
    pub source_address: SocketAddr,
    pub session_id: i32,
    pub stream_id: i32,
    pub log: LogBuffers<SharedBuffer>,
    /// Where the stream was when it was joined.
    pub join_position: i64,
    /// The largest window that the sender will be offered, in bytes.
    pub max_window_length: i64,
    /// Missing bytes are asked for, not padded over.
    pub is_reliable: bool,
    /// Shows the end of what was received, gaps or not.
    pub high_water_mark: AtomicCounter<SharedBuffer>,
    /// Counts requests for missing bytes.
    pub naks_sent: AtomicCounter<SharedBuffer>,
    /// Measures round trips, if congestion control wants them.
    pub rtt_meter: Option<RttMeter>,
    pub status: Arc<ImageStatus>,
}

/// The receiver's half of an image.
#[derive(Debug)]
pub struct ReceiverImage {
    pub(super) config: ReceiverImageConfig,
    /// Key of the endpoint in the receiver, and who it is to the sender; `None` once it is gone.
    pub(super) endpoint: Option<(usize, ReceiverIdentity)>,
    pub(super) connections: Connections,
    pub(super) feedback: Feedback,
    high_water_mark: i64,
}

/// Where a datagram came from, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Key of the destination.
    pub destination: usize,
    pub source: SocketAddr,
    pub now_ns: i64,
}

impl ReceiverImage {
    /// An image that has received nothing yet.
    pub fn new(config: ReceiverImageConfig) -> Self {
        config.high_water_mark.set(config.join_position);
        Self {
            endpoint: None,
            connections: Connections::default(),
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

    /// Whether it is received by the endpoint with this key.
    pub(super) fn belongs_to(&self, endpoint: usize) -> bool {
        self.endpoint.is_some_and(|(key, _)| key == endpoint)
    }

    /// A sign of life: there is a source behind this destination.
    pub(super) fn track(&mut self, arrival: &Arrival) {
        self.connections
            .track(arrival.destination, arrival.source, arrival.now_ns);
    }

    /// A datagram whose first frame has this header.
    ///
    /// # Errors
    /// Its frames are not those of a slice of a term; nothing was done with it.
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

    /// A measurement of the round trip that this image asked for.
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
