//! Columns of decimals.

use std::sync::Arc;

use aeron_sbe::number::SbeNumber;
use aeron_sbe::plan::{SbeDecimal, SbeExponent, SbeField, SbeScalar};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::value::SbeValue;
use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayRef, Decimal128Array, Float64Array};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::DataType;

use super::column::{BadValueOfRow, BlockColumn, Place, bad};
use super::number::{NumberColumn, WireInteger, by_integer};
use super::options::SbeDecimalColumn;

/// Most digits of a decimal.
const MAX_PRECISION: u8 = 38;

/// Creates the column of a decimal.
pub(super) fn decimal_column(place: Place<'_>, decimal: &SbeDecimal) -> Box<dyn BlockColumn> {
    match decimal.exponent {
        SbeExponent::Constant(exponent) if exponent.unsigned_abs() <= u32::from(MAX_PRECISION) => {
            by_integer!(
                decimal.mantissa,
                constant_exponent(place, decimal, exponent)
            )
        }
        _ => Box::new(ExponentColumn {
            field: place.field.clone(),
            decimal: decimal.clone(),
            exponent_field: exponent_field(place, &decimal.exponent),
            offset: place.offset,
            is_optional: place.is_optional(),
            form: place.options.decimals,
            decimals: Vec::new(),
            floats: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }),
    }
}

/// Returns the other field that has the exponent, if there is one.
fn exponent_field(place: Place<'_>, exponent: &SbeExponent) -> Option<SbeField> {
    let SbeExponent::Field { levels_up, index } = exponent else {
        return None;
    };
    let level = place.blocks.len().checked_sub(levels_up + 1)?;
    place.blocks[level].fields.get(*index).cloned()
}

/// Returns the most decimal digits of an integer.
fn digits(scalar: &SbeScalar) -> u8 {
    match (scalar.length(), scalar.primitive.is_unsigned()) {
        (1, _) => 3,
        (2, _) => 5,
        (4, _) => 10,
        (_, false) => 19,
        (_, true) => 20,
    }
}

fn constant_exponent<W: WireInteger + Into<i128>>(
    place: Place<'_>,
    decimal: &SbeDecimal,
    exponent: i32,
) -> Box<dyn BlockColumn> {
    let scalar = &decimal.mantissa;
    let number = (scalar, decimal.mantissa_offset, place.is_optional());
    let scale = exponent.min(0).unsigned_abs() as u8;
    let zeros = exponent.max(0).unsigned_abs();
    let precision = u32::from(digits(scalar)) + zeros;
    let precision = precision.clamp(u32::from(scale.max(1)), u32::from(MAX_PRECISION)) as u8;
    let data_type = DataType::Decimal128(precision, scale as i8);
    if zeros == 0 {
        return NumberColumn::<Decimal128Type, W, _>::boxed(
            place,
            number,
            data_type,
            |mantissa| (mantissa.into(), true),
            "",
        );
    }
    let factor = 10_i128.pow(zeros);
    let limit = 10_u128.pow(u32::from(precision));
    NumberColumn::<Decimal128Type, W, _>::boxed(
        place,
        number,
        data_type,
        move |mantissa: W| {
            let value = mantissa.into().checked_mul(factor);
            let fits = value.is_some_and(|value| value.unsigned_abs() < limit);
            (value.unwrap_or_default(), fits)
        },
        "has more digits than a decimal",
    )
}

/// Decimals with their exponents in the messages.
struct ExponentColumn {
    field: SbeField,
    decimal: SbeDecimal,
    /// The other field that has the exponent.
    exponent_field: Option<SbeField>,
    offset: usize,
    is_optional: bool,
    form: SbeDecimalColumn,
    decimals: Vec<i128>,
    floats: Vec<f64>,
    nulls: NullBufferBuilder,
}

impl ExponentColumn {
    /// Returns the exponent of a field with these bytes; `None` if it is absent or no small integer.
    fn exponent(&self, bytes: &[u8], block: SbeBlock<'_>, outer: &[SbeBlock<'_>]) -> Option<i32> {
        let number = match &self.decimal.exponent {
            SbeExponent::Constant(exponent) => return Some(*exponent),
            SbeExponent::Wire { scalar, offset } => scalar.read(bytes.get(*offset..)?)?,
            SbeExponent::Field { levels_up, .. } => {
                let block = match levels_up.checked_sub(1) {
                    None => block,
                    Some(level) => *outer.get(outer.len().checked_sub(level + 1)?)?,
                };
                self.exponent_in(block)?
            }
        };
        i32::try_from(number.as_i64()?).ok()
    }

    /// Returns the exponent in another field of a block; `None` if it is null or absent.
    fn exponent_in(&self, block: SbeBlock<'_>) -> Option<SbeNumber> {
        match self.exponent_field.as_ref()?.value(block).ok()? {
            SbeValue::Number(number) => Some(number),
            _ => None,
        }
    }

    fn append_row(&mut self, block: SbeBlock<'_>, outer: &[SbeBlock<'_>]) -> Result<(), String> {
        let bytes = block
            .bytes
            .get(self.offset..self.offset + self.field.length);
        let Some(bytes) = bytes else {
            self.append_nulls(1);
            return Ok(());
        };
        if self.is_optional && self.field.is_null(bytes) {
            self.append_nulls(1);
            return Ok(());
        }
        let mantissa = bytes
            .get(self.decimal.mantissa_offset..)
            .and_then(|bytes| self.decimal.mantissa.read(bytes)?.as_i128())
            .ok_or("has no mantissa")?;
        let exponent = self.exponent(bytes, block, outer);
        let exponent = exponent.ok_or("has no exponent")?;
        match self.form {
            SbeDecimalColumn::Float => self.floats.push(float(mantissa, exponent)),
            SbeDecimalColumn::Scale(scale) => {
                let value = scaled(mantissa, exponent, scale);
                self.decimals
                    .push(value.ok_or_else(|| {
                        format!(
                            "has {mantissa}e{exponent}, which needs rounding or more than {MAX_PRECISION} digits at \
                             {scale} decimal places: choose another scale, or floats"
                        )
                    })?);
            }
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

/// Returns the nearest float. The text has the exact value, so that the result is rounded once.
fn float(mantissa: i128, exponent: i32) -> f64 {
    format!("{mantissa}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// Returns the value as a multiple of 10^-scale; `None` if it would be rounded, or has too many digits.
fn scaled(mantissa: i128, exponent: i32, scale: u8) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    let power = exponent.checked_add(i32::from(scale))?;
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    let value = match power >= 0 {
        true => mantissa.checked_mul(factor)?,
        false => (mantissa % factor == 0).then_some(mantissa / factor)?,
    };
    (value.unsigned_abs() < 10_u128.pow(u32::from(MAX_PRECISION))).then_some(value)
}

impl BlockColumn for ExponentColumn {
    fn append(
        &mut self,
        blocks: &SbeBlocks<'_>,
        outer: &[SbeBlock<'_>],
    ) -> Result<(), BadValueOfRow> {
        for (row, block) in blocks.iter().enumerate() {
            self.append_row(block, outer)
                .map_err(|problem| bad(&self.field.name, row, &problem))?;
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        match self.form {
            SbeDecimalColumn::Float => self.floats.resize(self.floats.len() + count, 0.0),
            SbeDecimalColumn::Scale(_) => self.decimals.resize(self.decimals.len() + count, 0),
        }
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        match self.form {
            SbeDecimalColumn::Float => {
                let values = std::mem::take(&mut self.floats);
                Arc::new(Float64Array::new(values.into(), nulls))
            }
            SbeDecimalColumn::Scale(scale) => {
                let values = std::mem::take(&mut self.decimals);
                let values = Decimal128Array::new(values.into(), nulls);
                let data_type = DataType::Decimal128(MAX_PRECISION, scale as i8);
                Arc::new(values.with_data_type(data_type))
            }
        }
    }
}
