//! [`Packing`]: packs several records into one message.

use aeron_memory::log::append::FixedLengthMessages;

use super::messages::{Payloads, Reserved, ReservedValue};
use super::rows::Rows;

/// Records of a stream that are packed into messages.
#[derive(Debug)]
pub struct Packing {
    record_length: usize,
    records_per_message: usize,
    /// Records that are not sent yet. The first record begins a message.
    pending: Vec<u8>,
    /// The reserved value of the first record of each message in `pending`.
    reserved_values: Vec<i64>,
    /// Number of messages that were sent.
    sent: u64,
}

impl Packing {
    /// Creates the packing without records. A message has `records_per_message` records of `record_length` bytes.
    pub fn new(record_length: usize, records_per_message: usize) -> Self {
        Self {
            record_length,
            records_per_message,
            pending: Vec::new(),
            reserved_values: Vec::new(),
            sent: 0,
        }
    }

    /// Adds a row. Its reserved value is used if the row begins a message.
    #[inline]
    pub fn push(&mut self, rows: &Rows<'_>, row: usize) {
        if self.pending.len().is_multiple_of(self.message_length()) {
            let values = rows.headers.reserved_values;
            self.reserved_values
                .push(values.map_or(0, |values| values[row]));
        }
        self.pending.extend_from_slice(rows.payloads.at(row));
    }

    /// Returns the messages that are complete.
    pub fn complete(&self) -> Payloads<'_> {
        let length = self.message_length();
        self.messages(length, self.pending.len() / length)
    }

    /// Returns the last message, which may have fewer records than the others. Call this method after the complete
    /// messages were sent.
    pub fn last(&self) -> Payloads<'_> {
        let length = self.pending.len();
        self.messages(length, usize::from(length > 0))
    }

    fn messages(&self, length: usize, count: usize) -> Payloads<'_> {
        let records = FixedLengthMessages::new(&self.pending, length, length, count);
        Payloads::Fixed(records.expect("`count` messages are pending"))
    }

    /// Returns the reserved values of the messages that are not sent yet. Message numbers are in the order of sending.
    pub fn reserved(&self, kind: ReservedValue) -> Reserved<'_> {
        match kind {
            ReservedValue::Zero => Reserved::Zero,
            ReservedValue::Column => Reserved::Column(&self.reserved_values),
            ReservedValue::Keys(key) => Reserved::Keys {
                key,
                first: self.sent,
            },
        }
    }

    /// Removes the first `messages` messages, which were sent. Returns their number of records.
    pub fn remove(&mut self, messages: usize) -> usize {
        let length = (messages * self.message_length()).min(self.pending.len());
        self.pending.drain(..length);
        self.reserved_values.drain(..messages);
        self.sent += messages as u64;
        length / self.record_length
    }

    /// Returns the number of records in a full message, and the length of a record in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.records_per_message, self.record_length)
    }

    fn message_length(&self) -> usize {
        self.record_length * self.records_per_message
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;

    fn reserved_values(packing: &Packing) -> Vec<i64> {
        match packing.reserved(ReservedValue::Column) {
            Reserved::Column(values) => values.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// 08-64
    #[test]
    fn messages_have_the_set_number_of_records_and_the_last_message_has_the_rest() {
        let batch = RecordBatch::try_from_iter([
            (
                "value",
                Arc::new(StringArray::from_iter_values([
                    "00", "11", "22", "33", "44", "55", "66",
                ])) as ArrayRef,
            ),
            (
                "reserved_value",
                Arc::new(Int64Array::from_iter_values(0..7)),
            ),
        ])
        .unwrap();
        let rows = Rows::of(&batch).unwrap();
        let mut packing = Packing::new(2, 3);
        (0..7).for_each(|row| packing.push(&rows, row));
        assert_eq!(packing.complete().count(), 2);
        assert_eq!(packing.complete().at(1), b"334455");
        assert_eq!(reserved_values(&packing), [0, 3, 6]);
        assert_eq!(packing.remove(1), 3);
        assert_eq!((packing.complete().count(), packing.sent), (1, 1));
        assert_eq!(packing.remove(1), 3);
        assert_eq!((packing.complete().count(), packing.last().count()), (0, 1));
        assert_eq!(packing.last().at(0), b"66");
        assert_eq!(reserved_values(&packing), [6]);
        assert_eq!(packing.remove(1), 1);
        assert_eq!(packing.last().count(), 0);
    }
}
