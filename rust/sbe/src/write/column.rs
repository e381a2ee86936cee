//! Writes columns of numbers into blocks at equal distances.

use crate::number::SbeByteOrder;
use crate::plan::{SbeExponent, SbeField, SbeKind, SbeScalar, SbeTimeKind, SbeUnitSource};
use crate::read::SbeWireNumber;
use crate::schema::SbePresence;
use crate::value::SbeValue;
use crate::write::SbeEncodeError;

/// Writes a number at an offset of each block, for blocks that are `stride` bytes apart.
///
/// The first block begins with `blocks`. Returns `false` if the number of the last block would end after `blocks`, or
/// if a number would end after its stride. Then nothing is written. The numbers are not checked: the caller compares
/// them with limits and null values.
pub fn write_column<T: SbeWireNumber>(
    blocks: &mut [u8],
    stride: usize,
    offset: usize,
    order: SbeByteOrder,
    numbers: impl ExactSizeIterator<Item = T>,
) -> bool {
    let count = numbers.len();
    if count == 0 {
        return true;
    }
    let end_in_block = offset.saturating_add(size_of::<T>());
    let end = stride
        .checked_mul(count - 1)
        .and_then(|last| last.checked_add(end_in_block));
    if end_in_block > stride || end.is_none_or(|end| end > blocks.len()) {
        return false;
    }
    for (place, number) in blocks[offset..].chunks_mut(stride).zip(numbers) {
        number.write(order, place);
    }
    true
}

impl SbeField {
    /// Writes the field into blocks that are `stride` bytes apart, with the checks of [`SbeField::put`].
    ///
    /// The first block begins with `blocks`, and its bytes are zero. A number of a decimal with a constant exponent is
    /// its mantissa. If the type of the numbers is that of the encoding, this is much faster than single calls.
    ///
    /// # Errors
    /// The first number that cannot be encoded, with its index. The numbers before it are written.
    pub fn put_column<T: SbeWireNumber>(
        &self,
        blocks: &mut [u8],
        stride: usize,
        numbers: impl ExactSizeIterator<Item = Option<T>>,
    ) -> Result<(), (usize, SbeEncodeError)> {
        let count = numbers.len();
        let needed = stride.saturating_mul(count.saturating_sub(1));
        let needed = needed.saturating_add(self.end());
        if count > 0 && (needed > blocks.len() || self.end() > stride) {
            let available = blocks.len();
            return Err((0, SbeEncodeError::Buffer { needed, available }));
        }
        match self.single_number() {
            Some((scalar, offset)) if scalar.primitive == T::PRIMITIVE => {
                let encoding = ColumnEncoding::new(scalar, self.presence);
                let places = blocks.chunks_mut(stride.max(1));
                for (index, (place, number)) in places.zip(numbers).enumerate() {
                    match encoding.checked(number) {
                        Some(number) => number.write(scalar.order, &mut place[offset..]),
                        // The general way finds the reason.
                        None => self
                            .put_mantissa(place, number)
                            .map_err(|error| (index, error))?,
                    }
                }
                Ok(())
            }
            _ => {
                let places = blocks.chunks_mut(stride.max(1));
                for (index, (place, number)) in places.zip(numbers).enumerate() {
                    self.put_mantissa(place, number)
                        .map_err(|error| (index, error))?;
                }
                Ok(())
            }
        }
    }

    /// Returns the only number of the field and its offset in the block.
    fn single_number(&self) -> Option<(&SbeScalar, usize)> {
        if self.presence == SbePresence::Constant {
            return None;
        }
        match &self.kind {
            SbeKind::Number(scalar)
            | SbeKind::Enum { scalar, .. }
            | SbeKind::Set { scalar, .. } => Some((scalar, self.offset)),
            SbeKind::Decimal(decimal) => match decimal.exponent {
                SbeExponent::Wire { .. } => None,
                _ => Some((&decimal.mantissa, self.offset + decimal.mantissa_offset)),
            },
            SbeKind::Time(time) => match time.unit {
                // The general way checks times of a day.
                _ if time.kind == SbeTimeKind::TimeOfDay => None,
                SbeUnitSource::Wire { .. } => None,
                SbeUnitSource::Constant(_) => Some((&time.scalar, self.offset + time.offset)),
            },
            _ => None,
        }
    }

    /// Writes one number. For a decimal with a constant exponent, it is the mantissa.
    fn put_mantissa<T: SbeWireNumber>(
        &self,
        block: &mut [u8],
        number: Option<T>,
    ) -> Result<(), SbeEncodeError> {
        let number = number.map(T::number);
        let exponent = match &self.kind {
            SbeKind::Decimal(decimal) => match decimal.exponent {
                SbeExponent::Constant(exponent) => Some(exponent),
                _ => None,
            },
            _ => None,
        };
        let value = match (number, exponent) {
            (None, _) => SbeValue::Null,
            (Some(number), Some(exponent)) => match number.as_i128() {
                Some(mantissa) => SbeValue::Decimal { mantissa, exponent },
                None => SbeValue::Number(number),
            },
            (Some(number), None) => SbeValue::Number(number),
        };
        self.put(block, &value)
    }
}

/// Limits of a column with the type of its encoding.
struct ColumnEncoding<T> {
    /// The null value, if the field is optional.
    null: Option<T>,
    min: Option<T>,
    max: Option<T>,
}

impl<T: SbeWireNumber> ColumnEncoding<T> {
    fn new(scalar: &SbeScalar, presence: SbePresence) -> Self {
        let null = T::from_number(scalar.null);
        Self {
            null: null.filter(|_| presence == SbePresence::Optional),
            min: scalar.min.and_then(T::from_number),
            max: scalar.max.and_then(T::from_number),
        }
    }

    /// Returns the number to be written. Returns `None` if the number is not valid, or is missing in a required field.
    fn checked(&self, number: Option<T>) -> Option<T> {
        let Some(number) = number else {
            return self.null;
        };
        let above = self.min.is_none_or(|min| number >= min);
        let below = self.max.is_none_or(|max| number <= max);
        let is_value = self.null.is_none_or(|null| number != null);
        (above && below && is_value).then_some(number)
    }
}
