//! Columns as messages: the input of a batch append, in Arrow memory, without a copy.

use std::ops::Sub;

use aeron_memory::log::append::FixedLengthMessages;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, FixedSizeBinaryArray, GenericByteArray};
use arrow_schema::DataType;

use super::key::MessageKey;

/// Values of a column. Each value is the payload of one message.
#[derive(Debug, Clone, Copy)]
pub enum Payloads<'a> {
    /// The values of a `binary` or `string` column.
    Small(Slices<'a, i32>),
    /// The values of a `large_binary` or `large_string` column.
    Large(Slices<'a, i64>),
    /// The values of a `fixed_size_binary` column, or records.
    Fixed(FixedLengthMessages<'a>),
}

/// Consecutive values. Each value ends where the next value begins.
#[derive(Debug, Clone, Copy)]
pub struct Slices<'a, O> {
    data: &'a [u8],
    offsets: &'a [O],
}

/// The source of the reserved values of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedValue {
    /// The reserved value is 0.
    Zero,
    /// The values of the column [`RESERVED_VALUE`](super::RESERVED_VALUE).
    Column,
    /// Keys of the messages.
    Keys(MessageKey),
}

/// The reserved values of messages.
#[derive(Debug, Clone, Copy)]
pub enum Reserved<'a> {
    /// The reserved value is 0.
    Zero,
    /// One value for each message.
    Column(&'a [i64]),
    /// Keys of the messages from `first` on.
    Keys {
        /// Keys of the partition.
        key: MessageKey,
        /// Number of the message at index 0.
        first: u64,
    },
}

/// Messages for a publication, from columns.
#[derive(Debug, Clone, Copy)]
pub struct ArrowMessages<'a> {
    /// Payloads of the messages.
    pub payloads: Payloads<'a>,
    /// Reserved values of the messages.
    pub reserved: Reserved<'a>,
    /// Indexes of the payloads and reserved values to send, in this order; `None` for all.
    pub order: Option<&'a [u32]>,
}

impl<'a> Payloads<'a> {
    /// Returns the values of a column of bytes or text; `None` for another type. A null is an empty value.
    pub fn of(column: &'a dyn Array) -> Option<Self> {
        Some(match column.data_type() {
            DataType::Binary => Self::Small(slices::<BinaryType>(column.as_bytes())),
            DataType::Utf8 => Self::Small(slices::<Utf8Type>(column.as_bytes())),
            DataType::LargeBinary => Self::Large(slices::<LargeBinaryType>(column.as_bytes())),
            DataType::LargeUtf8 => Self::Large(slices::<LargeUtf8Type>(column.as_bytes())),
            DataType::FixedSizeBinary(_) => Self::Fixed(records(column.as_fixed_size_binary())?),
            _ => return None,
        })
    }

    /// Creates payloads from consecutive values. `offsets` has the start of each value, and the end of the last.
    pub fn slices(data: &'a [u8], offsets: &'a [i32]) -> Self {
        Self::Small(Slices { data, offsets })
    }

    /// Creates payloads from consecutive records of this length.
    pub fn records(bytes: &'a [u8], length: usize) -> Self {
        let count = bytes.len().checked_div(length).unwrap_or_default();
        let records = FixedLengthMessages::new(bytes, length, length, count);
        Self::Fixed(records.expect("`bytes` contains `count` records"))
    }

    /// Returns the number of payloads.
    pub fn count(&self) -> usize {
        match self {
            Self::Small(slices) => slices.offsets.len() - 1,
            Self::Large(slices) => slices.offsets.len() - 1,
            Self::Fixed(records) => aeron_memory::log::append::MessageBatch::count(records),
        }
    }

    /// Returns the bytes of all payloads, if the payloads are one after the other: each begins where the one before it
    /// ends, and the first at the offset that is returned too.
    pub fn consecutive(&self) -> Option<(&'a [u8], usize)> {
        let offset = |offset: Option<i64>| usize::try_from(offset?).ok();
        match self {
            Self::Small(slices) => {
                let first = slices.offsets.first().map(|offset| i64::from(*offset));
                Some((slices.data, offset(first)?))
            }
            Self::Large(slices) => Some((slices.data, offset(slices.offsets.first().copied())?)),
            Self::Fixed(_) => None,
        }
    }

    /// Returns the bytes of all payloads and their length, if they are one after the other and have the same length.
    pub fn uniform(&self) -> Option<(&'a [u8], usize)> {
        match self {
            Self::Small(slices) => slices.uniform(),
            Self::Large(slices) => slices.uniform(),
            Self::Fixed(_) => None,
        }
    }

    /// Returns the payload at `index`, which is below [`count`](Self::count).
    #[inline(always)]
    pub fn at(&self, index: usize) -> &[u8] {
        match self {
            Self::Small(slices) => slices.at(index),
            Self::Large(slices) => slices.at(index),
            Self::Fixed(records) => {
                aeron_memory::log::append::MessageBatch::message(records, index)
            }
        }
    }
}

fn slices<T: ByteArrayType>(array: &GenericByteArray<T>) -> Slices<'_, T::Offset> {
    Slices {
        data: array.value_data(),
        offsets: array.value_offsets(),
    }
}

fn records(array: &FixedSizeBinaryArray) -> Option<FixedLengthMessages<'_>> {
    let length = usize::try_from(array.value_length()).ok()?;
    FixedLengthMessages::new(array.value_data(), length, length, array.len())
}

impl<'a, O: Copy + PartialEq + Sub<Output = O> + TryInto<usize>> Slices<'a, O> {
    fn uniform(&self) -> Option<(&'a [u8], usize)> {
        let [first, second, ..] = *self.offsets else {
            return None;
        };
        let length = second - first;
        let mut lengths = self.offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let is_uniform = lengths.all(|other| other == length);
        let begin = first.try_into().ok()?;
        let end = (*self.offsets.last()?).try_into().ok()?;
        let length = length.try_into().ok().filter(|length| *length > 0)?;
        is_uniform.then_some((self.data.get(begin..end)?, length))
    }
}

impl<O: Copy + TryInto<usize>> Slices<'_, O> {
    #[inline(always)]
    fn at(&self, index: usize) -> &[u8] {
        // Valid arrays have ascending offsets within the data.
        let offset = |index: usize| self.offsets[index].try_into().unwrap_or_default();
        &self.data[offset(index)..offset(index + 1)]
    }
}

impl ArrowMessages<'_> {
    /// Returns the index at which `payloads` and `reserved` have the values of the message at `index`. If `index` is
    /// the number of messages, returns the number of payloads.
    #[inline(always)]
    pub fn place(&self, index: usize) -> usize {
        match self.order {
            None => index,
            Some(order) => order
                .get(index)
                .map_or(self.payloads.count(), |place| *place as usize),
        }
    }
}

impl aeron_memory::log::append::MessageBatch for ArrowMessages<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.order
            .map_or_else(|| self.payloads.count(), <[u32]>::len)
    }

    #[inline(always)]
    fn message(&self, index: usize) -> &[u8] {
        self.payloads.at(self.place(index))
    }

    #[inline]
    fn uniform_length(&self) -> Option<usize> {
        match &self.payloads {
            Payloads::Fixed(records) => records.uniform_length(),
            _ => None,
        }
    }

    #[inline(always)]
    fn reserved_value(&self, index: usize) -> i64 {
        match self.reserved {
            Reserved::Zero => 0,
            Reserved::Column(values) => values[self.place(index)],
            Reserved::Keys { key, first } => key.of(first + self.place(index) as u64),
        }
    }
}
