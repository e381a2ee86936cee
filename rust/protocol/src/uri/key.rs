//! The parameters of a channel, in the order in which a builder prints them: name, meaning and kind of the value.

const MIN_I32: i64 = i32::MIN as i64;
const MAX_I32: i64 = i32::MAX as i64;
/// Maximum number of retransmissions that a publication keeps in flight.
pub(super) const MAX_RESEND_LIMIT: i64 = 256;

/// Kind of a parameter's value.
#[derive(Clone, Copy)]
pub(super) enum ValueKind {
    Size,
    Mtu,
    TermLength,
    TermOffset,
    Duration,
    /// A number in an inclusive range.
    Integer(i64, i64),
    Flag,
    Choice(&'static [&'static str]),
    /// An address, which may have a port.
    Address,
    Tags,
    SessionId,
    FlowControl,
    ResponseCorrelation,
    /// A byte offset in the payload, or `reserved`.
    TimestampOffset,
    Text,
}

macro_rules! keys {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal, $kind:expr;)*) => {
        $($(#[doc = $meaning])+ pub const $name: &str = $text;)*

        /// All known parameters, in the order in which a builder prints them.
        pub const ALL: [&str; [$($text),*].len()] = [$($text),*];

        /// The meaning of each parameter of [`ALL`].
        pub const MEANINGS: [&str; ALL.len()] = [$(concat!($($meaning),+)),*];

        /// The kind of the value of each parameter of [`ALL`].
        pub(super) const KINDS: [ValueKind; ALL.len()] = { use ValueKind::*; [$($kind),*] };
    };
}

keys! {
    /// Tags of the channel and of the stream, `1` or `1,2`. Streams with the same channel tag share a socket.
    TAGS = "tags", Tags;
    /// `host:port` to which a publication sends, or on which a subscription receives. Port 0 lets the system choose.
    ENDPOINT = "endpoint", Address;
    /// Local interface for multicast, `host:port` or `host/prefix-length`.
    INTERFACE = "interface", Text;
    /// `host:port` of the publisher for multi-destination-cast and for responses.
    CONTROL = "control", Address;
    /// Management of destinations: `manual`, `dynamic` or `response`.
    CONTROL_MODE = "control-mode", Choice(&["dynamic", "manual", "response"]);
    /// Length of the longest frame in bytes, a multiple of 32 up to 65504.
    MTU = "mtu", Mtu;
    /// Length of each of the log's three terms in bytes: a power of two from 64 KiB to 1 GiB.
    TERM_LENGTH = "term-length", TermLength;
    /// Id of the stream's first term; together with `term-id` and `term-offset` the initial position.
    INITIAL_TERM_ID = "init-term-id", Integer(MIN_I32, MAX_I32);
    /// Id of the term at which the publication starts.
    TERM_ID = "term-id", Integer(MIN_I32, MAX_I32);
    /// Offset in the term at which the publication starts, in bytes: a multiple of 32.
    TERM_OFFSET = "term-offset", TermOffset;
    /// Session id as an integer, or `tag:` and the stream tag of a publication.
    SESSION_ID = "session-id", SessionId;
    /// Time to live of multicast datagrams, 0 to 255.
    TTL = "ttl", Integer(0, 255);
    /// Whether a receiver requests lost data again: `true` or `false`. With `false` it skips gaps.
    RELIABLE = "reliable", Flag;
    /// Duration for which the driver keeps a drained publication.
    LINGER = "linger", Duration;
    /// Name for tools and logs.
    ALIAS = "alias", Text;
    /// Congestion control of a subscription: `static` or `cubic`.
    CONGESTION_CONTROL = "cc", Text;
    /// Flow control of a publication: `max`, `min` or `tagged`, with options such as `min,g:/3,t:5s`.
    FLOW_CONTROL = "fc", FlowControl;
    /// Group tag of a subscription for tagged flow control, a 64-bit integer.
    GROUP_TAG = "gtag", Integer(i64::MIN, i64::MAX);
    /// Whether the log file is sparse: `true` or `false`.
    SPARSE = "sparse", Flag;
    /// Whether the end of the stream is signalled: `true` or `false`.
    EOS = "eos", Flag;
    /// Whether the subscriber always limits the publisher: `true` or `false`.
    TETHER = "tether", Flag;
    /// Whether the receiver is one of a group: `true`, `false` or `infer`.
    GROUP = "group", Choice(&["true", "false", "infer"]);
    /// Whether a subscription joins a stream again after its image was lost: `true` or `false`.
    REJOIN = "rejoin", Flag;
    /// Whether spies count as connected receivers: `true` or `false`.
    SPIES_SIMULATE_CONNECTION = "ssc", Flag;
    /// Send buffer of the socket, in bytes.
    SOCKET_SNDBUF = "so-sndbuf", Size;
    /// Receive buffer of the socket, in bytes.
    SOCKET_RCVBUF = "so-rcvbuf", Size;
    /// Window of the receiver, in bytes.
    RECEIVER_WINDOW = "rcv-wnd", Size;
    /// Offset in the payload for the kernel's receive time, in bytes, or `reserved`.
    MEDIA_RCV_TIMESTAMP_OFFSET = "media-rcv-ts-offset", TimestampOffset;
    /// Offset in the payload for the driver's receive time, in bytes, or `reserved`.
    CHANNEL_RCV_TIMESTAMP_OFFSET = "channel-rcv-ts-offset", TimestampOffset;
    /// Offset in the payload for the driver's send time, in bytes, or `reserved`.
    CHANNEL_SND_TIMESTAMP_OFFSET = "channel-snd-ts-offset", TimestampOffset;
    /// Reserved name; drivers ignore it.
    RESPONSE_ENDPOINT = "response-endpoint", Text;
    /// On a request publication: registration id of the response subscription. On a response publication: correlation
    /// id of the request image, or `prototype`.
    RESPONSE_CORRELATION_ID = "response-correlation-id", ResponseCorrelation;
    /// Duration before the first NAK of a gap.
    NAK_DELAY = "nak-delay", Duration;
    /// Duration for which an untethered subscriber may limit the publisher.
    UNTETHERED_WINDOW_LIMIT_TIMEOUT = "untethered-window-limit-timeout", Duration;
    /// Duration for which an untethered subscriber may finish reading.
    UNTETHERED_LINGER_TIMEOUT = "untethered-linger-timeout", Duration;
    /// Duration until an untethered subscriber may rejoin.
    UNTETHERED_RESTING_TIMEOUT = "untethered-resting-timeout", Duration;
    /// Number of retransmissions that a publication keeps in flight, 1 to 256.
    MAX_RESEND = "max-resend", Integer(1, MAX_RESEND_LIMIT);
    /// Stream id; drivers ignore it.
    STREAM_ID = "stream-id", Integer(MIN_I32, MAX_I32);
    /// Window of the publication in bytes, at most half the term length.
    PUBLICATION_WINDOW = "pub-wnd", Size;
}

/// Whether transport security is requested. Drivers know this key, builders do not.
pub const ATS: &str = "ats";

/// Whether a publication doubles the time between SETUPs until its receiver responds: `true` or `false`. Only the
/// driver of this project knows this key, and only its archive sets it, for response channels. Builders do not know it.
pub const SETUP_BACKOFF: &str = "setup-backoff";

/// Keys whose last occurrence applies. For all other keys the first occurrence applies.
pub(super) const LAST_COUNTS: [&str; 6] = [ENDPOINT, INTERFACE, CONTROL, CONTROL_MODE, TTL, TAGS];
