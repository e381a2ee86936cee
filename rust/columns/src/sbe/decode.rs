//! [`SbeColumns`]: the columns of a template, and the decoding of messages to them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aeron_sbe::plan::{SbeGroup, SbePlan, SbeTemplate};
use aeron_sbe::read::{SbeBlocks, SbeHeader, SbeMalformed, SbeVisitor};
use arrow_array::{Array, ArrayRef, Int64Array, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Field};

use super::column::BadValueOfRow;
use super::options::SbeColumnOptions;
use super::table::{BlockTable, Element, GroupColumn, TableVisitor};

/// The columns of a template. Immutable.
#[derive(Clone)]
pub struct SbeColumns {
    plan: Arc<SbePlan>,
    template: usize,
    options: SbeColumnOptions,
    /// Index of the group whose entries are rows.
    group: Option<usize>,
    columns: Vec<Column>,
    /// Number of columns that are among the default columns.
    defaults: usize,
    /// Header of a message of the schema's own version and block length.
    own_header: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Column {
    field: Field,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// An element of the root block.
    Root(Element),
    /// The column with this index of the entries that are rows.
    Entry(usize),
    TemplateId,
    SchemaId,
    Version,
}

/// The columns for messages.
#[derive(Debug)]
pub struct SbeDecoded {
    /// The columns in the order in which they were asked for.
    pub columns: Vec<ArrayRef>,
    /// Number of rows.
    pub rows: usize,
    /// Number of values of enums that the schema does not know. They are null.
    pub unknown: u64,
}

/// A message that no row can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SbeBadMessage {
    /// Index of the message.
    pub message: usize,
    /// The problem.
    pub reason: String,
}

/// Reason why a template cannot become columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SbeColumnsError {
    /// The schema has no such template.
    #[error("the schema has no message '{name}': it has {existing}")]
    Template {
        /// Name of the template.
        name: String,
        /// Names of all templates.
        existing: String,
    },
    /// The template has no such group.
    #[error("message '{template}' has no group '{name}': it has {existing}")]
    Group {
        /// Name of the template.
        template: String,
        /// Name of the group.
        name: String,
        /// Names of the groups.
        existing: String,
    },
}

impl SbeColumns {
    /// Creates the columns of the template with this name. With `group`, each entry of this group is a row, which has
    /// the fields and data of the message too.
    ///
    /// # Errors
    /// The template or the group does not exist.
    pub fn new(
        plan: &Arc<SbePlan>,
        name: &str,
        group: Option<&str>,
        options: SbeColumnOptions,
    ) -> Result<Self, SbeColumnsError> {
        let templates = &plan.templates;
        let found = templates.iter().position(|template| template.name == name);
        let template = found.ok_or_else(|| SbeColumnsError::Template {
            name: name.to_owned(),
            existing: joined(templates.iter().map(|template| template.name.as_str())),
        })?;
        let block = &templates[template].block;
        let group = group.map(|group| {
            let found = block.groups.iter().position(|known| known.name == group);
            found.ok_or_else(|| SbeColumnsError::Group {
                template: name.to_owned(),
                name: group.to_owned(),
                existing: joined(block.groups.iter().map(|group| group.name.as_str())),
            })
        });
        let mut columns = Self {
            own_header: own_header(&templates[template]),
            plan: Arc::clone(plan),
            template,
            options,
            group: group.transpose()?,
            columns: Vec::new(),
            defaults: 0,
        };
        columns.add_all();
        Ok(columns)
    }

    /// Returns the template.
    pub fn template(&self) -> &SbeTemplate {
        &self.plan.templates[self.template]
    }

    /// Returns the columns of fields, groups and data. All of them are nullable.
    pub fn fields(&self) -> Vec<Field> {
        let columns = self.columns[..self.defaults].iter();
        columns.map(|column| column.field.clone()).collect()
    }

    /// Returns the columns of the header, which a caller gets only if it asks for them: `template_id`, `schema_id` and
    /// `version`. Their indexes follow those of [`fields`](Self::fields).
    pub fn header_fields(&self) -> Vec<Field> {
        let columns = self.columns[self.defaults..].iter();
        columns.map(|column| column.field.clone()).collect()
    }

    /// Returns whether each row is an entry of a group.
    pub fn has_entries(&self) -> bool {
        self.group.is_some()
    }

    /// Returns the number of rows of a message; `None` if the message has another template or schema.
    ///
    /// # Errors
    /// The message is malformed.
    #[inline]
    pub fn rows(&self, message: &[u8]) -> Result<Option<usize>, SbeMalformed> {
        let template = self.template();
        let own_length = self.own_header.len() + template.block.block_length;
        if message.len() == own_length
            && message.starts_with(&self.own_header)
            && template.is_fixed()
        {
            return Ok(Some(1));
        }
        self.rows_checked(message)
    }

    fn rows_checked(&self, message: &[u8]) -> Result<Option<usize>, SbeMalformed> {
        let template = self.template();
        let header = SbeHeader::read(&template.header, message)?;
        if header.template_id != u64::from(template.id)
            || header.schema_id != u64::from(template.schema_id)
        {
            return Ok(None);
        }
        let message = template.open(message)?;
        match self.group {
            Some(group) => {
                let mut entries = EntryCount {
                    group: &template.block.groups[group],
                    count: 0,
                    depth: 0,
                };
                message.visit(&mut entries)?;
                Ok(Some(entries.count))
            }
            None => {
                if !template.is_fixed() {
                    message.check()?;
                }
                Ok(Some(1))
            }
        }
    }

    /// Decodes messages to the columns with these indexes. The messages are one after the other in `bytes`: the first
    /// begins at `begin`, and each other where the one before it ends. [`rows`](Self::rows) has accepted each of them.
    ///
    /// # Errors
    /// A message that no row can hold. It is not always the first such message.
    pub fn decode(
        &self,
        bytes: &[u8],
        begin: usize,
        ends: impl Iterator<Item = usize>,
        columns: &[usize],
    ) -> Result<SbeDecoded, SbeBadMessage> {
        let mut filling = Filling::new(self, columns);
        let mut ends = ends.peekable();
        let (mut begin, mut number) = (begin, 0);
        while let Some(end) = ends.next() {
            let range = begin..end;
            let length = range.len();
            let mut count = 1;
            begin = end;
            if self.template().is_fixed() {
                let header = self.own_header.len().min(length);
                let first = &bytes[range.start..range.start + header];
                while let Some(next) = ends
                    .next_if(|next| *next - begin == length && bytes[begin..].starts_with(first))
                {
                    begin = next;
                    count += 1;
                }
            }
            filling
                .append(&bytes[range.start..begin], length, count)
                .map_err(|bad| SbeBadMessage {
                    message: number + bad.row,
                    reason: bad.reason,
                })?;
            number += count;
        }
        filling.finish(columns)
    }

    fn add_all(&mut self) {
        let template = Arc::clone(&self.plan);
        let plan = &template.templates[self.template].block;
        let mut table = self.empty_table(&|_| true);
        for element in Element::all(plan) {
            if matches!(element, Element::Group(_)) && self.group.is_some() {
                continue;
            }
            if let Some(empty) = table.finish(plan, element) {
                self.add(element.name(plan), &empty, Source::Root(element));
            }
        }
        if let Some(index) = self.group
            && let Some(group) = table.group_mut(index)
        {
            let (_, entries) = group.entries(&plan.groups[index].block);
            let name = plan.groups[index].name.clone();
            for (number, field) in entries.fields().iter().enumerate() {
                let is_taken = self.has(field.name());
                let prefixed = format!("{name}_{}", field.name());
                let field_name = if is_taken { &prefixed } else { field.name() };
                self.add(field_name, entries.column(number), Source::Entry(number));
            }
        }
        self.defaults = self.columns.len();
        for (name, source) in [
            ("template_id", Source::TemplateId),
            ("schema_id", Source::SchemaId),
            ("version", Source::Version),
        ] {
            if !self.has(name) {
                self.add(name, &self.numbers(Vec::new()), source);
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.field.name().eq_ignore_ascii_case(name))
    }

    fn add(&mut self, name: &str, empty: &ArrayRef, source: Source) {
        let field = Field::new(name, empty.data_type().clone(), true);
        self.columns.push(Column { field, source });
    }

    fn empty_table(&self, is_selected: &dyn Fn(Element) -> bool) -> BlockTable {
        BlockTable::new(&[&self.template().block], &self.options, is_selected)
    }

    /// Returns a column of the header.
    fn numbers(&self, values: Vec<u32>) -> ArrayRef {
        match self.options.for_spark {
            true => Arc::new(Int64Array::from_iter_values(
                values.into_iter().map(i64::from),
            )),
            false => Arc::new(UInt32Array::from(values)),
        }
    }
}

impl fmt::Debug for SbeColumns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.columns.iter().map(|column| column.field.name());
        formatter
            .debug_struct("SbeColumns")
            .field("template", &self.template().name)
            .field("columns", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Returns the header that a writer of this version writes.
fn own_header(template: &SbeTemplate) -> Vec<u8> {
    let mut header = vec![0; template.header.length];
    let written = template.write_header(&mut header);
    debug_assert!(written.is_ok(), "the header has its length");
    header
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Counts the entries of a group of the root block.
struct EntryCount<'a> {
    group: &'a SbeGroup,
    count: usize,
    depth: usize,
}

impl<'a> SbeVisitor<'a> for EntryCount<'a> {
    fn begin_group(&mut self, group: &'a SbeGroup, count: usize) {
        if self.depth == 0 && std::ptr::eq(group, self.group) {
            self.count = count;
        }
        self.depth += 1;
    }

    fn end_group(&mut self, _: &'a SbeGroup) {
        self.depth -= 1;
    }
}

/// Columns while messages are appended.
struct Filling<'a> {
    columns: &'a SbeColumns,
    root: GroupColumn,
    /// Version of each message; empty if no column has it.
    versions: Vec<u32>,
    has_versions: bool,
}

impl<'a> Filling<'a> {
    fn new(columns: &'a SbeColumns, selected: &[usize]) -> Self {
        let sources = selected
            .iter()
            .filter_map(|index| columns.columns.get(*index));
        let sources: Vec<Source> = sources.map(|column| column.source).collect();
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

    /// Appends `count` messages with the same length and the same header. There are several only if the template has
    /// neither groups nor data.
    fn append(&mut self, bytes: &[u8], length: usize, count: usize) -> Result<(), BadValueOfRow> {
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

    fn finish(mut self, selected: &[usize]) -> Result<SbeDecoded, SbeBadMessage> {
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
            let Some(column) = columns.columns.get(*index) else {
                continue;
            };
            let array = match column.source {
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
        let Range { start, end } = range[0]..range[1];
        parents.resize(parents.len() + (end - start) as usize, message as u64);
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
