//! Writes columns of numbers into blocks.

use crate::number::SbeByteOrder;
use crate::plan::{SbeExponent, SbeField, SbeKind, SbeScalar, SbeTimeKind, SbeUnitSource};
use crate::read::SbeWireNumber;
use crate::schema::SbePresence;
use crate::value::SbeValue;

impl SbeField {
    /// Writes the field into blocks that begin at `places`, if its encoding is a number of the type `T`.
    ///
    /// The bytes of each block are zero. The numbers are the encoded ones: mantissas of decimals with a constant
    /// exponent, and times in the unit of the field.
    ///
    /// Returns whether all numbers are written. If not, the field has another encoding, a number or a place is missing,
    /// or a number is not valid: [`SbeField::put`] finds the reason. Some numbers may be written then.
    #[must_use]
    pub fn put_column<T: SbeWireNumber>(
        &self,
        bytes: &mut [u8],
        places: &[u32],
        numbers: &[T],
    ) -> bool {
        let single = self.single_number();
        let single = single.filter(|(scalar, _)| scalar.primitive == T::PRIMITIVE);
        let Some((scalar, offset)) = single else {
            return false;
        };
        let Some(bytes) = bytes.get_mut(offset..) else {
            return false;
        };
        // A constant order in each loop: the loop does not ask for it again.
        places.len() == numbers.len()
            && self.are_valid(scalar, numbers)
            && match scalar.order {
                SbeByteOrder::Little => write_all(bytes, places, numbers, |number, place| {
                    number.write(SbeByteOrder::Little, place);
                }),
                SbeByteOrder::Big => write_all(bytes, places, numbers, |number, place| {
                    number.write(SbeByteOrder::Big, place);
                }),
            }
    }

    /// Writes null into blocks that begin at `places`. Returns whether all nulls are written: if not, the field is
    /// required, or a block is not in the bytes.
    #[must_use]
    pub fn put_nulls(&self, bytes: &mut [u8], places: &[u32]) -> bool {
        let mut null = vec![0; self.end()];
        if places.is_empty() || self.put(&mut null, &SbeValue::Null).is_err() {
            return places.is_empty();
        }
        let null = &null[self.offset..];
        places.iter().all(|place| {
            let begin = *place as usize + self.offset;
            let field = bytes.get_mut(begin..begin + null.len());
            field.is_some_and(|field| {
                field.copy_from_slice(null);
                true
            })
        })
    }

    /// Returns whether numbers are between the limits, and are not null. The loop has no exit, so that the compiler can
    /// make vector instructions of it.
    fn are_valid<T: SbeWireNumber>(&self, scalar: &SbeScalar, numbers: &[T]) -> bool {
        let null = T::from_number(scalar.null);
        let null = null.filter(|_| self.presence == SbePresence::Optional);
        let limit = |limit: Option<_>| limit.and_then(T::from_number);
        let (min, max) = (limit(scalar.min), limit(scalar.max));
        match (null, min, max) {
            (None, None, None) => true,
            (Some(null), None, None) => numbers.iter().fold(true, |all, it| all & (*it != null)),
            _ => numbers.iter().fold(true, |all, it| {
                let is_value = null.is_none_or(|null| *it != null);
                let above = min.is_none_or(|min| *it >= min);
                let below = max.is_none_or(|max| *it <= max);
                all & is_value & above & below
            }),
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
                SbeExponent::Constant(_) => {
                    Some((&decimal.mantissa, self.offset + decimal.mantissa_offset))
                }
                _ => None,
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
}

/// Writes each number at its place. Returns whether all places are inside of the bytes.
#[inline(always)]
fn write_all<T: SbeWireNumber>(
    bytes: &mut [u8],
    places: &[u32],
    numbers: &[T],
    write: impl Fn(T, &mut [u8]),
) -> bool {
    let mut is_inside = true;
    for (place, number) in places.iter().zip(numbers) {
        let begin = *place as usize;
        match bytes.get_mut(begin..begin + size_of::<T>()) {
            Some(place) => write(*number, place),
            None => is_inside = false,
        }
    }
    is_inside
}
