//! Columns of constants, which messages do not have.

use std::sync::Arc;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeField, SbeKind};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::schema::SbePresence;
use aeron_sbe::value::SbeValue;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, NullArray, StringArray, UInt64Array};

use super::column::{BadValueOfRow, BlockColumn, Place};
use super::number::number_column;
use super::options::{SbeColumnOptions, SbeEnumColumn};

/// Returns a column with the value of a constant in each row; `None` if the field is not constant.
pub(super) fn constant_column(
    field: &SbeField,
    options: &SbeColumnOptions,
    rows: usize,
) -> Option<ArrayRef> {
    if field.presence != SbePresence::Constant {
        return None;
    }
    let text = |text: &str| StringArray::from_iter_values([text]);
    let value: ArrayRef = match field.constant_value()? {
        SbeValue::Text(value) => Arc::new(text(&value)),
        SbeValue::Symbol { number: value, .. } if options.enums == SbeEnumColumn::Integer => {
            number(field, options, value)?
        }
        SbeValue::Symbol { number, name } => {
            let number = number.to_string();
            let name = text(name.unwrap_or(&number));
            match options.for_spark {
                true => Arc::new(name),
                false => Arc::new(DictionaryArray::<Int32Type>::new(
                    vec![0].into(),
                    Arc::new(name),
                )),
            }
        }
        SbeValue::Number(value) => number(field, options, value)?,
        _ => return None,
    };
    let first = UInt64Array::from_value(0, rows);
    arrow_select::take::take(value.as_ref(), &first, None).ok()
}

/// Returns a number in a column of one row.
fn number(field: &SbeField, options: &SbeColumnOptions, value: SbeNumber) -> Option<ArrayRef> {
    let (SbeKind::Number(scalar) | SbeKind::Enum { scalar, .. }) = &field.kind else {
        return None;
    };
    let mut bytes = vec![0; scalar.length()];
    scalar.primitive.write(value, scalar.order, &mut bytes);
    let place = Place {
        field,
        offset: 0,
        options,
        blocks: &[],
    };
    let mut column: Box<dyn BlockColumn> = number_column(place, scalar, false);
    let block = SbeBlocks::new(&bytes, bytes.len(), bytes.len(), 1, 0)?;
    column.append(&block, &[]).ok()?;
    Some(column.finish())
}

/// A constant member of composites. It has its value in each row, also where the composite is null.
pub(super) struct ConstantColumn {
    field: SbeField,
    options: SbeColumnOptions,
    rows: usize,
}

impl ConstantColumn {
    /// Creates the column of a member; `None` if no column can have its value.
    pub(super) fn new(field: &SbeField, options: &SbeColumnOptions) -> Option<Self> {
        constant_column(field, options, 0)?;
        Some(Self {
            field: field.clone(),
            options: *options,
            rows: 0,
        })
    }
}

impl BlockColumn for ConstantColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        self.rows += blocks.len();
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.rows += count;
    }

    fn finish(&mut self) -> ArrayRef {
        let rows = std::mem::take(&mut self.rows);
        let values = constant_column(&self.field, &self.options, rows);
        values.unwrap_or_else(|| Arc::new(NullArray::new(rows)))
    }
}
