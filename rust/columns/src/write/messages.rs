//! Columns as messages: what appending a batch asks for, answered by Arrow memory without a copy.

use aeron_memory::log::append::Records;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, FixedSizeBinaryArray, GenericByteArray};
use arrow_schema::DataType;

use super::key::MessageKey;

/// The values of a column, each the payload of one message.
#[derive(Debug, Clone, Copy)]
pub enum Payloads<'a> {
    /// Of `binary` or `string`.
    Small(Slices<'a, i32>),
    /// Of `large_binary` or `large_string`.
    Large(Slices<'a, i64>),
    /// Of `fixed_size_binary`, or records.
    Fixed(Records<'a>),
}

/// Values that lie one behind the other, each ending where the next one begins.
#[derive(Debug, Clone, Copy)]
pub struct Slices<'a, O> {
    data: &'a [u8],
    offsets: &'a [O],
}

/// What the reserved values of the frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedValue {
    /// 0.
    Zero,
    /// The column [`RESERVED_VALUE`](super::RESERVED_VALUE).
    Column,
    /// Keys of the messages.
    Keys(MessageKey),
}

/// The reserved values of messages.
#[derive(Debug, Clone, Copy)]
pub enum Reserved<'a> {
    /// 0.
    Zero,
    /// One per message.
    Column(&'a [i64]),
    /// Keys, from that of message `first` on.
    Keys {
        /// Keys of the partition.
        key: MessageKey,
        /// Number of the message at index 0.
        first: u64,
    },
}

/// Messages for a publication, out of columns.
#[derive(Debug, Clone, Copy)]
pub struct ArrowMessages<'a> {
    /// Their payloads.
    pub payloads: Payloads<'a>,
    /// Their reserved values.
    pub reserved: Reserved<'a>,
    /// Which of the payloads and reserved values are messages, in this order; all if there is none.
    pub order: Option<&'a [u32]>,
}

impl<'a> Payloads<'a> {
    /// The values of a column of bytes or text; `None` for one of another type. Nulls count as empty.
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

    /// Records of this length, one behind the other.
    pub fn records(bytes: &'a [u8], length: usize) -> Self {
        let count = bytes.len().checked_div(length).unwrap_or_default();
        let records = Records::new(bytes, length, length, count);
        Self::Fixed(records.expect("so many are there"))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Small(slices) => slices.offsets.len() - 1,
            Self::Large(slices) => slices.offsets.len() - 1,
            Self::Fixed(records) => aeron_memory::log::append::Messages::count(records),
        }
    }

    /// The one at this place, which is below their number.
    #[inline(always)]
    pub fn at(&self, index: usize) -> &[u8] {
        match self {
            Self::Small(slices) => slices.at(index),
            Self::Large(slices) => slices.at(index),
            Self::Fixed(records) => aeron_memory::log::append::Messages::message(records, index),
        }
    }
}

fn slices<T: ByteArrayType>(array: &GenericByteArray<T>) -> Slices<'_, T::Offset> {
    Slices {
        data: array.value_data(),
        offsets: array.value_offsets(),
    }
}

fn records(array: &FixedSizeBinaryArray) -> Option<Records<'_>> {
    let length = usize::try_from(array.value_length()).ok()?;
    Records::new(array.value_data(), length, length, array.len())
}

impl<O: Copy + TryInto<usize>> Slices<'_, O> {
    #[inline(always)]
    fn at(&self, index: usize) -> &[u8] {
        // Whoever hands the array over has checked that offsets ascend and lie within the data.
        let offset = |index: usize| self.offsets[index].try_into().unwrap_or_default();
        &self.data[offset(index)..offset(index + 1)]
    }
}

impl ArrowMessages<'_> {
    /// Where among payloads and reserved values the message at `index` is; `index` may be the number of messages.
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

impl aeron_memory::log::append::Messages for ArrowMessages<'_> {
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
