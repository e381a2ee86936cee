//! [`ChannelUriBuilder`]: creates a channel from typed values, printed in the order of Aeron's own builder.

use aeron_agent::value::{format_duration_ns, format_size, parse_duration_ns, parse_size};

use super::publication::{
    FRAME_ALIGNMENT, InitialPosition, MAX_UDP_PAYLOAD_LENGTH, check_initial_position,
    check_term_length,
};
use super::{ChannelUri, Media, NetworkParams, UriError, key, session_id_tag};

/// Collects the parts of a channel. Each setter checks its value. [`validate`](Self::validate) checks the rules between
/// several parameters.
///
/// A size is printed with the largest suffix of `g`, `m`, `k` that divides the size. A duration is printed with the
/// largest suffix of `s`, `ms`, `us`, `ns` that divides the duration.
///
/// ```
/// use aeron_protocol::uri::{ChannelUriBuilder, Media};
///
/// let channel = ChannelUriBuilder::new(Media::Ipc).term_length(65536)?.alias("trades")?.build();
/// assert_eq!(channel.to_string(), "aeron:ipc?term-length=64k|alias=trades");
/// # Ok::<(), aeron_protocol::uri::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelUriBuilder {
    is_spy: bool,
    media: Media,
    values: [Option<String>; key::ALL.len()],
}

impl ChannelUriBuilder {
    /// Creates a builder with only the media set.
    #[must_use]
    pub const fn new(media: Media) -> Self {
        Self {
            is_spy: false,
            media,
            values: [const { None }; key::ALL.len()],
        }
    }

    /// Creates a builder with the known parameters of `channel`.
    ///
    /// # Errors
    /// The error of [`put`](Self::put) if a parameter has a value that its setter would refuse.
    pub fn from_channel(channel: &ChannelUri) -> Result<Self, UriError> {
        let mut builder = Self::new(channel.media());
        builder.spy(channel.is_spy());
        for (key, value) in channel
            .parameters()
            .filter(|(key, _)| key::ALL.contains(key))
        {
            builder.put(key, value)?;
        }
        Ok(builder)
    }

    /// Sets or removes the prefix of a spy subscription.
    pub const fn spy(&mut self, is_spy: bool) -> &mut Self {
        self.is_spy = is_spy;
        self
    }

    /// Sets the parameter `key` from text, in the form used in a channel.
    ///
    /// # Errors
    /// Code 11 for an unknown key, and for a value outside the key's type or range. Code 1 for an invalid channel tag
    /// or port, and for a value that a channel cannot contain.
    pub fn put(&mut self, key: &str, value: &str) -> Result<&mut Self, UriError> {
        let place =
            place_of(key).ok_or_else(|| UriError::generic(format!("unknown parameter: {key}")))?;
        self.values[place] = Some(canonical(key, value)?);
        Ok(self)
    }

    /// Returns the value of a parameter as it will be printed.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        place_of(key).and_then(|place| self.values[place].as_deref())
    }

    /// Removes a parameter.
    pub fn unset(&mut self, key: &str) -> &mut Self {
        if let Some(place) = place_of(key) {
            self.values[place] = None;
        }
        self
    }

    /// Removes all parameters and the spy prefix.
    pub fn clear(&mut self) -> &mut Self {
        *self = Self::new(self.media);
        self
    }

    /// Returns the channel.
    #[must_use]
    pub fn build(&self) -> ChannelUri {
        let mut channel = ChannelUri::new(self.media).with_spy(self.is_spy);
        for (key, value) in key::ALL.iter().zip(&self.values) {
            if let Some(value) = value {
                channel.set(key, value.clone());
            }
        }
        channel
    }

    /// Checks the rules between several parameters. A UDP channel needs a parameter that identifies it. An initial
    /// position needs its three parameters, must not be before the start of the stream, and must lie within its term.
    ///
    /// # Errors
    /// The error that a driver would return.
    pub fn validate(&self) -> Result<(), UriError> {
        let channel = self.build();
        match self.media {
            Media::Udp => NetworkParams::parse(&channel).map(drop)?,
            Media::Ipc if self.is_spy => {
                return Err(UriError::invalid_channel("UDP channels must use UDP URIs"));
            }
            Media::Ipc => {}
        }
        check_initial_position(&channel)
    }

    /// Sets the channel tag, and the entity tag if it is given.
    ///
    /// # Errors
    /// Code 1 for a channel tag of −1, which is not a valid tag.
    pub fn tags(
        &mut self,
        channel_tag: i64,
        entity_tag: Option<i64>,
    ) -> Result<&mut Self, UriError> {
        let entity = entity_tag.map_or(String::new(), |tag| format!(",{tag}"));
        self.put(key::TAGS, &format!("{channel_tag}{entity}"))
    }

    /// Uses the session id of the network publication with this entity tag.
    ///
    /// # Errors
    /// Never fails; the result type allows chaining, as with the other setters.
    pub fn tagged_session_id(&mut self, entity_tag: i64) -> Result<&mut Self, UriError> {
        self.put(key::SESSION_ID, &format!("tag:{entity_tag}"))
    }

    /// Makes a publication start at `position`: sets term length, both term ids and the term offset.
    ///
    /// # Errors
    /// Code 11 if the position is negative or not a multiple of 32, or the term length is invalid.
    pub fn initial_position(
        &mut self,
        position: i64,
        initial_term_id: i32,
        term_length: i32,
    ) -> Result<&mut Self, UriError> {
        let start = InitialPosition::at(position, initial_term_id, term_length)?;
        self.term_length(term_length)?
            .initial_term_id(start.initial_term_id)?
            .term_id(start.term_id)?
            .term_offset(start.term_offset)
    }

    /// Sets the flow control `tagged`: the slowest receiver with `group_tag` limits the sender. The driver's settings
    /// apply to values that are `None`.
    ///
    /// # Errors
    /// Code 11 for a negative group size or timeout.
    pub fn tagged_flow_control(
        &mut self,
        group_tag: Option<i64>,
        group_min_size: Option<i32>,
        receiver_timeout_ns: Option<i64>,
    ) -> Result<&mut Self, UriError> {
        let tag = group_tag.map_or(String::new(), |tag| tag.to_string());
        self.group_flow_control("tagged", &tag, group_min_size, receiver_timeout_ns)
    }

    /// Sets the flow control `min`: the slowest receiver limits the sender. The driver's settings apply to values that
    /// are `None`.
    ///
    /// # Errors
    /// Code 11 for a negative group size or timeout.
    pub fn min_flow_control(
        &mut self,
        group_min_size: Option<i32>,
        receiver_timeout_ns: Option<i64>,
    ) -> Result<&mut Self, UriError> {
        self.group_flow_control("min", "", group_min_size, receiver_timeout_ns)
    }

    fn group_flow_control(
        &mut self,
        name: &str,
        tag: &str,
        group_min_size: Option<i32>,
        receiver_timeout_ns: Option<i64>,
    ) -> Result<&mut Self, UriError> {
        let size = group_min_size.map_or(String::new(), |size| format!("/{size}"));
        let mut options = name.to_owned();
        if !tag.is_empty() || !size.is_empty() {
            options += &format!(",g:{tag}{size}");
        }
        if let Some(timeout_ns) = receiver_timeout_ns {
            options += &format!(",t:{}", format_duration_ns(timeout_ns));
        }
        self.put(key::FLOW_CONTROL, &options)
    }
}

macro_rules! setters {
    ($($(#[$attribute:meta])* $setter:ident: $type:ty = $key:path;)*) => {
        /// One setter per parameter. A setter refuses the same values as [`put`](Self::put), with the same errors. The
        /// error names the parameter.
        impl ChannelUriBuilder {
            $(
                $(#[$attribute])*
                pub fn $setter(&mut self, value: $type) -> Result<&mut Self, UriError> {
                    self.put($key, &value.to_string())
                }
            )*
        }
    };
}

setters! {
    /// Address to which data is sent, or on which data is received: `host:port`.
    endpoint: &str = key::ENDPOINT;
    /// Local interface: an address with or without port and prefix length, or `{name}`.
    network_interface: &str = key::INTERFACE;
    /// Address of the control socket, `host:port`.
    control_endpoint: &str = key::CONTROL;
    /// `dynamic`, `manual` or `response`.
    control_mode: &str = key::CONTROL_MODE;
    /// Maximum length of a frame in bytes: 32 to 65504, a multiple of 32 (drivers require more than 32).
    mtu: i32 = key::MTU;
    /// Length of a term in bytes: a power of two from 64 KiB to 1 GiB.
    term_length: i32 = key::TERM_LENGTH;
    /// Id of the stream's first term.
    initial_term_id: i32 = key::INITIAL_TERM_ID;
    /// Term id at which the publication starts.
    term_id: i32 = key::TERM_ID;
    /// Offset at which the publication starts, in bytes: 0 to 1 GiB, a multiple of 32.
    term_offset: i32 = key::TERM_OFFSET;
    /// Session id.
    session_id: i32 = key::SESSION_ID;
    /// Multicast time to live, 0 to 255; 0 for the driver's setting.
    ttl: i32 = key::TTL;
    /// Whether the receiver requests lost data again.
    reliable: bool = key::RELIABLE;
    /// Time for which the driver keeps a drained publication, in nanoseconds.
    linger_timeout_ns: i64 = key::LINGER;
    /// A name that tools and logs show.
    alias: &str = key::ALIAS;
    /// `static` or `cubic`.
    congestion_control: &str = key::CONGESTION_CONTROL;
    /// Flow control strategy with its options.
    flow_control: &str = key::FLOW_CONTROL;
    /// Group tag of a receiver for flow control.
    group_tag: i64 = key::GROUP_TAG;
    /// Whether log files are sparse.
    sparse: bool = key::SPARSE;
    /// Whether the sender signals the end of the stream.
    eos: bool = key::EOS;
    /// Whether a slow subscriber always limits the publisher.
    tether: bool = key::TETHER;
    /// Whether a receiver is a member of a group.
    group: bool = key::GROUP;
    /// Whether a subscription rejoins a stream after its image was lost.
    rejoin: bool = key::REJOIN;
    /// Whether the publication is connected if it has only spies.
    spies_simulate_connection: bool = key::SPIES_SIMULATE_CONNECTION;
    /// Length of the socket send buffer in bytes.
    socket_sndbuf_length: i64 = key::SOCKET_SNDBUF;
    /// Length of the socket receive buffer in bytes.
    socket_rcvbuf_length: i64 = key::SOCKET_RCVBUF;
    /// Receiver window in bytes.
    receiver_window_length: i64 = key::RECEIVER_WINDOW;
    /// Location of the kernel's receive time: a byte offset in the payload, or `reserved`.
    media_receive_timestamp_offset: &str = key::MEDIA_RCV_TIMESTAMP_OFFSET;
    /// Location of the driver's receive time: a byte offset in the payload, or `reserved`.
    channel_receive_timestamp_offset: &str = key::CHANNEL_RCV_TIMESTAMP_OFFSET;
    /// Location of the driver's send time: a byte offset in the payload, or `reserved`.
    channel_send_timestamp_offset: &str = key::CHANNEL_SND_TIMESTAMP_OFFSET;
    /// Reserved name; ignored by drivers.
    response_endpoint: &str = key::RESPONSE_ENDPOINT;
    /// Connection of a request stream with its response stream: an id of at least −1, or `prototype`.
    response_correlation_id: &str = key::RESPONSE_CORRELATION_ID;
    /// Delay before the first NAK, in nanoseconds.
    nak_delay_ns: i64 = key::NAK_DELAY;
    /// Time for which an untethered subscriber may limit the window, in nanoseconds.
    untethered_window_limit_timeout_ns: i64 = key::UNTETHERED_WINDOW_LIMIT_TIMEOUT;
    /// Time for which an untethered subscriber may continue to read, in nanoseconds.
    untethered_linger_timeout_ns: i64 = key::UNTETHERED_LINGER_TIMEOUT;
    /// Time after which an untethered subscriber may rejoin, in nanoseconds.
    untethered_resting_timeout_ns: i64 = key::UNTETHERED_RESTING_TIMEOUT;
    /// Maximum number of concurrent retransmissions of a publication.
    max_resend: i32 = key::MAX_RESEND;
    /// Stream id; ignored by drivers.
    stream_id: i32 = key::STREAM_ID;
    /// Publisher window in bytes.
    publication_window_length: i32 = key::PUBLICATION_WINDOW;
}

fn place_of(key: &str) -> Option<usize> {
    key::ALL.iter().position(|known| *known == key)
}

/// Returns the value in its printed form, or an error if the value is invalid.
fn canonical(key: &str, text: &str) -> Result<String, UriError> {
    match key {
        key::MTU
        | key::TERM_LENGTH
        | key::SOCKET_SNDBUF
        | key::SOCKET_RCVBUF
        | key::RECEIVER_WINDOW
        | key::PUBLICATION_WINDOW => canonical_size(key, text),
        key::LINGER
        | key::NAK_DELAY
        | key::UNTETHERED_WINDOW_LIMIT_TIMEOUT
        | key::UNTETHERED_LINGER_TIMEOUT
        | key::UNTETHERED_RESTING_TIMEOUT => canonical_duration(key, text),
        key::TTL => canonical_in_range(key, text, 0..=255),
        key::MAX_RESEND => canonical_in_range(key, text, 1..=256),
        key::TERM_OFFSET => canonical_term_offset(text),
        key::INITIAL_TERM_ID | key::TERM_ID | key::STREAM_ID => {
            canonical_in_range(key, text, i64::from(i32::MIN)..=i64::from(i32::MAX))
        }
        key::GROUP_TAG => canonical_in_range(key, text, i64::MIN..=i64::MAX),
        _ => check_text(key, text).map(|()| text.to_owned()),
    }
}

fn canonical_size(key: &str, text: &str) -> Result<String, UriError> {
    let size = parse_size(text).map_err(|error| refused(key, text, &error.to_string()))?;
    match key {
        key::MTU if !(FRAME_ALIGNMENT..=MAX_UDP_PAYLOAD_LENGTH).contains(&size) => {
            Err(refused(key, text, "not in range 32-65504"))
        }
        key::MTU if size % FRAME_ALIGNMENT != 0 => Err(refused(key, text, "not a multiple of 32")),
        key::TERM_LENGTH => check_term_length(size).map(|_| format_size(size)),
        _ => Ok(format_size(size)),
    }
}

fn canonical_duration(key: &str, text: &str) -> Result<String, UriError> {
    parse_duration_ns(text)
        .map(format_duration_ns)
        .map_err(|error| {
            let negative = text.starts_with('-');
            let problem = if negative {
                "cannot be negative"
            } else {
                &error.to_string()
            };
            refused(key, text, problem)
        })
}

fn canonical_in_range(
    key: &str,
    text: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<String, UriError> {
    match text.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number.to_string()),
        _ => {
            let problem = format!("not a number in range {}-{}", range.start(), range.end());
            Err(refused(key, text, &problem))
        }
    }
}

fn canonical_term_offset(text: &str) -> Result<String, UriError> {
    let offset = canonical_in_range(key::TERM_OFFSET, text, 0..=1 << 30)?;
    match offset.parse::<i64>() {
        Ok(offset) if offset % 32 != 0 => {
            Err(refused(key::TERM_OFFSET, text, "not a multiple of 32"))
        }
        _ => Ok(offset),
    }
}

/// Checks that the port in `text` is a number from 0 to 65535. A text without a port is accepted: it may be a name, and
/// the resolver of the driver knows the port.
fn check_port(key: &str, text: &str) -> Result<(), UriError> {
    let after_host = text.rsplit_once(']').map_or(text, |(_, rest)| rest);
    match after_host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => {
            let problem = format!("the port {port:?} is not a number in range 0-65535");
            Err(UriError::invalid_channel(format!(
                "{key}={text}: {problem}"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks keywords, flags and free text: refuses a value that a driver would refuse in a channel with only this
/// parameter.
fn check_text(key: &str, text: &str) -> Result<(), UriError> {
    let mut channel = ChannelUri::new(Media::Udp);
    channel.put(key, text)?;
    match key {
        key::CONTROL_MODE if !["dynamic", "manual", "response"].contains(&text) => {
            Err(refused(key, text, "not dynamic, manual or response"))
        }
        key::GROUP if !["true", "false", "infer"].contains(&text) => {
            Err(refused(key, text, "not true, false or infer"))
        }
        key::ENDPOINT | key::CONTROL => check_port(key, text),
        key::TAGS => channel
            .channel_tag()
            .and_then(|_| channel.entity_tag())
            .map(drop),
        key::SESSION_ID => match session_id_tag(text)? {
            Some(_) => Ok(()),
            None => channel.int32(key).map(drop),
        },
        key::RELIABLE
        | key::SPARSE
        | key::EOS
        | key::TETHER
        | key::REJOIN
        | key::SPIES_SIMULATE_CONNECTION => channel.boolean(key).map(drop),
        key::FLOW_CONTROL => channel.flow_control().map(drop),
        key::RESPONSE_CORRELATION_ID => channel.response_correlation().map(drop),
        key::MEDIA_RCV_TIMESTAMP_OFFSET
        | key::CHANNEL_RCV_TIMESTAMP_OFFSET
        | key::CHANNEL_SND_TIMESTAMP_OFFSET
            if text != "reserved" =>
        {
            channel.int32(key).map(drop)
        }
        _ => Ok(()),
    }
}

fn refused(key: &str, value: &str, problem: &str) -> UriError {
    UriError::generic(format!("{key}={value} {problem}"))
}
