//! [`Filling`]: the columns of a template while messages are appended.

use aeron_sbe::read::{SbeBlocks, SbeMalformed};
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::ArrowError;

use super::column::BadValueOfRow;
use super::decode::{SbeBadMessage, SbeColumns, SbeDecoded, Source};
use super::table::{Element, GroupColumn, TableVisitor};

/// Length of messages that are decoded at a time, in bytes. It is that of the blocks of records.
pub(super) const PART_LENGTH: usize = 16 * 1024;

/// Columns while messages are appended.
pub(super) struct Filling<'a> {
    columns: &'a SbeColumns,
    root: GroupColumn,
    /// Version of each message; empty if no column has it.
    versions: Vec<u32>,
    has_versions: bool,
}

impl<'a> Filling<'a> {
    pub(super) fn new(columns: &'a SbeColumns, selected: &[usize]) -> Self {
        let sources = selected.iter().filter_map(|index| columns.source(*index));
        let sources: Vec<Source> = sources.collect();
        let has = |source: Source| sources.contains(&source);
        let is_selected = |element: Element| match element {
            Element::Group(index) if columns.group.is_some() => columns.group == Some(index),
            other => has(Source::Root(other)),
        };
        Self {
            columns,
            root: GroupColumn::root(columns.empty_table(&is_selected)),
            versions: Vec::new(),
            has_versions: has(Source::Version),
        }
    }

    /// Makes room for this number of messages.
    pub(super) fn reserve(&mut self, messages: usize) {
        self.root.table.reserve(messages);
    }

    /// Appends messages as [`append`](Self::append), a part of them at a time, so that a part stays in the innermost
    /// cache while all its columns are read.
    pub(super) fn append_all(
        &mut self,
        bytes: &[u8],
        length: usize,
        count: usize,
    ) -> Result<(), BadValueOfRow> {
        let at_once = (PART_LENGTH / length.max(1)).max(1);
        for first in (0..count).step_by(at_once) {
            let part = at_once.min(count - first);
            let bytes = &bytes[first * length..(first + part) * length];
            self.append(bytes, length, part)
                .map_err(|bad| BadValueOfRow {
                    row: first + bad.row,
                    ..bad
                })?;
        }
        Ok(())
    }

    /// Appends `count` messages with the same length and the same header. There are several only if the template has
    /// neither groups nor data.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        length: usize,
        count: usize,
    ) -> Result<(), BadValueOfRow> {
        let malformed = |malformed: SbeMalformed| BadValueOfRow {
            row: 0,
            reason: malformed.to_string(),
        };
        let template = self.columns.template();
        let message = template.open(&bytes[..length]).map_err(malformed)?;
        let block = message.block();
        if self.has_versions {
            let length = self.versions.len() + count;
            self.versions.resize(length, block.version);
        }
        let after_header = &bytes[template.header.length..];
        let block_length = block.bytes.len();
        let blocks = SbeBlocks::new(after_header, length, block_length, count, block.version);
        debug_assert!(
            blocks.is_some(),
            "the block of each message is in its bytes"
        );
        let blocks = blocks.unwrap_or(SbeBlocks::none(block.version));
        self.root.table.append(&blocks, &[])?;
        if template.is_fixed() {
            return Ok(());
        }
        let root = std::mem::take(&mut self.root);
        let mut visitor = TableVisitor::new(root, block);
        message.visit(&mut visitor).map_err(malformed)?;
        let (root, failed) = visitor.finish();
        self.root = root;
        failed.map_or(Ok(()), Err)
    }

    pub(super) fn finish(mut self, selected: &[usize]) -> Result<SbeDecoded, SbeBadMessage> {
        let columns = self.columns;
        let plan = &columns.template().block;
        let unknown = self.root.table.unknown();
        let messages = self.root.table.rows;
        let entries = columns.group.and_then(|index| {
            let group = self.root.table.group_mut(index)?;
            Some(group.entries(&plan.groups[index].block))
        });
        let parents = entries.as_ref().map(|(offsets, _)| parents(offsets));
        let rows = parents.as_ref().map_or(messages, UInt64Array::len);
        let of_message = |array: ArrayRef| match &parents {
            None => Ok(array),
            Some(parents) => repeated(&array, parents),
        };
        let template = columns.template();
        let mut arrays = Vec::with_capacity(selected.len());
        for index in selected {
            let Some(source) = columns.source(*index) else {
                continue;
            };
            let array = match source {
                Source::Entry(number) => {
                    let entries = entries.as_ref().map(|(_, entries)| entries);
                    entries.map(|entries| entries.column(number).clone())
                }
                Source::Root(element) => self
                    .root
                    .table
                    .finish(plan, element)
                    .map(of_message)
                    .transpose()?,
                Source::TemplateId => Some(columns.numbers(vec![template.id; rows])),
                Source::SchemaId => Some(columns.numbers(vec![template.schema_id; rows])),
                Source::Version => {
                    let versions = columns.numbers(self.versions.clone());
                    Some(of_message(versions)?)
                }
            };
            arrays.extend(array);
        }
        Ok(SbeDecoded {
            columns: arrays,
            rows,
            unknown,
        })
    }
}

/// Returns the index of the message of each entry.
fn parents(offsets: &[i32]) -> UInt64Array {
    let mut parents = Vec::with_capacity(offsets.last().map_or(0, |last| *last as usize));
    for (message, range) in offsets.windows(2).enumerate() {
        let count = (range[1] - range[0]) as usize;
        parents.resize(parents.len() + count, message as u64);
    }
    parents.into()
}

/// Returns the values of the messages for their entries.
fn repeated(values: &ArrayRef, parents: &UInt64Array) -> Result<ArrayRef, SbeBadMessage> {
    let refused = |reason: String| SbeBadMessage { message: 0, reason };
    let length = values.get_array_memory_size() / values.len().max(1);
    if length.saturating_mul(parents.len()) > MAX_REPEATED {
        return Err(refused(format!(
            "the values of messages, repeated for their entries, take more than {MAX_REPEATED} bytes: read fewer columns"
        )));
    }
    let taken = arrow_select::take::take(values.as_ref(), parents, None);
    taken.map_err(|error: ArrowError| refused(error.to_string()))
}

/// Most bytes of a column whose values are repeated.
const MAX_REPEATED: usize = 1 << 30;
