//! Frames that are alone in their datagram.

use super::FrameHeaderLayout;
use crate::declare::layout;
use crate::{I16, I32, I64, U16};

layout! {
    /// A stream, and the sender's position in it.
    pub struct SetupLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Offset of the sender's position in its term.
        pub term_offset: I32 = 8,
        /// Session of the stream.
        pub session_id: I32 = 12,
        /// Stream.
        pub stream_id: I32 = 16,
        /// Id of the stream's first term.
        pub initial_term_id: I32 = 20,
        /// Id of the term of the sender's position.
        pub active_term_id: I32 = 24,
        /// Length of the stream's terms in bytes.
        pub term_length: I32 = 28,
        /// Maximum length of a datagram of the stream, in bytes.
        pub mtu_length: I32 = 32,
        /// Time to live of multicast datagrams.
        pub ttl: I32 = 36,
    }

    /// Names the response stream of a stream.
    pub struct ResponseSetupLayout: 20 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session id of the request stream.
        pub session_id: I32 = 8,
        /// Stream id of the request stream.
        pub stream_id: I32 = 12,
        /// Session id of the response stream.
        pub response_session_id: I32 = 16,
    }

    /// Bytes of a stream that a receiver misses, within one term.
    pub struct NakLayout: 28 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session of the stream.
        pub session_id: I32 = 8,
        /// Stream.
        pub stream_id: I32 = 12,
        /// Term of the missing bytes.
        pub term_id: I32 = 16,
        /// Offset of the first missing byte in its term.
        pub term_offset: I32 = 20,
        /// Number of missing bytes.
        pub length: I32 = 24,
    }

    /// Position and window of a receiver; feedback of any length follows.
    pub struct StatusMessageLayout: 36 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session of the stream.
        pub session_id: I32 = 8,
        /// Stream.
        pub stream_id: I32 = 12,
        /// Term of the consumed position.
        pub consumption_term_id: I32 = 16,
        /// Offset of the consumed position in its term.
        pub consumption_term_offset: I32 = 20,
        /// Bytes that may be sent beyond the consumed position.
        pub receiver_window: I32 = 24,
        /// Id of the receiver, unique among the receivers of the stream.
        pub receiver_id: I64 = 28,
    }

    /// A receiver's error; its text follows.
    pub struct ErrorFrameLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session of the stream.
        pub session_id: I32 = 8,
        /// Stream.
        pub stream_id: I32 = 12,
        /// The receiver that reports the error.
        pub receiver_id: I64 = 16,
        /// Tag of the group of the receiver; a flag says whether it has one.
        pub group_tag: I64 = 24,
        /// Code of the error.
        pub error_code: I32 = 32,
        /// Bytes of the text.
        pub error_length: I32 = 36,
    }

    /// A measurement of the round-trip time, or the response to one.
    pub struct RttmLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session of the stream.
        pub session_id: I32 = 8,
        /// Stream.
        pub stream_id: I32 = 12,
        /// Clock of the requesting side at the request.
        pub echo_timestamp_ns: I64 = 16,
        /// Time for which the responding side held the request.
        pub reception_delta_ns: I64 = 24,
        /// Id of the receiver that sends this frame, or to which this frame is sent.
        pub receiver_id: I64 = 32,
    }

    /// Beginning of an entry of name resolution; the address follows.
    pub struct ResolutionEntryLayout: 8 {
        /// Type of the address.
        pub entry_type: i8 = 0,
        /// Bit 0x80: the entry is about the driver that sends it.
        pub flags: u8 = 1,
        /// Port of the named driver's resolver.
        pub port: U16 = 2,
        /// Milliseconds since the sender last received a frame about the named driver.
        pub age_ms: I32 = 4,
    }

    /// An entry with an IPv4 address; the name follows.
    pub struct ResolutionIpv4Layout: 14 {
        /// Type, flags, port and age.
        pub entry: ResolutionEntryLayout = 0,
        /// Address in network order.
        pub address: [u8; 4] = 8,
        /// Bytes of the name.
        pub name_length: I16 = 12,
    }

    /// An entry with an IPv6 address; the name follows.
    pub struct ResolutionIpv6Layout: 26 {
        /// Type, flags, port and age.
        pub entry: ResolutionEntryLayout = 0,
        /// Address in network order.
        pub address: [u8; 16] = 8,
        /// Bytes of the name.
        pub name_length: I16 = 24,
    }
}
