//! Which columns rows have: those of a schema that is handed in, followed to the letter.

use arrow_schema::{DataType, SchemaRef};

use crate::layout::{Decoder, Layout, timestamp_type};

/// What a message's payload is.
#[derive(Debug, Clone)]
pub enum ValueFormat {
    /// Bytes.
    Binary,
    /// UTF-8 text.
    Text,
    /// Records of this layout, one after the other.
    Records(Layout),
}

/// The columns of record batches: any of those that there are, in any order, nullable or not.
#[derive(Debug, Clone)]
pub struct Projection {
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<Column>,
    pub(super) payload: Payload,
}

/// A schema that rows cannot follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// There is no such column.
    #[error("column '{name}' does not exist; there are {existing}")]
    Unknown {
        /// As the schema has it.
        name: String,
        /// Names of all columns.
        existing: String,
    },
    /// The column has another type.
    #[error("column '{name}' is of type {expected}, not {found}")]
    Type {
        /// As the schema has it.
        name: String,
        /// The type that the schema asks for.
        found: DataType,
        /// The type that it must have.
        expected: DataType,
    },
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Value,
    /// The one of this number among the fields that are decoded.
    Field(usize),
    StreamId,
    SessionId,
    Position,
    ReservedValue,
    Timestamp,
    Channel,
    RecordingId,
    TermId,
    TermOffset,
    Flags,
    RecordIndex,
}

/// What is done with payloads.
#[derive(Debug, Clone)]
pub(super) enum Payload {
    /// No column shows it.
    Ignored,
    Binary,
    Text,
    Records {
        record_length: usize,
        decoder: Decoder,
    },
}

/// Columns that every row has, whatever its payload is.
const HEADER_COLUMNS: [(&str, Column); 10] = [
    ("stream_id", Column::StreamId),
    ("session_id", Column::SessionId),
    ("position", Column::Position),
    ("reserved_value", Column::ReservedValue),
    ("timestamp", Column::Timestamp),
    ("channel", Column::Channel),
    ("recording_id", Column::RecordingId),
    ("term_id", Column::TermId),
    ("term_offset", Column::TermOffset),
    ("flags", Column::Flags),
];

impl Projection {
    /// The columns of `schema`, for payloads of `format`. Case does not matter in names. A field of a record hides a header column
    /// of the same name.
    ///
    /// # Errors
    /// A column that does not exist, or has another type.
    pub fn new(schema: SchemaRef, format: &ValueFormat) -> Result<Self, ProjectionError> {
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut decoded = Vec::new();
        for field in schema.fields() {
            let name = field.name().to_lowercase();
            let (column, expected) = match record_field(format, &name) {
                Some((number, data_type)) => {
                    decoded.push(number);
                    (Column::Field(decoded.len() - 1), data_type)
                }
                None => plain_column(format, &name).ok_or_else(|| unknown(field.name(), format))?,
            };
            if *field.data_type() != expected {
                return Err(ProjectionError::Type {
                    name: field.name().clone(),
                    found: field.data_type().clone(),
                    expected,
                });
            }
            columns.push(column);
        }
        let payload = match format {
            ValueFormat::Records(layout) => Payload::Records {
                record_length: layout.record_length(),
                decoder: Decoder::of_fields(layout, decoded),
            },
            _ if !columns.contains(&Column::Value) => Payload::Ignored,
            ValueFormat::Binary => Payload::Binary,
            ValueFormat::Text => Payload::Text,
        };
        Ok(Self {
            schema,
            columns,
            payload,
        })
    }

    /// The schema that record batches have.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether rows say when they arrived.
    pub fn has_timestamp(&self) -> bool {
        self.columns.contains(&Column::Timestamp)
    }
}

/// Number and type of a field of the records.
fn record_field(format: &ValueFormat, name: &str) -> Option<(usize, DataType)> {
    let ValueFormat::Records(layout) = format else {
        return None;
    };
    let fields = layout.fields();
    let number = fields
        .iter()
        .position(|field| field.name().to_lowercase() == name)?;
    Some((number, fields[number].kind().column_type()))
}

/// A column that is no field of a record.
fn plain_column(format: &ValueFormat, name: &str) -> Option<(Column, DataType)> {
    match (name, format) {
        ("value", ValueFormat::Binary) => return Some((Column::Value, DataType::Binary)),
        ("value", ValueFormat::Text) => return Some((Column::Value, DataType::Utf8)),
        ("record_index", ValueFormat::Records(_)) => {
            return Some((Column::RecordIndex, DataType::Int32));
        }
        _ => {}
    }
    let (_, column) = HEADER_COLUMNS.iter().find(|(known, _)| *known == name)?;
    let data_type = match column {
        Column::Position | Column::ReservedValue | Column::RecordingId => DataType::Int64,
        Column::Timestamp => timestamp_type(),
        Column::Channel => DataType::Utf8,
        Column::Flags => DataType::Int16,
        _ => DataType::Int32,
    };
    Some((*column, data_type))
}

fn unknown(name: &str, format: &ValueFormat) -> ProjectionError {
    let mut existing: Vec<&str> = match format {
        ValueFormat::Records(layout) => layout.fields().iter().map(|field| field.name()).collect(),
        _ => vec!["value"],
    };
    existing.extend(HEADER_COLUMNS.map(|(name, _)| name));
    if matches!(format, ValueFormat::Records(_)) {
        existing.push("record_index");
    }
    ProjectionError::Unknown {
        name: name.to_owned(),
        existing: existing.join(", "),
    }
}
