//! [`ValueFormat`]: the formats of payloads. Only this folder knows the formats apart.

mod records;
mod value;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::Field;

use super::BATCH_ROWS;
use super::staged::Message;
use crate::layout::RecordLayout;
use crate::sbe::SbeColumns;

/// Format of the messages' payloads.
#[derive(Debug, Clone)]
pub struct ValueFormat(Arc<dyn PayloadFormat>);

/// A format: names and types of its columns, and the creation of decoders.
pub(crate) trait PayloadFormat: Debug + Send + Sync {
    /// Returns all columns of a payload. They are nullable, and their names differ, even if case is ignored.
    fn fields(&self) -> Vec<Field>;

    /// Returns columns that are not among the default columns. Their indexes follow those of the other fields.
    fn more_fields(&self) -> Vec<Field> {
        Vec::new()
    }

    /// Returns whether a message may have several rows. Then the rows have a column `record_index`.
    fn has_record_index(&self) -> bool {
        false
    }

    /// Creates a decoder of the columns with these indexes, in this order.
    fn decoder(&self, columns: Vec<usize>) -> Arc<dyn PayloadDecoder>;
}

/// Decoder of payloads to some columns of a format.
pub(crate) trait PayloadDecoder: Debug + Send + Sync {
    /// Returns whether the decoder reads payloads. If not, all payloads are empty.
    fn reads_payloads(&self) -> bool {
        true
    }

    /// Returns the number of rows that are enough for a record batch.
    fn row_limit(&self) -> usize {
        BATCH_ROWS
    }

    /// Returns whether the rows of a message are parts of its bytes with equal lengths. If not, a message is decoded
    /// as a whole.
    fn rows_are_slices(&self) -> bool {
        true
    }

    /// Returns the least and the greatest length of payloads that are one row in any case, so that
    /// [`rows`](Self::rows) is not called for them.
    fn one_row_lengths(&self) -> (usize, usize) {
        (0, usize::MAX)
    }

    /// Returns the number of rows of a message; `None` if the message is not of this format and is skipped. The error
    /// is the reason why the message is malformed.
    fn rows(&self, payload: &[u8]) -> Result<Option<usize>, String> {
        let _ = payload;
        Ok(Some(1))
    }

    /// Returns the columns for the payloads of `messages`, which are at `range` of `values`. The columns may take over
    /// the bytes of `values`.
    fn columns(
        &self,
        values: &mut Vec<u8>,
        range: Range<usize>,
        messages: &[Message],
    ) -> Result<DecodedPayloads, BadValue>;

    /// Returns whether the columns can hold the bytes of this row. It is called only if rows are slices.
    fn is_sound(&self, row: &[u8]) -> bool {
        let _ = row;
        true
    }

    /// Returns, for each message, whether the columns can hold it. It is called only if rows are not slices.
    fn sound(&self, values: &[u8], range: Range<usize>, messages: &[Message]) -> Vec<bool> {
        let _ = (values, range);
        vec![true; messages.len()]
    }
}

/// The columns for payloads.
#[derive(Debug, Default)]
pub(crate) struct DecodedPayloads {
    pub(crate) columns: Vec<ArrayRef>,
    /// Number of values that are null because the schema does not know them.
    pub(crate) unknown: u64,
}

impl From<Vec<ArrayRef>> for DecodedPayloads {
    fn from(columns: Vec<ArrayRef>) -> Self {
        Self {
            columns,
            unknown: 0,
        }
    }
}

/// A payload that no column can hold.
#[derive(Debug)]
pub(crate) struct BadValue {
    /// Index of the message.
    pub(crate) message: usize,
    pub(crate) reason: String,
}

impl ValueFormat {
    /// Returns the format of any bytes, in a column `value`.
    pub fn binary() -> Self {
        Self(Arc::new(value::BytesFormat))
    }

    /// Returns the format of UTF-8 text, in a column `value`.
    pub fn text() -> Self {
        Self(Arc::new(value::TextFormat))
    }

    /// Returns the format of records of this layout, one after the other, with a column for each field.
    pub fn records(layout: RecordLayout) -> Self {
        Self(Arc::new(layout))
    }

    /// Returns the format of SBE messages of one template. Messages of other templates and schemas are skipped.
    pub fn sbe(columns: SbeColumns) -> Self {
        Self(Arc::new(columns))
    }

    pub(super) fn payload(&self) -> &dyn PayloadFormat {
        self.0.as_ref()
    }
}
