//! [`SbeColumns`]: the columns of a template, and the decoding of messages to them.

use std::fmt;
use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbePlan, SbeTemplate};
use aeron_sbe::read::{SbeHeader, SbeMalformed};
use arrow_array::{ArrayRef, Int64Array, UInt32Array};
use arrow_schema::Field;

use super::budget::Budget;
use super::column::BadValueOfRow;
use super::entries::EntryCount;
use super::fill::{Filling, PART_LENGTH};
use super::group_path::{groups_of, path_of};
use super::options::SbeColumnOptions;
use super::table::{BlockTable, Element};

/// The columns of a template. Immutable.
#[derive(Clone)]
pub struct SbeColumns {
    pub(super) plan: Arc<SbePlan>,
    pub(super) template: usize,
    pub(super) options: SbeColumnOptions,
    /// Path to the group that gives the rows: the index of each group from the root block on. Empty if each message is
    /// a row.
    pub(super) path: Vec<usize>,
    pub(super) columns: Vec<Column>,
    /// Number of columns that are among the default columns.
    pub(super) defaults: usize,
    /// Header of a message of the schema's own version and block length.
    own_header: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// An element of the block at a level of the path: 0 for the root block.
    Element(usize, Element),
    /// The constant field with this index of the block at a level of the path.
    Constant(usize, usize),
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
    /// Number of values of enums that the schema does not know, which are null, and of sets with bits that it does not
    /// know.
    pub unknown: u64,
    /// Budget that the next messages of the same call have.
    pub(super) budget: Budget,
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
    /// Two columns would have the same name. Spark ignores case.
    #[error(
        "message '{template}' would have two columns of one name: '{one}' and '{two}'; read entries without \
             `group`, or rename the element"
    )]
    SameName {
        /// Name of the template.
        template: String,
        /// Name of a column.
        one: String,
        /// Name of another column.
        two: String,
    },
}

impl SbeColumns {
    /// Creates the columns of the template with this name. With `group`, each entry of this group is a row, which has
    /// the fields and data of the message too. A path such as `legs.fills` names a group in a group: a row has the
    /// fields and data of all entries around it. The path may begin with the name of the template.
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
        let template = found.ok_or_else(|| unknown_template(plan, name))?;
        let path = group.map(|group| path_of(&templates[template], group));
        let mut columns = Self {
            own_header: own_header(&templates[template]),
            plan: Arc::clone(plan),
            template,
            options,
            path: path.transpose()?.unwrap_or_default(),
            columns: Vec::new(),
            defaults: 0,
        };
        columns.add_all()?;
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

    /// Returns the columns that a caller gets only if it asks for them: constants, and `template_id`, `schema_id` and
    /// `version` of the header. Their indexes follow those of [`fields`](Self::fields).
    pub fn header_fields(&self) -> Vec<Field> {
        let columns = self.columns[self.defaults..].iter();
        columns.map(|column| column.field.clone()).collect()
    }

    /// Returns whether each row is an entry of a group.
    pub fn has_entries(&self) -> bool {
        !self.path.is_empty()
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
            && begins_with(message, &self.own_header)
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
        if self.has_entries() {
            let mut entries = EntryCount::new(groups_of(&template.block, &self.path));
            message.visit(&mut entries)?;
            return Ok(Some(entries.count));
        }
        if !template.is_fixed() {
            message.check()?;
        }
        Ok(Some(1))
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
        self.decode_within(Budget::default(), bytes, begin, ends, columns)
    }

    /// Decodes messages as [`decode`](Self::decode), after other messages of the same call.
    pub(super) fn decode_within(
        &self,
        budget: Budget,
        bytes: &[u8],
        begin: usize,
        ends: impl Iterator<Item = usize>,
        columns: &[usize],
    ) -> Result<SbeDecoded, SbeBadMessage> {
        let mut filling = Filling::new(self, columns, budget);
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
                    .next_if(|next| *next - begin == length && begins_with(&bytes[begin..], first))
                {
                    begin = next;
                    count += 1;
                }
            }
            filling
                .append_all(&bytes[range.start..begin], length, count)
                .map_err(|bad| SbeBadMessage {
                    message: number + bad.row,
                    reason: bad.reason,
                })?;
            number += count;
        }
        filling.finish(columns)
    }

    /// Returns the source of the column with this index.
    pub(super) fn source(&self, column: usize) -> Option<Source> {
        Some(self.columns.get(column)?.source)
    }

    /// Decodes messages of this length, one after the other, if all of them have the header of the schema's version.
    /// Returns `None` if not, or if the template has groups or data.
    pub(super) fn decode_own(
        &self,
        messages: &[u8],
        length: usize,
        columns: &[usize],
    ) -> Option<Result<SbeDecoded, SbeBadMessage>> {
        let template = self.template();
        let own_length = self.own_header.len() + template.block.block_length;
        if length != own_length || !template.is_fixed() {
            return None;
        }
        let mut filling = Filling::new(self, columns, Budget::default());
        filling.reserve(messages.len() / length);
        // The headers of a part are compared when its messages are read into the cache anyway.
        let part_length = (PART_LENGTH / length).max(1) * length;
        let filled = messages.chunks(part_length).enumerate();
        let mut filled = filled.map(|(number, part)| {
            let mut each = part.chunks_exact(length);
            let is_own = each.all(|message| begins_with(message, &self.own_header));
            let appended = is_own.then(|| filling.append(part, length, part.len() / length));
            appended.map(|appended| {
                appended.map_err(|bad| BadValueOfRow {
                    row: number * (part_length / length) + bad.row,
                    ..bad
                })
            })
        });
        let filled = filled.try_fold(Ok(()), |all, part| Some(all.and(part?)));
        let filled = filled?;
        Some(match filled {
            Ok(()) => filling.finish(columns),
            Err(bad) => Err(SbeBadMessage {
                message: bad.row,
                reason: bad.reason,
            }),
        })
    }

    /// Creates the empty columns of the elements that `is_selected` chooses, with those of the groups of the path.
    pub(super) fn empty_table(&self, is_selected: &dyn Fn(usize, Element) -> bool) -> BlockTable {
        let blocks = [&*self.template().block];
        BlockTable::of_path(&blocks, &self.options, &self.path, is_selected)
    }

    /// Returns the plan of the block at a level of the path.
    pub(super) fn block_at(&self, level: usize) -> &SbeBlockPlan {
        let root = &self.template().block;
        let groups = groups_of(root, &self.path[..level]);
        groups.last().map_or(root, |group| &group.block)
    }

    /// Returns a column of the header.
    pub(super) fn numbers(&self, values: Vec<u32>) -> ArrayRef {
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

/// Returns whether a message begins with a header. Most headers have 8 bytes.
#[inline(always)]
fn begins_with(message: &[u8], header: &[u8]) -> bool {
    match (message.first_chunk::<8>(), <&[u8; 8]>::try_from(header)) {
        (Some(message), Ok(header)) => message == header,
        _ => message.starts_with(header),
    }
}

/// Returns the error for the name of a template that does not exist.
pub(super) fn unknown_template(plan: &SbePlan, name: &str) -> SbeColumnsError {
    let templates = plan.templates.iter();
    SbeColumnsError::Template {
        name: name.to_owned(),
        existing: joined(templates.map(|template| template.name.as_str())),
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
