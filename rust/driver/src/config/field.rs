//! What one setting is made of: the grammar of its text, its limits, and how its value moves in and out of a context.

use std::path::PathBuf;

use aeron_agent::value::{parse_config_bool, parse_duration_ns, parse_size};
use aeron_protocol::uri::ReceiverGroup;

use super::Context;
use crate::config::{TerminationValidator, ThreadingMode};

/// A value of a setting, as text, keyword arguments and the printed configuration see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Boolean(bool),
    /// Bytes, nanoseconds, milliseconds or a plain count: the setting's name carries the unit.
    Number(i64),
    /// A name, a path or a list; empty when the setting is absent.
    Text(String),
}

/// How the text of a setting is read, and for numbers the limits (inclusive) it is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// `true`, `on` or `1`; `false`, `off` or `0`. Any other text keeps the default.
    Boolean,
    /// Bytes, with an optional suffix `k`, `m` or `g`.
    Size(i64, i64),
    /// Nanoseconds, or a number with a suffix `ns`, `us`, `ms` or `s`.
    Duration(i64, i64),
    /// A plain number.
    Integer(i64, i64),
    /// A plain number, read up to its last digit: what follows is ignored, without a word, as the C driver does it for a few.
    LeadingDigits(i64, i64),
    /// Anything.
    Text,
}

impl Grammar {
    /// The inclusive limits of a number, none for booleans and text.
    pub fn limits(self) -> Option<(i64, i64)> {
        match self {
            Grammar::Size(min, max)
            | Grammar::Duration(min, max)
            | Grammar::Integer(min, max)
            | Grammar::LeadingDigits(min, max) => Some((min, max)),
            Grammar::Boolean | Grammar::Text => None,
        }
    }

    /// Reads `text`; a number may have white space before it, and one beyond the limits becomes the nearest limit. `None` when the
    /// text does not fit the grammar.
    fn parse(self, text: &str) -> Option<Value> {
        let digits = text.trim_ascii_start();
        let number = match self {
            Grammar::Boolean => return Some(Value::Boolean(parse_config_bool(text)?)),
            Grammar::Text => return Some(Value::Text(text.to_owned())),
            Grammar::Size(..) => parse_size(digits).ok()?,
            Grammar::Duration(..) => parse_duration_ns(digits).ok()?,
            Grammar::Integer(..) => digits.parse().ok()?,
            Grammar::LeadingDigits(..) => {
                let end = digits.find(|c: char| !c.is_ascii_digit());
                digits[..end.unwrap_or(digits.len())].parse().ok()?
            }
        };
        let (min, max) = self.limits()?;
        Some(Value::Number(number.clamp(min, max)))
    }
}

/// One setting: its variable, its name in [`Context`], and how its value is read and written.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable, e.g. `AERON_MTU_LENGTH`.
    pub variable: &'static str,
    /// The field of [`Context`], the keyword argument and the printed name, e.g. `mtu_length`.
    pub name: &'static str,
    /// How its text is read.
    pub grammar: Grammar,
    pub(super) get: fn(&Context) -> Value,
    pub(super) set: fn(&mut Context, Value) -> bool,
}

impl Setting {
    /// The value in `context`.
    pub fn get(&self, context: &Context) -> Value {
        (self.get)(context)
    }

    /// The texts that the setting takes, if it is a choice between names; else none.
    pub fn choices(&self) -> &'static [&'static str] {
        match self.name {
            "threading_mode" => &["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"],
            "receiver_group_consideration" => &["infer", "true", "false"],
            _ => &[],
        }
    }

    /// Stores `value` as it is, limits are the business of [`Context::validate`]; false when its kind or text does not fit.
    pub fn set(&self, context: &mut Context, value: Value) -> bool {
        (self.set)(context, value)
    }

    /// Reads the text of the variable; answers the warning to show when it is invalid and the value stays as it was.
    pub(super) fn read(&self, context: &mut Context, text: &str) -> Option<String> {
        let stored = self
            .grammar
            .parse(text)
            .is_some_and(|value| self.set(context, value));
        (!stored && self.grammar != Grammar::Boolean).then(|| {
            format!(
                "WARNING: {}={text} is invalid, using default",
                self.variable
            )
        })
    }
}

/// A field type of [`Context`]: converts from and to [`Value`].
pub(super) trait Field: Sized {
    fn to_value(&self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

impl Field for bool {
    fn to_value(&self) -> Value {
        Value::Boolean(*self)
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }
}

macro_rules! number_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn to_value(&self) -> Value {
                Value::Number(i64::try_from(*self).unwrap_or(i64::MAX))
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Number(value) => Self::try_from(value).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
number_fields!(i64, i32, u64, usize);

/// A number that may be absent: its text form is empty then.
impl Field for Option<i64> {
    fn to_value(&self) -> Value {
        self.map_or(Value::Text(String::new()), Value::Number)
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Number(value) => Some(Some(value)),
            Value::Text(text) if text.is_empty() => Some(None),
            _ => None,
        }
    }
}

macro_rules! text_fields {
    ($($type:ty: $show:expr, $read:expr;)*) => {$(
        impl Field for $type {
            fn to_value(&self) -> Value {
                let show: fn(&$type) -> String = $show;
                Value::Text(show(self))
            }

            fn from_value(value: Value) -> Option<Self> {
                let read: fn(String) -> Option<$type> = $read;
                match value {
                    Value::Text(text) => read(text),
                    _ => None,
                }
            }
        }
    )*};
}
text_fields! {
    String: |text| text.clone(), Some;
    PathBuf: |path| path.display().to_string(), |text| Some(PathBuf::from(text));
    ThreadingMode: |mode| mode.name().to_owned(), |text| ThreadingMode::from_name(&text);
    ReceiverGroup: |group| group_name(*group).to_owned(), |text| Some(group_from_name(&text));
    TerminationValidator: |validator| validator.name().to_owned(), |text| Some(TerminationValidator::from_name(text));
}

fn group_name(group: ReceiverGroup) -> &'static str {
    match group {
        ReceiverGroup::Infer => "infer",
        ReceiverGroup::Yes => "true",
        ReceiverGroup::No => "false",
    }
}

/// Any other text means no, as in the C driver.
fn group_from_name(name: &str) -> ReceiverGroup {
    match name {
        "infer" => ReceiverGroup::Infer,
        "true" => ReceiverGroup::Yes,
        _ => ReceiverGroup::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_white_space_before_them_and_not_behind() {
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
}
