//! [`SbeEncoder`]: encodes the rows of record batches as messages of a template.

use std::borrow::Cow;
use std::sync::Arc;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeBlockPlan, SbeField, SbePlan, SbeTemplate};
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;

use super::SbeColumnsError;
use super::decode::unknown_template;
use super::fixed;
use super::values::{ValueReader, check_names, list_range, value_reader};
use crate::write::{
    ENCODED_ROWS, EncodedRows, Payloads, RESERVED_VALUE, RowEncoding, RowSendError, STREAM_ID,
};

/// Encoder of rows as messages of one template. Immutable.
#[derive(Debug, Clone)]
pub struct SbeEncoder {
    plan: Arc<SbePlan>,
    template: usize,
}

impl SbeEncoder {
    /// Creates the encoder of the template with this name.
    ///
    /// # Errors
    /// The template does not exist.
    pub fn new(plan: &Arc<SbePlan>, name: &str) -> Result<Self, SbeColumnsError> {
        let mut templates = plan.templates.iter();
        let found = templates.position(|template| template.name == name);
        Ok(Self {
            template: found.ok_or_else(|| unknown_template(plan, name))?,
            plan: Arc::clone(plan),
        })
    }

    /// Returns the template.
    pub fn template(&self) -> &SbeTemplate {
        &self.plan.templates[self.template]
    }

    /// Encodes all rows; `encoded` is overwritten. Each column has the name of a field, a group or data; a null is a
    /// null in the message.
    ///
    /// # Errors
    /// A column is not in the template or has an unsuitable type, or a value does not fit its field.
    pub fn encode(
        &self,
        rows: &RecordBatch,
        encoded: &mut EncodedRows,
    ) -> Result<(), RowSendError> {
        let template = self.template();
        let EncodedRows { bytes, offsets } = encoded;
        bytes.clear();
        offsets.clear();
        offsets.push(0);
        let whole = |reason| RowSendError { row: None, reason };
        let columns = StructArray::from(rows.clone());
        if fixed::is_by_column(template) {
            return encode_by_column(template, &columns, encoded);
        }
        let reader = BlockReader::new(&template.block, &columns).map_err(whole)?;
        for row in 0..rows.num_rows() {
            let in_row = |reason| RowSendError {
                row: Some(row),
                reason,
            };
            let record = reader.record(row).map_err(in_row)?;
            let written = template.encode(&record, bytes);
            written.map_err(|error| in_row(error.to_string()))?;
            let end = i32::try_from(bytes.len());
            let end = end.map_err(|_| in_row("all messages are longer than 2 GiB".to_owned()))?;
            offsets.push(end);
        }
        Ok(())
    }
}

/// Encodes rows of which all messages have the same length.
fn encode_by_column(
    template: &SbeTemplate,
    columns: &StructArray,
    encoded: &mut EncodedRows,
) -> Result<(), RowSendError> {
    let whole = |reason| RowSendError { row: None, reason };
    check_columns(&template.block, columns).map_err(whole)?;
    let length = template.header.length + template.block.block_length;
    let all = columns.len().saturating_mul(length);
    if i32::try_from(all).is_err() {
        return Err(whole("all messages are longer than 2 GiB".to_owned()));
    }
    let written = fixed::encode(template, columns, &mut encoded.bytes);
    written.map_err(|(row, reason)| RowSendError { row, reason })?;
    // All offsets fit, because the last one does.
    let ends = (1..=columns.len()).map(|count| (count * length) as i32);
    encoded.offsets.extend(ends);
    Ok(())
}

impl RowEncoding for SbeEncoder {
    fn rows_at_once(&self) -> usize {
        ENCODED_ROWS
    }

    fn payloads<'a>(
        &self,
        rows: &'a RecordBatch,
        encoded: &'a mut EncodedRows,
    ) -> Result<Payloads<'a>, RowSendError> {
        let schema = rows.schema_ref();
        let is_sent = |index: &usize| {
            let name = schema.field(*index).name();
            name != STREAM_ID && name != RESERVED_VALUE
        };
        let sent: Vec<usize> = (0..rows.num_columns()).filter(is_sent).collect();
        let sent = rows.project(&sent).map_err(|error| RowSendError {
            row: None,
            reason: error.to_string(),
        })?;
        self.encode(&sent, encoded)?;
        Ok(encoded.payloads())
    }
}

/// Reads the rows of columns as the values of a block.
struct BlockReader<'a> {
    fields: Vec<Option<ValueReader<'a>>>,
    groups: Vec<Option<GroupReader<'a>>>,
    data: Vec<Option<(&'a ArrayRef, DataReader<'a>)>>,
}

/// Reads the bytes of data in a row.
type DataReader<'a> = Box<dyn Fn(usize) -> Option<Cow<'a, [u8]>> + 'a>;

struct GroupReader<'a> {
    name: &'a str,
    lists: &'a ArrayRef,
    structures: &'a StructArray,
    entries: BlockReader<'a>,
}

impl<'a> BlockReader<'a> {
    fn new(plan: &'a SbeBlockPlan, columns: &'a StructArray) -> Result<Self, String> {
        check_columns(plan, columns)?;
        let field = |field: &'a SbeField| {
            let column = columns.column_by_name(&field.name);
            column.map(|column| value_reader(field, column)).transpose()
        };
        let group = |group: &'a aeron_sbe::plan::SbeGroup| {
            let Some(lists) = columns.column_by_name(&group.name) else {
                return Ok(None);
            };
            let entries = entries_of(lists).ok_or_else(|| {
                format!("group '{}' is no column of lists of structures", group.name)
            })?;
            let structures = entries;
            let entries = BlockReader::new(&group.block, entries)
                .map_err(|reason| format!("group '{}': {reason}", group.name))?;
            Ok(Some(GroupReader {
                name: &group.name,
                lists,
                structures,
                entries,
            }))
        };
        let data = |data: &'a aeron_sbe::plan::SbeData| {
            let column = columns.column_by_name(&data.name);
            let column = column.map(|column| Ok((column, data_reader(data, column)?)));
            column.transpose()
        };
        Ok(Self {
            fields: plan.fields.iter().map(field).collect::<Result<_, _>>()?,
            groups: plan
                .groups
                .iter()
                .map(group)
                .collect::<Result<_, String>>()?,
            data: plan.data.iter().map(data).collect::<Result<_, String>>()?,
        })
    }

    fn record(&self, row: usize) -> Result<SbeRecord<'a>, String> {
        let fields = self.fields.iter();
        let fields =
            fields.map(|field| field.as_ref().map_or(Ok(SbeValue::Null), |read| read(row)));
        let groups = self.groups.iter().map(|group| match group {
            Some(group) if group.lists.is_valid(row) => {
                let range = list_range(group.lists.as_ref(), row);
                let first = range.start;
                let entries = range.map(|entry| group.entry(entry, entry - first));
                entries.collect()
            }
            _ => Ok(Vec::new()),
        });
        let data = self.data.iter().map(|data| match data {
            Some((column, read)) if column.is_valid(row) => match read(row) {
                Some(bytes) => Ok(Some(bytes)),
                None => Err("a text is not in the character set of its data".to_owned()),
            },
            _ => Ok(None),
        });
        Ok(SbeRecord {
            fields: fields.collect::<Result<_, _>>()?,
            groups: groups.collect::<Result<_, _>>()?,
            data: data.collect::<Result<_, _>>()?,
        })
    }
}

impl<'a> GroupReader<'a> {
    /// Returns the entry at an index of all entries. `number` is its index in its message, for errors.
    fn entry(&self, entry: usize, number: usize) -> Result<SbeRecord<'a>, String> {
        let in_entry = |reason: &str| format!("group '{}', entry {number}: {reason}", self.name);
        if self.structures.is_null(entry) {
            return Err(in_entry("the entry is null"));
        }
        let record = self.entries.record(entry);
        record.map_err(|reason| in_entry(&reason))
    }
}

fn check_columns(plan: &SbeBlockPlan, columns: &StructArray) -> Result<(), String> {
    check_names(columns, |name| {
        let is_data = plan.data.iter().any(|data| data.name == name);
        plan.field(name).is_some() || plan.group(name).is_some() || is_data
    })
}

fn entries_of(lists: &ArrayRef) -> Option<&StructArray> {
    let entries = match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().values(),
        DataType::LargeList(_) => lists.as_list::<i64>().values(),
        DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
        _ => return None,
    };
    entries.as_struct_opt()
}

fn data_reader<'a>(
    data: &'a aeron_sbe::plan::SbeData,
    column: &'a ArrayRef,
) -> Result<DataReader<'a>, String> {
    let set = data.layout.character_set;
    macro_rules! texts {
        ($texts:expr) => {{
            let texts = $texts;
            Box::new(move |row| match set {
                Some(set) => set.encode(texts.value(row)),
                None => Some(Cow::Borrowed(texts.value(row).as_bytes())),
            })
        }};
    }
    macro_rules! bytes {
        ($bytes:expr) => {{
            let bytes = $bytes;
            Box::new(move |row| Some(Cow::Borrowed(bytes.value(row))))
        }};
    }
    Ok(match column.data_type() {
        DataType::Utf8 => texts!(column.as_string::<i32>()),
        DataType::LargeUtf8 => texts!(column.as_string::<i64>()),
        DataType::Utf8View => texts!(column.as_string_view()),
        DataType::Binary => bytes!(column.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(column.as_binary::<i64>()),
        DataType::BinaryView => bytes!(column.as_binary_view()),
        other => return Err(format!("data '{}' cannot be {other}", data.name)),
    })
}

/// Returns an integer as a value.
pub(super) fn integer(number: i64) -> SbeValue<'static> {
    SbeValue::Number(SbeNumber::Signed(number))
}
