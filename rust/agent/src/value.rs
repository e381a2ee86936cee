//! Sizes, durations and booleans as text, for channel URIs, environment variables and property files.
//!
//! Sizes and durations are parsed strictly: a text consists of decimal digits and at most one suffix, without blanks or
//! a sign. A text that all of Aeron's own parsers accept is accepted. A text that only one of them accepts by accident
//! (`64kb`, `10msx`, `+5s`) is refused.

/// Reason why a text is not a valid value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text does not consist of decimal digits and an optional suffix.
    #[error("expected decimal digits followed by nothing or one of {expected}")]
    Malformed {
        /// The valid suffixes.
        expected: &'static str,
    },
    /// The value does not fit in 63 bits.
    #[error("the value is above 9223372036854775807")]
    TooLarge,
}

const SIZE_SUFFIXES: &str = "k, m, g";
const DURATION_SUFFIXES: &str = "ns, us, ms, s";

/// Parses a number of bytes: digits, optionally followed by `k`, `m`, `g` in upper or lower case (2^10, 2^20, 2^30).
pub fn parse_size(text: &str) -> Result<i64, ValueError> {
    let (digits, suffix) = split_digits(text).ok_or(ValueError::Malformed {
        expected: SIZE_SUFFIXES,
    })?;
    let unit: i64 = match suffix {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => {
            return Err(ValueError::Malformed {
                expected: SIZE_SUFFIXES,
            });
        }
    };
    let count: i64 = digits.parse().map_err(|_| ValueError::TooLarge)?;
    count.checked_mul(unit).ok_or(ValueError::TooLarge)
}

/// Parses a number of nanoseconds: digits, optionally followed by `ns`, `us`, `ms`, `s` in upper or lower case.
///
/// If a value with a suffix does not fit in 63 bits, it means *for ever*: the result is the maximum value. If a value
/// without a suffix does not fit in 63 bits, the value is refused.
pub fn parse_duration_ns(text: &str) -> Result<i64, ValueError> {
    let (digits, suffix) = split_digits(text).ok_or(ValueError::Malformed {
        expected: DURATION_SUFFIXES,
    })?;
    let unit_ns: i64 = match suffix.to_ascii_lowercase().as_str() {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => {
            return Err(ValueError::Malformed {
                expected: DURATION_SUFFIXES,
            });
        }
    };
    match digits.parse::<i64>() {
        Ok(count) => Ok(count.saturating_mul(unit_ns)),
        Err(_) if suffix.is_empty() => Err(ValueError::TooLarge),
        Err(_) => Ok(i64::MAX),
    }
}

/// Parses a boolean of the driver's configuration by the start of the text: `1`, `on`, `true` or `0`, `off`, `false`,
/// in lower case.
///
/// Returns `None` for any other text: the setting keeps its default. (A boolean of a channel URI must be exactly `true`
/// or `false`.)
pub fn parse_config_bool(text: &str) -> Option<bool> {
    let begins_with_one_of = |words: [&str; 3]| words.iter().any(|word| text.starts_with(word));
    if begins_with_one_of(["1", "on", "true"]) {
        Some(true)
    } else if begins_with_one_of(["0", "off", "false"]) {
        Some(false)
    } else {
        None
    }
}

/// Formats a number of bytes with the largest suffix that divides it: `65536` is `64k`.
pub fn format_size(bytes: i64) -> String {
    format_with(bytes, &[("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)], "")
}

/// Formats a number of nanoseconds with the largest unit that divides it: `1500000000` is `1500ms`.
pub fn format_duration_ns(duration_ns: i64) -> String {
    format_with(
        duration_ns,
        &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)],
        "ns",
    )
}

fn format_with(value: i64, units: &[(&str, i64)], smallest: &str) -> String {
    match units
        .iter()
        .find(|(_, unit)| value != 0 && value % unit == 0)
    {
        Some((suffix, unit)) => format!("{}{suffix}", value / unit),
        None => format!("{value}{smallest}"),
    }
}

/// Splits off the leading digits; `None` if there is no digit.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn check_vector(case: &Value) -> Result<(), String> {
        let text = case["text"].as_str().unwrap_or_default();
        let value = case["value"].as_i64().unwrap_or_default();
        let (actual, expected) = match case["kind"].as_str().unwrap() {
            "size" => (
                parse_size(text).map_or(Value::from("rejected"), Value::from),
                &case["product"],
            ),
            "duration" => (
                parse_duration_ns(text).map_or(Value::from("rejected"), Value::from),
                &case["product"],
            ),
            "config_boolean" => (
                parse_config_bool(text).map_or(Value::from("default"), Value::from),
                &case["c"],
            ),
            "format_size" => (Value::from(format_size(value)), &case["c"]),
            "format_duration" => (Value::from(format_duration_ns(value)), &case["c"]),
            kind => return Err(format!("unknown kind {kind}")),
        };
        if actual == *expected {
            Ok(())
        } else {
            Err(format!("{case}: got {actual}, not {expected}"))
        }
    }

    #[test]
    fn every_captured_value_is_read_and_printed_as_aeron_does_05_2() {
        let vectors: Value =
            serde_json::from_str(include_str!("../tests/vectors/values.json")).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert_eq!(cases.len() as u64, vectors["count"].as_u64().unwrap());
        let failures: Vec<_> = cases
            .iter()
            .filter_map(|case| check_vector(case).err())
            .collect();
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn the_error_names_the_expected_form() {
        assert_eq!(
            parse_duration_ns("10x").unwrap_err().to_string(),
            "expected decimal digits followed by nothing or one of ns, us, ms, s"
        );
        assert_eq!(
            parse_size("9007199254740992k").unwrap_err(),
            ValueError::TooLarge
        );
    }

    proptest! {
        #[test]
        fn printing_then_parsing_is_the_identity(value in 0..=i64::MAX) {
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
            prop_assert_eq!(parse_duration_ns(&format_duration_ns(value)), Ok(value));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,24}|[0-9]{0,40}[a-zA-Z]{0,3}") {
            let _ = (parse_size(&text), parse_duration_ns(&text), parse_config_bool(&text));
        }
    }
}
