//! [`LogDescription`]: the values that the driver writes when it creates a log.

use aeron_layout::FromZeros;
use aeron_layout::frame::{DataHeaderLayout, flags, frame_type};
use aeron_layout::log::LogMetadataLayout;

use super::frame::HEADER_LENGTH;

/// Kind of a log: the writer of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogType {
    /// Written by any number of publishers.
    ConcurrentPublication,
    /// Written by one publisher.
    ExclusivePublication,
    /// Rebuilt from the network.
    Image,
    /// Unknown type, written by another version of Aeron.
    Other(u8),
}

impl LogType {
    /// Returns the number in the metadata.
    pub fn code(self) -> u8 {
        match self {
            Self::ConcurrentPublication => 0,
            Self::ExclusivePublication => 1,
            Self::Image => 2,
            Self::Other(code) => code,
        }
    }

    /// Returns the type for `code`.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::ConcurrentPublication,
            1 => Self::ExclusivePublication,
            2 => Self::Image,
            other => Self::Other(other),
        }
    }
}

/// All metadata that does not change after creation.
///
/// Lengths are in bytes. Fields without a meaning for the type of log are 0 (-1 for `entity_tag` and
/// `response_correlation_id` of a publication).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDescription {
    /// Kind of the log.
    pub log_type: LogType,
    /// Registration id of the publication, or id of the image.
    pub correlation_id: i64,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// MTU: maximum length of a frame.
    pub mtu_length: i32,
    /// Length of each term.
    pub term_length: i32,
    /// Page size to which the file's length is rounded.
    pub page_size: i32,
    /// Window of the publication.
    pub publication_window_length: i32,
    /// Initial window of an image.
    pub receiver_window_length: i32,
    /// SO_SNDBUF of the channel, 0 if not set.
    pub socket_sndbuf_length: i32,
    /// Default SO_SNDBUF of the system.
    pub os_default_socket_sndbuf_length: i32,
    /// Maximum SO_SNDBUF of the system.
    pub os_max_socket_sndbuf_length: i32,
    /// SO_RCVBUF of the channel, 0 if not set.
    pub socket_rcvbuf_length: i32,
    /// Default SO_RCVBUF of the system.
    pub os_default_socket_rcvbuf_length: i32,
    /// Maximum SO_RCVBUF of the system.
    pub os_max_socket_rcvbuf_length: i32,
    /// Maximum number of concurrent retransmits, 0 if the channel does not set it.
    pub max_resend: i32,
    /// Tag of the publication, -1 if it has none.
    pub entity_tag: i64,
    /// Correlation id of the response channel, -1 if it has no response channel.
    pub response_correlation_id: i64,
    /// Time for which the publication exists after its last publisher has closed.
    pub linger_timeout_ns: i64,
    /// Time for which an untethered subscriber may lag by more than the window.
    pub untethered_window_limit_timeout_ns: i64,
    /// Time for which an untethered subscriber that fell behind may continue to read.
    pub untethered_linger_timeout_ns: i64,
    /// Time after which an untethered subscriber that was left out may rejoin.
    pub untethered_resting_timeout_ns: i64,
    /// Whether the channel has the semantics of a group.
    pub group: bool,
    /// Whether the channel carries responses.
    pub is_response: bool,
    /// Whether the subscription rejoins a stream after the image was lost.
    pub rejoin: bool,
    /// Whether the receiver requests lost frames again.
    pub reliable: bool,
    /// Whether the file's pages are allocated when they are first touched.
    pub sparse: bool,
    /// Whether the sender signals the end of the stream to receivers.
    pub signal_eos: bool,
    /// Whether spies count as connected receivers.
    pub spies_simulate_connection: bool,
    /// Whether a slow subscription limits the publisher.
    pub tether: bool,
}

impl LogDescription {
    /// Creates a description with the given values. All other values are defaults of an IPC publication.
    pub fn new(log_type: LogType, session_id: i32, stream_id: i32, initial_term_id: i32) -> Self {
        let absent = if log_type == LogType::Image { 0 } else { -1 };
        Self {
            log_type,
            correlation_id: 0,
            session_id,
            stream_id,
            initial_term_id,
            mtu_length: 1408,
            term_length: 64 * 1024,
            page_size: 4096,
            publication_window_length: 0,
            receiver_window_length: 0,
            socket_sndbuf_length: 0,
            os_default_socket_sndbuf_length: 0,
            os_max_socket_sndbuf_length: 0,
            socket_rcvbuf_length: 0,
            os_default_socket_rcvbuf_length: 0,
            os_max_socket_rcvbuf_length: 0,
            max_resend: 0,
            entity_tag: absent,
            response_correlation_id: absent,
            linger_timeout_ns: 0,
            untethered_window_limit_timeout_ns: 0,
            untethered_linger_timeout_ns: 0,
            untethered_resting_timeout_ns: 0,
            group: false,
            is_response: false,
            rejoin: false,
            reliable: false,
            sparse: false,
            signal_eos: true,
            spies_simulate_connection: false,
            tether: false,
        }
    }
}

impl LogDescription {
    /// Encodes the metadata of a new log, without the fields that driver and clients change later.
    pub(super) fn encode(&self) -> LogMetadataLayout {
        let mut layout = LogMetadataLayout::new_zeroed();
        layout.log_type = self.log_type.code();
        layout.default_frame_header_length = (HEADER_LENGTH as i32).into();
        layout.default_header = self.default_header();
        layout.correlation_id = self.correlation_id.into();
        layout.initial_term_id = self.initial_term_id.into();
        layout.mtu_length = self.mtu_length.into();
        layout.term_length = self.term_length.into();
        layout.page_size = self.page_size.into();
        layout.publication_window_length = self.publication_window_length.into();
        layout.receiver_window_length = self.receiver_window_length.into();
        layout.socket_sndbuf_length = self.socket_sndbuf_length.into();
        layout.os_default_socket_sndbuf_length = self.os_default_socket_sndbuf_length.into();
        layout.os_max_socket_sndbuf_length = self.os_max_socket_sndbuf_length.into();
        layout.socket_rcvbuf_length = self.socket_rcvbuf_length.into();
        layout.os_default_socket_rcvbuf_length = self.os_default_socket_rcvbuf_length.into();
        layout.os_max_socket_rcvbuf_length = self.os_max_socket_rcvbuf_length.into();
        layout.max_resend = self.max_resend.into();
        layout.entity_tag = self.entity_tag.into();
        layout.response_correlation_id = self.response_correlation_id.into();
        layout.linger_timeout_ns = self.linger_timeout_ns.into();
        layout.untethered_window_limit_timeout_ns = self.untethered_window_limit_timeout_ns.into();
        layout.untethered_linger_timeout_ns = self.untethered_linger_timeout_ns.into();
        layout.untethered_resting_timeout_ns = self.untethered_resting_timeout_ns.into();
        layout.group = self.group.into();
        layout.is_response = self.is_response.into();
        layout.rejoin = self.rejoin.into();
        layout.reliable = self.reliable.into();
        layout.sparse = self.sparse.into();
        layout.signal_eos = self.signal_eos.into();
        layout.spies_simulate_connection = self.spies_simulate_connection.into();
        layout.tether = self.tether.into();
        layout
    }

    pub(super) fn decode(layout: &LogMetadataLayout) -> Self {
        Self {
            log_type: LogType::of_code(layout.log_type),
            session_id: layout.default_header.session_id.get(),
            stream_id: layout.default_header.stream_id.get(),
            correlation_id: layout.correlation_id.get(),
            initial_term_id: layout.initial_term_id.get(),
            mtu_length: layout.mtu_length.get(),
            term_length: layout.term_length.get(),
            page_size: layout.page_size.get(),
            publication_window_length: layout.publication_window_length.get(),
            receiver_window_length: layout.receiver_window_length.get(),
            socket_sndbuf_length: layout.socket_sndbuf_length.get(),
            os_default_socket_sndbuf_length: layout.os_default_socket_sndbuf_length.get(),
            os_max_socket_sndbuf_length: layout.os_max_socket_sndbuf_length.get(),
            socket_rcvbuf_length: layout.socket_rcvbuf_length.get(),
            os_default_socket_rcvbuf_length: layout.os_default_socket_rcvbuf_length.get(),
            os_max_socket_rcvbuf_length: layout.os_max_socket_rcvbuf_length.get(),
            max_resend: layout.max_resend.get(),
            entity_tag: layout.entity_tag.get(),
            response_correlation_id: layout.response_correlation_id.get(),
            linger_timeout_ns: layout.linger_timeout_ns.get(),
            untethered_window_limit_timeout_ns: layout.untethered_window_limit_timeout_ns.get(),
            untethered_linger_timeout_ns: layout.untethered_linger_timeout_ns.get(),
            untethered_resting_timeout_ns: layout.untethered_resting_timeout_ns.get(),
            group: layout.group != 0,
            is_response: layout.is_response != 0,
            rejoin: layout.rejoin != 0,
            reliable: layout.reliable != 0,
            sparse: layout.sparse != 0,
            signal_eos: layout.signal_eos != 0,
            spies_simulate_connection: layout.spies_simulate_connection != 0,
            tether: layout.tether != 0,
        }
    }

    fn default_header(&self) -> DataHeaderLayout {
        let mut header = DataHeaderLayout::new_zeroed();
        header.header.flags = flags::UNFRAGMENTED;
        header.header.frame_type = (frame_type::DATA as i16).into();
        header.session_id = self.session_id.into();
        header.stream_id = self.stream_id.into();
        header.term_id = self.initial_term_id.into();
        header
    }
}
