//! Parameters by their type. A parameter that is absent is `None`; one that is wrong is an error with code 11.

use std::num::IntErrorKind;
use std::str::FromStr;

use aeron_agent::value::{parse_duration_ns, parse_size};

use super::{ChannelUri, UriError};

impl ChannelUri {
    /// A number of bytes: decimal digits, then nothing or `k`, `m`, `g`.
    ///
    /// # Errors
    /// Code 11 for anything else.
    pub fn size(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| {
            parse_size(value).map_err(|_| unparsable(key, value))
        })
    }

    /// A number of nanoseconds: decimal digits, then nothing or `ns`, `us`, `ms`, `s`.
    ///
    /// # Errors
    /// Code 11 for anything else.
    pub fn duration_ns(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| {
            parse_duration_ns(value).map_err(|_| unparsable(key, value))
        })
    }

    /// A decimal number with an optional sign.
    ///
    /// # Errors
    /// Code 11 for anything else and outside 32 bits.
    pub fn int32(&self, key: &str) -> Result<Option<i32>, UriError> {
        self.parsed(key, |value| parse_integer(key, value, "int32_t"))
    }

    /// A decimal number with an optional sign.
    ///
    /// # Errors
    /// Code 11 for anything else and outside 64 bits.
    pub fn int64(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| parse_integer(key, value, "int64_t"))
    }

    /// Exactly `true` or `false`.
    ///
    /// # Errors
    /// Code 11 for anything else.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, UriError> {
        self.parsed(key, |value| {
            bool::from_str(value).map_err(|_| {
                UriError::generic(format!("could not parse {key}={value} as bool from URI"))
            })
        })
    }

    fn parsed<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, UriError>,
    ) -> Result<Option<T>, UriError> {
        self.get(key).map(parse).transpose()
    }
}

pub(super) fn unparsable(key: &str, value: &str) -> UriError {
    UriError::generic(format!("could not parse {key}={value} in URI"))
}

/// `type_name` is the one that C drivers print.
pub(super) fn parse_integer<T: FromStr<Err = std::num::ParseIntError>>(
    key: &str,
    value: &str,
    type_name: &str,
) -> Result<T, UriError> {
    value.parse().map_err(|error: std::num::ParseIntError| {
        let reason = integer_error_reason(&error);
        UriError::generic(format!(
            "could not parse {key}={value} as {type_name} in URI: {reason}"
        ))
    })
}

/// Out of range is said as the C library says it.
pub(super) fn integer_error_reason(error: &std::num::ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "Numerical result out of range",
        _ => "not a decimal number",
    }
}
