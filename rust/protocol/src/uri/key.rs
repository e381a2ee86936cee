//! Names of the parameters, in the order in which a builder prints them.

macro_rules! keys {
    ($($(#[$attribute:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$attribute])* pub const $name: &str = $text;)*

        /// Every parameter that is known, in the order in which a builder prints them.
        pub const ALL: [&str; [$($text),*].len()] = [$($text),*];
    };
}

keys! {
    /// Channel tag and entity tag.
    TAGS = "tags";
    /// Address that data is sent to or received on.
    ENDPOINT = "endpoint";
    /// Local interface.
    INTERFACE = "interface";
    /// Address for control, or local address of a publication that sends to many.
    CONTROL = "control";
    /// How destinations are found.
    CONTROL_MODE = "control-mode";
    /// Largest datagram payload and frame, in bytes.
    MTU = "mtu";
    /// Length of each of a log's three terms, in bytes.
    TERM_LENGTH = "term-length";
    /// First term id of a stream.
    INITIAL_TERM_ID = "init-term-id";
    /// Term id at which a publication starts.
    TERM_ID = "term-id";
    /// Offset in the term at which a publication starts.
    TERM_OFFSET = "term-offset";
    /// Session id, or `tag:` and an entity tag.
    SESSION_ID = "session-id";
    /// Multicast time to live.
    TTL = "ttl";
    /// Whether lost data is asked for again.
    RELIABLE = "reliable";
    /// How long a drained publication is kept.
    LINGER = "linger";
    /// A name for people.
    ALIAS = "alias";
    /// Congestion control strategy.
    CONGESTION_CONTROL = "cc";
    /// Flow control strategy.
    FLOW_CONTROL = "fc";
    /// Tag of a receiver for flow control.
    GROUP_TAG = "gtag";
    /// Whether log files are sparse.
    SPARSE = "sparse";
    /// Whether the end of the stream is signalled.
    EOS = "eos";
    /// Whether a subscriber is always part of flow control.
    TETHER = "tether";
    /// Whether a receiver counts itself as one of a group.
    GROUP = "group";
    /// Whether a stream that went away may come back.
    REJOIN = "rejoin";
    /// Whether spies count as connected receivers.
    SPIES_SIMULATE_CONNECTION = "ssc";
    /// Socket send buffer, in bytes.
    SOCKET_SNDBUF = "so-sndbuf";
    /// Socket receive buffer, in bytes.
    SOCKET_RCVBUF = "so-rcvbuf";
    /// Receiver window, in bytes.
    RECEIVER_WINDOW = "rcv-wnd";
    /// Where the kernel's receive time goes.
    MEDIA_RCV_TIMESTAMP_OFFSET = "media-rcv-ts-offset";
    /// Where the driver's receive time goes.
    CHANNEL_RCV_TIMESTAMP_OFFSET = "channel-rcv-ts-offset";
    /// Where the driver's send time goes.
    CHANNEL_SND_TIMESTAMP_OFFSET = "channel-snd-ts-offset";
    /// Reserved name; ignored by drivers.
    RESPONSE_ENDPOINT = "response-endpoint";
    /// What a response channel belongs to.
    RESPONSE_CORRELATION_ID = "response-correlation-id";
    /// Delay before the first NAK.
    NAK_DELAY = "nak-delay";
    /// How long an untethered subscriber may hold back the window.
    UNTETHERED_WINDOW_LIMIT_TIMEOUT = "untethered-window-limit-timeout";
    /// How long an untethered subscriber may finish reading.
    UNTETHERED_LINGER_TIMEOUT = "untethered-linger-timeout";
    /// How long until an untethered subscriber may rejoin.
    UNTETHERED_RESTING_TIMEOUT = "untethered-resting-timeout";
    /// Retransmissions that a publication keeps in flight.
    MAX_RESEND = "max-resend";
    /// Stream id; ignored by drivers.
    STREAM_ID = "stream-id";
    /// Publisher window, in bytes.
    PUBLICATION_WINDOW = "pub-wnd";
}

/// Whether transport security is asked for. Known to drivers, not to builders.
pub const ATS: &str = "ats";

/// For these the last of several occurrences counts, for all others the first.
pub(super) const LAST_COUNTS: [&str; 6] = [ENDPOINT, INTERFACE, CONTROL, CONTROL_MODE, TTL, TAGS];
