//! [`BlockWriter`]: places the blocks of rows in messages, and writes them by column.

use std::ops::Range;

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup};
use aeron_sbe::value::SbeValue;
use aeron_sbe::write::SbeEncodeError;
use arrow_array::{Array, StructArray};

use super::block_rows::{BlockRows, GroupRows};
use super::data_writer::DataWriter;
use super::field_writer::FieldWriter;

/// Length of blocks that are written at a time, in bytes, so that they stay in the innermost cache.
pub(super) const PART_LENGTH: usize = 16 * 1024;

/// A value that cannot be encoded.
#[derive(Debug)]
pub(super) struct BadRow {
    /// Index of the row of the value.
    pub(super) row: usize,
    pub(super) error: SbeEncodeError,
}

/// The columns of rows of a block, and the place of each row in the messages.
pub(super) struct BlockWriter<'a> {
    pub(super) plan: &'a SbeBlockPlan,
    rows: &'a StructArray,
    fields: Vec<FieldWriter<'a>>,
    /// A block with the null values of the fields without columns; `None` if all of its bytes are zero.
    blank: Option<Vec<u8>>,
    /// Error for a required field without a column.
    missing: Option<SbeEncodeError>,
    groups: Vec<GroupWriter<'a>>,
    data: Vec<DataWriter<'a>>,
    /// Offset of the block of each row.
    pub(super) places: Vec<u32>,
}

struct GroupWriter<'a> {
    group: &'a SbeGroup,
    ends: &'a [u32],
    /// Offset of the dimension of each parent.
    places: Vec<u32>,
    entries: BlockWriter<'a>,
}

/// The writers of the blocks around a group. A decimal in the group may have its exponent in one of these blocks.
#[derive(Clone, Copy)]
pub(super) struct OuterWriter<'w, 'a> {
    pub(super) writer: &'w BlockWriter<'a>,
    ends: &'a [u32],
    pub(super) outer: Option<&'w OuterWriter<'w, 'a>>,
}

impl OuterWriter<'_, '_> {
    /// Returns the row around an entry.
    pub(super) fn parent(&self, entry: usize) -> usize {
        parent(self.ends, entry)
    }
}

impl<'a> BlockWriter<'a> {
    /// Creates the writer of rows.
    ///
    /// # Errors
    /// A reason: a column has an unsuitable type.
    pub(super) fn new(rows: &'a BlockRows<'a>) -> Result<Self, String> {
        let plan = rows.plan;
        let (mut fields, mut missing) = (Vec::new(), None);
        let mut blank = vec![0; plan.block_length];
        for field in &plan.fields {
            match rows.columns.column_by_name(&field.name) {
                Some(column) => fields.push(FieldWriter::new(field, column)?),
                None => {
                    let put = field.put(&mut blank, &SbeValue::Null);
                    missing = missing.or(put.err());
                }
            }
        }
        // A decimal with its exponent in another field of the block is written after that field.
        fields.sort_by_key(FieldWriter::has_other_exponent);
        let data = plan.data.iter();
        let data = data.map(|data| DataWriter::new(data, rows.columns.column_by_name(&data.name)));
        let groups = rows.groups.iter().map(GroupWriter::new);
        Ok(Self {
            plan,
            rows: &rows.columns,
            fields,
            blank: blank.iter().any(|byte| *byte != 0).then_some(blank),
            missing,
            groups: groups.collect::<Result<_, _>>()?,
            data: data.collect::<Result<_, _>>()?,
            places: Vec::with_capacity(rows.columns.len()),
        })
    }

    /// Places the block of the next row at `begin`, with its groups and data after it. Returns their end; `None` if it
    /// is beyond `limit`.
    pub(super) fn place(&mut self, begin: usize, limit: usize) -> Option<usize> {
        let row = self.places.len();
        self.places.push(u32::try_from(begin).ok()?);
        let mut end = begin + self.plan.block_length;
        for group in &mut self.groups {
            end = group.place(row, end, limit)?;
        }
        for data in &mut self.data {
            data.places.push(u32::try_from(end).ok()?);
            end += data.length(row);
        }
        (end <= limit).then_some(end)
    }

    /// Places the next blocks, which have no groups and data.
    pub(super) fn place_at(&mut self, places: impl Iterator<Item = u32>) {
        self.places.extend(places);
    }

    /// Writes the blocks of rows, with their groups and data, into bytes that are zero. Returns the first row that
    /// cannot be written, with one of its errors.
    pub(super) fn write(
        &self,
        rows: Range<usize>,
        bytes: &mut [u8],
        outer: Option<&OuterWriter<'_, 'a>>,
    ) -> Result<(), BadRow> {
        let mut bad = FirstBadRow::default();
        let at_once = (PART_LENGTH / self.plan.block_length.max(1)).max(1);
        for first in rows.clone().step_by(at_once) {
            let part = first..rows.end.min(first + at_once);
            bad.add(self.write_blocks(part, bytes, outer));
        }
        for group in &self.groups {
            bad.add(group.write(rows.clone(), bytes, self, outer));
        }
        for data in &self.data {
            bad.add(data.write(rows.clone(), bytes));
        }
        bad.found.map_or(Ok(()), Err)
    }

    fn write_blocks(
        &self,
        rows: Range<usize>,
        bytes: &mut [u8],
        outer: Option<&OuterWriter<'_, 'a>>,
    ) -> Result<(), BadRow> {
        let mut bad = FirstBadRow::default();
        if let (Some(error), false) = (&self.missing, rows.is_empty()) {
            let (row, error) = (rows.start, error.clone());
            bad.add(Err(BadRow { row, error }));
        }
        if let Some(blank) = &self.blank {
            for place in &self.places[rows.clone()] {
                let begin = *place as usize;
                bytes[begin..begin + blank.len()].copy_from_slice(blank);
            }
        }
        for field in &self.fields {
            bad.add(field.write(rows.clone(), bytes, self, outer));
        }
        bad.found.map_or(Ok(()), Err)
    }
}

impl<'a> GroupWriter<'a> {
    fn new(rows: &'a GroupRows<'a>) -> Result<Self, String> {
        let entries = BlockWriter::new(&rows.entries);
        Ok(Self {
            group: rows.group,
            ends: &rows.ends,
            places: Vec::with_capacity(rows.ends.len()),
            entries: entries.map_err(|reason| format!("group '{}': {reason}", rows.group.name))?,
        })
    }

    /// Places the entries of a parent. Returns their end; `None` if it is beyond `limit`.
    fn place(&mut self, parent: usize, begin: usize, limit: usize) -> Option<usize> {
        self.places.push(u32::try_from(begin).ok()?);
        let mut end = begin + self.group.dimension.length;
        let count = entries_of(self.ends, parent).len();
        let (entries, length) = (&mut self.entries, self.group.block.block_length);
        if !self.group.block.is_flat() {
            for _ in 0..count {
                end = entries.place(end, limit)?;
            }
            return Some(end);
        }
        let first = end;
        end = count.checked_mul(length)?.checked_add(first)?;
        if end > limit {
            return None;
        }
        entries.place_at((0..count).map(|entry| (first + entry * length) as u32));
        Some(end)
    }

    /// Writes the entries of parents.
    fn write(
        &self,
        parents: Range<usize>,
        bytes: &mut [u8],
        writer: &BlockWriter<'a>,
        outer: Option<&OuterWriter<'_, 'a>>,
    ) -> Result<(), BadRow> {
        let mut bad = FirstBadRow::default();
        for parent in parents.clone() {
            let place = &mut bytes[self.places[parent] as usize..];
            let count = entries_of(self.ends, parent).len();
            let written = self.group.write_dimension(count, place);
            if let Err(error) = written {
                bad.add(Err(BadRow { row: parent, error }));
                break;
            }
        }
        let first = entries_of(self.ends, parents.start).start;
        let last = self.ends[..parents.end].last().copied().unwrap_or_default();
        let around = OuterWriter {
            writer,
            ends: self.ends,
            outer,
        };
        let entries = first..last as usize;
        bad.add(self.null_entry(entries.clone()));
        let written = self.entries.write(entries, bytes, Some(&around));
        bad.add(written.map_err(|bad| {
            let row = parent(self.ends, bad.row);
            let number = bad.row - entries_of(self.ends, row).start;
            let error = bad.error.within(&self.group.name, number);
            BadRow { row, error }
        }));
        bad.found.map_or(Ok(()), Err)
    }

    /// Returns an error for the first entry that is null.
    fn null_entry(&self, mut entries: Range<usize>) -> Result<(), BadRow> {
        if self.entries.rows.null_count() == 0 {
            return Ok(());
        }
        let Some(null) = entries.find(|entry| self.entries.rows.is_null(*entry)) else {
            return Ok(());
        };
        let row = parent(self.ends, null);
        let error = SbeEncodeError::NullEntry {
            group: self.group.name.clone(),
            entry: null - entries_of(self.ends, row).start,
        };
        Err(BadRow { row, error })
    }
}

/// The error of the first row. Of several errors in one row, it is the first.
#[derive(Default)]
struct FirstBadRow {
    found: Option<BadRow>,
}

impl FirstBadRow {
    fn add(&mut self, written: Result<(), BadRow>) {
        let Err(bad) = written else {
            return;
        };
        if self.found.as_ref().is_none_or(|found| bad.row < found.row) {
            self.found = Some(bad);
        }
    }
}

/// Returns the entries of a parent.
fn entries_of(ends: &[u32], parent: usize) -> Range<usize> {
    let begin = parent.checked_sub(1).map_or(0, |before| ends[before]);
    let end = ends.get(parent).copied().unwrap_or(begin);
    begin as usize..end as usize
}

/// Returns the parent of an entry.
fn parent(ends: &[u32], entry: usize) -> usize {
    ends.partition_point(|end| *end as usize <= entry)
}
