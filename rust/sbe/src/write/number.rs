//! Writes numbers, decimals and times.

use crate::number::SbeNumber;
use crate::plan::{SbeDecimal, SbeExponent, SbeField, SbeScalar, SbeTime, SbeUnitSource};
use crate::value::SbeValue;
use crate::write::SbeEncodeError;

impl SbeField {
    pub(super) fn put_number(
        &self,
        scalar: &SbeScalar,
        number: SbeNumber,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let is_float = matches!(number, SbeNumber::Float(_));
        if is_float && scalar.primitive.is_integer() {
            return Err(self.kind_error("an integer", &SbeValue::Number(number)));
        }
        let above = scalar.min.is_none_or(|min| !is_less(number, min));
        let below = scalar.max.is_none_or(|max| !is_less(max, number));
        if above && below && scalar.primitive.write(number, scalar.order, bytes) {
            return Ok(());
        }
        let (least, most) = scalar.primitive.range();
        Err(SbeEncodeError::Range {
            field: self.name.clone(),
            value: number.to_string(),
            min: scalar.min.unwrap_or(least).to_string(),
            max: scalar.max.unwrap_or(most).to_string(),
        })
    }

    pub(super) fn put_decimal(
        &self,
        decimal: &SbeDecimal,
        value: &SbeValue<'_>,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let (mantissa, exponent) = match value {
            SbeValue::Decimal { mantissa, exponent } => (*mantissa, *exponent),
            SbeValue::Number(number) => match number.as_i128() {
                Some(integer) => (integer, 0),
                None => return Err(self.kind_error("a decimal or an integer", value)),
            },
            other => return Err(self.kind_error("a decimal or an integer", other)),
        };
        let mantissa = match decimal.exponent {
            SbeExponent::Constant(target) => self.rescale(mantissa, exponent, target)?,
            SbeExponent::Wire { scalar, offset } => {
                let number = SbeNumber::Signed(exponent.into());
                self.put_number(&scalar, number, &mut bytes[offset..])?;
                mantissa
            }
            SbeExponent::Field { .. } => self.rescale(mantissa, exponent, 0)?,
        };
        let number =
            integer(mantissa).ok_or_else(|| self.range_error(&decimal.mantissa, mantissa))?;
        self.put_number(
            &decimal.mantissa,
            number,
            &mut bytes[decimal.mantissa_offset..],
        )
    }

    /// Returns the mantissa of a decimal for another exponent.
    ///
    /// # Errors
    /// [`SbeEncodeError::Inexact`] if the mantissa would have to be rounded, or does not fit 128 bits.
    pub fn rescale(
        &self,
        mantissa: i128,
        exponent: i32,
        target: i32,
    ) -> Result<i128, SbeEncodeError> {
        let inexact = || SbeEncodeError::Inexact {
            field: self.name.clone(),
            mantissa,
            exponent,
            target,
        };
        if mantissa == 0 || exponent == target {
            return Ok(mantissa);
        }
        let power = i64::from(exponent) - i64::from(target);
        let factor = u32::try_from(power.unsigned_abs()).ok();
        let factor = factor.and_then(|power| 10i128.checked_pow(power));
        let factor = factor.ok_or_else(inexact)?;
        if power >= 0 {
            return mantissa.checked_mul(factor).ok_or_else(inexact);
        }
        match mantissa % factor {
            0 => Ok(mantissa / factor),
            _ => Err(inexact()),
        }
    }

    pub(super) fn put_time(
        &self,
        time: &SbeTime,
        number: SbeNumber,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        self.put_number(&time.scalar, number, &mut bytes[time.offset..])?;
        if let SbeUnitSource::Wire { scalar, offset } = time.unit {
            // Times are read in nanoseconds, and so they are written.
            self.put_number(&scalar, SbeNumber::Unsigned(9), &mut bytes[offset..])?;
        }
        Ok(())
    }

    fn range_error(&self, scalar: &SbeScalar, value: i128) -> SbeEncodeError {
        let (least, most) = scalar.primitive.range();
        SbeEncodeError::Range {
            field: self.name.clone(),
            value: value.to_string(),
            min: scalar.min.unwrap_or(least).to_string(),
            max: scalar.max.unwrap_or(most).to_string(),
        }
    }
}

/// Returns an integer as a number, if it fits 64 bits.
fn integer(value: i128) -> Option<SbeNumber> {
    match i64::try_from(value) {
        Ok(value) => Some(SbeNumber::Signed(value)),
        Err(_) => u64::try_from(value).ok().map(SbeNumber::Unsigned),
    }
}

/// Returns whether a number is less than another. NaN is not less than any number.
fn is_less(one: SbeNumber, two: SbeNumber) -> bool {
    match (one.as_i128(), two.as_i128()) {
        (Some(one), Some(two)) => one < two,
        _ => one.as_f64() < two.as_f64(),
    }
}
