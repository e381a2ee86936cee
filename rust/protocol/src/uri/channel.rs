//! A channel URI as text: prefix, media and parameters.
//!
//! ```text
//! channel = [ "aeron-spy:" ] "aeron:" media [ "?" params ]
//! media   = "udp" | "ipc"
//! params  = key "=" value { "|" key "=" value }
//! ```

use std::fmt;
use std::str::FromStr;

use super::{UriError, key};
use crate::command::MAX_CHANNEL_LENGTH;

/// Prefix of a spy subscription's channel. The channel that the spy reads follows.
pub const SPY_PREFIX: &str = "aeron-spy:";

const SCHEME: &str = "aeron:";

/// Transport medium of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// Datagrams.
    Udp,
    /// Memory shared by the processes of one machine.
    Ipc,
}

impl Media {
    /// Returns `udp` or `ipc`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Ipc => "ipc",
        }
    }
}

/// Kind of a channel. A driver derives it from the start of the text, before it parses the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// `aeron:ipc…`
    Ipc,
    /// `aeron-spy:…`
    Spy,
    /// Any other text.
    Network,
}

impl Transport {
    /// Returns the kind of the channel.
    #[must_use]
    pub fn of(channel: &[u8]) -> Self {
        if channel.starts_with(b"aeron:ipc") {
            Self::Ipc
        } else if channel.starts_with(SPY_PREFIX.as_bytes()) {
            Self::Spy
        } else {
            Self::Network
        }
    }
}

/// A parsed channel: its media and its parameters in the order in which they were written. Unknown parameters are kept;
/// each key occurs once.
///
/// Two channels are equal if media, prefix and parameters are equal, in any order. Keys and values never contain
/// characters with a meaning in the syntax, so printing and parsing a channel returns an equal channel.
#[derive(Clone, Debug, Eq)]
pub struct ChannelUri {
    is_spy: bool,
    media: Media,
    parameters: Vec<(String, String)>,
}

impl ChannelUri {
    /// Creates a channel without parameters. For [`Media::Udp`], such a channel has no address yet.
    #[must_use]
    pub const fn new(media: Media) -> Self {
        Self {
            is_spy: false,
            media,
            parameters: Vec::new(),
        }
    }

    /// Parses a channel. If a key is repeated, the last value applies for `endpoint`, `interface`, `control`,
    /// `control-mode`, `ttl` and `tags`, and the first value for all other keys. An empty value is an error, with one
    /// exception: at the end of the text, it means that the parameter is absent. An empty `tags` is an error there too.
    ///
    /// # Errors
    /// Code 1 if the syntax is invalid, if the channel has more than [`MAX_CHANNEL_LENGTH`] bytes or a NUL byte, if it
    /// is a spy of IPC, or if it is a UDP channel without parameters.
    pub fn parse(channel: &str) -> Result<Self, UriError> {
        Self::from_bytes(channel.as_bytes())
    }

    /// Parses a channel from the bytes of a command. Values may contain bytes that are not UTF-8; the parsed value has
    /// U+FFFD instead. To show or compare the original text, keep the bytes.
    ///
    /// # Errors
    /// The same errors as [`parse`](Self::parse).
    pub fn from_bytes(channel: &[u8]) -> Result<Self, UriError> {
        let text = String::from_utf8_lossy(channel);
        if channel.len() > MAX_CHANNEL_LENGTH {
            let length = channel.len();
            return Err(UriError::invalid_channel(format!(
                "URI length ({length}) exceeds max supported length ({MAX_CHANNEL_LENGTH}): {text}"
            )));
        }
        if let Some(index) = channel.iter().position(|byte| *byte == 0) {
            return Err(UriError::invalid_channel(format!(
                "NUL byte not allowed in URI: index={index}"
            )));
        }
        let (is_spy, unprefixed) = match text.strip_prefix(SPY_PREFIX) {
            Some(spied) => (true, spied),
            None => (false, &*text),
        };
        let (media, parameters) = split_media(unprefixed)?;
        if is_spy && media == Media::Ipc {
            return Err(UriError::invalid_channel("UDP channels must use UDP URIs"));
        }
        let parameters = parse_parameters(parameters)?;
        if media == Media::Udp && parameters.is_empty() {
            return Err(super::network::nothing_distinguishes());
        }
        Ok(Self {
            is_spy,
            media,
            parameters,
        })
    }

    /// Returns the media of the stream.
    #[must_use]
    pub const fn media(&self) -> Media {
        self.media
    }

    /// Whether the channel belongs to a spy subscription.
    #[must_use]
    pub const fn is_spy(&self) -> bool {
        self.is_spy
    }

    /// Returns the same channel with or without the spy prefix.
    #[must_use]
    pub fn with_spy(mut self, is_spy: bool) -> Self {
        self.is_spy = is_spy;
        self
    }

    /// Returns the value of a parameter as it was written.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.parameters().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// Returns all parameters in their order.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.parameters
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Sets a parameter: replaces the existing value, or adds the parameter at the end.
    ///
    /// # Errors
    /// Code 1 if the key or value is empty, contains NUL, or contains a character with a meaning in the syntax: `?`,
    /// `|` or `=` in a key, `|` in a value.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), UriError> {
        check_key(key)?;
        check_value(key, value)?;
        self.set(key, value.to_owned());
        Ok(())
    }

    /// Removes a parameter. Returns its value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let index = self.parameters.iter().position(|(k, _)| k == key)?;
        Some(self.parameters.remove(index).1)
    }

    pub(super) fn set(&mut self, key: &str, value: String) {
        match self.parameters.iter_mut().find(|(k, _)| k == key) {
            Some((_, present)) => *present = value,
            None => self.parameters.push((key.to_owned(), value)),
        }
    }
}

impl PartialEq for ChannelUri {
    fn eq(&self, other: &Self) -> bool {
        (self.is_spy, self.media, self.parameters.len())
            == (other.is_spy, other.media, other.parameters.len())
            && self
                .parameters()
                .all(|(key, value)| other.get(key) == Some(value))
    }
}

impl fmt::Display for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_spy { SPY_PREFIX } else { "" };
        write!(f, "{prefix}{SCHEME}{}", self.media.as_str())?;
        let mut separator = '?';
        for (key, value) in self.parameters() {
            write!(f, "{separator}{key}={value}")?;
            separator = '|';
        }
        Ok(())
    }
}

impl FromStr for ChannelUri {
    type Err = UriError;

    fn from_str(channel: &str) -> Result<Self, UriError> {
        Self::parse(channel)
    }
}

fn split_media(channel: &str) -> Result<(Media, &str), UriError> {
    channel
        .strip_prefix(SCHEME)
        .and_then(|rest| match rest.split_once('?') {
            Some(("udp", parameters)) => Some((Media::Udp, parameters)),
            Some(("ipc", parameters)) => Some((Media::Ipc, parameters)),
            None if rest == "ipc" => Some((Media::Ipc, "")),
            _ => None,
        })
        .ok_or_else(|| {
            let reason = match channel == "aeron:udp" {
                true => ", URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response",
                false => "",
            };
            UriError::invalid_channel(format!(
                "invalid URI scheme or transport: {channel}{reason}"
            ))
        })
}

fn parse_parameters(text: &str) -> Result<Vec<(String, String)>, UriError> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    if text.is_empty() {
        return Ok(parameters);
    }
    let mut rest = Some(text);
    while let Some(pairs) = rest {
        let (key, after_key) = split_key(pairs)?;
        let (value, after_value) = match after_key.split_once('|') {
            Some((value, after)) => (value, Some(after)),
            None => (after_key, None),
        };
        rest = after_value;
        // C drivers crash on empty tags, so an empty value of this key is refused even at the end.
        if value.is_empty() && (rest.is_some() || key == key::TAGS) {
            return Err(UriError::invalid_channel("empty value not allowed"));
        }
        if !value.is_empty() {
            add_parameter(&mut parameters, key, value);
        }
    }
    Ok(parameters)
}

fn split_key(pairs: &str) -> Result<(&str, &str), UriError> {
    match pairs.find(['=', '|']) {
        Some(0) if pairs.starts_with('=') => {
            Err(UriError::invalid_channel("empty key not allowed"))
        }
        Some(end) if pairs[end..].starts_with('=') => Ok((&pairs[..end], &pairs[end + 1..])),
        _ => Err(UriError::invalid_channel("invalid end of key")),
    }
}

fn add_parameter(parameters: &mut Vec<(String, String)>, key: &str, value: &str) {
    match parameters.iter_mut().find(|(k, _)| k == key) {
        Some((_, present)) if key::LAST_COUNTS.contains(&key) => value.clone_into(present),
        Some(_) => {}
        None => parameters.push((key.to_owned(), value.to_owned())),
    }
}

fn check_key(key: &str) -> Result<(), UriError> {
    if key.is_empty() {
        return Err(UriError::invalid_channel("empty key not allowed"));
    }
    if key.contains('\0') {
        return Err(UriError::invalid_channel(format!(
            "key cannot contain a NUL byte: {}",
            key.escape_debug()
        )));
    }
    if key.contains(['?', '|', '=']) {
        return Err(UriError::invalid_channel(format!(
            "key cannot contain '?', '|' or '=': {key}"
        )));
    }
    Ok(())
}

fn check_value(key: &str, value: &str) -> Result<(), UriError> {
    if value.is_empty() {
        return Err(UriError::invalid_channel(format!(
            "empty value not allowed: {key}"
        )));
    }
    if value.contains('\0') {
        return Err(UriError::invalid_channel(format!(
            "value cannot contain a NUL byte: {key}={}",
            value.escape_debug()
        )));
    }
    if value.contains('|') {
        return Err(UriError::invalid_channel(format!(
            "value cannot contain '|': {key}={value}"
        )));
    }
    Ok(())
}
