//! [`Filling`]: the columns of a template while messages are appended.

use aeron_sbe::read::{SbeBlocks, SbeMalformed};

use arrow_buffer::OffsetBuffer;

use super::budget::{Budget, null_length};
use super::column::BadValueOfRow;
use super::constant::constant_column;
use super::decode::{SbeBadMessage, SbeColumns, SbeDecoded, Source};
use super::repeat::Repeats;
use super::table::{GroupColumn, TableVisitor};

/// Length of messages that are decoded at a time, in bytes. It is that of the blocks of records.
pub(super) const PART_LENGTH: usize = 16 * 1024;

/// Columns while messages are appended.
pub(super) struct Filling<'a> {
    columns: &'a SbeColumns,
    root: GroupColumn,
    /// Version of each message; empty if no column has it.
    versions: Vec<u32>,
    has_versions: bool,
    budget: Budget,
}

impl<'a> Filling<'a> {
    pub(super) fn new(columns: &'a SbeColumns, selected: &[usize], budget: Budget) -> Self {
        let sources = selected.iter().filter_map(|index| columns.source(*index));
        let sources: Vec<Source> = sources.collect();
        let has = |source: Source| sources.contains(&source);
        let is_selected = |level, element| has(Source::Element(level, element));
        Self {
            columns,
            root: GroupColumn::root(columns.empty_table(&is_selected)),
            versions: Vec::new(),
            has_versions: has(Source::Version),
            budget,
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
        self.budget.grow(length * count);
        self.root.table.append(&blocks, &[], &mut self.budget)?;
        if template.is_fixed() {
            return Ok(());
        }
        let root = std::mem::take(&mut self.root);
        let mut visitor = TableVisitor::new(root, block, &mut self.budget);
        message.visit(&mut visitor).map_err(malformed)?;
        let (root, failed) = visitor.finish();
        self.root = root;
        failed.map_or(Ok(()), Err)
    }

    pub(super) fn finish(mut self, selected: &[usize]) -> Result<SbeDecoded, SbeBadMessage> {
        let columns = self.columns;
        let unknown = self.root.table.unknown();
        let path = &columns.path;
        let repeats = self.repeats();
        let rows = self.root.table.at(path).map_or(0, |table| table.rows);
        let mut budget = self.budget;
        let template = columns.template();
        let mut arrays = Vec::with_capacity(selected.len());
        let refused = |reason: String| SbeBadMessage { message: 0, reason };
        for index in selected {
            let (level, array) = match columns.source(*index) {
                Some(Source::Element(level, element)) => {
                    let table = self.root.table.at(&path[..level]);
                    let plan = columns.block_at(level);
                    (level, table.and_then(|table| table.finish(plan, element)))
                }
                Some(Source::Constant(level, field)) => {
                    let field = &columns.block_at(level).fields[field];
                    budget.add(rows, null_length(field)).map_err(refused)?;
                    (path.len(), constant_column(field, &columns.options, rows))
                }
                Some(Source::TemplateId) => {
                    (path.len(), Some(columns.numbers(vec![template.id; rows])))
                }
                Some(Source::SchemaId) => (
                    path.len(),
                    Some(columns.numbers(vec![template.schema_id; rows])),
                ),
                Some(Source::Version) => (0, Some(columns.numbers(self.versions.clone()))),
                None => continue,
            };
            arrays.extend(match (array, repeats.get(level)) {
                (Some(array), Some(repeats)) => Some(repeats.repeated(&array, &mut budget)?),
                (array, _) => array,
            });
        }
        Ok(SbeDecoded {
            columns: arrays,
            rows,
            unknown,
            budget,
        })
    }

    /// Returns, for each level above the rows, how often each of its values is repeated for the rows.
    fn repeats(&mut self) -> Vec<Repeats> {
        let path = &self.columns.path;
        let mut repeats = Vec::with_capacity(path.len());
        let mut to_rows: Option<OffsetBuffer<i32>> = None;
        for level in (0..path.len()).rev() {
            let table = self.root.table.at(&path[..level]);
            let Some(offsets) = table.and_then(|table| table.offsets_of(path[level])) else {
                continue;
            };
            let offsets = match to_rows {
                None => offsets,
                Some(inner) => {
                    let ends = offsets.iter().map(|end| inner[*end as usize]);
                    OffsetBuffer::new(ends.collect())
                }
            };
            repeats.push(Repeats::new(&offsets));
            to_rows = Some(offsets);
        }
        repeats.reverse();
        repeats
    }
}
