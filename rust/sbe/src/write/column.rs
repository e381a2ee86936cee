//! Writes a column of numbers into blocks at equal distances.

use crate::number::SbeByteOrder;
use crate::read::SbeWireNumber;

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
