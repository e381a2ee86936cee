//! Payloads of records: a message has one or more records of a layout, and each record is a row.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Field;

use super::{BadValue, DecodedPayloads, PayloadDecoder, PayloadFormat};
use crate::layout::{RecordDecoder, RecordLayout};
use crate::read::staged::Message;
use crate::read::{BATCH_LENGTH, BATCH_ROWS};

impl PayloadFormat for RecordLayout {
    fn fields(&self) -> Vec<Field> {
        self.columns()
    }

    fn has_record_index(&self) -> bool {
        true
    }

    fn decoder(&self, columns: Vec<usize>) -> Arc<dyn PayloadDecoder> {
        Arc::new(RecordDecoder::of_fields(self, columns))
    }
}

impl PayloadDecoder for RecordDecoder {
    fn row_limit(&self) -> usize {
        BATCH_ROWS.min(BATCH_LENGTH / self.record_length())
    }

    fn one_row_lengths(&self) -> (usize, usize) {
        (self.record_length(), self.record_length())
    }

    fn rows(&self, payload: &[u8]) -> Result<Option<usize>, String> {
        let (length, record_length) = (payload.len(), self.record_length());
        if length != 0 && length.is_multiple_of(record_length) {
            Ok(Some(length / record_length))
        } else {
            Err(format!(
                "its {length} bytes are no records of {record_length} bytes"
            ))
        }
    }

    fn columns(
        &self,
        values: &mut Vec<u8>,
        range: Range<usize>,
        messages: &[Message],
    ) -> Result<DecodedPayloads, BadValue> {
        let decoded = self.decode(&values[range]).map_err(|malformed| {
            let (message, record) = message_of_row(messages, malformed.record);
            let reason = format!("record {record}: {malformed}");
            BadValue { message, reason }
        })?;
        Ok(decoded.into())
    }

    fn is_sound(&self, row: &[u8]) -> bool {
        self.first_malformed(row).is_none()
    }
}

/// Returns the message of a row, and the index of the row within the whole message.
fn message_of_row(messages: &[Message], row: usize) -> (usize, usize) {
    let mut first = 0;
    for (number, message) in messages.iter().enumerate() {
        if row < first + message.rows {
            return (number, message.first_row + row - first);
        }
        first += message.rows;
    }
    (messages.len() - 1, row)
}
