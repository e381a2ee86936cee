//! Changes that clients make to a channel.

use super::publication::{FRAME_ALIGNMENT, InitialPosition, check_term_length};
use super::{ChannelUri, UriError, key};

impl ChannelUri {
    /// Sets the session id.
    #[must_use]
    pub fn with_session_id(mut self, session_id: i32) -> Self {
        self.set(key::SESSION_ID, session_id.to_string());
        self
    }

    /// Sets the alias unless the channel has one.
    ///
    /// # Errors
    /// Code 1 if the alias is an invalid value; see [`put`](Self::put).
    pub fn with_alias_if_absent(mut self, alias: &str) -> Result<Self, UriError> {
        if self.get(key::ALIAS).is_none() {
            self.put(key::ALIAS, alias)?;
        }
        Ok(self)
    }

    /// Returns the channel of a destination at `endpoint`, with the media and interface of this channel and no other
    /// parameters.
    ///
    /// # Errors
    /// Code 1 if the endpoint is an invalid value; see [`put`](Self::put).
    pub fn destination(&self, endpoint: &str) -> Result<Self, UriError> {
        let mut destination = Self::new(self.media());
        destination.put(key::ENDPOINT, endpoint)?;
        if let Some(interface) = self.get(key::INTERFACE) {
            destination.set(key::INTERFACE, interface.to_owned());
        }
        Ok(destination)
    }

    /// Replaces the port of the endpoint by the port of `resolved_endpoint`, if the endpoint's port is 0.
    ///
    /// # Errors
    /// Code 11 if the port of `resolved_endpoint` is missing or also 0.
    pub fn replace_endpoint_wildcard_port(
        &mut self,
        resolved_endpoint: &str,
    ) -> Result<(), UriError> {
        let Some(host) = self
            .get(key::ENDPOINT)
            .and_then(|endpoint| endpoint.strip_suffix(":0"))
        else {
            return Ok(());
        };
        let port = resolved_endpoint
            .rsplit_once(':')
            .map_or("", |(_, port)| port);
        if !port.parse::<u16>().is_ok_and(|port| port != 0) {
            return Err(UriError::generic(format!(
                "Wildcard port specified on resolvedEndpoint={resolved_endpoint}"
            )));
        }
        let endpoint = format!("{host}:{port}");
        self.set(key::ENDPOINT, endpoint);
        Ok(())
    }

    /// Makes a publication start at `position`: sets term length, both term ids and the term offset.
    ///
    /// # Errors
    /// Code 11 if the position is negative or not a multiple of 32, or the term length is invalid.
    pub fn set_initial_position(
        &mut self,
        position: i64,
        initial_term_id: i32,
        term_length: i32,
    ) -> Result<(), UriError> {
        let start = InitialPosition::at(position, initial_term_id, term_length)?;
        self.set(key::TERM_LENGTH, term_length.to_string());
        self.set(key::INITIAL_TERM_ID, start.initial_term_id.to_string());
        self.set(key::TERM_ID, start.term_id.to_string());
        self.set(key::TERM_OFFSET, start.term_offset.to_string());
        Ok(())
    }
}

impl InitialPosition {
    /// Returns the term id and offset of a stream at `position` bytes after its start.
    ///
    /// # Errors
    /// Code 11 if the position is negative or not a multiple of 32, or the term length is invalid.
    pub fn at(position: i64, initial_term_id: i32, term_length: i32) -> Result<Self, UriError> {
        if position < 0 {
            return Err(UriError::generic(format!(
                "invalid position={position} < 0"
            )));
        }
        if position % FRAME_ALIGNMENT != 0 {
            return Err(UriError::generic(format!(
                "invalid position={position} does not have frame alignment={FRAME_ALIGNMENT}"
            )));
        }
        let term_length = i64::from(check_term_length(i64::from(term_length))?);
        let term_count = i32::try_from(position / term_length).map_err(|_| {
            UriError::generic(format!(
                "invalid position={position} is beyond 2^31 terms of length={term_length}"
            ))
        })?;
        Ok(Self {
            initial_term_id,
            term_id: initial_term_id.wrapping_add(term_count),
            term_offset: (position % term_length) as i32,
        })
    }
}
