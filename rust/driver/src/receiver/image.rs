//! [`ReceiverImage`]: the receiver's half of an image, which inserts datagrams into the log.
//!
//! The bytes of an inserted datagram begin at or after the position of the last status message, and end at most half a
//! term after this position. They are within one term and on allocated pages. All other data is dropped.
//!
//! Only the header of a padding frame is sent, so the frame may end after both limits. The stream then continues at the
//! end of the frame.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::log::LogBuffers;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
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

/// The positions of a datagram in the stream.
#[derive(Clone, Copy, Debug)]
struct DatagramRange {
    position: i64,
    /// Position up to which bytes are accepted.
    limit: i64,
    /// End of the received bytes.
    received_end: i64,
    /// End of the last frame, with all bytes of a padding frame.
    end: i64,
}

impl ReceiverImage {
    /// Creates an image that has received nothing.
    pub fn new(config: ReceiverImageConfig) -> Self {
        debug_assert!(
            config.join_position >= 0 && config.join_position % FRAME_ALIGNMENT as i64 == 0,
            "the checks of the SETUP refuse the join position {}",
            config.join_position
        );
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
        let allocated_end = self.config.status.allocated_end();
        let range = DatagramRange {
            position,
            limit: self.feedback.over_run_threshold().min(allocated_end),
            received_end: match covered.is_heartbeat {
                true => position,
                false => position + datagram.len() as i64,
            },
            end: position + covered.length as i64,
        };
        if range.received_end > range.limit || !self.is_readable(range.end, allocated_end) {
            system
                .get(SystemCounter::FlowControlOverRuns)
                .add_release(1);
        } else if covered.is_heartbeat {
            self.on_heartbeat(header, position, arrival, system);
        } else {
            self.on_frames(datagram, range, arrival, system);
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
        range: DatagramRange,
        arrival: &Arrival,
        system: &SystemCounters<SharedBuffer>,
    ) {
        debug_assert!(
            range.position < range.received_end && range.received_end <= range.limit,
            "the bytes from {} to {} are not within the limit {}",
            range.position,
            range.received_end,
            range.limit
        );
        let position = range.position;
        let last_position = self.feedback.last_position;
        if position < last_position {
            system
                .get(SystemCounter::FlowControlUnderRuns)
                .add_release(1);
            if range.received_end >= last_position - self.config.max_window_length {
                self.track(arrival);
            }
            return;
        }
        self.on_packet(arrival);
        let offset = self.config.log.positions().term_offset(position);
        let is_inserted = insert(self.config.log.term_at(position), offset, datagram);
        // Beyond the limit, only a padding frame in the log makes the bytes before the high-water mark safe to scan.
        self.raise_high_water_mark(match is_inserted {
            true => range.end,
            false => range.end.min(range.limit),
        });
    }

    /// Returns whether subscribers can read the frame header at the position `end`, where the stream continues.
    ///
    /// The header of the first frame of each term is always on an allocated page.
    fn is_readable(&self, end: i64, allocated_end: i64) -> bool {
        end <= allocated_end || self.config.log.positions().term_offset(end) == 0
    }

    fn on_packet(&mut self, arrival: &Arrival) {
        self.track(arrival);
        self.config.status.on_packet(arrival.now_ns);
    }

    fn raise_high_water_mark(&mut self, position: i64) {
        // The conductor scans from frame boundary to frame boundary.
        debug_assert!(
            position % FRAME_ALIGNMENT as i64 == 0,
            "the high-water mark {position} is inside a frame"
        );
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
        debug_assert!(
            end >= position,
            "the stream ends at {end}, but a source has ended it later, at {position}"
        );
        let metadata = self.config.log.metadata();
        // The flag is stored before the end: a subscriber that sees the end also sees whether the stream was revoked.
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
