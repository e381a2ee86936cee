//! [`Projection`]: the columns of rows, exactly as in a given schema.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::format::{PayloadDecoder, ValueFormat};
use super::malformed::{CORRUPT_RECORD, Mode};
use crate::layout::timestamp_type;

/// The columns of record batches: a selection of the existing columns, in any order, nullable or not.
#[derive(Debug, Clone)]
pub struct Projection {
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<ColumnSource>,
    pub(super) payload: Arc<dyn PayloadDecoder>,
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
    /// The payload has a field of the name that the column of malformed messages needs.
    #[error("malformed messages cannot be kept: the messages have a field '{CORRUPT_RECORD}'")]
    Corrupt,
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
    /// The decoded column of the payload with this index.
    Payload(usize),
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
    CorruptRecord,
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
    /// `reserved_value` and `timestamp`. A field of a record hides a header column of the same name. The column
    /// [`CORRUPT_RECORD`] exists only in the mode [`Mode::Permissive`], and is the last of all columns.
    ///
    /// # Errors
    /// A column that does not exist or is named twice, or no column at all.
    pub fn of_columns(
        names: Option<&[String]>,
        format: &ValueFormat,
        mode: Mode,
    ) -> Result<Self, ProjectionError> {
        let available = AvailableColumns::of(format, mode)?;
        let fields = match names {
            Some(names) => available.named(names)?,
            None => available.default_fields(),
        };
        if fields.is_empty() {
            let existing = available.names();
            return Err(ProjectionError::Empty { existing });
        }
        let mut taken = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !taken.insert(field.name())) {
            let name = twice.name().clone();
            return Err(ProjectionError::Twice { name });
        }
        Self::new(Arc::new(Schema::new(fields)), format, mode)
    }

    /// Returns the projection with this metadata in its schema, and so in each record batch.
    #[must_use]
    pub fn with_metadata(mut self, metadata: HashMap<String, String>) -> Self {
        self.schema = Arc::new(self.schema.as_ref().clone().with_metadata(metadata));
        self
    }

    /// Creates the projection to the columns of `schema`, for payloads of `format`. Case in names is ignored. A field
    /// of a record hides a header column of the same name. The columns are those of
    /// [`of_columns`](Self::of_columns).
    ///
    /// # Errors
    /// A column that does not exist, or has another type.
    pub fn new(
        schema: SchemaRef,
        format: &ValueFormat,
        mode: Mode,
    ) -> Result<Self, ProjectionError> {
        let available = AvailableColumns::of(format, mode)?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut decoded = Vec::new();
        for field in schema.fields() {
            let (column, expected) = available.find(field.name())?;
            if field.data_type() != expected.data_type() {
                return Err(ProjectionError::Type {
                    name: field.name().clone(),
                    found: field.data_type().clone(),
                    expected: expected.data_type().clone(),
                });
            }
            columns.push(match column {
                ColumnSource::Payload(number) => {
                    decoded.push(number);
                    ColumnSource::Payload(decoded.len() - 1)
                }
                header => header,
            });
        }
        Ok(Self {
            schema,
            columns,
            payload: format.payload().decoder(decoded),
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

/// All columns for payloads of a format.
struct AvailableColumns {
    /// Columns of the payload, the header columns that they do not hide, and the columns that only callers name.
    columns: Vec<(ColumnSource, Field)>,
    /// Number of columns of the payload that are among the default columns.
    defaults: usize,
}

impl AvailableColumns {
    fn of(format: &ValueFormat, mode: Mode) -> Result<Self, ProjectionError> {
        let format = format.payload();
        let (fields, more) = (format.fields(), format.more_fields());
        let defaults = fields.len();
        let of_payload = |(number, field)| (ColumnSource::Payload(number), field);
        let mut columns: Vec<_> = fields.into_iter().enumerate().map(of_payload).collect();
        let index = ("record_index", ColumnSource::RecordIndex);
        let index = format.has_record_index().then_some(index);
        for (name, column) in HEADER_COLUMNS.into_iter().chain(index) {
            if position(&columns, name).is_none() {
                columns.push((column, Field::new(name, column.header_type(), true)));
            }
        }
        // Columns that only callers name do not hide the columns of the header: they may be constants of any name.
        for (number, field) in more.into_iter().enumerate() {
            if position(&columns, field.name()).is_none() {
                columns.push(of_payload((defaults + number, field)));
            }
        }
        if mode == Mode::Permissive {
            if position(&columns, CORRUPT_RECORD).is_some() {
                return Err(ProjectionError::Corrupt);
            }
            let field = Field::new(CORRUPT_RECORD, DataType::Binary, true);
            columns.push((ColumnSource::CorruptRecord, field));
        }
        Ok(Self { columns, defaults })
    }

    /// Returns the column with this name, ignoring case.
    fn find(&self, name: &str) -> Result<(ColumnSource, &Field), ProjectionError> {
        let place = position(&self.columns, name).ok_or_else(|| ProjectionError::Unknown {
            name: name.to_owned(),
            existing: self.names(),
        })?;
        let (column, field) = &self.columns[place];
        Ok((*column, field))
    }

    fn named(&self, names: &[String]) -> Result<Vec<Field>, ProjectionError> {
        let fields = names.iter().map(|name| self.find(name));
        fields.map(|found| Ok(found?.1.clone())).collect()
    }

    /// Returns the columns of the payload, the default header columns, and the column of malformed rows.
    fn default_fields(&self) -> Vec<Field> {
        let headers = HEADER_COLUMNS[..DEFAULT_HEADER_COLUMNS].iter();
        let headers: Vec<_> = headers.map(|(_, column)| *column).collect();
        let is_default = |column: ColumnSource| match column {
            ColumnSource::Payload(number) => number < self.defaults,
            ColumnSource::CorruptRecord => true,
            header => headers.contains(&header),
        };
        let columns = self.columns.iter();
        let columns = columns.filter(|(column, _)| is_default(*column));
        columns.map(|(_, field)| field.clone()).collect()
    }

    fn names(&self) -> String {
        let names = self.columns.iter().map(|(_, field)| field.name().as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

fn position(columns: &[(ColumnSource, Field)], name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let mut columns = columns.iter();
    columns.position(|(_, field)| field.name().to_lowercase() == name)
}

impl ColumnSource {
    /// Returns the type of a header column.
    fn header_type(self) -> DataType {
        match self {
            Self::Position | Self::ReservedValue | Self::RecordingId => DataType::Int64,
            Self::Timestamp => timestamp_type(),
            Self::Channel => DataType::Utf8,
            Self::Flags => DataType::Int16,
            Self::CorruptRecord => DataType::Binary,
            _ => DataType::Int32,
        }
    }
}
