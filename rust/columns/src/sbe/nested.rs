//! Columns of composites and arrays: their items are columns too.

use std::sync::Arc;

use aeron_sbe::plan::{SbeField, SbeScalar, SbeStruct};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::schema::SbePresence;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{FieldRef, Fields};

use super::column::{BadValueOfRow, BlockColumn, Place, arrow_field, column_of};
use super::constant::ConstantColumn;
use super::number::number_column;
use super::options::SbeColumnOptions;

/// A composite without a meaning of its own.
pub(super) struct StructColumn {
    field: SbeField,
    offset: usize,
    is_optional: bool,
    fields: Fields,
    members: Vec<Box<dyn BlockColumn>>,
    nulls: NullBufferBuilder,
}

impl StructColumn {
    pub(super) fn new(place: Place<'_>, composite: &SbeStruct) -> Self {
        let members = composite.members.iter();
        let (fields, members): (Vec<FieldRef>, Vec<_>) = members
            .filter_map(|member| {
                let mut column = member_column(place, member)?;
                Some((arrow_field(&member.name, column.as_mut()), column))
            })
            .unzip();
        Self {
            field: place.field.clone(),
            offset: place.offset,
            is_optional: place.is_optional(),
            fields: fields.into(),
            members,
            nulls: NullBufferBuilder::new(0),
        }
    }
}

fn member_column(place: Place<'_>, member: &SbeField) -> Option<Box<dyn BlockColumn>> {
    if member.presence == SbePresence::Constant {
        let constant = ConstantColumn::new(member, place.options)?;
        return Some(Box::new(constant));
    }
    Some(column_of(Place {
        field: member,
        offset: place.offset + member.offset,
        ..place
    }))
}

impl StructColumn {
    /// Appends the composites of `count` blocks, which are not null.
    fn append_valid(
        &mut self,
        blocks: &SbeBlocks<'_>,
        outer: &[SbeBlock<'_>],
        first: usize,
        count: usize,
    ) -> Result<(), BadValueOfRow> {
        let Some(part) = blocks.part(first, count) else {
            return Ok(());
        };
        for member in &mut self.members {
            member.append(&part, outer).map_err(|bad| BadValueOfRow {
                row: first + bad.row,
                ..bad
            })?;
        }
        self.nulls.append_n_non_nulls(count);
        Ok(())
    }
}

impl BlockColumn for StructColumn {
    fn append(
        &mut self,
        blocks: &SbeBlocks<'_>,
        outer: &[SbeBlock<'_>],
    ) -> Result<(), BadValueOfRow> {
        let Some(values) = blocks.slices(self.offset, self.field.length) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        if !self.is_optional {
            return self.append_valid(blocks, outer, 0, blocks.len());
        }
        // The members of a null composite are null too: a required one may have bytes that no column can hold.
        let is_null: Vec<bool> = values.map(|bytes| self.field.is_null(bytes)).collect();
        let mut first = 0;
        for run in is_null.chunk_by(|one, two| one == two) {
            match run[0] {
                true => self.append_nulls(run.len()),
                false => self.append_valid(blocks, outer, first, run.len())?,
            }
            first += run.len();
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        for member in &mut self.members {
            member.append_nulls(count);
        }
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let count = self.nulls.len();
        let nulls = self.nulls.finish();
        if self.members.is_empty() {
            return Arc::new(StructArray::new_empty_fields(count, nulls));
        }
        let members = self.members.iter_mut();
        let members: Vec<_> = members.map(|member| member.finish()).collect();
        Arc::new(StructArray::new(self.fields.clone(), members, nulls))
    }

    fn unknown(&self) -> u64 {
        self.members.iter().map(|member| member.unknown()).sum()
    }
}

/// An array of numbers. Spark has lists of any length only.
pub(super) struct ArrayColumn {
    field: SbeField,
    offset: usize,
    count: usize,
    item_length: usize,
    is_optional: bool,
    options: SbeColumnOptions,
    items: Box<dyn BlockColumn>,
    nulls: NullBufferBuilder,
}

impl ArrayColumn {
    pub(super) fn new(place: Place<'_>, item: &SbeScalar, count: usize) -> Self {
        Self {
            field: place.field.clone(),
            offset: place.offset,
            count,
            item_length: item.length(),
            is_optional: place.is_optional(),
            options: *place.options,
            items: number_column(Place { offset: 0, ..place }, item, place.is_optional()),
            nulls: NullBufferBuilder::new(0),
        }
    }
}

impl BlockColumn for ArrayColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(arrays) = blocks.slices(self.offset, self.field.length) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for bytes in arrays {
            let (length, count) = (self.item_length, self.count);
            let items = SbeBlocks::new(bytes, length, length, count, blocks.version());
            match items {
                Some(items) => self.items.append(&items, &[])?,
                None => self.items.append_nulls(count),
            }
            self.nulls
                .append(!self.is_optional || !self.field.is_null(bytes));
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.items.append_nulls(count * self.count);
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let rows = self.nulls.len();
        let nulls = self.nulls.finish();
        let items = self.items.finish();
        let item = self.options.item(items.data_type());
        if self.options.for_spark {
            let offsets = OffsetBuffer::from_repeated_length(self.count, rows);
            return Arc::new(ListArray::new(item, offsets, items, nulls));
        }
        let count = i32::try_from(self.count).unwrap_or(i32::MAX);
        Arc::new(FixedSizeListArray::new(item, count, items, nulls))
    }
}
