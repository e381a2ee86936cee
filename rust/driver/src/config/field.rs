//! What one setting is made of: how its value moves in and out of a context.

use std::path::PathBuf;

use aeron_agent::setting::{Grammar, Value};
use aeron_protocol::uri::ReceiverGroup;

use super::Context;
use crate::config::{TerminationValidator, ThreadingMode};

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

    /// Reads the text of the variable, and clamps a number to the limits; answers the warning to show when the text is invalid and
    /// the value stays as it was. A boolean that is neither yes nor no stays as it was without a word.
    pub(super) fn read(&self, context: &mut Context, text: &str) -> Option<String> {
        let stored = self
            .grammar
            .parse(text)
            .is_some_and(|value| self.set(context, self.grammar.clamp(value)));
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
