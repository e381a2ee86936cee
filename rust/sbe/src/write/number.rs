//! Writes numbers, decimals and times.

use crate::number::{SbeNumber, SbePrimitive};
use crate::plan::{
    DAY_NS, SbeDecimal, SbeExponent, SbeField, SbeKind, SbeScalar, SbeTime, SbeTimeKind,
    SbeUnitSource,
};
use crate::value::SbeValue;
use crate::write::SbeEncodeError;

impl SbeField {
    pub(super) fn put_number(
        &self,
        scalar: &SbeScalar,
        number: SbeNumber,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let number = match number {
            SbeNumber::Float(float) if scalar.primitive.is_integer() => whole(float)
                .ok_or_else(|| self.kind_error("an integer", &SbeValue::Number(number)))?,
            number => number,
        };
        let above = scalar.min.is_none_or(|min| !number.is_less(min));
        let below = scalar.max.is_none_or(|max| !max.is_less(number));
        let is_finite = !becomes_infinite(scalar.primitive, number);
        if above && below && is_finite && scalar.primitive.write(number, scalar.order, bytes) {
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
        let (mantissa, exponent) = decimal_of(value)
            .ok_or_else(|| self.kind_error("a decimal or a finite number", value))?;
        let mantissa = match decimal.exponent {
            SbeExponent::Constant(target) => self.rescale(mantissa, exponent, target)?,
            SbeExponent::Wire { scalar, offset } => {
                let (mantissa, exponent) = fitted(mantissa, exponent, &decimal.mantissa, &scalar);
                let number = SbeNumber::Signed(exponent.into());
                self.put_number(&scalar, number, &mut bytes[offset..])?;
                mantissa
            }
            SbeExponent::Field { .. } => self.rescale(mantissa, exponent, 0)?,
        };
        let number = self.integer_of(&decimal.mantissa, mantissa)?;
        self.put_number(
            &decimal.mantissa,
            number,
            &mut bytes[decimal.mantissa_offset..],
        )
    }

    /// Returns the place of the exponent, if another field has it: the number of blocks outwards, and the index there.
    pub fn other_exponent(&self) -> Option<(usize, usize)> {
        match &self.kind {
            SbeKind::Decimal(SbeDecimal {
                exponent: SbeExponent::Field { levels_up, index },
                ..
            }) => Some((*levels_up, *index)),
            _ => None,
        }
    }

    /// Returns the mantissa of a decimal. The exponent is the value of another field. Returns `None` if the value is no
    /// number.
    ///
    /// # Errors
    /// The exponent is `None`, or the value would have to be rounded.
    pub fn mantissa_of(
        &self,
        value: &SbeValue<'_>,
        exponent: Option<i32>,
    ) -> Result<Option<SbeValue<'static>>, SbeEncodeError> {
        let Some((mantissa, own_exponent)) = decimal_of(value) else {
            return Ok(None);
        };
        let target = exponent.ok_or_else(|| SbeEncodeError::Unsuitable {
            field: self.name.clone(),
            reason: "the field with its exponent has no value".to_owned(),
        })?;
        let mantissa = self.rescale(mantissa, own_exponent, target)?;
        Ok(Some(SbeValue::Decimal {
            mantissa,
            exponent: 0,
        }))
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
        let day = DAY_NS / time.unit().nanoseconds();
        let is_in_day = number.as_i64().is_none_or(|it| (0..day).contains(&it));
        if time.kind == SbeTimeKind::TimeOfDay && !is_in_day {
            return Err(SbeEncodeError::Range {
                field: self.name.clone(),
                value: number.to_string(),
                min: "0".to_owned(),
                max: (day - 1).to_string(),
            });
        }
        self.put_number(&time.scalar, number, &mut bytes[time.offset..])?;
        if let SbeUnitSource::Wire { scalar, offset } = time.unit {
            // Times are read in nanoseconds, and so they are written.
            self.put_number(&scalar, SbeNumber::Unsigned(9), &mut bytes[offset..])?;
        }
        Ok(())
    }

    /// Returns an integer as a number of at most 64 bits.
    pub(super) fn integer_of(
        &self,
        scalar: &SbeScalar,
        value: i128,
    ) -> Result<SbeNumber, SbeEncodeError> {
        let (least, most) = scalar.primitive.range();
        integer(value).ok_or_else(|| SbeEncodeError::Range {
            field: self.name.clone(),
            value: value.to_string(),
            min: scalar.min.unwrap_or(least).to_string(),
            max: scalar.max.unwrap_or(most).to_string(),
        })
    }
}

/// Returns mantissa and exponent of a decimal, an integer or a float; `None` for another value or no finite number.
///
/// A float is the shortest decimal that is read as the same float.
pub(super) fn decimal_of(value: &SbeValue<'_>) -> Option<(i128, i32)> {
    match value {
        SbeValue::Decimal { mantissa, exponent } => Some((*mantissa, *exponent)),
        SbeValue::Number(SbeNumber::Float(float)) => {
            let text = format!("{float:e}");
            let (digits, exponent) = text.split_once('e')?;
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let exponent: i32 = exponent.parse().ok()?;
            let mantissa = format!("{whole}{fraction}").parse().ok()?;
            Some((mantissa, exponent - i32::try_from(fraction.len()).ok()?))
        }
        SbeValue::Number(number) => Some((number.as_i128()?, 0)),
        _ => None,
    }
}

/// Returns the same decimal with a mantissa and an exponent that their encodings can hold, if there is one.
///
/// A decimal that fits stays as it is. Otherwise its mantissa gets the fewest digits that its exponent allows.
fn fitted(mantissa: i128, exponent: i32, digits: &SbeScalar, power: &SbeScalar) -> (i128, i32) {
    let holds = |scalar: &SbeScalar, number: Option<SbeNumber>| {
        number.is_some_and(|number| {
            let (least, most) = scalar.primitive.range();
            let (least, most) = (scalar.min.unwrap_or(least), scalar.max.unwrap_or(most));
            !number.is_less(least) && !most.is_less(number)
        })
    };
    let exponent_fits = |exponent: i32| holds(power, Some(SbeNumber::Signed(exponent.into())));
    if holds(digits, integer(mantissa)) && exponent_fits(exponent) {
        return (mantissa, exponent);
    }
    let (mut mantissa, mut exponent) = SbeValue::stripped(mantissa, exponent);
    let most = power.max.unwrap_or(power.primitive.range().1);
    let most = most.as_i64().and_then(|most| i32::try_from(most).ok());
    while most.is_some_and(|most| exponent > most) {
        let Some(longer) = mantissa.checked_mul(10) else {
            break;
        };
        (mantissa, exponent) = (longer, exponent - 1);
    }
    (mantissa, exponent)
}

/// Returns a float without fraction as an integer, if all integers up to it are floats.
fn whole(float: f64) -> Option<SbeNumber> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(SbeNumber::Signed(float as i64))
}

/// Returns whether a finite number is too large for a float of 4 bytes.
pub(super) fn becomes_infinite(primitive: SbePrimitive, number: SbeNumber) -> bool {
    let value = number.as_f64();
    primitive == SbePrimitive::Float && value.is_finite() && (value as f32).is_infinite()
}

/// Returns an integer as a number, if it fits 64 bits.
fn integer(value: i128) -> Option<SbeNumber> {
    match i64::try_from(value) {
        Ok(value) => Some(SbeNumber::Signed(value)),
        Err(_) => u64::try_from(value).ok().map(SbeNumber::Unsigned),
    }
}
