//! References between channels: tags, control modes, response channels.

use super::value::integer_error_reason;
use super::{ChannelUri, UriError, key};

/// Control mode: the way in which destinations are added to a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ControlMode {
    /// No destination is added: the endpoint is the only destination. An unknown control mode has this meaning too.
    #[default]
    None,
    /// Every receiver that sends a status message to the control address becomes a destination.
    Dynamic,
    /// Clients add destinations with commands.
    Manual,
    /// The sender of a request becomes the destination of the responses.
    Response,
}

/// Connection of a request stream with its response stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseCorrelation {
    /// In the channel of responses: correlation id of the request image. In the channel of requests: registration id of
    /// the response subscription.
    Id(i64),
    /// A publication that only reserves a port for later response publications, and sends nothing.
    Prototype,
}

impl ChannelUri {
    /// Returns the channel tag: the part of `tags` before the comma.
    ///
    /// # Errors
    /// Code 1 if the text is not a decimal int64 other than −1.
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

    /// Returns the entity tag, which identifies a publication: the part of `tags` after the comma.
    ///
    /// # Errors
    /// Code 11 if the text is not a decimal int64.
    pub fn entity_tag(&self) -> Result<Option<i64>, UriError> {
        match self.tag_texts() {
            Some((_, text)) if !text.is_empty() => text
                .parse()
                .map(Some)
                .map_err(|_| UriError::generic(format!("Entity tag invalid: {text}"))),
            _ => Ok(None),
        }
    }

    /// Whether the channel has tags.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.get(key::TAGS).is_some()
    }

    /// Returns the control mode of the channel.
    #[must_use]
    pub fn control_mode(&self) -> ControlMode {
        match self.get(key::CONTROL_MODE) {
            Some("dynamic") => ControlMode::Dynamic,
            Some("manual") => ControlMode::Manual,
            Some("response") => ControlMode::Response,
            _ => ControlMode::None,
        }
    }

    /// Returns the connection with a request or response stream; `None` if `response-correlation-id` is absent or −1.
    ///
    /// # Errors
    /// Code 11 if the text is neither `prototype` nor an int64 of at least −1.
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

/// Returns the entity tag in a session id of the form `tag:<int64>`; `None` for a session id of another form.
///
/// # Errors
/// Code 11 if the text after `tag:` is not a decimal int64.
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
