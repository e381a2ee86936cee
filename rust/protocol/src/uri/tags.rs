//! How channels refer to one another: tags, control modes, response channels.

use super::value::integer_error_reason;
use super::{ChannelUri, UriError, key};

/// How a channel finds its destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ControlMode {
    /// The endpoint; also for any text that is not known.
    #[default]
    None,
    /// Whoever sends a status message to the control address.
    Dynamic,
    /// Those added by command.
    Manual,
    /// Learned from the request that a response belongs to.
    Response,
}

/// What a response channel belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseCorrelation {
    /// Correlation id of an image, or registration id of a response subscription.
    Id(i64),
    /// A publication that holds a port for those to come and sends nothing.
    Prototype,
}

impl ChannelUri {
    /// The channel tag: the part of `tags` before the comma.
    ///
    /// # Errors
    /// Code 1 when it is not a decimal int64 other than −1.
    pub fn channel_tag(&self) -> Result<Option<i64>, UriError> {
        let Some(text) = self.tag_texts().map(|(channel, _)| channel) else {
            return Ok(None);
        };
        match text.parse() {
            _ if text.is_empty() => Ok(None),
            Ok(tag) if tag != -1 => Ok(Some(tag)),
            _ => Err(UriError::invalid_channel(format!(
                "could not parse channel tag string: {text}"
            ))),
        }
    }

    /// The entity tag, which names a publication: the part of `tags` behind the comma.
    ///
    /// # Errors
    /// Code 11 when it is not a decimal int64.
    pub fn entity_tag(&self) -> Result<Option<i64>, UriError> {
        match self.tag_texts() {
            Some((_, text)) if !text.is_empty() => text
                .parse()
                .map(Some)
                .map_err(|_| UriError::generic(format!("Entity tag invalid: {text}"))),
            _ => Ok(None),
        }
    }

    /// Whether the channel carries tags.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.get(key::TAGS).is_some()
    }

    /// How the channel finds its destinations.
    #[must_use]
    pub fn control_mode(&self) -> ControlMode {
        match self.get(key::CONTROL_MODE) {
            Some("dynamic") => ControlMode::Dynamic,
            Some("manual") => ControlMode::Manual,
            Some("response") => ControlMode::Response,
            _ => ControlMode::None,
        }
    }

    /// What a response channel belongs to; `None` also for −1.
    ///
    /// # Errors
    /// Code 11 when it is neither `prototype` nor an int64 of at least −1.
    pub fn response_correlation(&self) -> Result<Option<ResponseCorrelation>, UriError> {
        match self.get(key::RESPONSE_CORRELATION_ID) {
            None => Ok(None),
            Some("prototype") => Ok(Some(ResponseCorrelation::Prototype)),
            Some(text) => match text.parse() {
                Ok(-1) => Ok(None),
                Ok(id @ 0..) => Ok(Some(ResponseCorrelation::Id(id))),
                _ => Err(UriError::generic(
                    "invalid response-correlation-id, must be a number greater than or equal to -1, or 'prototype'",
                )),
            },
        }
    }

    fn tag_texts(&self) -> Option<(&str, &str)> {
        self.get(key::TAGS)
            .map(|tags| tags.split_once(',').unwrap_or((tags, "")))
    }
}

/// The entity tag in a session id of the form `tag:<int64>`; `None` for one of another form.
///
/// # Errors
/// Code 11 when what follows `tag:` is not a decimal int64.
pub fn session_id_tag(session_id: &str) -> Result<Option<i64>, UriError> {
    let Some(tag) = session_id.strip_prefix("tag:") else {
        return Ok(None);
    };
    tag.parse().map(Some).map_err(|error| {
        let reason = integer_error_reason(&error);
        UriError::generic(format!(
            "could not parse session-id={session_id} as int64_t in URI due to: {reason}"
        ))
    })
}
