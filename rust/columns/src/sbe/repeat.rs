//! [`Repeats`]: repeats the values of messages for the entries of their groups.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;

use super::SbeBadMessage;
use super::budget::Budget;

/// Length of an offset or a key, in bytes.
const OFFSET_LENGTH: usize = 4;

/// The number of entries of each message.
pub(super) struct Repeats {
    counts: Vec<usize>,
    /// Index of the message of each entry.
    messages: UInt64Array,
}

impl Repeats {
    /// Creates the repeats for entries that end at these offsets.
    pub(super) fn new(offsets: &OffsetBuffer<i32>) -> Self {
        let counts: Vec<usize> = offsets.lengths().collect();
        let mut messages = Vec::with_capacity(counts.iter().sum());
        for (message, count) in counts.iter().enumerate() {
            messages.resize(messages.len() + count, message as u64);
        }
        Self {
            counts,
            messages: messages.into(),
        }
    }

    /// Returns the values of the messages for their entries.
    pub(super) fn repeated(
        &self,
        values: &ArrayRef,
        budget: &mut Budget,
    ) -> Result<ArrayRef, SbeBadMessage> {
        let lengths = lengths(values.as_ref());
        let all = lengths.iter().zip(&self.counts);
        let all = all.map(|(length, count)| length.saturating_mul(*count));
        let longest = all.clone().enumerate().max_by_key(|(_, length)| *length);
        let length = all.fold(0, usize::saturating_add);
        let refused = |reason: String| SbeBadMessage {
            message: longest.map_or(0, |(message, _)| message),
            reason,
        };
        budget.repeat(length).map_err(refused)?;
        let taken = arrow_select::take::take(values.as_ref(), &self.messages, None);
        taken.map_err(|error| refused(error.to_string()))
    }
}

/// Returns the number of bytes of each value that a copy of it takes.
pub(super) fn lengths(values: &dyn Array) -> Vec<usize> {
    let rows = values.len();
    let plus_offset = |length: usize| length + OFFSET_LENGTH;
    match values.data_type() {
        DataType::Utf8 => {
            let lengths = values.as_string::<i32>().offsets().lengths();
            lengths.map(plus_offset).collect()
        }
        DataType::LargeUtf8 => {
            let lengths = values.as_string::<i64>().offsets().lengths();
            lengths.map(plus_offset).collect()
        }
        DataType::LargeBinary => {
            let lengths = values.as_binary::<i64>().offsets().lengths();
            lengths.map(plus_offset).collect()
        }
        DataType::LargeList(_) => {
            let lists = values.as_list::<i64>();
            let items = lengths(lists.values());
            let bytes = |range: &[i64]| {
                let items = items.get(range[0] as usize..range[1] as usize);
                items.unwrap_or_default().iter().sum()
            };
            let ranges = lists.value_offsets().windows(2);
            ranges.map(|range| plus_offset(bytes(range))).collect()
        }
        DataType::Binary => {
            let lengths = values.as_binary::<i32>().offsets().lengths();
            lengths.map(plus_offset).collect()
        }
        DataType::FixedSizeBinary(length) => {
            vec![usize::try_from(*length).unwrap_or_default(); rows]
        }
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            let mut items = lengths(lists.values()).into_iter();
            let counts = lists.offsets().lengths();
            counts
                .map(|count| plus_offset(items.by_ref().take(count).sum()))
                .collect()
        }
        DataType::FixedSizeList(_, count) => {
            let items = lengths(values.as_fixed_size_list().values());
            let count = usize::try_from(*count).unwrap_or_default().max(1);
            items
                .chunks(count)
                .map(|items| items.iter().sum())
                .collect()
        }
        DataType::Struct(_) => {
            let mut all = vec![0; rows];
            for column in values.as_struct().columns() {
                let lengths = lengths(column.as_ref());
                all.iter_mut()
                    .zip(lengths)
                    .for_each(|(all, length)| *all += length);
            }
            all
        }
        other => vec![other.primitive_width().unwrap_or(OFFSET_LENGTH); rows],
    }
}
