//! [`BlockTable`]: the columns of a block with its groups and data, and the visitor that fills them.

use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbeData, SbeField, SbeGroup};
use aeron_sbe::read::{SbeBlock, SbeBlocks, SbeVisitor};
use aeron_sbe::schema::SbePresence;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, FieldRef, Fields};

use super::budget::{Budget, EMPTY_ROW, constant_length, null_length};
use super::column::{BadValueOfRow, BlockColumn, Place, bad, column_of};
use super::options::SbeColumnOptions;
use super::text::{SliceBuilder, TextColumn};

/// Columns of a block, its groups and its data. Elements that are not selected have no column.
#[derive(Default)]
pub(super) struct BlockTable {
    pub(super) rows: usize,
    fields: Vec<Option<FieldColumn>>,
    groups: Vec<Option<GroupColumn>>,
    data: Vec<Option<DataColumn>>,
}

struct FieldColumn {
    field: SbeField,
    column: Box<dyn BlockColumn>,
    /// Length of a null, in bytes.
    null_length: usize,
    /// Length of the constants in a value, in bytes.
    constant_length: usize,
}

/// The entries of a group, and the end of each parent's entries.
#[derive(Default)]
pub(super) struct GroupColumn {
    ends: Vec<i32>,
    options: SbeColumnOptions,
    pub(super) table: BlockTable,
}

enum DataColumn {
    Text(TextColumn),
    Bytes(String, SliceBuilder),
}

/// An element of a block that has a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Field(usize),
    Group(usize),
    Data(usize),
}

impl Element {
    /// Returns all elements of a block that have columns by default. Constants take no bytes and have none.
    pub(super) fn all(plan: &SbeBlockPlan) -> impl Iterator<Item = Self> + '_ {
        let is_encoded = |index: &usize| plan.fields[*index].presence != SbePresence::Constant;
        let fields = (0..plan.fields.len()).filter(is_encoded).map(Self::Field);
        let groups = (0..plan.groups.len()).map(Self::Group);
        fields
            .chain(groups)
            .chain((0..plan.data.len()).map(Self::Data))
    }

    pub(super) fn name(self, plan: &SbeBlockPlan) -> &str {
        match self {
            Self::Field(index) => &plan.fields[index].name,
            Self::Group(index) => &plan.groups[index].name,
            Self::Data(index) => &plan.data[index].name,
        }
    }
}

impl BlockTable {
    /// Creates the empty columns of the elements that `is_selected` chooses for a level, and those of the groups of
    /// `path`. `blocks` has the plans from the root to this block.
    pub(super) fn of_path(
        blocks: &[&SbeBlockPlan],
        options: &SbeColumnOptions,
        path: &[usize],
        is_selected: &dyn Fn(usize, Element) -> bool,
    ) -> Self {
        let level = blocks.len() - 1;
        let mut table = Self::new(blocks, options, &|element| match element {
            Element::Group(_) if level < path.len() => false,
            element => is_selected(level, element),
        });
        let plan = blocks.last();
        if let (Some(index), Some(plan)) = (path.get(level), plan)
            && let Some(group) = plan.groups.get(*index)
        {
            let inner: Vec<_> = blocks.iter().copied().chain([&*group.block]).collect();
            table.groups[*index] = Some(GroupColumn {
                ends: vec![0],
                options: *options,
                table: Self::of_path(&inner, options, path, is_selected),
            });
        }
        table
    }

    /// Returns the columns of the block at the end of a path, from this block.
    pub(super) fn at(&mut self, path: &[usize]) -> Option<&mut Self> {
        let mut table = self;
        for index in path {
            table = &mut table.groups.get_mut(*index)?.as_mut()?.table;
        }
        Some(table)
    }

    /// Returns the offsets of the entries of a group, for all rows of this block.
    pub(super) fn offsets_of(&self, group: usize) -> Option<OffsetBuffer<i32>> {
        let group = self.groups.get(group)?.as_ref()?;
        Some(OffsetBuffer::new(group.ends.clone().into()))
    }

    /// Creates the empty columns of the elements that `is_selected` chooses. `blocks` has the plans from the root to
    /// this block.
    fn new(
        blocks: &[&SbeBlockPlan],
        options: &SbeColumnOptions,
        is_selected: &dyn Fn(Element) -> bool,
    ) -> Self {
        let Some(plan) = blocks.last() else {
            return Self::default();
        };
        let field = |(index, field): (usize, &SbeField)| {
            let is_encoded = field.presence != SbePresence::Constant;
            (is_encoded && is_selected(Element::Field(index))).then(|| FieldColumn {
                column: column_of(Place {
                    field,
                    offset: field.offset,
                    options,
                    blocks,
                }),
                null_length: null_length(field),
                constant_length: constant_length(field),
                field: field.clone(),
            })
        };
        let group = |(index, group): (usize, &SbeGroup)| {
            is_selected(Element::Group(index)).then(|| {
                let inner: Vec<_> = blocks.iter().copied().chain([&*group.block]).collect();
                GroupColumn {
                    ends: vec![0],
                    options: *options,
                    table: Self::new(&inner, options, &|_| true),
                }
            })
        };
        let data = |(index, data): (usize, &SbeData)| {
            let name = &data.name;
            is_selected(Element::Data(index)).then(|| match data.layout.character_set {
                Some(set) => DataColumn::Text(TextColumn::of_data(name, set)),
                None => DataColumn::Bytes(name.clone(), SliceBuilder::new()),
            })
        };
        Self {
            rows: 0,
            fields: plan.fields.iter().enumerate().map(field).collect(),
            groups: plan.groups.iter().enumerate().map(group).collect(),
            data: plan.data.iter().enumerate().map(data).collect(),
        }
    }

    /// Makes room for this number of rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        for field in self.fields.iter_mut().flatten() {
            field.column.reserve(rows);
        }
    }

    /// Appends a row for each block. Groups and data follow by a visitor.
    pub(super) fn append(
        &mut self,
        blocks: &SbeBlocks<'_>,
        outer: &[SbeBlock<'_>],
        budget: &mut Budget,
    ) -> Result<(), BadValueOfRow> {
        let count = blocks.len();
        let beyond = |reason| BadValueOfRow { row: 0, reason };
        if blocks.block_length() == 0 {
            budget.add(count, EMPTY_ROW).map_err(beyond)?;
        }
        for field in self.fields.iter_mut().flatten() {
            if blocks.has(&field.field) {
                budget.add(count, field.constant_length).map_err(beyond)?;
                field.column.append(blocks, outer)?;
            } else {
                budget.add(count, field.null_length).map_err(beyond)?;
                field.column.append_nulls(count);
            }
        }
        self.rows += count;
        Ok(())
    }

    /// Returns the column of an element, and makes it empty; `None` if it was not selected.
    pub(super) fn finish(&mut self, plan: &SbeBlockPlan, element: Element) -> Option<ArrayRef> {
        Some(match element {
            Element::Field(index) => self.fields[index].as_mut()?.column.finish(),
            Element::Group(index) => {
                let group = self.groups[index].as_mut()?;
                group.finish(&plan.groups[index].block)
            }
            Element::Data(index) => match self.data[index].as_mut()? {
                DataColumn::Text(texts) => texts.finish(),
                DataColumn::Bytes(_, bytes) => bytes.finish_bytes(),
            },
        })
    }

    /// Returns the number of values of enums that the schema does not know.
    pub(super) fn unknown(&self) -> u64 {
        let fields = self.fields.iter().flatten();
        let groups = self.groups.iter().flatten();
        fields.map(|field| field.column.unknown()).sum::<u64>()
            + groups.map(|group| group.table.unknown()).sum::<u64>()
    }
}

impl GroupColumn {
    pub(super) fn root(table: BlockTable) -> Self {
        Self {
            ends: Vec::new(),
            options: SbeColumnOptions::default(),
            table,
        }
    }

    /// Returns the lists of the entries, and makes the group empty.
    fn finish(&mut self, plan: &SbeBlockPlan) -> ArrayRef {
        let offsets = OffsetBuffer::new(std::mem::replace(&mut self.ends, vec![0]).into());
        let rows = std::mem::take(&mut self.table.rows);
        let columns: (Vec<FieldRef>, Vec<ArrayRef>) = Element::all(plan)
            .filter_map(|element| {
                let column = self.table.finish(plan, element)?;
                let name = element.name(plan);
                let field = Field::new(name, column.data_type().clone(), true);
                Some((Arc::new(field), column))
            })
            .unzip();
        let (fields, columns) = columns;
        let entries = match columns.is_empty() {
            true => StructArray::new_empty_fields(rows, None),
            false => StructArray::new(Fields::from(fields), columns, None),
        };
        let item = self.options.item(entries.data_type());
        Arc::new(ListArray::new(item, offsets, Arc::new(entries), None))
    }
}

/// Fills the groups and data of one message into the columns.
pub(super) struct TableVisitor<'a, 'b> {
    budget: &'b mut Budget,
    /// The root and the groups that have begun; `None` for a group without a column.
    open: Vec<Option<OpenGroup>>,
    /// The current block of each level that has one.
    blocks: Vec<SbeBlock<'a>>,
    failed: Option<BadValueOfRow>,
}

struct OpenGroup {
    column: GroupColumn,
    next_group: usize,
    next_data: usize,
}

impl<'a, 'b> TableVisitor<'a, 'b> {
    /// Creates the visitor of a message whose root block was appended to `root`.
    pub(super) fn new(root: GroupColumn, block: SbeBlock<'a>, budget: &'b mut Budget) -> Self {
        Self {
            budget,
            open: vec![Some(OpenGroup::new(root))],
            blocks: vec![block],
            failed: None,
        }
    }

    /// Returns the columns, and the first value that no column can hold.
    pub(super) fn finish(mut self) -> (GroupColumn, Option<BadValueOfRow>) {
        debug_assert!(self.open.len() == 1, "all groups of a message end");
        let root = self.open.swap_remove(0);
        (
            root.map(|root| root.column).unwrap_or_default(),
            self.failed,
        )
    }
}

impl OpenGroup {
    fn new(column: GroupColumn) -> Self {
        Self {
            column,
            next_group: 0,
            next_data: 0,
        }
    }

    /// Expects the groups and data of the next entry.
    fn restart(&mut self) {
        (self.next_group, self.next_data) = (0, 0);
    }
}

impl TableVisitor<'_, '_> {
    /// Takes an absent element from the budget: a writer gives it no bytes.
    fn add_absent(&mut self) {
        if let Err(reason) = self.budget.add(1, EMPTY_ROW) {
            self.failed.get_or_insert(BadValueOfRow { row: 0, reason });
        }
    }
}

impl<'a> SbeVisitor<'a> for TableVisitor<'a, '_> {
    fn begin_group(&mut self, _: &'a SbeGroup, count: usize) {
        let parent = self.open.last_mut().and_then(Option::as_mut);
        let column = parent.and_then(|parent| {
            let place = parent.column.table.groups.get_mut(parent.next_group);
            parent.next_group += 1;
            place?.take()
        });
        if column.is_some() && count == 0 {
            self.add_absent();
        }
        self.open.push(column.map(OpenGroup::new));
    }

    fn entries(&mut self, group: &'a SbeGroup, entries: SbeBlocks<'a>) {
        let level = self.open.len() - 1;
        self.blocks.truncate(level);
        if let Some(Some(open)) = self.open.last_mut() {
            open.restart();
            if self.failed.is_none() {
                let appended = open
                    .column
                    .table
                    .append(&entries, &self.blocks, self.budget);
                self.failed = appended.err();
            }
        }
        if !group.block.is_flat() {
            self.blocks.extend(entries.get(0));
        }
    }

    fn end_group(&mut self, group: &'a SbeGroup) {
        let Some(Some(mut ended)) = self.open.pop() else {
            return;
        };
        match i32::try_from(ended.column.table.rows) {
            Ok(end) => ended.column.ends.push(end),
            Err(_) => {
                let problem = "has more than 2,147,483,647 entries in a column";
                self.failed.get_or_insert(bad(&group.name, 0, problem));
            }
        }
        if let Some(Some(parent)) = self.open.last_mut() {
            let index = parent.next_group - 1;
            parent.column.table.groups[index] = Some(ended.column);
        }
    }

    fn data(&mut self, _: &'a SbeData, bytes: Option<&'a [u8]>) {
        if bytes.is_none() {
            self.add_absent();
        }
        if self.failed.is_some() {
            return;
        }
        let Some(Some(open)) = self.open.last_mut() else {
            return;
        };
        let place = open.column.table.data.get_mut(open.next_data);
        open.next_data += 1;
        let Some(Some(column)) = place else {
            return;
        };
        let pushed = match (column, bytes) {
            (DataColumn::Text(texts), Some(bytes)) => texts.push(0, bytes),
            (DataColumn::Text(texts), None) => {
                texts.append_nulls(1);
                Ok(())
            }
            (DataColumn::Bytes(name, values), Some(bytes)) => {
                values.push(bytes).map_err(|problem| bad(name, 0, problem))
            }
            (DataColumn::Bytes(_, values), None) => {
                values.append_nulls(1);
                Ok(())
            }
        };
        if let Err(failed) = pushed {
            self.failed.get_or_insert(failed);
        }
    }
}
