//! [`Projection`]: the columns of rows, exactly as in a given schema.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::layout::{RecordDecoder, RecordLayout, timestamp_type};

/// Content of a message's payload.
#[derive(Debug, Clone)]
pub enum ValueFormat {
    /// Bytes.
    Binary,
    /// UTF-8 text.
    Text,
    /// Records of this layout, one after the other.
    Records(RecordLayout),
}

/// The columns of record batches: a selection of the existing columns, in any order, nullable or not.
#[derive(Debug, Clone)]
pub struct Projection {
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<ColumnSource>,
    pub(super) payload: Payload,
}

/// Reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// The column does not exist.
    #[error("column '{name}' does not exist; there are {existing}")]
    Unknown {
        /// Name in the schema.
        name: String,
        /// Names of all columns.
        existing: String,
    },
    /// The column has another type.
    #[error("column '{name}' is of type {expected}, not {found}")]
    Type {
        /// Name in the schema.
        name: String,
        /// Type in the schema.
        found: DataType,
        /// Required type.
        expected: DataType,
    },
    /// The column is named more than once.
    #[error("column '{name}' is there twice: name each column once")]
    Twice {
        /// Name of the column.
        name: String,
    },
    /// There are no columns.
    #[error("there is no column: name at least one of {existing}")]
    Empty {
        /// Names of all columns.
        existing: String,
    },
}

/// Source of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnSource {
    Value,
    /// The decoded field with this index.
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

/// Treatment of payloads.
#[derive(Debug, Clone)]
pub(super) enum Payload {
    /// No column contains the payload.
    Ignored,
    Binary,
    Text,
    Records {
        record_length: usize,
        decoder: RecordDecoder,
    },
}

/// Columns of every row, for every format of the payload.
const HEADER_COLUMNS: [(&str, ColumnSource); 10] = [
    ("stream_id", ColumnSource::StreamId),
    ("session_id", ColumnSource::SessionId),
    ("position", ColumnSource::Position),
    ("reserved_value", ColumnSource::ReservedValue),
    ("timestamp", ColumnSource::Timestamp),
    ("channel", ColumnSource::Channel),
    ("recording_id", ColumnSource::RecordingId),
    ("term_id", ColumnSource::TermId),
    ("term_offset", ColumnSource::TermOffset),
    ("flags", ColumnSource::Flags),
];

/// Number of header columns, from the first on, that are among the default columns.
const DEFAULT_HEADER_COLUMNS: usize = 5;

impl Projection {
    /// Creates the projection to the columns with these names, for payloads of `format`. Case in names is ignored. If
    /// `names` is `None`, the columns are the columns of the payload, and then `stream_id`, `session_id`, `position`,
    /// `reserved_value` and `timestamp`. A field of a record hides a header column of the same name.
    ///
    /// # Errors
    /// A column that does not exist or is named twice, or no column at all.
    pub fn of_columns(
        names: Option<&[String]>,
        format: &ValueFormat,
    ) -> Result<Self, ProjectionError> {
        let default;
        let names = match names {
            Some(names) => names,
            None => {
                default = default_columns(format);
                &default
            }
        };
        let fields = names.iter().map(|name| field(format, name));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        if fields.is_empty() {
            let existing = existing(format).join(", ");
            return Err(ProjectionError::Empty { existing });
        }
        let mut taken = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !taken.insert(field.name())) {
            let name = twice.name().clone();
            return Err(ProjectionError::Twice { name });
        }
        Self::new(Arc::new(Schema::new(fields)), format)
    }

    /// Returns the projection with this metadata in its schema, and so in each record batch.
    #[must_use]
    pub fn with_metadata(mut self, metadata: HashMap<String, String>) -> Self {
        self.schema = Arc::new(self.schema.as_ref().clone().with_metadata(metadata));
        self
    }

    /// Creates the projection to the columns of `schema`, for payloads of `format`. Case in names is ignored. A field
    /// of a record hides a header column of the same name.
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
                    (ColumnSource::Field(decoded.len() - 1), data_type)
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
                decoder: RecordDecoder::of_fields(layout, decoded),
            },
            _ if !columns.contains(&ColumnSource::Value) => Payload::Ignored,
            ValueFormat::Binary => Payload::Binary,
            ValueFormat::Text => Payload::Text,
        };
        Ok(Self {
            schema,
            columns,
            payload,
        })
    }

    /// Returns the schema that record batches have.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns whether the columns include the arrival time.
    pub fn has_timestamp(&self) -> bool {
        self.columns.contains(&ColumnSource::Timestamp)
    }
}

/// Returns the index and type of a field of the records.
fn record_field(format: &ValueFormat, name: &str) -> Option<(usize, DataType)> {
    let ValueFormat::Records(layout) = format else {
        return None;
    };
    let fields = layout.fields();
    let number = fields
        .iter()
        .position(|field| field.name().to_lowercase() == name)?;
    Some((number, fields[number].column_type()))
}

/// Returns a column that is not a field of a record.
fn plain_column(format: &ValueFormat, name: &str) -> Option<(ColumnSource, DataType)> {
    match (name, format) {
        ("value", ValueFormat::Binary) => return Some((ColumnSource::Value, DataType::Binary)),
        ("value", ValueFormat::Text) => return Some((ColumnSource::Value, DataType::Utf8)),
        ("record_index", ValueFormat::Records(_)) => {
            return Some((ColumnSource::RecordIndex, DataType::Int32));
        }
        _ => {}
    }
    let (_, column) = HEADER_COLUMNS.iter().find(|(known, _)| *known == name)?;
    let data_type = match column {
        ColumnSource::Position | ColumnSource::ReservedValue | ColumnSource::RecordingId => {
            DataType::Int64
        }
        ColumnSource::Timestamp => timestamp_type(),
        ColumnSource::Channel => DataType::Utf8,
        ColumnSource::Flags => DataType::Int16,
        _ => DataType::Int32,
    };
    Some((*column, data_type))
}

/// Returns the column with this name, ignoring case. The case of the result's name is as in the layout or the header
/// column.
fn field(format: &ValueFormat, name: &str) -> Result<Field, ProjectionError> {
    let lower = name.to_lowercase();
    if let (Some((number, data_type)), ValueFormat::Records(layout)) =
        (record_field(format, &lower), format)
    {
        return Ok(Field::new(layout.fields()[number].name(), data_type, true));
    }
    let column =
        plain_column(format, &lower).map(|(_, data_type)| Field::new(&lower, data_type, true));
    column.ok_or_else(|| unknown(name, format))
}

/// Returns the columns of the payload, and the default header columns.
fn default_columns(format: &ValueFormat) -> Vec<String> {
    let mut names: Vec<String> = payload_columns(format).map(str::to_owned).collect();
    for (name, _) in &HEADER_COLUMNS[..DEFAULT_HEADER_COLUMNS] {
        if record_field(format, name).is_none() {
            names.push((*name).to_owned());
        }
    }
    names
}

fn payload_columns(format: &ValueFormat) -> impl Iterator<Item = &str> {
    let (fields, value) = match format {
        ValueFormat::Records(layout) => (layout.fields(), None),
        _ => (&[][..], Some("value")),
    };
    fields.iter().map(|field| field.name()).chain(value)
}

/// Returns the names of all columns.
fn existing(format: &ValueFormat) -> Vec<&str> {
    let mut existing: Vec<&str> = payload_columns(format).collect();
    existing.extend(HEADER_COLUMNS.map(|(name, _)| name));
    if matches!(format, ValueFormat::Records(_)) {
        existing.push("record_index");
    }
    existing
}

fn unknown(name: &str, format: &ValueFormat) -> ProjectionError {
    ProjectionError::Unknown {
        name: name.to_owned(),
        existing: existing(format).join(", "),
    }
}
