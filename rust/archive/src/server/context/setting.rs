//! The types of fields that only the archive has, and the reading of texts: a text that does not match is refused.

use aeron_agent::setting::{Grammar, Setting, SettingField, Value};

use super::{ArchiveContext, ArchiveThreadingMode, OnFailure};
use crate::recovery::OnTornFragment;
use crate::storage::SyncLevel;

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

/// Parses a text and stores the value in `context`.
pub(super) fn read(
    setting: &Setting<ArchiveContext>,
    context: &mut ArchiveContext,
    text: &str,
) -> Result<(), ArchiveConfigurationError> {
    let refuse = |(problem, remedy): (String, String)| ArchiveConfigurationError {
        property: setting.property,
        value: text.to_owned(),
        problem,
        remedy,
    };
    let value = setting.grammar.parse(text);
    let value = value.ok_or_else(|| refuse(misfit(setting)))?;
    // Checks the limits first, because the number may be outside of the range of the field's type.
    check_limits(setting, &value).map_err(&refuse)?;
    match setting.set(context, value) {
        true => Ok(()),
        false => Err(refuse(misfit(setting))),
    }
}

/// Checks a number against the limits of the setting. The error has the problem and the remedy.
pub(super) fn check_limits(
    setting: &Setting<ArchiveContext>,
    value: &Value,
) -> Result<(), (String, String)> {
    let problem = setting.grammar.out_of_range(value);
    problem.map_or(Ok(()), |it| Err((it, "choose a value in it".to_owned())))
}

/// Returns the problem of a text that does not match the grammar of the setting, and the remedy.
fn misfit(setting: &Setting<ArchiveContext>) -> (String, String) {
    let (problem, remedy) = match setting.grammar {
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
        Grammar::Text => {
            let choices = setting.choices.split_last();
            let (last, others) = choices.expect("a text that is no choice is never refused");
            let remedy = format!("use {} or {last}", others.join(", "));
            return ("is not known".to_owned(), remedy);
        }
    };
    (problem.to_owned(), remedy.to_owned())
}

impl SettingField<ArchiveContext> for SyncLevel {
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

aeron_agent::text_setting_fields! {
    ArchiveContext;
    ArchiveThreadingMode: &["DEDICATED", "SHARED", "INVOKER"],
        |mode| mode.name().to_owned(), |text| ArchiveThreadingMode::from_name(&text);
    OnFailure: &["block", "release"], |treatment| treatment.name().to_owned(), |text| OnFailure::from_name(&text);
    OnTornFragment: &["refuse", "truncate"], torn_fragment_name, |text| torn_fragment_from_name(&text);
}

fn torn_fragment_name(treatment: &OnTornFragment) -> String {
    match treatment {
        OnTornFragment::Refuse => "refuse".to_owned(),
        OnTornFragment::Truncate => "truncate".to_owned(),
    }
}

fn torn_fragment_from_name(name: &str) -> Option<OnTornFragment> {
    match name {
        "refuse" => Some(OnTornFragment::Refuse),
        "truncate" => Some(OnTornFragment::Truncate),
        _ => None,
    }
}
