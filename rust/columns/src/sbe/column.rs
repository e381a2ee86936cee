//! [`BlockColumn`]: a column that grows by the values of blocks, and its choice for a field.

use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbeField, SbeKind};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::schema::SbePresence;
use arrow_array::ArrayRef;
use arrow_schema::Field;

use super::decimal::decimal_column;
use super::names::{EnumColumn, set_column};
use super::nested::{ArrayColumn, StructColumn};
use super::number::number_column;
use super::options::{SbeColumnOptions, SbeEnumColumn};
use super::text::{ByteColumn, CharacterColumn, TextColumn};
use super::time::time_column;

/// A column that grows by the values of one field in blocks.
pub(super) trait BlockColumn: Send {
    /// Appends the field's value in each block. `outer` has the blocks around them; the innermost is the last.
    fn append(
        &mut self,
        blocks: &SbeBlocks<'_>,
        outer: &[SbeBlock<'_>],
    ) -> Result<(), BadValueOfRow>;

    /// Makes room for this number of rows. Columns without a fixed length ignore it.
    fn reserve(&mut self, rows: usize) {
        let _ = rows;
    }

    /// Appends nulls.
    fn append_nulls(&mut self, count: usize);

    /// Returns the column, and makes it empty.
    fn finish(&mut self) -> ArrayRef;

    /// Returns the number of values of enums that the schema does not know, which became nulls, and of sets with bits
    /// that it does not know.
    fn unknown(&self) -> u64 {
        0
    }
}

/// A value that a column cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadValueOfRow {
    /// Index of the block among the appended blocks.
    pub(super) row: usize,
    pub(super) reason: String,
}

/// A field of a composite, message or group, with its place.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) field: &'a SbeField,
    /// Offset of the field in its block, in bytes.
    pub(super) offset: usize,
    pub(super) options: &'a SbeColumnOptions,
    /// The plans of the block and of the blocks around it; the block's own plan is the last.
    pub(super) blocks: &'a [&'a SbeBlockPlan],
}

impl Place<'_> {
    pub(super) fn is_optional(&self) -> bool {
        self.field.presence == SbePresence::Optional
    }
}

pub(super) fn bad(name: &str, row: usize, problem: &str) -> BadValueOfRow {
    let reason = format!("field '{name}' {problem}");
    BadValueOfRow { row, reason }
}

/// Creates the empty column of a field that takes bytes.
pub(super) fn column_of(place: Place<'_>) -> Box<dyn BlockColumn> {
    match &place.field.kind {
        SbeKind::Number(scalar) => number_column(place, scalar, place.is_optional()),
        SbeKind::Numbers { item, count } => Box::new(ArrayColumn::new(place, item, *count)),
        SbeKind::Bytes { count, .. } => Box::new(ByteColumn::new(place, *count)),
        SbeKind::Character(scalar) => Box::new(CharacterColumn::new(place, scalar)),
        SbeKind::Text {
            count,
            character_set,
        } => Box::new(TextColumn::of_field(place, *count, *character_set)),
        SbeKind::Enum { scalar, .. } if place.options.enums == SbeEnumColumn::Integer => {
            number_column(place, scalar, place.is_optional())
        }
        SbeKind::Enum { scalar, names } => Box::new(EnumColumn::new(place, *scalar, names)),
        SbeKind::Set { scalar, choices } => set_column(place, *scalar, choices),
        SbeKind::Decimal(decimal) => decimal_column(place, decimal),
        SbeKind::Time(time) => time_column(place, time),
        SbeKind::Struct(composite) => Box::new(StructColumn::new(place, composite)),
    }
}

/// Returns name and type of a column.
pub(super) fn arrow_field(name: &str, column: &mut dyn BlockColumn) -> Arc<Field> {
    let data_type = column.finish().data_type().clone();
    Arc::new(Field::new(name, data_type, true))
}
