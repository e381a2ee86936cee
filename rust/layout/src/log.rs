//! The metadata of a log buffer: the last 4096 bytes of its file. Only the first 508 of these bytes have fields.

use crate::declare::layout;
use crate::frame::DataHeaderLayout;
use crate::{I32, I64};

/// Length of the metadata section in bytes.
pub const LOG_METADATA_LENGTH: usize = 4096;

layout! {
    /// Fields of the metadata.
    pub struct LogMetadataLayout: 508 {
        /// Tail of each term buffer: term id in the high 32 bits, offset in the low 32 bits.
        pub tail_counters: [I64; 3] = 0,
        /// Number of finished terms.
        pub active_term_count: I32 = 24,
        reserved_after_tails: [u8; 100] = 28,
        /// Position at which the stream ended.
        pub end_of_stream_position: I64 = 128,
        /// 1 if the publication has a receiver.
        pub is_connected: I32 = 136,
        /// Number of transports from which an image is received.
        pub active_transport_count: I32 = 140,
        reserved_after_state: [u8; 112] = 144,
        /// Registration id of the publication, or id of the image.
        pub correlation_id: I64 = 256,
        /// Id of the stream's first term.
        pub initial_term_id: I32 = 264,
        /// Length of a frame's header in bytes.
        pub default_frame_header_length: I32 = 268,
        /// Maximum length of a frame in bytes.
        pub mtu_length: I32 = 272,
        /// Length of each term in bytes.
        pub term_length: I32 = 276,
        /// Page size to which the file's length is rounded, in bytes.
        pub page_size: I32 = 280,
        /// Window of the publication in bytes.
        pub publication_window_length: I32 = 284,
        /// Initial window of an image in bytes.
        pub receiver_window_length: I32 = 288,
        /// SO_SNDBUF of the channel in bytes.
        pub socket_sndbuf_length: I32 = 292,
        /// Default SO_SNDBUF of the system.
        pub os_default_socket_sndbuf_length: I32 = 296,
        /// Maximum SO_SNDBUF of the system.
        pub os_max_socket_sndbuf_length: I32 = 300,
        /// SO_RCVBUF of the channel in bytes.
        pub socket_rcvbuf_length: I32 = 304,
        /// Default SO_RCVBUF of the system.
        pub os_default_socket_rcvbuf_length: I32 = 308,
        /// Maximum SO_RCVBUF of the system.
        pub os_max_socket_rcvbuf_length: I32 = 312,
        /// Maximum number of concurrent retransmits.
        pub max_resend: I32 = 316,
        /// Header from which padding frames are created.
        pub default_header: DataHeaderLayout = 320,
        reserved_after_header: [u8; 96] = 352,
        /// Tag of the publication.
        pub entity_tag: I64 = 448,
        /// Correlation id of the response channel.
        pub response_correlation_id: I64 = 456,
        /// Time for which the publication exists after its last publisher has closed, in nanoseconds.
        pub linger_timeout_ns: I64 = 464,
        /// Time for which an untethered subscriber may lag by more than the window, in nanoseconds.
        pub untethered_window_limit_timeout_ns: I64 = 472,
        /// Time after which an untethered subscriber that was left out may rejoin, in nanoseconds.
        pub untethered_resting_timeout_ns: I64 = 480,
        /// Whether the channel has the semantics of a group.
        pub group: u8 = 488,
        /// Whether the channel carries responses.
        pub is_response: u8 = 489,
        /// Whether the subscription rejoins a stream that it lost.
        pub rejoin: u8 = 490,
        /// Whether lost frames are requested again.
        pub reliable: u8 = 491,
        /// Whether the file's pages are allocated at their first use.
        pub sparse: u8 = 492,
        /// Whether the end of the stream is signalled to receivers.
        pub signal_eos: u8 = 493,
        /// Whether spies count as connected receivers.
        pub spies_simulate_connection: u8 = 494,
        /// Whether a slow subscription limits the publisher.
        pub tether: u8 = 495,
        /// 1 after the publication was revoked.
        pub is_publication_revoked: u8 = 496,
        /// Kind of the log: concurrent publication, exclusive publication or image.
        pub log_type: u8 = 497,
        reserved_after_type: [u8; 2] = 498,
        /// Time for which an untethered subscriber that fell behind may continue to read, in nanoseconds. The field is
        /// not aligned, so it is never loaded as a 64-bit word.
        pub untethered_linger_timeout_ns: I64 = 500,
    }
}
