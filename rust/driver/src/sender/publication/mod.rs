//! [`SenderPublication`]: the sender's half of a network publication.
//!
//! In each duty cycle, the sender calls `send`, which sends:
//!
//! - a SETUP, if no receiver has responded yet or a receiver has requested a SETUP,
//! - data up to the sender limit,
//! - a heartbeat, if there was no data for a while,
//! - challenges to destinations that are not validated yet,
//! - retransmits (see [`control_frames`]).

mod boundaries;
mod control_frames;
mod stream;

use std::fmt;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::LogBuffers;
use aeron_protocol::frame::{DataHeader, Setup, flags};

use super::context::SenderContext;
use super::endpoint::{Audience, SendEndpoint};
use super::gso_batches::{CutEnd, CutLimits, TailPolicy, cut};
use super::receivers::Receivers;
use crate::flow_control::FlowControl;
use crate::publication::PublicationStatus;
use crate::retransmit::RetransmitHandler;
use crate::stream::StreamSession;
use boundaries::{FrameBoundaries, aligned_position};
use stream::SendStream;

/// Time between two SETUPs until a receiver responds; the first time if it doubles.
pub const SETUP_INTERVAL_NS: i64 = 100_000_000;
/// Maximum number of SETUPs without a response if the time between them doubles. The last one is sent after 3.2 s.
const MAX_UNPROVEN_SETUPS: u32 = 7;
/// Time without data after which a heartbeat is due.
pub const HEARTBEAT_INTERVAL_NS: i64 = 100_000_000;

/// Parameters of the sending half of a publication.
pub struct SenderPublicationConfig {
    /// Correlation id of the command that created the publication.
    pub registration_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    /// The log that publishers write. The MTU of the log is the maximum length of a datagram.
    pub log: LogBuffers<SharedBuffer>,
    /// Position of the first frame.
    pub start_position: i64,
    pub counters: PublicationCounters,
    /// Calculates the sender limit.
    pub flow_control: Box<dyn FlowControl>,
    /// Decides which ranges are retransmitted, and at what time.
    pub retransmits: RetransmitHandler,
    /// State shared with the conductor.
    pub status: Arc<PublicationStatus>,
    /// The channel's `ttl`; 0 if it is not set or the channel is not multicast.
    pub ttl: u8,
    /// Whether the channel is multicast or has several destinations.
    pub has_group_semantics: bool,
    /// Whether heartbeats after the end of the stream have the end-of-stream flag.
    pub signal_eos: bool,
    /// Whether the time between SETUPs doubles until a receiver responds.
    pub backs_off_setups: bool,
    /// The publication's part in an exchange of requests and responses.
    pub response: Response,
    /// Time without a status message after which a receiver is removed.
    pub connection_timeout_ns: i64,
}

/// The part of a publication in an exchange of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The publication carries neither requests nor responses.
    None,
    /// The publication carries requests. It asks receivers for a response stream, which the subscription with this
    /// registration id receives.
    Requested {
        /// Registration id of the subscription.
        response_correlation_id: i64,
    },
    /// The publication carries responses to the image with this correlation id. It sends nothing until the requester
    /// asks for the responses, and then sends to the requester.
    Given {
        /// Correlation id of the image.
        response_correlation_id: i64,
    },
}

/// Counters that the sender updates.
#[derive(Clone, Debug)]
pub struct PublicationCounters {
    /// Position up to which the stream was sent.
    pub sender_position: AtomicCounter<SharedBuffer>,
    /// Position up to which flow control allows sending.
    pub sender_limit: AtomicCounter<SharedBuffer>,
    /// Number of times that flow control held back data.
    pub back_pressure_events: AtomicCounter<SharedBuffer>,
    /// Number of NAKs for this publication.
    pub naks_received: AtomicCounter<SharedBuffer>,
}

/// The sending half; see the [module](self). The conductor creates it; the sender owns it.
pub struct SenderPublication {
    registration_id: i64,
    stream: SendStream,
    counters: PublicationCounters,
    flow_control: Box<dyn FlowControl>,
    retransmits: RetransmitHandler,
    status: Arc<PublicationStatus>,
    receivers: Receivers,
    response: Response,
    ttl: u8,
    has_group_semantics: bool,
    signal_eos: bool,
    start_position: i64,
    sender_limit: i64,
    has_initial_connection: bool,
    is_setup_elicited: bool,
    /// Number of SETUPs to the current address if the time between them doubles, else `None`.
    backoff: Option<u32>,
    /// Whether data was sent since flow control last held data back.
    tracks_sender_limit: bool,
    is_log_corrupt: bool,
    time_of_last_setup_ns: i64,
    time_of_last_data_or_heartbeat_ns: i64,
    time_of_last_data_ns: Option<i64>,
    /// Whether the first datagram of the last batch that was sent contained a single frame.
    was_last_frame_alone: bool,
    /// Whether the last status message of a unicast stream announced that the receiver leaves.
    has_last_receiver_left: bool,
    /// Whether a heartbeat was sent after the end of the stream.
    is_end_told: bool,
}

/// Result of one duty cycle of a publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendProgress {
    /// Number of bytes of data and heartbeats sent.
    pub bytes_sent: usize,
    /// Whether small messages wait for others to share their datagram.
    pub is_waiting: bool,
}

impl SenderPublication {
    /// Creates a publication. The sender position and the sender limit are the start position.
    pub fn new(config: SenderPublicationConfig, now_ns: i64) -> Self {
        let position = config.start_position;
        debug_assert_eq!(
            aligned_position(position),
            position,
            "no frame can begin at the start position"
        );
        config.counters.sender_position.set(position);
        config.counters.sender_limit.set(position);
        config
            .status
            .set_has_required_receivers(config.flow_control.has_required_receivers());
        let long_ago_ns = now_ns - SETUP_INTERVAL_NS.max(HEARTBEAT_INTERVAL_NS) - 1;
        Self {
            registration_id: config.registration_id,
            stream: SendStream {
                session_id: config.session_id,
                stream_id: config.stream_id,
                mtu_length: config.log.framing().mtu_length(),
                boundaries: FrameBoundaries::new(position, config.log.term_length()),
                log: config.log,
                sender_position: position,
                is_response: matches!(config.response, Response::Given { .. }),
                response_address: None,
            },
            counters: config.counters,
            flow_control: config.flow_control,
            retransmits: config.retransmits,
            status: config.status,
            receivers: Receivers::new(config.connection_timeout_ns),
            response: config.response,
            ttl: config.ttl,
            has_group_semantics: config.has_group_semantics,
            signal_eos: config.signal_eos,
            start_position: position,
            sender_limit: position,
            has_initial_connection: false,
            is_setup_elicited: false,
            backoff: config.backs_off_setups.then_some(0),
            tracks_sender_limit: false,
            is_log_corrupt: false,
            time_of_last_setup_ns: long_ago_ns,
            time_of_last_data_or_heartbeat_ns: long_ago_ns,
            time_of_last_data_ns: None,
            was_last_frame_alone: false,
            has_last_receiver_left: false,
            is_end_told: false,
        }
    }

    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    pub fn session(&self) -> StreamSession {
        StreamSession {
            stream_id: self.stream.stream_id,
            session_id: self.stream.session_id,
        }
    }

    /// Sends the frames that are due now.
    pub(super) fn send(
        &mut self,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) -> SendProgress {
        self.send_setup_if_due(endpoint, context);
        let mut progress = self.send_data(endpoint, context);
        if progress.bytes_sent == 0 {
            progress.bytes_sent = self.send_heartbeat_if_due(endpoint, context);
            self.on_idle(context);
        }
        endpoint.send_challenges(self.registration_id, self.session(), context);
        self.send_delayed_retransmits(endpoint, context);
        progress
    }

    /// Returns the audience of all destinations.
    fn all(&self) -> Audience {
        Audience::All {
            publication: self.registration_id,
        }
    }

    fn send_setup_if_due(&mut self, endpoint: &mut SendEndpoint, context: &mut SenderContext) {
        let is_wanted = (!self.has_initial_connection || self.is_setup_elicited)
            && self.stream.has_destination();
        let now_ns = context.now_ns;
        if !is_wanted || now_ns - self.time_of_last_setup_ns <= self.setup_interval_ns() {
            return;
        }
        if self.is_setup_elicited {
            self.flow_control.on_setup(self.sender_limit, now_ns);
        }
        let mut datagram = [0; Setup::LENGTH];
        self.setup().encode(&mut datagram);
        self.stream.send(&datagram, endpoint, context);
        self.time_of_last_setup_ns = now_ns;
        if let Some(count) = &mut self.backoff {
            *count = count.saturating_add(1);
        }
        // With backoff, each request causes one SETUP, because the address in the request may be forged.
        if self.status.has_receivers() || self.backoff.is_some() {
            self.is_setup_elicited = false;
        }
    }

    /// Returns the minimum time between the last and the next SETUP.
    fn setup_interval_ns(&self) -> i64 {
        match self.backoff {
            _ if self.is_setup_elicited => SETUP_INTERVAL_NS,
            None => SETUP_INTERVAL_NS,
            Some(count) if count >= MAX_UNPROVEN_SETUPS => i64::MAX,
            // SETUPs are sent after 0, 100, 200, 400, ... ms.
            Some(count) => SETUP_INTERVAL_NS << count.saturating_sub(2),
        }
    }

    fn setup(&self) -> Setup {
        let stream = &self.stream;
        let positions = stream.log.positions();
        Setup {
            wants_response: matches!(self.response, Response::Requested { .. }),
            has_group_semantics: self.has_group_semantics,
            term_offset: positions.term_offset(stream.sender_position) as i32,
            session_id: stream.session_id,
            stream_id: stream.stream_id,
            initial_term_id: positions.initial_term_id(),
            active_term_id: positions.term_id(stream.sender_position),
            term_length: positions.term_length() as i32,
            mtu_length: stream.mtu_length as i32,
            ttl: self.ttl.into(),
        }
    }

    fn send_data(
        &mut self,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) -> SendProgress {
        if !self.may_have_data() {
            return SendProgress::default();
        }
        let stream = &self.stream;
        let limits = CutLimits {
            mtu_length: stream.mtu_length,
            max_gso_batches: context.settings.max_messages_per_send,
            max_gso_batch_datagrams: endpoint.max_gso_batch_datagrams(stream.response_address),
            tail: self.tail(context),
        };
        let window = self.sender_limit - stream.sender_position;
        let cut = match cut(&self.stream.log, stream.sender_position, window, &limits) {
            Ok(cut) => cut,
            Err(corrupt) => {
                self.is_log_corrupt = true;
                context.errors.note(&format!(
                    "publication stopped: sessionId={} streamId={}: {corrupt}\n",
                    stream.session_id, stream.stream_id
                ));
                return SendProgress::default();
            }
        };
        let is_waiting = cut.stop == CutEnd::Held;
        if cut.batches.is_empty() {
            // Counts each stall once: data must have been sent since the previous stall.
            if cut.stop == CutEnd::Window && self.tracks_sender_limit {
                self.tracks_sender_limit = false;
                self.counters.back_pressure_events.add_release(1);
                context.counters.flow_control_limits.add_release(1);
            }
            return SendProgress {
                bytes_sent: 0,
                is_waiting,
            };
        }
        let audience = self.all();
        let taken = stream.send_gso_batches(&cut.batches, audience, endpoint, context);
        let (bytes_sent, position) = (cut.length_of(taken), cut.end_of(taken));
        if taken > 0 {
            self.was_last_frame_alone = cut.is_last_frame_alone(&stream.log, taken);
            self.tracks_sender_limit = true;
            self.time_of_last_data_ns = Some(context.now_ns);
            self.time_of_last_data_or_heartbeat_ns = context.now_ns;
        }
        for (index, batch) in cut.batches[..taken].iter().enumerate() {
            let begin = cut.end_of(index);
            let range = begin..begin + batch.length() as i64;
            self.stream
                .boundaries
                .note_batch(&self.stream.log, range, batch.datagram_length());
        }
        drop(cut);
        self.set_sender_position(position);
        SendProgress {
            bytes_sent,
            is_waiting,
        }
    }

    /// Returns whether the log may contain unsent data.
    ///
    /// Until publishers have a limit, the pages of the log may not exist, so the log must not be read.
    fn may_have_data(&self) -> bool {
        let stream = &self.stream;
        let has_begun = stream.sender_position > self.start_position
            || stream.log.producer_position() > self.start_position;
        has_begun
            && !self.is_log_corrupt
            && stream.has_destination()
            && stream.sender_position < stream.log.positions().max_position()
    }

    /// Returns the treatment of a last datagram with room for more messages.
    ///
    /// Small messages in quick succession wait for each other. The first message after a pause does not wait. A lone
    /// message that follows another lone message does not wait either: it is probably part of a ping-pong of requests
    /// and responses.
    fn tail(&self, context: &SenderContext) -> TailPolicy {
        let wait_ns = context.settings.batch_wait_ns;
        let is_recent = |time_ns: i64| context.now_ns - time_ns < wait_ns;
        if !self.time_of_last_data_ns.is_some_and(is_recent) {
            TailPolicy::Send
        } else if self.was_last_frame_alone {
            TailPolicy::HoldSeveral
        } else {
            TailPolicy::Hold
        }
    }

    /// Sends a heartbeat if one is due. Returns the number of bytes sent.
    fn send_heartbeat_if_due(
        &mut self,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) -> usize {
        let silence_ns = context.now_ns - self.time_of_last_data_or_heartbeat_ns;
        debug_assert!(
            silence_ns >= 0,
            "the last data or heartbeat is {} ns in the future",
            -silence_ns
        );
        if !self.has_initial_connection || silence_ns <= HEARTBEAT_INTERVAL_NS {
            return 0;
        }
        self.send_heartbeat_at_limit(endpoint, context);
        let (position, flags) = (self.stream.sender_position, self.heartbeat_flags());
        let is_over = flags & flags::END_OF_STREAM != 0 || self.status.is_end_of_stream();
        let is_sent = self.send_heartbeat(position, flags, endpoint, context);
        self.is_end_told |= is_sent && is_over;
        self.show_unicast_eos();
        self.time_of_last_data_or_heartbeat_ns = context.now_ns;
        if is_sent { DataHeader::LENGTH } else { 0 }
    }

    /// Sends an additional heartbeat at the limit if the sender position is after it.
    ///
    /// The sender sends only the header of padding, so padding can move the sender position beyond the limit and beyond
    /// the window of every receiver. Receivers ignore a heartbeat at that position. If the last datagrams were lost,
    /// receivers detect the loss by the heartbeat at the limit.
    fn send_heartbeat_at_limit(&self, endpoint: &mut SendEndpoint, context: &SenderContext) {
        if self.sender_limit < self.stream.sender_position {
            let position = aligned_position(self.sender_limit);
            self.send_heartbeat(position, flags::UNFRAGMENTED, endpoint, context);
        }
    }

    /// Sends a heartbeat. Returns whether the socket accepted the heartbeat.
    fn send_heartbeat(
        &self,
        position: i64,
        flags: u8,
        endpoint: &mut SendEndpoint,
        context: &SenderContext,
    ) -> bool {
        let positions = self.stream.log.positions();
        let heartbeat = DataHeader {
            frame_length: 0,
            flags,
            is_padding: false,
            term_offset: positions.term_offset(position) as i32,
            session_id: self.stream.session_id,
            stream_id: self.stream.stream_id,
            term_id: positions.term_id(position),
            reserved_value: 0,
        };
        let mut datagram = [0; DataHeader::LENGTH];
        heartbeat.encode(&mut datagram);
        context.counters.heartbeats_sent.add_release(1);
        self.stream.send(&datagram, endpoint, context)
    }

    /// Reports to the conductor whether the only receiver has left and the end of the stream was sent.
    ///
    /// A receiver that leaves before the end is not reported until the end was sent, because it may return.
    fn show_unicast_eos(&self) {
        self.status
            .set_received_unicast_eos(self.has_last_receiver_left && self.is_end_told);
    }

    fn heartbeat_flags(&self) -> u8 {
        if self.stream.log.metadata().is_publication_revoked() {
            flags::UNFRAGMENTED | flags::END_OF_STREAM | flags::REVOKED
        } else if self.signal_eos && self.status.is_end_of_stream() {
            flags::UNFRAGMENTED | flags::END_OF_STREAM
        } else {
            flags::UNFRAGMENTED
        }
    }

    /// Called if no data was sent. Removes receivers that have timed out. If there are only spies, and they count like
    /// receivers, moves the sender position with the spies.
    fn on_idle(&mut self, context: &SenderContext) {
        let mut limit = self.sender_limit;
        if self.status.has_spies_that_count() && !self.status.has_receivers() {
            let spied = self.status.max_spy_position();
            self.set_sender_position(spied.max(self.stream.sender_position));
            limit = self.stream.sender_position;
        }
        let limit = self.flow_control.on_idle(limit, context.now_ns);
        self.set_sender_limit(limit);
        self.status
            .set_has_required_receivers(self.flow_control.has_required_receivers());
        self.receivers.forget_silent(context.now_ns);
        self.show_slowest_receiver();
        self.status.set_has_receivers(!self.receivers.is_empty());
    }

    fn set_sender_position(&mut self, position: i64) {
        debug_assert!(
            position >= self.stream.sender_position,
            "the sender position goes back from {} to {position}",
            self.stream.sender_position
        );
        debug_assert_eq!(
            aligned_position(position),
            position,
            "the sender position is inside a frame"
        );
        if position != self.stream.sender_position {
            self.stream.sender_position = position;
            self.stream.boundaries.note(position);
            self.counters.sender_position.set(position);
        }
    }

    fn set_sender_limit(&mut self, limit: i64) {
        if limit != self.sender_limit {
            self.sender_limit = limit;
            self.counters.sender_limit.set(limit);
        }
    }
}

impl fmt::Debug for SenderPublication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SenderPublication")
            .field("registration_id", &self.registration_id)
            .field("session_id", &self.stream.session_id)
            .field("stream_id", &self.stream.stream_id)
            .field("sender_position", &self.stream.sender_position)
            .field("sender_limit", &self.sender_limit)
            .finish_non_exhaustive()
    }
}
