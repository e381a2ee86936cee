//! Settings of drivers and archives. [`settings!`](crate::settings) declares them: each [`Setting`] with the
//! [`Grammar`] of its text, and a field for its [`Value`].

use std::fmt;
use std::path::PathBuf;

use crate::properties::environment_name;
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

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
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

    /// Describes the limits if `value` is a number beyond them.
    pub fn out_of_range(self, value: &Value) -> Option<String> {
        match (value, self.limits()) {
            (Value::Number(number), Some((min, max))) if !(min..=max).contains(number) => {
                Some(format!("is not in the range {min} to {max}"))
            }
            _ => None,
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

/// One setting: its property, its field in the context `C`, and how its value is read and written.
#[derive(Debug)]
pub struct Setting<C: 'static> {
    /// The property, for example `aeron.mtu.length`.
    pub property: &'static str,
    /// Name of the field and of the keyword argument, for example `mtu_length`.
    pub name: &'static str,
    /// The grammar of its text.
    pub grammar: Grammar,
    /// The possible texts if the setting is a choice between names; empty for all other settings.
    pub choices: &'static [&'static str],
    /// The documentation of the field.
    pub documentation: &'static str,
    /// Reads the field.
    pub getter: fn(&C) -> Value,
    /// Writes the field. Returns `false` if the type or the text of the value is invalid.
    pub setter: fn(&mut C, Value) -> bool,
}

impl<C> Setting<C> {
    /// Returns the environment variable, for example `AERON_MTU_LENGTH`.
    pub fn variable(&self) -> String {
        environment_name(self.property)
    }

    /// Returns the meaning of the setting, in a sentence or two.
    pub fn meaning(&self) -> &'static str {
        self.documentation.trim_start()
    }

    /// Returns the value in `context`.
    pub fn get(&self, context: &C) -> Value {
        (self.getter)(context)
    }

    /// Stores `value`. Returns `false` if its type or text is invalid. The limits are checked later, when the driver
    /// or archive starts.
    pub fn set(&self, context: &mut C, value: Value) -> bool {
        (self.setter)(context, value)
    }
}

/// The type of a field of the context `C`, with conversions from and to [`Value`].
pub trait SettingField<C>: Sized {
    /// The possible texts if the values have names.
    const CHOICES: &'static [&'static str] = &[];
    /// Returns the value of the setting.
    fn to_value(&self) -> Value;
    /// Converts a value. Returns `None` if its type or text is invalid.
    fn from_value(value: Value) -> Option<Self>;
}

impl<C> SettingField<C> for bool {
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
        impl<C> SettingField<C> for $type {
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
impl<C> SettingField<C> for Option<i64> {
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

/// Implements [`SettingField`] for a type with a text for each value: the choices, a function that returns the text,
/// and a function that converts a text.
#[macro_export]
macro_rules! text_setting_fields {
    ($context:ty; $($type:ty: $choices:expr, $show:expr, $read:expr;)*) => {$(
        impl $crate::setting::SettingField<$context> for $type {
            const CHOICES: &'static [&'static str] = $choices;

            fn to_value(&self) -> $crate::setting::Value {
                let show: fn(&$type) -> String = $show;
                $crate::setting::Value::Text(show(self))
            }

            fn from_value(value: $crate::setting::Value) -> Option<Self> {
                let read: fn(String) -> Option<$type> = $read;
                match value {
                    $crate::setting::Value::Text(text) => read(text),
                    _ => None,
                }
            }
        }
    )*};
}

impl<C> SettingField<C> for String {
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

impl<C> SettingField<C> for PathBuf {
    fn to_value(&self) -> Value {
        Value::Text(self.display().to_string())
    }

    fn from_value(value: Value) -> Option<Self> {
        <String as SettingField<C>>::from_value(value).map(Self::from)
    }
}

/// A path that may be absent. The text of an absent path is empty.
impl<C> SettingField<C> for Option<PathBuf> {
    fn to_value(&self) -> Value {
        let path = self.as_ref().map(|path| path.display().to_string());
        Value::Text(path.unwrap_or_default())
    }

    fn from_value(value: Value) -> Option<Self> {
        let text = <String as SettingField<C>>::from_value(value)?;
        Some((!text.is_empty()).then(|| text.into()))
    }
}

/// Declares a context with a field for each setting, and the table of the settings: field, type, default, property and
/// grammar. The fields in the braces at the end are no settings. A number in the grammar is an inclusive limit.
#[macro_export]
macro_rules! settings {
    (
        $(#[$of_context:meta])* $context:ident, $(#[$of_table:meta])* $table:ident;
        $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:expr, $property:literal $grammar:expr;)*
        { $($(#[doc = $own_doc:literal])+ $own:ident: $own_type:ty = $own_default:expr;)* }
    ) => {
        $(#[$of_context])*
        pub struct $context {
            $($(#[doc = $doc])+ pub $name: $type,)*
            $($(#[doc = $own_doc])+ pub $own: $own_type,)*
        }

        impl Default for $context {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    $($own: $own_default,)*
                }
            }
        }

        impl $context {
            /// Returns the setting of a field.
            pub fn setting(name: &str) -> Option<&'static $crate::setting::Setting<Self>> {
                $table.iter().find(|setting| setting.name == name)
            }

            /// Returns whether an environment variable belongs to one of the settings.
            pub fn has_variable(variable: &str) -> bool {
                $table.iter().any(|setting| setting.variable() == variable)
            }
        }

        $(#[$of_table])*
        pub static $table: &[$crate::setting::Setting<$context>] = &[$($crate::setting::Setting {
            property: $property,
            name: stringify!($name),
            grammar: { #[allow(unused_imports)] use $crate::setting::Grammar::*; $grammar },
            choices: <$type as $crate::setting::SettingField<$context>>::CHOICES,
            documentation: concat!($($doc),+),
            getter: |context| $crate::setting::SettingField::<$context>::to_value(&context.$name),
            setter: |context, value| {
                let value = <$type as $crate::setting::SettingField<$context>>::from_value(value);
                value.map(|value| context.$name = value).is_some()
            },
        }),*];
    };
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
