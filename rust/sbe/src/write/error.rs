//! Errors of encoding.

/// Reason why values cannot be encoded as a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SbeEncodeError {
    /// A required field has no value.
    #[error("field '{field}' is required, but has no value")]
    Missing {
        /// Name of the field.
        field: String,
    },
    /// A value has another kind than its field.
    #[error("field '{field}' needs {expected}, not {found}")]
    Kind {
        /// Name of the field.
        field: String,
        /// The kind of value that the field needs.
        expected: &'static str,
        /// The value.
        found: String,
    },
    /// A value is outside the range of its field.
    #[error("field '{field}': {value} is not from {min} to {max}")]
    Range {
        /// Name of the field.
        field: String,
        /// The value.
        value: String,
        /// Least value.
        min: String,
        /// Greatest value.
        max: String,
    },
    /// A value of an optional field is the field's null value.
    #[error("field '{field}': {value} is the null value of the field: leave the field out")]
    IsNull {
        /// Name of the field.
        field: String,
        /// The value.
        value: String,
    },
    /// A text, bytes or an array do not have the length of their field.
    #[error("field '{field}': length {length} does not fit the length {limit} of the field")]
    Length {
        /// Name of the field.
        field: String,
        /// Length of the value, in bytes or items.
        length: usize,
        /// Length of the field: the greatest one for texts and bytes, the only one for arrays and composites.
        limit: usize,
    },
    /// A text has a character that its character set does not have, or a NUL.
    #[error(
        "field '{field}': the text {text:?} has a character that its character set does not have, or a NUL"
    )]
    Text {
        /// Name of the field.
        field: String,
        /// The text.
        text: String,
    },
    /// An enum or set has no value of a name.
    #[error("field '{field}': '{type_name}' has no value '{name}'")]
    Name {
        /// Name of the field.
        field: String,
        /// Name of the enum or set.
        type_name: String,
        /// The name that does not exist.
        name: String,
    },
    /// A value is given for a constant, and differs.
    #[error("field '{field}' is constant {constant}, not {found}: leave it out")]
    Constant {
        /// Name of the field.
        field: String,
        /// The constant.
        constant: String,
        /// The value.
        found: String,
    },
    /// A decimal would have to be rounded.
    #[error("field '{field}': {mantissa}e{exponent} has no exact mantissa with exponent {target}")]
    Inexact {
        /// Name of the field.
        field: String,
        /// Mantissa of the value.
        mantissa: i128,
        /// Exponent of the value.
        exponent: i32,
        /// Exponent of the field.
        target: i32,
    },
    /// A value is not suitable for another reason.
    #[error("field '{field}': {reason}")]
    Unsuitable {
        /// Name of the field or data.
        field: String,
        /// The reason.
        reason: String,
    },
    /// An entry of a group is null.
    #[error("group '{group}', entry {entry}: the entry is null")]
    NullEntry {
        /// Name of the group.
        group: String,
        /// Index of the entry.
        entry: usize,
    },
    /// A group has too many or too few entries, or data have too many or too few bytes.
    #[error("'{element}': {count} is not from {min} to {max}, the range of its encoding")]
    Count {
        /// Name of the group or data.
        element: String,
        /// Number of entries or bytes.
        count: usize,
        /// Fewest entries or bytes.
        min: u64,
        /// Most entries or bytes.
        max: u64,
    },
    /// A record does not have the shape of its plan.
    #[error("'{element}' has {found} {what}, not {expected}")]
    Shape {
        /// Name of the message or group.
        element: String,
        /// `fields`, `groups` or `data`.
        what: &'static str,
        /// Number in the record.
        found: usize,
        /// Number in the plan.
        expected: usize,
    },
    /// The buffer is too short for the message.
    #[error("the message has {needed} bytes, but the buffer has {available}")]
    Buffer {
        /// Length of the message.
        needed: usize,
        /// Length of the buffer.
        available: usize,
    },
}

impl SbeEncodeError {
    /// Returns the same error for an element of a group's entry: its name becomes a path such as `legs[0].price`.
    #[must_use]
    pub fn within(mut self, group: &str, entry: usize) -> Self {
        let name = match &mut self {
            Self::Missing { field }
            | Self::Kind { field, .. }
            | Self::Range { field, .. }
            | Self::IsNull { field, .. }
            | Self::Length { field, .. }
            | Self::Text { field, .. }
            | Self::Name { field, .. }
            | Self::Constant { field, .. }
            | Self::Inexact { field, .. }
            | Self::Unsuitable { field, .. } => field,
            Self::NullEntry { group, .. } => group,
            Self::Count { element, .. } => element,
            Self::Shape { .. } | Self::Buffer { .. } => return self,
        };
        *name = format!("{group}[{entry}].{name}");
        self
    }
}
