//! Blocks: the fixed part of a message or of a group entry.

use crate::number::{SbeByteOrder, SbeNumber, SbePrimitive};
use crate::plan::SbeField;

/// The bytes of one block, with the version of the message.
#[derive(Debug, Clone, Copy)]
pub struct SbeBlock<'a> {
    /// The block with its acting length, which may differ from that of the plan.
    pub bytes: &'a [u8],
    /// Version of the message.
    pub version: u32,
}

impl<'a> SbeBlock<'a> {
    /// Returns the bytes of a field, or `None` if the field is newer than the block. Constants have no bytes.
    #[inline]
    pub fn bytes_of(&self, field: &SbeField) -> Option<&'a [u8]> {
        if field.since_version > self.version {
            return None;
        }
        self.bytes.get(field.offset..field.end())
    }
}

/// Blocks of equal length and version at equal distances: the entries of a group, or a run of fixed messages.
///
/// The constructor checks that all blocks are inside the bytes, so columns are read without further checks.
#[derive(Debug, Clone, Copy)]
pub struct SbeBlocks<'a> {
    bytes: &'a [u8],
    stride: usize,
    length: usize,
    count: usize,
    version: u32,
}

impl<'a> SbeBlocks<'a> {
    /// Describes `count` blocks of `length` bytes. The first begins with `bytes`, and each other `stride` later.
    ///
    /// Returns `None` if a block ends after `bytes`, or if a block is longer than the stride.
    pub fn new(
        bytes: &'a [u8],
        stride: usize,
        length: usize,
        count: usize,
        version: u32,
    ) -> Option<Self> {
        let before_last = stride.checked_mul(count.saturating_sub(1))?;
        let end = before_last.checked_add(length)?;
        let fits = count == 0 || end <= bytes.len() && length <= stride;
        fits.then_some(Self {
            bytes,
            stride,
            length,
            count,
            version,
        })
    }

    /// Describes no blocks: the entries of a group that is absent.
    pub fn none(version: u32) -> Self {
        Self {
            bytes: &[],
            stride: 0,
            length: 0,
            count: 0,
            version,
        }
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the version of the message.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the acting length of each block in bytes.
    pub fn block_length(&self) -> usize {
        self.length
    }

    /// Returns a block. Returns `None` if the index is not below [`Self::len`].
    pub fn get(&self, index: usize) -> Option<SbeBlock<'a>> {
        if index >= self.count {
            return None;
        }
        let begin = index * self.stride;
        Some(SbeBlock {
            bytes: self.bytes.get(begin..begin + self.length)?,
            version: self.version,
        })
    }

    /// Returns `count` blocks from the block with the index `first`. Returns `None` if there are fewer.
    pub fn part(&self, first: usize, count: usize) -> Option<Self> {
        if first.checked_add(count)? > self.count {
            return None;
        }
        let begin = first * self.stride;
        Some(Self {
            bytes: self.bytes.get(begin.min(self.bytes.len())..)?,
            count,
            ..*self
        })
    }

    /// Returns the blocks in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SbeBlock<'a>> + use<'a> {
        let blocks = *self;
        (0..blocks.count).map(move |index| {
            let begin = index * blocks.stride;
            SbeBlock {
                bytes: &blocks.bytes[begin..begin + blocks.length],
                version: blocks.version,
            }
        })
    }

    /// Returns whether the blocks have a field: it is not newer than the blocks.
    pub fn has(&self, field: &SbeField) -> bool {
        field.since_version <= self.version && field.end() <= self.length
    }

    /// Returns `length` bytes at an offset of each block, one after the other.
    ///
    /// Returns `None` if the blocks are shorter than the end of these bytes.
    pub fn slices(
        &self,
        offset: usize,
        length: usize,
    ) -> Option<impl ExactSizeIterator<Item = &'a [u8]> + use<'a>> {
        if offset.checked_add(length)? > self.length {
            return None;
        }
        let blocks = *self;
        Some((0..blocks.count).map(move |index| {
            let begin = index * blocks.stride + offset;
            &blocks.bytes[begin..begin + length]
        }))
    }

    /// As [`slices`](Self::slices), for a length of at least 1: a loop over these values checks fewer bounds.
    ///
    /// Returns `None` also for a length of 0.
    #[inline(always)]
    pub fn values(
        &self,
        offset: usize,
        length: usize,
    ) -> Option<impl Iterator<Item = &'a [u8]> + use<'a>> {
        if length == 0 || offset.checked_add(length)? > self.length {
            return None;
        }
        // The bytes may end with the last block, and before the last stride. A block of at least one byte is within its
        // stride, which is thus not 0 if there are blocks.
        let before_last = self.stride * self.count.saturating_sub(1);
        let from_first = self.bytes.get(offset..).unwrap_or_default();
        let (before_last, last) = from_first.split_at_checked(before_last)?;
        let last = last.get(..length).filter(|_| self.count > 0);
        let values = before_last.chunks_exact(self.stride.max(length));
        Some(values.map(move |value| &value[..length]).chain(last))
    }

    /// Appends the number at an offset of each block to `out`.
    ///
    /// Returns `false`, without a change, if the blocks are shorter than the end of the number.
    pub fn read_into<T: SbeWireNumber>(
        &self,
        offset: usize,
        order: SbeByteOrder,
        out: &mut Vec<T>,
    ) -> bool {
        let size = size_of::<T>();
        if offset.checked_add(size).is_none_or(|end| end > self.length) {
            return false;
        }
        if self.count == 0 {
            return true;
        }
        let end = offset + self.stride * (self.count - 1) + size;
        // Chunks of a stride, of which the last one ends with the number, need no further checks.
        let numbers = self.bytes[offset..end].chunks(self.stride);
        match order {
            SbeByteOrder::Little => out.extend(numbers.map(T::from_little)),
            SbeByteOrder::Big => out.extend(numbers.map(T::from_big)),
        }
        true
    }
}

/// A number with the size of its encoding.
pub trait SbeWireNumber: Copy + PartialOrd + Default {
    /// The primitive type that has this number as its encoding.
    const PRIMITIVE: SbePrimitive;
    /// Returns the number with its value.
    fn number(self) -> SbeNumber;
    /// Returns the value of a number, or `None` if this type cannot hold it. A float is rounded to 4 bytes.
    fn from_number(number: SbeNumber) -> Option<Self>;
    /// Reads the number at the start of `bytes`, whose least significant byte is first.
    ///
    /// Returns 0 if `bytes` is shorter than the number.
    fn from_little(bytes: &[u8]) -> Self;
    /// Reads the number at the start of `bytes`, whose most significant byte is first.
    ///
    /// Returns 0 if `bytes` is shorter than the number.
    fn from_big(bytes: &[u8]) -> Self;
    /// Writes the number to the start of `bytes`, in a byte order. Does nothing if `bytes` is shorter than the number.
    fn write(self, order: SbeByteOrder, bytes: &mut [u8]);
}

macro_rules! wire_numbers {
    ($($number:ty: $primitive:ident, $variant:ident($wide:ty), $convert:expr;)*) => {$(
        impl SbeWireNumber for $number {
            const PRIMITIVE: SbePrimitive = SbePrimitive::$primitive;

            fn number(self) -> SbeNumber {
                SbeNumber::$variant(<$wide>::from(self))
            }

            fn from_number(number: SbeNumber) -> Option<Self> {
                $convert(number)
            }

            #[inline(always)]
            fn from_little(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(Default::default(), |bytes| Self::from_le_bytes(*bytes))
            }

            #[inline(always)]
            fn from_big(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(Default::default(), |bytes| Self::from_be_bytes(*bytes))
            }

            #[inline(always)]
            fn write(self, order: SbeByteOrder, bytes: &mut [u8]) {
                if let Some(place) = bytes.first_chunk_mut() {
                    *place = match order {
                        SbeByteOrder::Little => self.to_le_bytes(),
                        SbeByteOrder::Big => self.to_be_bytes(),
                    };
                }
            }
        }
    )*};
}

wire_numbers! {
    i8: Int8, Signed(i64), |number: SbeNumber| number.as_i64()?.try_into().ok();
    i16: Int16, Signed(i64), |number: SbeNumber| number.as_i64()?.try_into().ok();
    i32: Int32, Signed(i64), |number: SbeNumber| number.as_i64()?.try_into().ok();
    i64: Int64, Signed(i64), |number: SbeNumber| number.as_i64();
    u8: Uint8, Unsigned(u64), |number: SbeNumber| number.as_u64()?.try_into().ok();
    u16: Uint16, Unsigned(u64), |number: SbeNumber| number.as_u64()?.try_into().ok();
    u32: Uint32, Unsigned(u64), |number: SbeNumber| number.as_u64()?.try_into().ok();
    u64: Uint64, Unsigned(u64), |number: SbeNumber| number.as_u64();
    f32: Float, Float(f64), |number: SbeNumber| Some(number.as_f64() as f32);
    f64: Double, Float(f64), |number: SbeNumber| Some(number.as_f64());
}
