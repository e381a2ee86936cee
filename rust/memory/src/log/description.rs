//! What a log says about itself: the values that the driver writes when it makes the log, and what readers learn from them.

use std::mem::offset_of;

use super::frame::{HEADER_LENGTH, flags, frame_type, offset as frame_offset};
use super::metadata::{LogType, MetadataLayout};

const ENCODED_LENGTH: usize = size_of::<MetadataLayout>();
/// The part of the metadata that has fields.
pub(super) type Encoded = [u8; ENCODED_LENGTH];

/// Everything in the metadata that does not change after creation.
///
/// Lengths are bytes. Fields that make no sense for a kind of log are 0 (-1 for `entity_tag` and
/// `response_correlation_id` of a publication).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDescription {
    /// What the log is used for.
    pub log_type: LogType,
    /// Registration id of the publication, or id of the image.
    pub correlation_id: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream of the channel.
    pub stream_id: i32,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Largest frame.
    pub mtu_length: i32,
    /// Length of each term.
    pub term_length: i32,
    /// Page size that the file's length is rounded to.
    pub page_size: i32,
    /// Window of the publication.
    pub publication_window_length: i32,
    /// Initial window of an image.
    pub receiver_window_length: i32,
    /// SO_SNDBUF of the channel, 0 when not set.
    pub socket_sndbuf_length: i32,
    /// SO_SNDBUF that the system gives.
    pub os_default_socket_sndbuf_length: i32,
    /// Largest SO_SNDBUF that the system gives.
    pub os_max_socket_sndbuf_length: i32,
    /// SO_RCVBUF of the channel, 0 when not set.
    pub socket_rcvbuf_length: i32,
    /// SO_RCVBUF that the system gives.
    pub os_default_socket_rcvbuf_length: i32,
    /// Largest SO_RCVBUF that the system gives.
    pub os_max_socket_rcvbuf_length: i32,
    /// Retransmits that may be under way at once, 0 when the channel does not say.
    pub max_resend: i32,
    /// Tag of the publication, -1 without one.
    pub entity_tag: i64,
    /// Correlation id of the response channel, -1 without one.
    pub response_correlation_id: i64,
    /// How long the publication stays after its last publisher left.
    pub linger_timeout_ns: i64,
    /// How long an untethered subscriber may be behind the window.
    pub untethered_window_limit_timeout_ns: i64,
    /// How long an untethered subscriber that fell behind lingers before it rests.
    pub untethered_linger_timeout_ns: i64,
    /// How long an untethered subscriber that fell behind rests.
    pub untethered_resting_timeout_ns: i64,
    /// Whether the channel has the semantics of a group.
    pub group: bool,
    /// Whether the channel carries responses.
    pub is_response: bool,
    /// Whether the subscription rejoins a stream that it lost.
    pub rejoin: bool,
    /// Whether lost frames are asked for again.
    pub reliable: bool,
    /// Whether the file's pages are allocated when they are first touched.
    pub sparse: bool,
    /// Whether the end of the stream is signalled to receivers.
    pub signal_eos: bool,
    /// Whether spies count as connected receivers.
    pub spies_simulate_connection: bool,
    /// Whether the subscription holds the publisher back.
    pub tether: bool,
}

impl LogDescription {
    /// A description with the given essentials; everything else is what an IPC publication without parameters has.
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

/// Offset of a field in the metadata.
macro_rules! at {
    ($field:ident) => {
        offset_of!(MetadataLayout, $field)
    };
}

impl LogDescription {
    pub(super) fn encode(&self) -> Encoded {
        let mut bytes = [0; ENCODED_LENGTH];
        let mut int = |offset: usize, value: i32| put(&mut bytes, offset, &value.to_le_bytes());
        int(at!(initial_term_id), self.initial_term_id);
        int(at!(default_frame_header_length), HEADER_LENGTH as i32);
        int(at!(mtu_length), self.mtu_length);
        int(at!(term_length), self.term_length);
        int(at!(page_size), self.page_size);
        int(
            at!(publication_window_length),
            self.publication_window_length,
        );
        int(at!(receiver_window_length), self.receiver_window_length);
        int(at!(socket_sndbuf_length), self.socket_sndbuf_length);
        int(
            at!(os_default_socket_sndbuf_length),
            self.os_default_socket_sndbuf_length,
        );
        int(
            at!(os_max_socket_sndbuf_length),
            self.os_max_socket_sndbuf_length,
        );
        int(at!(socket_rcvbuf_length), self.socket_rcvbuf_length);
        int(
            at!(os_default_socket_rcvbuf_length),
            self.os_default_socket_rcvbuf_length,
        );
        int(
            at!(os_max_socket_rcvbuf_length),
            self.os_max_socket_rcvbuf_length,
        );
        int(at!(max_resend), self.max_resend);

        let mut long = |offset: usize, value: i64| put(&mut bytes, offset, &value.to_le_bytes());
        long(at!(correlation_id), self.correlation_id);
        long(at!(entity_tag), self.entity_tag);
        long(at!(response_correlation_id), self.response_correlation_id);
        long(at!(linger_timeout_ns), self.linger_timeout_ns);
        long(
            at!(untethered_window_limit_timeout_ns),
            self.untethered_window_limit_timeout_ns,
        );
        long(
            at!(untethered_linger_timeout_ns),
            self.untethered_linger_timeout_ns,
        );
        long(
            at!(untethered_resting_timeout_ns),
            self.untethered_resting_timeout_ns,
        );

        bytes[at!(group)] = self.group.into();
        bytes[at!(is_response)] = self.is_response.into();
        bytes[at!(rejoin)] = self.rejoin.into();
        bytes[at!(reliable)] = self.reliable.into();
        bytes[at!(sparse)] = self.sparse.into();
        bytes[at!(signal_eos)] = self.signal_eos.into();
        bytes[at!(spies_simulate_connection)] = self.spies_simulate_connection.into();
        bytes[at!(tether)] = self.tether.into();
        bytes[at!(log_type)] = self.log_type.code();
        put(&mut bytes, at!(default_header), &self.default_header());
        bytes
    }

    pub(super) fn decode(bytes: &Encoded) -> Self {
        let int = |offset: usize| i32::from_le_bytes(take(bytes, offset));
        let long = |offset: usize| i64::from_le_bytes(take(bytes, offset));
        let flag = |offset: usize| bytes[offset] != 0;
        Self {
            log_type: LogType::of_code(bytes[at!(log_type)]),
            correlation_id: long(at!(correlation_id)),
            session_id: int(at!(default_header) + frame_offset::SESSION_ID),
            stream_id: int(at!(default_header) + frame_offset::STREAM_ID),
            initial_term_id: int(at!(initial_term_id)),
            mtu_length: int(at!(mtu_length)),
            term_length: int(at!(term_length)),
            page_size: int(at!(page_size)),
            publication_window_length: int(at!(publication_window_length)),
            receiver_window_length: int(at!(receiver_window_length)),
            socket_sndbuf_length: int(at!(socket_sndbuf_length)),
            os_default_socket_sndbuf_length: int(at!(os_default_socket_sndbuf_length)),
            os_max_socket_sndbuf_length: int(at!(os_max_socket_sndbuf_length)),
            socket_rcvbuf_length: int(at!(socket_rcvbuf_length)),
            os_default_socket_rcvbuf_length: int(at!(os_default_socket_rcvbuf_length)),
            os_max_socket_rcvbuf_length: int(at!(os_max_socket_rcvbuf_length)),
            max_resend: int(at!(max_resend)),
            entity_tag: long(at!(entity_tag)),
            response_correlation_id: long(at!(response_correlation_id)),
            linger_timeout_ns: long(at!(linger_timeout_ns)),
            untethered_window_limit_timeout_ns: long(at!(untethered_window_limit_timeout_ns)),
            untethered_linger_timeout_ns: long(at!(untethered_linger_timeout_ns)),
            untethered_resting_timeout_ns: long(at!(untethered_resting_timeout_ns)),
            group: flag(at!(group)),
            is_response: flag(at!(is_response)),
            rejoin: flag(at!(rejoin)),
            reliable: flag(at!(reliable)),
            sparse: flag(at!(sparse)),
            signal_eos: flag(at!(signal_eos)),
            spies_simulate_connection: flag(at!(spies_simulate_connection)),
            tether: flag(at!(tether)),
        }
    }

    fn default_header(&self) -> [u8; HEADER_LENGTH] {
        let mut header = [0; HEADER_LENGTH];
        header[frame_offset::FLAGS] = flags::UNFRAGMENTED;
        put(
            &mut header,
            frame_offset::TYPE,
            &frame_type::DATA.to_le_bytes(),
        );
        put(
            &mut header,
            frame_offset::SESSION_ID,
            &self.session_id.to_le_bytes(),
        );
        put(
            &mut header,
            frame_offset::STREAM_ID,
            &self.stream_id.to_le_bytes(),
        );
        put(
            &mut header,
            frame_offset::TERM_ID,
            &self.initial_term_id.to_le_bytes(),
        );
        header
    }
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn take<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[offset..offset + N]);
    value
}
