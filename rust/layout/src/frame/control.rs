//! Frames that are alone in their datagram, and the entries of resolution frames.

use super::FrameHeaderLayout;
use crate::declare::layout;
use crate::{I16, I32, I64, U16};

layout! {
    /// Properties of a stream, and the sender's position in the stream.
    pub struct SetupLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Term offset of the sender's position.
        pub term_offset: I32 = 8,
        /// Session id of the stream.
        pub session_id: I32 = 12,
        /// Stream id.
        pub stream_id: I32 = 16,
        /// Id of the stream's first term.
        pub initial_term_id: I32 = 20,
        /// Id of the term that contains the sender's position.
        pub active_term_id: I32 = 24,
        /// Length of the stream's terms in bytes.
        pub term_length: I32 = 28,
        /// Maximum length of a datagram of the stream, in bytes.
        pub mtu_length: I32 = 32,
        /// Time to live of multicast datagrams.
        pub ttl: I32 = 36,
    }

    /// Names the response stream of a request stream.
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

    /// Request for a range of missing bytes within one term of a stream.
    pub struct NakLayout: 28 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Id of the term that contains the missing bytes.
        pub term_id: I32 = 16,
        /// Term offset of the first missing byte.
        pub term_offset: I32 = 20,
        /// Number of missing bytes.
        pub length: I32 = 24,
    }

    /// Position and window of a receiver; feedback of any length follows.
    pub struct StatusMessageLayout: 36 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Id of the term that contains the consumed position.
        pub consumption_term_id: I32 = 16,
        /// Term offset of the consumed position.
        pub consumption_term_offset: I32 = 20,
        /// Number of bytes that may be sent beyond the consumed position.
        pub receiver_window: I32 = 24,
        /// Id of the receiver, unique among the receivers of the stream.
        pub receiver_id: I64 = 28,
    }

    /// Error that a receiver reports; the text follows.
    pub struct ErrorFrameLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Id of the receiver that reports the error.
        pub receiver_id: I64 = 16,
        /// Group tag of the receiver. A flag says whether the receiver has a group tag.
        pub group_tag: I64 = 24,
        /// Code of the error.
        pub error_code: I32 = 32,
        /// Length of the text in bytes.
        pub error_length: I32 = 36,
    }

    /// A measurement of the round-trip time, or the response to a measurement.
    pub struct RttmLayout: 40 {
        /// Length, version, flags and type.
        pub header: FrameHeaderLayout = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Time of the request by the clock of the requesting side, in nanoseconds.
        pub echo_timestamp_ns: I64 = 16,
        /// Time between the receipt of the request and the response, in nanoseconds.
        pub reception_delta_ns: I64 = 24,
        /// Id of the receiver that sends or receives this frame.
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
        /// Length of the name in bytes.
        pub name_length: I16 = 12,
    }

    /// An entry with an IPv6 address; the name follows.
    pub struct ResolutionIpv6Layout: 26 {
        /// Type, flags, port and age.
        pub entry: ResolutionEntryLayout = 0,
        /// Address in network order.
        pub address: [u8; 16] = 8,
        /// Length of the name in bytes.
        pub name_length: I16 = 24,
    }
}
