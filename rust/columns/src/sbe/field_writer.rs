//! [`FieldWriter`]: writes a column into a field of blocks.

use std::ops::Range;

use aeron_sbe::plan::SbeField;
use aeron_sbe::read::SbeBlock;
use aeron_sbe::value::SbeValue;
use aeron_sbe::write::SbeEncodeError;
use arrow_array::ArrayRef;

use super::block_writer::{BadRow, BlockWriter, OuterWriter};
use super::fast::{FastWriter, fast_writer};
use super::values::{ValueReader, value_reader};

/// The column of a field.
pub(super) struct FieldWriter<'a> {
    field: &'a SbeField,
    /// The fast way, for columns without a check of each value.
    fast: Option<FastWriter<'a>>,
    /// The way for all columns, which finds the reason of an error.
    read: ValueReader<'a>,
}

impl<'a> FieldWriter<'a> {
    /// Creates the writer.
    ///
    /// # Errors
    /// A reason: the column has an unsuitable type.
    pub(super) fn new(field: &'a SbeField, column: &'a ArrayRef) -> Result<Self, String> {
        Ok(Self {
            field,
            fast: fast_writer(field, column),
            read: value_reader(field, column)?,
        })
    }

    /// Returns whether the field is a decimal with its exponent in another field.
    pub(super) fn has_other_exponent(&self) -> bool {
        self.field.other_exponent().is_some()
    }

    /// Writes the values of rows into the blocks of `writer`.
    pub(super) fn write<'w>(
        &self,
        rows: Range<usize>,
        bytes: &mut [u8],
        writer: &'w BlockWriter<'a>,
        outer: Option<&'w OuterWriter<'w, 'a>>,
    ) -> Result<(), BadRow> {
        let places = &writer.places[rows.clone()];
        let fast = self.fast.as_ref();
        if fast.is_some_and(|write| write(rows.clone(), bytes, places)) {
            return Ok(());
        }
        for row in rows {
            let bad = |error| BadRow { row, error };
            let value = (self.read)(row).map_err(|reason| {
                bad(SbeEncodeError::Unsuitable {
                    field: self.field.name.clone(),
                    reason,
                })
            })?;
            let mantissa = self.mantissa(&value, row, bytes, writer, outer);
            let value = mantissa.map_err(bad)?.unwrap_or(value);
            let begin = writer.places[row] as usize;
            let block = &mut bytes[begin..begin + writer.plan.block_length];
            self.field.put(block, &value).map_err(bad)?;
        }
        Ok(())
    }

    /// Returns the mantissa of a decimal with its exponent in another field. The block with the exponent is written
    /// before. Returns `None` for another value or field.
    fn mantissa<'w>(
        &self,
        value: &SbeValue<'_>,
        row: usize,
        bytes: &[u8],
        writer: &'w BlockWriter<'a>,
        outer: Option<&'w OuterWriter<'w, 'a>>,
    ) -> Result<Option<SbeValue<'a>>, SbeEncodeError> {
        let Some((levels_up, index)) = self.field.other_exponent() else {
            return Ok(None);
        };
        let (mut holder, mut row, mut around) = (writer, row, outer);
        for _ in 0..levels_up {
            let Some(outer) = around else {
                break;
            };
            row = outer.parent(row);
            (holder, around) = (outer.writer, outer.outer);
        }
        let exponent = exponent_in(holder, index, row, bytes);
        self.field.mantissa_of(value, exponent)
    }
}

/// Returns the integer in a field of a block that is written already; `None` if it is null or no small integer.
fn exponent_in(holder: &BlockWriter<'_>, index: usize, row: usize, bytes: &[u8]) -> Option<i32> {
    let begin = *holder.places.get(row)? as usize;
    let block = SbeBlock {
        bytes: bytes.get(begin..begin + holder.plan.block_length)?,
        version: u32::MAX,
    };
    match holder.plan.fields.get(index)?.value(block).ok()? {
        SbeValue::Number(number) => i32::try_from(number.as_i64()?).ok(),
        _ => None,
    }
}
