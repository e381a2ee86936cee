//! [`ArchiveSetting`]: one setting of the archive, and the functions that read and write its value in a context.

use std::path::PathBuf;

use aeron_agent::properties::environment_name;
use aeron_agent::setting::{Grammar, Value};

use super::{ArchiveContext, ArchiveThreadingMode, OnFailure};
use crate::recovery::OnTornFragment;
use crate::storage::SyncLevel;

/// One setting: its property, its name in [`ArchiveContext`], and the functions that read and write its value.
#[derive(Debug)]
pub struct ArchiveSetting {
    /// The property, for example `aeron.archive.segment.file.length`.
    pub property: &'static str,
    /// The field of [`ArchiveContext`], for example `segment_file_length`.
    pub name: &'static str,
    /// The grammar of the setting's text.
    pub grammar: Grammar,
    pub(super) documentation: &'static str,
    pub(super) get: fn(&ArchiveContext) -> Value,
    pub(super) set: fn(&mut ArchiveContext, Value) -> bool,
}

/// A setting has a value with which the archive cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property}={value} {problem}: {remedy}")]
pub struct ArchiveConfigurationError {
    /// The property of the setting.
    pub property: &'static str,
    /// The value of the setting.
    pub value: String,
    /// The reason why the value is refused.
    pub problem: String,
    /// A way to correct the value.
    pub remedy: String,
}

impl ArchiveSetting {
    /// Returns the environment variable, for example `AERON_ARCHIVE_SEGMENT_FILE_LENGTH`.
    pub fn variable(&self) -> String {
        environment_name(self.property)
    }

    /// Returns a short description of the setting.
    pub fn meaning(&self) -> &'static str {
        self.documentation.trim_start()
    }

    /// Returns the texts that the setting accepts, if its value is one of several names; otherwise an empty list.
    pub fn choices(&self) -> &'static [&'static str] {
        match self.name {
            "threading_mode" => &["DEDICATED", "SHARED", "INVOKER"],
            "on_torn_fragment" => &["refuse", "truncate"],
            "recording_on_failure" => &["block", "release"],
            _ => &[],
        }
    }

    /// Returns the value in `context`.
    pub fn get(&self, context: &ArchiveContext) -> Value {
        (self.get)(context)
    }

    /// Stores `value`. [`ArchiveContext::conclude`] checks the limits later. Returns `false` if the
    /// setting does not accept the kind or the text of `value`.
    pub fn set(&self, context: &mut ArchiveContext, value: Value) -> bool {
        (self.set)(context, value)
    }

    /// Parses a text and stores the value in `context`.
    pub(super) fn read(
        &self,
        context: &mut ArchiveContext,
        text: &str,
    ) -> Result<(), ArchiveConfigurationError> {
        let refuse = |(problem, remedy): (String, &str)| ArchiveConfigurationError {
            property: self.property,
            value: text.to_owned(),
            problem,
            remedy: remedy.to_owned(),
        };
        let value = self
            .grammar
            .parse(text)
            .ok_or_else(|| refuse(self.misfit()))?;
        // Checks the limits first, because the number may be outside of the range of the field's type.
        self.check_limits(&value).map_err(&refuse)?;
        match self.set(context, value) {
            true => Ok(()),
            false => Err(refuse(self.misfit())),
        }
    }

    /// Checks a number against the limits of the setting. The error has the problem and the remedy.
    pub(super) fn check_limits(&self, value: &Value) -> Result<(), (String, &'static str)> {
        match (value, self.grammar.limits()) {
            (Value::Number(number), Some((min, max))) if !(min..=max).contains(number) => Err((
                format!("is not in the range {min} to {max}"),
                "choose a value in it",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the problem of a text that does not match the grammar of the setting, and the remedy.
    fn misfit(&self) -> (String, &'static str) {
        let (problem, remedy) = match self.grammar {
            Grammar::Boolean => ("is neither true nor false", "use true or false"),
            Grammar::Size(..) => (
                "is not a size",
                "use bytes, or a number with a suffix k, m or g",
            ),
            Grammar::Duration(..) => (
                "is not a duration",
                "use nanoseconds, or a number with a suffix ns, us, ms or s",
            ),
            Grammar::Integer(..) | Grammar::LeadingDigits(..) => {
                ("is not a number", "use decimal digits")
            }
            Grammar::Text if self.name == "on_torn_fragment" => {
                ("is not known", "use refuse or truncate")
            }
            Grammar::Text if self.name == "recording_on_failure" => {
                ("is not known", "use block or release")
            }
            Grammar::Text => ("is not known", "use DEDICATED, SHARED or INVOKER"),
        };
        (problem.to_owned(), remedy)
    }
}

/// A type of a field of [`ArchiveContext`], which can be converted from and to a [`Value`].
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

impl Field for SyncLevel {
    fn to_value(&self) -> Value {
        Value::Number(*self as i64)
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Number(0) => Some(Self::None),
            Value::Number(1) => Some(Self::Data),
            Value::Number(2) => Some(Self::DataAndMetadata),
            _ => None,
        }
    }
}

impl Field for OnTornFragment {
    fn to_value(&self) -> Value {
        let name = match self {
            Self::Refuse => "refuse",
            Self::Truncate => "truncate",
        };
        Value::Text(name.to_owned())
    }

    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "refuse" => Some(Self::Refuse),
            "truncate" => Some(Self::Truncate),
            _ => None,
        }
    }
}

impl Field for OnFailure {
    fn to_value(&self) -> Value {
        Value::Text(self.name().to_owned())
    }

    fn from_value(value: Value) -> Option<Self> {
        Self::from_name(&String::from_value(value)?)
    }
}

impl Field for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Field for PathBuf {
    fn to_value(&self) -> Value {
        Value::Text(self.display().to_string())
    }

    fn from_value(value: Value) -> Option<Self> {
        String::from_value(value).map(Self::from)
    }
}

/// A path that may be absent. The text of an absent path is empty.
impl Field for Option<PathBuf> {
    fn to_value(&self) -> Value {
        self.as_ref()
            .map_or(Value::Text(String::new()), Field::to_value)
    }

    fn from_value(value: Value) -> Option<Self> {
        let text = String::from_value(value)?;
        Some((!text.is_empty()).then(|| text.into()))
    }
}

impl Field for ArchiveThreadingMode {
    fn to_value(&self) -> Value {
        Value::Text(self.name().to_owned())
    }

    fn from_value(value: Value) -> Option<Self> {
        Self::from_name(&String::from_value(value)?)
    }
}
