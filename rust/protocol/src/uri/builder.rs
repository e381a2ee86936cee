//! [`ChannelUriBuilder`]: creates a channel from typed values, printed in the order of Aeron's own builder.

use std::fmt::Display;

use aeron_agent::value::{format_duration_ns, format_size, parse_duration_ns, parse_size};

use super::key::ValueKind;
use super::publication::{
    FRAME_ALIGNMENT, InitialPosition, MAX_UDP_PAYLOAD_LENGTH, check_initial_position,
    check_term_length,
};
use super::{ChannelUri, Media, NetworkParams, UriError, key, session_id_tag};

/// Collects the parts of a channel. Each value is checked when it is set. [`validate`](Self::validate) checks the
/// rules between several parameters.
///
/// A size is printed with the largest suffix of `g`, `m`, `k` that divides the size. A duration is printed with the
/// largest suffix of `s`, `ms`, `us`, `ns` that divides the duration.
///
/// ```
/// use aeron_protocol::uri::{ChannelUriBuilder, Media, key};
///
/// let channel =
///     ChannelUriBuilder::new(Media::Ipc).put(key::TERM_LENGTH, 65536)?.put(key::ALIAS, "trades")?.build();
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
    /// The error of [`put`](Self::put) if a parameter has an invalid value.
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

    /// Sets the parameter `key`. Sizes are in bytes and durations in nanoseconds, or `value` is a text as in a channel.
    ///
    /// # Errors
    /// Code 11 for an unknown key, and for a value outside the key's type or range. Code 1 for an invalid channel tag
    /// or port, and for a value that a channel cannot contain.
    pub fn put(&mut self, key: &str, value: impl Display) -> Result<&mut Self, UriError> {
        let place =
            place_of(key).ok_or_else(|| UriError::generic(format!("unknown parameter: {key}")))?;
        self.values[place] = Some(canonical(key, key::KINDS[place], &value.to_string())?);
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
        self.put(key::TAGS, format!("{channel_tag}{entity}"))
    }

    /// Uses the session id of the network publication with this entity tag.
    ///
    /// # Errors
    /// Never fails; the result type allows chaining, as with the other setters.
    pub fn tagged_session_id(&mut self, entity_tag: i64) -> Result<&mut Self, UriError> {
        self.put(key::SESSION_ID, format!("tag:{entity_tag}"))
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
        self.put(key::TERM_LENGTH, term_length)?
            .put(key::INITIAL_TERM_ID, start.initial_term_id)?
            .put(key::TERM_ID, start.term_id)?
            .put(key::TERM_OFFSET, start.term_offset)
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
        self.put(key::FLOW_CONTROL, options)
    }
}

fn place_of(key: &str) -> Option<usize> {
    key::ALL.iter().position(|known| *known == key)
}

/// Returns the value in its printed form, or an error if the value is invalid.
fn canonical(key: &str, kind: ValueKind, text: &str) -> Result<String, UriError> {
    match kind {
        ValueKind::Size | ValueKind::Mtu | ValueKind::TermLength => canonical_size(key, kind, text),
        ValueKind::Duration => canonical_duration(key, text),
        ValueKind::TermOffset => canonical_term_offset(key, text),
        ValueKind::Integer(min, max) => canonical_in_range(key, text, min..=max),
        _ => check_text(key, kind, text).map(|()| text.to_owned()),
    }
}

fn canonical_size(key: &str, kind: ValueKind, text: &str) -> Result<String, UriError> {
    let size = parse_size(text).map_err(|error| refused(key, text, &error.to_string()))?;
    match kind {
        ValueKind::Mtu if !(FRAME_ALIGNMENT..=MAX_UDP_PAYLOAD_LENGTH).contains(&size) => {
            Err(refused(key, text, "not in range 32-65504"))
        }
        ValueKind::Mtu if size % FRAME_ALIGNMENT != 0 => {
            Err(refused(key, text, "not a multiple of 32"))
        }
        ValueKind::TermLength => check_term_length(size).map(|_| format_size(size)),
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

fn canonical_term_offset(key: &str, text: &str) -> Result<String, UriError> {
    let offset = canonical_in_range(key, text, 0..=1 << 30)?;
    match offset.parse::<i64>() {
        Ok(offset) if offset % 32 != 0 => Err(refused(key, text, "not a multiple of 32")),
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
fn check_text(key: &str, kind: ValueKind, text: &str) -> Result<(), UriError> {
    let mut channel = ChannelUri::new(Media::Udp);
    channel.put(key, text)?;
    match kind {
        ValueKind::Choice(choices) if !choices.contains(&text) => {
            let [others @ .., last] = choices else {
                return Ok(());
            };
            let problem = format!("not {} or {last}", others.join(", "));
            Err(refused(key, text, &problem))
        }
        ValueKind::Address => check_port(key, text),
        ValueKind::Tags => channel
            .channel_tag()
            .and_then(|_| channel.entity_tag())
            .map(drop),
        ValueKind::SessionId => match session_id_tag(text)? {
            Some(_) => Ok(()),
            None => channel.int32(key).map(drop),
        },
        ValueKind::Flag => channel.boolean(key).map(drop),
        ValueKind::FlowControl => channel.flow_control().map(drop),
        ValueKind::ResponseCorrelation => channel.response_correlation().map(drop),
        ValueKind::TimestampOffset if text != "reserved" => channel.int32(key).map(drop),
        _ => Ok(()),
    }
}

fn refused(key: &str, value: &str, problem: &str) -> UriError {
    UriError::generic(format!("{key}={value} {problem}"))
}
