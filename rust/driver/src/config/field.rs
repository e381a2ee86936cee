//! [`Setting`]: the description of one setting, and how its value is read from a context and written to it.

use std::path::PathBuf;

use aeron_agent::setting::{Grammar, Value};
use aeron_protocol::uri::ReceiverGroup;

use super::Context;
use crate::config::{TerminationValidator, ThreadNaming, ThreadingMode};

/// One setting: its variable, its field in [`Context`], and how its value is read and written.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable, e.g. `AERON_MTU_LENGTH`.
    pub variable: &'static str,
    /// Name of the field of [`Context`] and of the keyword argument, e.g. `mtu_length`.
    pub name: &'static str,
    /// The syntax of its text.
    pub grammar: Grammar,
    pub(super) documentation: &'static str,
    pub(super) get: fn(&Context) -> Value,
    pub(super) set: fn(&mut Context, Value) -> bool,
}

impl Setting {
    /// The meaning of the setting, in a sentence or two.
    pub fn meaning(&self) -> &'static str {
        self.documentation.trim_start()
    }

    /// The property of the setting, for instance `aeron.mtu.length`.
    pub fn property(&self) -> String {
        self.variable.to_lowercase().replace('_', ".")
    }

    /// Returns the value in `context`.
    pub fn get(&self, context: &Context) -> Value {
        (self.get)(context)
    }

    /// Returns the possible texts if the setting is a choice between names; empty for all other settings.
    pub fn choices(&self) -> &'static [&'static str] {
        match self.name {
            "threading_mode" => &["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"],
            "thread_naming" => &["classic", "new"],
            "receiver_group_consideration" => &["infer", "true", "false"],
            _ => &[],
        }
    }

    /// Stores `value`.
    ///
    /// Returns `false` if its type or text is invalid. The limits are checked later, by [`Context::validate`].
    pub fn set(&self, context: &mut Context, value: Value) -> bool {
        (self.set)(context, value)
    }

    /// Parses the text of the variable and stores the value; a number is clamped to the limits.
    ///
    /// If the text is invalid, the value does not change and the result is a warning. If only the leading digits of the
    /// text count, the result is a warning too.
    pub(super) fn read(&self, context: &mut Context, text: &str) -> Option<String> {
        let misread = self.misread(text);
        let stored = self
            .grammar
            .parse(text)
            .is_some_and(|value| self.set(context, self.grammar.clamp(value)));
        let invalid = || format!("{}={text} is invalid, using default", self.variable);
        let reason = misread.or_else(|| (!stored).then(invalid))?;
        Some(format!("WARNING: {reason}"))
    }

    /// Returns why `text` does not mean what it seems to mean; `None` for any other text. The C driver has no warning
    /// for such a text.
    pub(super) fn misread(&self, text: &str) -> Option<String> {
        let variable = self.variable;
        match self.grammar {
            Grammar::Boolean if self.grammar.parse(text).is_none() => Some(format!(
                "{variable}={text} is neither true nor false (true, on, 1, false, off, 0), using default"
            )),
            Grammar::LeadingDigits(..) => {
                let number = text.trim_ascii();
                let digits = number.trim_start_matches(|c: char| c.is_ascii_digit());
                let counted = &number[..number.len() - digits.len()];
                let unit = match self.name.ends_with("_ms") {
                    true => " milliseconds",
                    false => "",
                };
                (!counted.is_empty() && !digits.is_empty()).then(|| {
                    format!("{variable}={text} has more than digits, using {counted}{unit}")
                })
            }
            _ => None,
        }
    }
}

/// The type of a field of [`Context`], with conversions from and to [`Value`].
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

/// An optional number. Its text is empty if the number is missing.
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
    ThreadNaming: |naming| naming.name().to_owned(), |text| ThreadNaming::from_name(&text);
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

/// Returns the value for a text. As in the C driver, an unknown text gives [`ReceiverGroup::No`].
fn group_from_name(name: &str) -> ReceiverGroup {
    match name {
        "infer" => ReceiverGroup::Infer,
        "true" => ReceiverGroup::Yes,
        _ => ReceiverGroup::No,
    }
}
