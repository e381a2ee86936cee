//! Settings of drivers and archives: the [`Value`] of a setting, and the [`Grammar`] of its text.

use crate::value::{parse_config_bool, parse_duration_ns, parse_size};

/// The value of a setting. Values come from texts and keyword arguments, and appear in the printed configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Boolean(bool),
    /// Bytes, nanoseconds, milliseconds or a count: the setting's name contains the unit.
    Number(i64),
    /// A name, a path or a list; empty if the setting is absent.
    Text(String),
}

/// Grammar of the text of a setting. A number has an inclusive lower and upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// Text that starts with `true`, `on` or `1`, or with `false`, `off` or `0`.
    Boolean,
    /// Bytes, with an optional suffix `k`, `m` or `g`.
    Size(i64, i64),
    /// Nanoseconds, or a number with a suffix `ns`, `us`, `ms` or `s`.
    Duration(i64, i64),
    /// A plain number.
    Integer(i64, i64),
    /// A number made of the leading digits. The rest of the text is ignored without an error, as the C driver does for
    /// a few settings.
    LeadingDigits(i64, i64),
    /// Any text.
    Text,
}

impl Grammar {
    /// Returns the inclusive limits of a number; `None` for booleans and text.
    pub fn limits(self) -> Option<(i64, i64)> {
        match self {
            Grammar::Size(min, max)
            | Grammar::Duration(min, max)
            | Grammar::Integer(min, max)
            | Grammar::LeadingDigits(min, max) => Some((min, max)),
            Grammar::Boolean | Grammar::Text => None,
        }
    }

    /// Parses `text`. A number may have leading white space, and may exceed the limits. Returns `None` if the text does
    /// not match the grammar.
    pub fn parse(self, text: &str) -> Option<Value> {
        let digits = text.trim_ascii_start();
        Some(match self {
            Grammar::Boolean => Value::Boolean(parse_config_bool(text)?),
            Grammar::Text => Value::Text(text.to_owned()),
            Grammar::Size(..) => Value::Number(parse_size(digits).ok()?),
            Grammar::Duration(..) => Value::Number(parse_duration_ns(digits).ok()?),
            Grammar::Integer(..) => Value::Number(digits.parse().ok()?),
            Grammar::LeadingDigits(..) => {
                let end = digits.find(|c: char| !c.is_ascii_digit());
                Value::Number(digits[..end.unwrap_or(digits.len())].parse().ok()?)
            }
        })
    }

    /// Returns the nearest value within the limits.
    pub fn clamp(self, value: Value) -> Value {
        match (value, self.limits()) {
            (Value::Number(number), Some((min, max))) => Value::Number(number.clamp(min, max)),
            (value, _) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_white_space_before_it_but_not_after_it() {
        let limits = (i64::MIN, i64::MAX);
        for (grammar, text, number) in [
            (Grammar::Size(limits.0, limits.1), "\t64k", 65_536),
            (Grammar::Duration(limits.0, limits.1), " 2ms", 2_000_000),
            (Grammar::Integer(limits.0, limits.1), "  -7", -7),
            (Grammar::LeadingDigits(limits.0, limits.1), "\n5000", 5_000),
        ] {
            assert_eq!(grammar.parse(text), Some(Value::Number(number)));
        }
        let size = Grammar::Size(limits.0, limits.1);
        assert_eq!(size.parse("64k "), None);
    }

    #[test]
    fn a_number_beyond_the_limits_is_clamped_only_on_request() {
        let grammar = Grammar::Size(10, 20);
        let value = grammar.parse("1k").unwrap();
        assert_eq!(value, Value::Number(1024));
        assert_eq!(grammar.clamp(value), Value::Number(20));
    }
}
