//! Values of fields.

use std::borrow::Cow;

use crate::number::SbeNumber;
use crate::plan::{
    DAY_NS, SbeDecimal, SbeExponent, SbeField, SbeKind, SbeScalar, SbeTime, SbeTimeKind,
    SbeTimeUnit, SbeUnitSource,
};
use crate::read::{SbeBlock, SbeMalformed};
use crate::schema::{SbeConstant, SbePresence};
use crate::value::SbeValue;

impl SbeField {
    /// Returns the value of the field in a block.
    ///
    /// The value is [`SbeValue::Null`] if the field is null or newer than the block. A decimal whose exponent is in
    /// another field is the number of its mantissa. A time is a number in the field's unit.
    ///
    /// # Errors
    /// [`SbeMalformed::Text`] or [`SbeMalformed::Value`] if the result cannot hold the bytes.
    #[inline]
    pub fn value<'a>(&'a self, block: SbeBlock<'a>) -> Result<SbeValue<'a>, SbeMalformed> {
        if let SbeKind::Number(scalar) = &self.kind
            && self.presence != SbePresence::Constant
        {
            return Ok(self.number(scalar, block));
        }
        if let Some(constant) = self.constant_value() {
            return Ok(constant);
        }
        match block.bytes_of(self) {
            Some(bytes) => self.value_of(bytes),
            None => Ok(SbeValue::Null),
        }
    }

    /// Returns the value of a number that is not constant.
    #[inline]
    fn number(&self, scalar: &SbeScalar, block: SbeBlock<'_>) -> SbeValue<'static> {
        let number = block.bytes_of(self).and_then(|bytes| scalar.read(bytes));
        let is_null = |number| self.presence == SbePresence::Optional && scalar.is_null(number);
        match number {
            Some(number) if !is_null(number) => SbeValue::Number(number),
            _ => SbeValue::Null,
        }
    }

    /// Returns the value as [`value`](Self::value) does, except for a mantissa with its exponent in another field: the
    /// result is the decimal of both.
    ///
    /// `exponent` returns the number of another field, or `None` if it is null. Its arguments are the number of blocks
    /// outwards, 0 for the field's own block, and the index of the field in that block.
    ///
    /// # Errors
    /// As [`value`](Self::value), and [`SbeMalformed::Value`] if a mantissa has no exponent.
    #[inline]
    pub fn value_with<'a>(
        &'a self,
        block: SbeBlock<'a>,
        exponent: impl FnOnce(usize, usize) -> Option<SbeNumber>,
    ) -> Result<SbeValue<'a>, SbeMalformed> {
        let value = self.value(block)?;
        let (SbeKind::Decimal(decimal), SbeValue::Number(mantissa)) = (&self.kind, &value) else {
            return Ok(value);
        };
        let SbeExponent::Field { levels_up, index } = decimal.exponent else {
            return Ok(value);
        };
        let exponent = exponent(levels_up, index).and_then(SbeNumber::as_i64);
        let exponent = exponent.and_then(|exponent| exponent.try_into().ok());
        match (mantissa.as_i128(), exponent) {
            (Some(mantissa), Some(exponent)) => Ok(SbeValue::Decimal { mantissa, exponent }),
            _ => Err(self.malformed(*mantissa, "has no exponent of a decimal")),
        }
    }

    /// Returns the value of a constant, or `None` if the field is not constant.
    pub fn constant_value(&self) -> Option<SbeValue<'_>> {
        if self.presence != SbePresence::Constant {
            return None;
        }
        Some(match (&self.constant, &self.kind) {
            (Some(SbeConstant::Text(text)), _) => SbeValue::Text(Cow::Borrowed(text)),
            (Some(SbeConstant::Number(number)), SbeKind::Enum { names, .. }) => SbeValue::Symbol {
                number: *number,
                name: names
                    .index_of(*number)
                    .map(|index| names.values[index].name.as_str()),
            },
            (Some(SbeConstant::Number(number)), SbeKind::Character(_)) => character(*number),
            (Some(SbeConstant::Number(number)), _) => SbeValue::Number(*number),
            (None, _) => SbeValue::Null,
        })
    }

    /// Returns whether the bytes of the field are its null value, as if it were optional. A set has no null value.
    pub fn is_null(&self, bytes: &[u8]) -> bool {
        let null = |scalar: &SbeScalar, offset: usize| {
            let number = bytes.get(offset..).and_then(|bytes| scalar.read(bytes));
            number.is_some_and(|number| scalar.is_null(number))
        };
        match &self.kind {
            SbeKind::Number(scalar) | SbeKind::Character(scalar) => null(scalar, 0),
            SbeKind::Enum { scalar, .. } => null(scalar, 0),
            SbeKind::Set { .. } => false,
            SbeKind::Numbers { item, count } => {
                (0..*count).all(|index| null(item, index * item.length()))
            }
            SbeKind::Bytes { item, count } => match item.primitive {
                crate::number::SbePrimitive::Char => bytes.first() == Some(&0),
                _ => (0..*count).all(|index| null(item, index)),
            },
            SbeKind::Text { character_set, .. } => character_set.before_nul(bytes).is_empty(),
            SbeKind::Decimal(decimal) => null(&decimal.mantissa, decimal.mantissa_offset),
            SbeKind::Time(time) => null(&time.scalar, time.offset),
            SbeKind::Struct(composite) => composite.first_encoded().is_some_and(|member| {
                let bytes = bytes.get(member.offset..member.end());
                bytes.is_some_and(|bytes| member.is_null(bytes))
            }),
        }
    }

    /// Returns the value of bytes with exactly the field's length.
    fn value_of<'a>(&'a self, bytes: &'a [u8]) -> Result<SbeValue<'a>, SbeMalformed> {
        if self.presence == SbePresence::Optional && self.is_null(bytes) {
            return Ok(SbeValue::Null);
        }
        let number = |scalar: &SbeScalar| scalar.read(bytes).map(SbeValue::Number);
        Ok(match &self.kind {
            SbeKind::Number(scalar) | SbeKind::Set { scalar, .. } => {
                number(scalar).unwrap_or(SbeValue::Null)
            }
            SbeKind::Character(scalar) => scalar.read(bytes).map_or(SbeValue::Null, character),
            SbeKind::Numbers { item, .. } => {
                let items = bytes.chunks(item.length());
                let items = items.filter_map(|bytes| item.read(bytes));
                SbeValue::List(items.map(SbeValue::Number).collect())
            }
            SbeKind::Bytes { .. } => SbeValue::Bytes(Cow::Borrowed(bytes)),
            SbeKind::Text { character_set, .. } => {
                let text = character_set.before_nul(bytes);
                SbeValue::Text(character_set.decode(text, &self.name)?)
            }
            SbeKind::Enum { scalar, names } => {
                let number = scalar.read(bytes).unwrap_or(scalar.null);
                let name = names.name_of(number);
                SbeValue::Symbol { number, name }
            }
            SbeKind::Decimal(decimal) => self.decimal(decimal, bytes)?,
            SbeKind::Time(time) => SbeValue::from(self.time(time, bytes)?),
            SbeKind::Struct(composite) => {
                let members = composite.members.iter().map(|member| {
                    let bytes = &bytes[member.offset..member.end()];
                    match member.constant_value() {
                        Some(constant) => Ok(constant),
                        None => member.value_of(bytes),
                    }
                });
                SbeValue::Struct(members.collect::<Result<_, _>>()?)
            }
        })
    }

    fn decimal(
        &self,
        decimal: &SbeDecimal,
        bytes: &[u8],
    ) -> Result<SbeValue<'static>, SbeMalformed> {
        let number = decimal.mantissa.read(&bytes[decimal.mantissa_offset..]);
        let number = number.unwrap_or(decimal.mantissa.null);
        let exponent = match decimal.exponent {
            SbeExponent::Constant(exponent) => exponent,
            SbeExponent::Wire { scalar, offset } => {
                let exponent = scalar.read(&bytes[offset..]).unwrap_or(scalar.null);
                let fits = exponent.as_i64().and_then(|it| it.try_into().ok());
                fits.ok_or_else(|| self.malformed(exponent, "is no exponent of a decimal"))?
            }
            SbeExponent::Field { .. } => return Ok(SbeValue::Number(number)),
        };
        Ok(SbeValue::Decimal {
            mantissa: number.as_i128().unwrap_or_default(),
            exponent,
        })
    }

    /// Returns a time of the field in its unit. `bytes` has exactly the field's length.
    ///
    /// # Errors
    /// [`SbeMalformed::Value`] if the time does not fit a signed integer of 64 bits, if its unit is unknown, or if a
    /// time of a day is not in the day.
    pub fn time(&self, time: &SbeTime, bytes: &[u8]) -> Result<i64, SbeMalformed> {
        let number = bytes
            .get(time.offset..)
            .and_then(|bytes| time.scalar.read(bytes));
        let number = number.unwrap_or(time.scalar.null);
        let beyond = || self.malformed(number, "is beyond the times of 64 bits");
        let value = number.as_i64().ok_or_else(beyond)?;
        let in_day = |value: i64, day: i64| {
            let is_in_day = time.kind != SbeTimeKind::TimeOfDay || (0..day).contains(&value);
            let outside = || self.malformed(number, "is not a time of a day");
            is_in_day.then_some(value).ok_or_else(outside)
        };
        let SbeUnitSource::Wire { scalar, offset } = time.unit else {
            return in_day(value, DAY_NS / time.unit().nanoseconds());
        };
        let power = bytes.get(offset..).and_then(|bytes| scalar.read(bytes));
        let power = power.unwrap_or(scalar.null);
        let unit = power.as_u64().and_then(SbeTimeUnit::from_power);
        let unit = unit.ok_or_else(|| self.malformed(power, "is no unit of a time"))?;
        let ns = value.checked_mul(unit.nanoseconds()).ok_or_else(beyond)?;
        in_day(ns, DAY_NS)
    }

    fn malformed(&self, value: SbeNumber, reason: &'static str) -> SbeMalformed {
        SbeMalformed::Value {
            field: self.name.clone(),
            value: value.to_string(),
            reason,
        }
    }
}

/// Returns a `char` as a text of one character. NUL is the empty text, as in texts of fixed length.
fn character(number: SbeNumber) -> SbeValue<'static> {
    let byte = number.as_u64().and_then(|code| u8::try_from(code).ok());
    let character = byte.filter(|byte| *byte != 0).map(char::from);
    SbeValue::Text(Cow::Owned(character.map(String::from).unwrap_or_default()))
}
