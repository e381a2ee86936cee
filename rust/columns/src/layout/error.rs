//! What can be wrong with a layout, with a record, and with a value on its way into one.

use arrow_schema::DataType;

/// Why a text is no layout, and where: the field and its offset in the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{field}' at offset {offset}: {reason}")]
pub struct LayoutError {
    /// Name of the field, or what stands in its place.
    pub field: String,
    /// Where in the record it would begin, in bytes.
    pub offset: usize,
    /// What is wrong and what is right.
    pub reason: String,
}

/// The first value of a block of records that no column can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field '{field}' at offset {offset} {reason}")]
pub struct MalformedRecord {
    /// Number of the record within the block.
    pub record: usize,
    /// Name of the field.
    pub field: String,
    /// Where in the record it begins, in bytes.
    pub offset: usize,
    /// What it holds instead of a value.
    pub reason: String,
}

/// Why rows of columns do not become records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A field has no column.
    #[error("field '{0}' has no column of this name")]
    Missing(String),
    /// A column is of another type than its field.
    #[error("column '{column}' is {found}, but its field '{kind}' needs {expected}: cast it")]
    Type {
        /// Name of column and field.
        column: String,
        /// Type of the field.
        kind: String,
        /// Type of the column.
        found: DataType,
        /// Type that it must have.
        expected: DataType,
    },
    /// A null has no form in a record.
    #[error("row {row}: column '{column}' is null, which a record cannot hold")]
    Null {
        /// Number of the row within the columns.
        row: usize,
        /// Name of the column.
        column: String,
    },
    /// A value does not fit into its field.
    #[error("row {row}: column '{column}' {reason}")]
    Value {
        /// Number of the row within the columns.
        row: usize,
        /// Name of the column.
        column: String,
        /// The value and its limits.
        reason: String,
    },
}
