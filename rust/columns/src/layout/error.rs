//! Errors of layouts, records, and values to be encoded.

use arrow_schema::DataType;

/// Reason why a text is not a layout, with the field and the offset of the field in the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{field}' at offset {offset}: {reason}")]
pub struct LayoutError {
    /// Name of the field, or the text in the place of a field.
    pub field: String,
    /// Offset in the record at which the field would begin, in bytes.
    pub offset: usize,
    /// The problem, and valid alternatives.
    pub reason: String,
}

/// The first value in the decoded records that no column can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field '{field}' at offset {offset} {reason}")]
pub struct MalformedRecord {
    /// Index of the record among the decoded records.
    pub record: usize,
    /// Name of the field.
    pub field: String,
    /// Offset of the field in the record, in bytes.
    pub offset: usize,
    /// Reason why the value is malformed.
    pub reason: String,
}

/// Reason why rows cannot be encoded as records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordEncodeError {
    /// A field has no column.
    #[error("field '{0}' has no column of this name")]
    Missing(String),
    /// A column has another type than its field.
    #[error("column '{column}' is {found}, but its field '{kind}' needs {expected}: cast it")]
    Type {
        /// Name of column and field.
        column: String,
        /// Type of the field.
        kind: String,
        /// Type of the column.
        found: DataType,
        /// Type that the column must have.
        expected: DataType,
    },
    /// A column has a null, which a record cannot contain.
    #[error("row {row}: column '{column}' is null, which a record cannot hold")]
    Null {
        /// Index of the row within the columns.
        row: usize,
        /// Name of the column.
        column: String,
    },
    /// A value does not fit into its field.
    #[error("row {row}: column '{column}' {reason}")]
    Value {
        /// Index of the row within the columns.
        row: usize,
        /// Name of the column.
        column: String,
        /// The value and its limits.
        reason: String,
    },
}
