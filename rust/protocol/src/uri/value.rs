//! Reads parameters as typed values. An absent parameter is `None`. An invalid parameter is an error with code 11.

use std::num::IntErrorKind;
use std::str::FromStr;

use aeron_agent::value::{parse_duration_ns, parse_size};

use super::{ChannelUri, UriError};

impl ChannelUri {
    /// Returns a number of bytes: decimal digits, optionally followed by `k`, `m` or `g`.
    ///
    /// # Errors
    /// Code 11 for any other text.
    pub fn size(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| {
            parse_size(value).map_err(|_| unparsable(key, value))
        })
    }

    /// Returns a number of nanoseconds: decimal digits, optionally followed by `ns`, `us`, `ms` or `s`.
    ///
    /// # Errors
    /// Code 11 for any other text.
    pub fn duration_ns(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| {
            parse_duration_ns(value).map_err(|_| unparsable(key, value))
        })
    }

    /// Returns a decimal number with an optional sign.
    ///
    /// # Errors
    /// Code 11 for any other text, and for numbers outside 32 bits.
    pub fn int32(&self, key: &str) -> Result<Option<i32>, UriError> {
        self.parsed(key, |value| parse_integer(key, value, "int32_t"))
    }

    /// Returns a decimal number with an optional sign.
    ///
    /// # Errors
    /// Code 11 for any other text, and for numbers outside 64 bits.
    pub fn int64(&self, key: &str) -> Result<Option<i64>, UriError> {
        self.parsed(key, |value| parse_integer(key, value, "int64_t"))
    }

    /// Returns a boolean. The text must be exactly `true` or `false`.
    ///
    /// # Errors
    /// Code 11 for any other text.
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

/// Parses an integer. `type_name` is the type name that C drivers print.
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

/// Returns the reason why a text is not an integer. For an overflow, this is the text of the C library.
pub(super) fn integer_error_reason(error: &std::num::ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "Numerical result out of range",
        _ => "not a decimal number",
    }
}
