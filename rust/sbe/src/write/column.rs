//! Writes columns of numbers into blocks.

use crate::number::SbeByteOrder;
use crate::plan::{SbeExponent, SbeField, SbeKind, SbeScalar, SbeTimeKind, SbeUnitSource};
use crate::read::SbeWireNumber;
use crate::schema::SbePresence;
use crate::value::SbeValue;
use crate::write::SbeEncodeError;

impl SbeField {
    /// Writes the field into blocks that begin at `places`, with the checks of [`SbeField::put`].
    ///
    /// The bytes of each block are zero. A number of a decimal with a constant exponent is its mantissa. If the type of
    /// the numbers is that of the encoding, this is much faster than single calls. Numbers without a place are ignored.
    ///
    /// # Errors
    /// The first number that cannot be encoded, with its index. The numbers before it are written.
    pub fn put_column<T: SbeWireNumber>(
        &self,
        bytes: &mut [u8],
        places: &[u32],
        numbers: impl Iterator<Item = Option<T>>,
    ) -> Result<(), (usize, SbeEncodeError)> {
        let of_type = self.single_number();
        let of_type = of_type.filter(|(scalar, _)| scalar.primitive == T::PRIMITIVE);
        let encoding = of_type.map(|(scalar, _)| ColumnEncoding::new(scalar, self.presence));
        let (Some((scalar, offset)), Some(encoding)) = (of_type, encoding) else {
            let mut numbered = places.iter().zip(numbers).enumerate();
            return numbered.try_for_each(|(index, (place, number))| {
                self.put_at(bytes, *place, number)
                    .map_err(|error| (index, error))
            });
        };
        // A constant order in each loop: the loop does not ask for it again.
        let mut general = |bytes: &mut [u8], place, number| self.put_at(bytes, place, number);
        let target = (bytes, places, offset);
        match scalar.order {
            SbeByteOrder::Little => {
                write_numbers(target, numbers, &encoding, &mut general, |number, place| {
                    number.write(SbeByteOrder::Little, place);
                })
            }
            SbeByteOrder::Big => {
                write_numbers(target, numbers, &encoding, &mut general, |number, place| {
                    number.write(SbeByteOrder::Big, place);
                })
            }
        }
    }

    /// Writes one number into the block at a place.
    #[cold]
    fn put_at<T: SbeWireNumber>(
        &self,
        bytes: &mut [u8],
        place: u32,
        number: Option<T>,
    ) -> Result<(), SbeEncodeError> {
        let (begin, available) = (place as usize, bytes.len());
        let needed = begin.saturating_add(self.end());
        let block = bytes.get_mut(begin..needed);
        let block = block.ok_or(SbeEncodeError::Buffer { needed, available })?;
        self.put_mantissa(block, number)
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

/// Writes numbers `offset` bytes after their places. `general` writes a number that is not valid, or finds the reason.
#[inline(always)]
fn write_numbers<T: SbeWireNumber>(
    (bytes, places, offset): (&mut [u8], &[u32], usize),
    numbers: impl Iterator<Item = Option<T>>,
    encoding: &ColumnEncoding<T>,
    general: &mut impl FnMut(&mut [u8], u32, Option<T>) -> Result<(), SbeEncodeError>,
    write: impl Fn(T, &mut [u8]),
) -> Result<(), (usize, SbeEncodeError)> {
    for (index, (place, number)) in places.iter().zip(numbers).enumerate() {
        let begin = *place as usize + offset;
        let target = bytes.get_mut(begin..begin + size_of::<T>());
        match (encoding.checked(number), target) {
            (Some(number), Some(target)) => write(number, target),
            _ => general(bytes, *place, number).map_err(|error| (index, error))?,
        }
    }
    Ok(())
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
    #[inline(always)]
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
