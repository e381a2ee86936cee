//! Parameters that a driver reads from a publication's channel.

use super::key::MAX_RESEND_LIMIT;
use super::value::{integer_error_reason, parse_integer, unparsable};
use super::{ChannelUri, ControlMode, Media, ResponseCorrelation, UriError, key, session_id_tag};
use crate::frame;

const TERM_MIN_LENGTH: i64 = frame::MIN_TERM_LENGTH as i64;
const TERM_MAX_LENGTH: i64 = frame::MAX_TERM_LENGTH as i64;
const FRAME_HEADER_LENGTH: i64 = frame::DATA_HEADER_LENGTH as i64;
pub(super) const FRAME_ALIGNMENT: i64 = frame::FRAME_ALIGNMENT as i64;
pub(super) const MAX_UDP_PAYLOAD_LENGTH: i64 = frame::MAX_UDP_PAYLOAD_LENGTH as i64;

/// Defaults for parameters that a publication's channel does not set: a driver's settings for IPC or for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationDefaults {
    /// Length of a term in bytes, a power of two.
    pub term_length: i32,
    /// Maximum length of a frame in bytes.
    pub mtu_length: i32,
    /// Publisher window in bytes. If the value is 0 or larger than half a term, the window is half a term.
    pub window_length: i32,
    /// Time for which a drained publication is kept, in nanoseconds.
    pub linger_timeout_ns: i64,
    /// Whether log files are sparse.
    pub is_sparse: bool,
    /// Whether the publication is connected if it has only spies.
    pub spies_simulate_connection: bool,
    /// Maximum number of concurrent retransmissions.
    pub max_resend: i32,
    /// Timeouts of untethered subscribers.
    pub untethered: UntetheredTimeouts,
}

/// Timeouts of untethered subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntetheredTimeouts {
    /// Time for which a subscriber may limit the window, in nanoseconds.
    pub window_limit_timeout_ns: i64,
    /// Time for which a subscriber may continue to read, in nanoseconds; `None` for the window limit timeout.
    pub linger_timeout_ns: Option<i64>,
    /// Time after which a subscriber may rejoin, in nanoseconds.
    pub resting_timeout_ns: i64,
}

/// Session id of a new publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionId {
    /// The driver chooses the session id.
    Automatic,
    /// The given session id.
    Explicit(i32),
}

/// Start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialPosition {
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Term id at which the publication starts.
    pub term_id: i32,
    /// Term offset at which the publication starts, in bytes: a multiple of 32, at most the term length.
    pub term_offset: i32,
}

impl InitialPosition {
    /// Returns the position: the number of bytes since the start of the stream.
    #[must_use]
    pub fn position(&self, term_length: i32) -> i64 {
        let term_count = i64::from(self.term_id.wrapping_sub(self.initial_term_id));
        term_count * i64::from(term_length) + i64::from(self.term_offset)
    }
}

/// An existing publication to which a channel refers by a tag, or which a new publication may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistingPublication {
    /// Session id of the publication.
    pub session_id: i32,
    /// Maximum length of a frame in bytes.
    pub mtu_length: i32,
    /// Length of the publication's terms in bytes.
    pub term_length: i32,
    /// Initial position of the publication.
    pub initial_position: InitialPosition,
}

/// Validated parameters of a publication's channel, with defaults for parameters that the channel does not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationParams {
    /// Length of a term in bytes.
    pub term_length: i32,
    /// Whether the channel sets the term length.
    pub is_term_length_stated: bool,
    /// Maximum length of a frame in bytes.
    pub mtu_length: i32,
    /// Whether the channel sets the MTU.
    pub is_mtu_stated: bool,
    /// Publisher window in bytes, at most half a term.
    pub window_length: i32,
    /// Start of the stream; `None` for the beginning of a random term.
    pub initial_position: Option<InitialPosition>,
    /// Session id.
    pub session_id: SessionId,
    /// Tag by which other channels refer to the publication.
    pub entity_tag: Option<i64>,
    /// Time for which the drained publication is kept, in nanoseconds.
    pub linger_timeout_ns: i64,
    /// Whether the log file is sparse.
    pub is_sparse: bool,
    /// Whether the sender signals the end of the stream.
    pub signal_eos: bool,
    /// Whether the publication is connected if it has only spies.
    pub spies_simulate_connection: bool,
    /// Maximum number of concurrent retransmissions.
    pub max_resend: i32,
    /// Whether the time between SETUPs doubles until a receiver responds.
    pub backs_off_setups: bool,
    /// Whether the publication sends responses.
    pub is_response: bool,
    /// Connection of a request stream with its response stream.
    pub response_correlation: Option<ResponseCorrelation>,
    /// Time for which an untethered subscriber may limit the window, in nanoseconds.
    pub untethered_window_limit_timeout_ns: i64,
    /// Time for which an untethered subscriber may continue to read, in nanoseconds.
    pub untethered_linger_timeout_ns: i64,
    /// Time after which an untethered subscriber may rejoin, in nanoseconds.
    pub untethered_resting_timeout_ns: i64,
}

impl PublicationParams {
    /// Reads the parameters from `uri`. Parameters that `uri` does not set are from `defaults`. `tagged` returns the
    /// network publication with an entity tag. With `session-id=tag:…`, the tagged publication provides the session id,
    /// and the MTU and term length that `uri` does not set.
    ///
    /// `ssc` and `max-resend` have no effect for IPC, but must be valid.
    ///
    /// # Errors
    /// Code 11 with the invalid key and value, and the limit.
    pub fn parse(
        uri: &ChannelUri,
        defaults: &PublicationDefaults,
        tagged: impl FnOnce(i64) -> Option<ExistingPublication>,
    ) -> Result<Self, UriError> {
        let (session_id, lender) = parse_session_id(uri, tagged)?;
        let response_correlation = uri.response_correlation()?;
        let is_response = uri.control_mode() == ControlMode::Response;
        check_response(uri, response_correlation)?;
        let stated_term_length = parse_term_length(uri)?;
        let stated_mtu_length = parse_mtu_length(uri)?;
        let mut term_length = stated_term_length
            .or(lender.map(|lender| lender.term_length))
            .unwrap_or(defaults.term_length);
        if is_network(uri)
            && is_response
            && response_correlation == Some(ResponseCorrelation::Prototype)
        {
            // The publication sends nothing, so its terms have the minimum length.
            term_length = TERM_MIN_LENGTH as i32;
        }
        let mtu_length = stated_mtu_length
            .or(lender.map(|lender| lender.mtu_length))
            .unwrap_or(defaults.mtu_length);
        let untethered = UntetheredTimeouts::parse(uri, &defaults.untethered)?;
        Ok(Self {
            term_length,
            is_term_length_stated: stated_term_length.is_some(),
            mtu_length,
            is_mtu_stated: stated_mtu_length.is_some(),
            window_length: parse_window_length(uri, defaults, mtu_length, term_length)?,
            initial_position: parse_initial_position(uri, term_length)?,
            session_id,
            entity_tag: uri.entity_tag()?,
            linger_timeout_ns: uri
                .duration_ns(key::LINGER)?
                .unwrap_or(defaults.linger_timeout_ns),
            is_sparse: uri.boolean(key::SPARSE)?.unwrap_or(defaults.is_sparse),
            signal_eos: uri.boolean(key::EOS)?.unwrap_or(true),
            spies_simulate_connection: uri
                .boolean(key::SPIES_SIMULATE_CONNECTION)?
                .unwrap_or(defaults.spies_simulate_connection),
            max_resend: parse_max_resend(uri)?.unwrap_or(defaults.max_resend),
            backs_off_setups: uri.boolean(key::SETUP_BACKOFF)?.unwrap_or(is_response),
            is_response,
            response_correlation,
            untethered_window_limit_timeout_ns: untethered.window_limit_timeout_ns,
            untethered_linger_timeout_ns: untethered.effective_linger_timeout_ns(),
            untethered_resting_timeout_ns: untethered.resting_timeout_ns,
        })
    }

    /// Checks whether an existing publication may be shared: all values that the new channel sets must equal the values
    /// of the publication.
    ///
    /// # Errors
    /// Code 11 with the first parameter that differs and both values.
    pub fn check_agrees_with(&self, existing: &ExistingPublication) -> Result<(), UriError> {
        if let SessionId::Explicit(session_id) = self.session_id {
            check_agrees(key::SESSION_ID, existing.session_id, session_id)?;
        }
        if self.is_mtu_stated {
            check_agrees(key::MTU, existing.mtu_length, self.mtu_length)?;
        }
        if self.is_term_length_stated {
            check_agrees(key::TERM_LENGTH, existing.term_length, self.term_length)?;
        }
        if let Some(requested) = self.initial_position {
            let created = existing.initial_position;
            check_agrees(
                key::INITIAL_TERM_ID,
                created.initial_term_id,
                requested.initial_term_id,
            )?;
            check_agrees(key::TERM_ID, created.term_id, requested.term_id)?;
            check_agrees(key::TERM_OFFSET, created.term_offset, requested.term_offset)?;
        }
        Ok(())
    }
}

impl UntetheredTimeouts {
    pub(super) fn parse(uri: &ChannelUri, defaults: &Self) -> Result<Self, UriError> {
        let stated = |key| uri.duration_ns(key);
        Ok(Self {
            window_limit_timeout_ns: stated(key::UNTETHERED_WINDOW_LIMIT_TIMEOUT)?
                .unwrap_or(defaults.window_limit_timeout_ns),
            linger_timeout_ns: stated(key::UNTETHERED_LINGER_TIMEOUT)?
                .filter(|timeout_ns| *timeout_ns != 0)
                .or(defaults.linger_timeout_ns),
            resting_timeout_ns: stated(key::UNTETHERED_RESTING_TIMEOUT)?
                .unwrap_or(defaults.resting_timeout_ns),
        })
    }

    pub(super) fn effective_linger_timeout_ns(&self) -> i64 {
        self.linger_timeout_ns
            .unwrap_or(self.window_limit_timeout_ns)
    }
}

fn check_agrees(key: &str, existing: i32, requested: i32) -> Result<(), UriError> {
    if existing == requested {
        return Ok(());
    }
    Err(UriError::generic(format!(
        "existing publication has different '{key}': existing={existing} requested={requested}"
    )))
}

fn is_network(uri: &ChannelUri) -> bool {
    uri.media() == Media::Udp
}

fn parse_session_id(
    uri: &ChannelUri,
    tagged: impl FnOnce(i64) -> Option<ExistingPublication>,
) -> Result<(SessionId, Option<ExistingPublication>), UriError> {
    let Some(text) = uri.get(key::SESSION_ID) else {
        return Ok((SessionId::Automatic, None));
    };
    let Some(tag) = session_id_tag(text)? else {
        let session_id = parse_integer(key::SESSION_ID, text, "int32_t")?;
        return Ok((SessionId::Explicit(session_id), None));
    };
    let lender = tagged(tag).ok_or_else(|| {
        UriError::generic(format!(
            "session-id=tag:{tag} must reference a network publication"
        ))
    })?;
    Ok((SessionId::Explicit(lender.session_id), Some(lender)))
}

fn check_response(
    uri: &ChannelUri,
    response_correlation: Option<ResponseCorrelation>,
) -> Result<(), UriError> {
    let is_response = uri.control_mode() == ControlMode::Response;
    if is_network(uri) && is_response && response_correlation.is_none() {
        return Err(UriError::generic(
            "control-mode=response was specified, but no response-correlation-id set",
        ));
    }
    Ok(())
}

fn parse_term_length(uri: &ChannelUri) -> Result<Option<i32>, UriError> {
    uri.size(key::TERM_LENGTH)?
        .map(check_term_length)
        .transpose()
}

pub(super) fn check_term_length(length: i64) -> Result<i32, UriError> {
    let problem = if length < TERM_MIN_LENGTH {
        format!("less than min length of {TERM_MIN_LENGTH}")
    } else if length > TERM_MAX_LENGTH {
        format!("greater than max length of {TERM_MAX_LENGTH}")
    } else if length.count_ones() != 1 {
        "not a power of 2".to_owned()
    } else {
        return Ok(length as i32);
    };
    Err(UriError::generic(format!(
        "term length {problem}: length={length}"
    )))
}

fn parse_mtu_length(uri: &ChannelUri) -> Result<Option<i32>, UriError> {
    let Some(length) = uri.size(key::MTU)? else {
        return Ok(None);
    };
    if length <= FRAME_HEADER_LENGTH || length > MAX_UDP_PAYLOAD_LENGTH {
        return Err(UriError::generic(format!(
            "mtuLength must be a > HEADER_LENGTH and <= MAX_UDP_PAYLOAD_LENGTH: mtuLength={length}"
        )));
    }
    if length % FRAME_ALIGNMENT != 0 {
        return Err(UriError::generic(format!(
            "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength={length}"
        )));
    }
    Ok(Some(length as i32))
}

fn parse_window_length(
    uri: &ChannelUri,
    defaults: &PublicationDefaults,
    mtu_length: i32,
    term_length: i32,
) -> Result<i32, UriError> {
    let half_a_term = term_length / 2;
    let Some(window) = uri.size(key::PUBLICATION_WINDOW)? else {
        return Ok(match defaults.window_length {
            0 => half_a_term,
            configured => configured.min(half_a_term),
        });
    };
    if window < i64::from(mtu_length) {
        return Err(UriError::generic(format!(
            "pub-wnd={window} cannot be less than the mtu={mtu_length}"
        )));
    }
    if window > i64::from(half_a_term) {
        return Err(UriError::generic(format!(
            "pub-wnd={window} must not exceed half the term-length={term_length}"
        )));
    }
    Ok(window as i32)
}

/// Checks that the three parameters of the initial position form a valid position. If the channel sets no term length,
/// the maximum term length applies.
pub(super) fn check_initial_position(uri: &ChannelUri) -> Result<(), UriError> {
    let term_length = parse_term_length(uri)?.unwrap_or(TERM_MAX_LENGTH as i32);
    parse_initial_position(uri, term_length).map(drop)
}

fn parse_initial_position(
    uri: &ChannelUri,
    term_length: i32,
) -> Result<Option<InitialPosition>, UriError> {
    let triple = [key::INITIAL_TERM_ID, key::TERM_ID, key::TERM_OFFSET].map(|key| uri.get(key));
    let [Some(initial_term_id), Some(term_id), Some(term_offset)] = triple else {
        return match triple {
            [None, None, None] => Ok(None),
            _ => Err(UriError::generic(
                "params: init-term-id term-id term-offset must be used as a complete set",
            )),
        };
    };
    let initial_term_id: i32 = parse_integer(key::INITIAL_TERM_ID, initial_term_id, "int32_t")?;
    let term_id: i32 = parse_integer(key::TERM_ID, term_id, "int32_t")?;
    let term_offset = parse_term_offset(term_offset)?;
    if term_id.wrapping_sub(initial_term_id) < 0 {
        // The text names `term-offset` for the term id, as C drivers do.
        return Err(UriError::generic(format!(
            "Param difference greater than 2^31 - 1: init-term-id={initial_term_id} term-offset={term_id}"
        )));
    }
    let term_offset = check_term_offset(term_offset, term_length)?;
    Ok(Some(InitialPosition {
        initial_term_id,
        term_id,
        term_offset,
    }))
}

/// Parses a term offset. A negative offset becomes a large unsigned number, because the C driver's error text shows
/// such a number.
fn parse_term_offset(text: &str) -> Result<u64, UriError> {
    let parsed = match text.parse::<i64>() {
        Ok(offset) => Ok(offset as u64),
        Err(_) => text.parse::<u64>(),
    };
    parsed.map_err(|error| {
        let reason = integer_error_reason(&error);
        let message = unparsable(key::TERM_OFFSET, text).message;
        UriError::generic(format!("{message}: {reason}"))
    })
}

fn check_term_offset(term_offset: u64, term_length: i32) -> Result<i32, UriError> {
    let in_term = i32::try_from(term_offset)
        .ok()
        .filter(|offset| *offset <= term_length);
    let Some(offset) = in_term else {
        return Err(UriError::generic(format!(
            "Param term-offset={term_offset} > term-length={term_length}"
        )));
    };
    if i64::from(offset) % FRAME_ALIGNMENT != 0 {
        return Err(UriError::generic(format!(
            "Param term-offset={offset} must be multiple of FRAME_ALIGNMENT"
        )));
    }
    Ok(offset)
}

fn parse_max_resend(uri: &ChannelUri) -> Result<Option<i32>, UriError> {
    match uri.size(key::MAX_RESEND)? {
        None => Ok(None),
        Some(count @ 1..=MAX_RESEND_LIMIT) => Ok(Some(count as i32)),
        Some(count) => Err(UriError::generic(format!(
            "invalid max-resend={count}, must be > 0 and <= {MAX_RESEND_LIMIT}"
        ))),
    }
}
