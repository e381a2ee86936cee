//! [`RowEncoding`]: the formats of the payloads that rows are encoded into.

use std::fmt::Debug;

use arrow_array::RecordBatch;

use super::messages::Payloads;
use super::packing::Packing;
use super::rows::{RowSendError, Rows};
use crate::layout::RecordLayout;

/// Number of rows that are encoded as records before they are sent. The number is small, so that the encoded records
/// stay in the processor's cache.
pub(crate) const ENCODED_ROWS: usize = 4096;

/// Conversion of rows to payloads in one format.
pub trait RowEncoding: Debug + Send + Sync {
    /// Returns the maximum number of rows that the caller encodes before it sends them.
    fn rows_at_once(&self) -> usize {
        usize::MAX
    }

    /// Returns one payload for each row. The payloads are in the columns, or in `encoded`, which is overwritten.
    ///
    /// # Errors
    /// A column is missing or has another type, or a value does not fit.
    fn payloads<'a>(
        &self,
        rows: &'a RecordBatch,
        encoded: &'a mut EncodedRows,
    ) -> Result<Payloads<'a>, RowSendError>;

    /// Creates the packing of several rows into one message; `None` if each row is a message.
    fn packing(&self) -> Option<Packing> {
        None
    }
}

/// Encoded payloads, one after the other.
#[derive(Debug, Default)]
pub struct EncodedRows {
    /// The bytes of all payloads.
    pub bytes: Vec<u8>,
    /// Offset of the start of each payload, and of the end of the last; unused for payloads of the same length.
    pub offsets: Vec<i32>,
}

impl EncodedRows {
    /// Returns the payloads between the offsets.
    pub fn payloads(&self) -> Payloads<'_> {
        Payloads::slices(&self.bytes, &self.offsets)
    }
}

/// Payloads in a column [`VALUE`](super::VALUE) of bytes or text.
#[derive(Debug, Clone, Copy)]
pub struct ValueColumn;

/// Encoding of rows as records.
#[derive(Debug, Clone)]
pub struct RecordRows {
    /// Layout of a record.
    pub layout: RecordLayout,
    /// Number of records in a message, at least 1.
    pub records_per_message: usize,
}

impl RowEncoding for ValueColumn {
    fn payloads<'a>(
        &self,
        rows: &'a RecordBatch,
        _: &'a mut EncodedRows,
    ) -> Result<Payloads<'a>, RowSendError> {
        Ok(Rows::of(rows)?.payloads)
    }
}

impl RowEncoding for RecordRows {
    fn rows_at_once(&self) -> usize {
        ENCODED_ROWS
    }

    fn payloads<'a>(
        &self,
        rows: &'a RecordBatch,
        encoded: &'a mut EncodedRows,
    ) -> Result<Payloads<'a>, RowSendError> {
        let records = &mut encoded.bytes;
        records.clear();
        let encoder = self.layout.encoder(rows)?;
        encoder.encode(0..rows.num_rows(), records)?;
        Ok(Payloads::records(records, self.layout.record_length()))
    }

    fn packing(&self) -> Option<Packing> {
        let count = self.records_per_message;
        (count > 1).then(|| Packing::new(self.layout.record_length(), count))
    }
}
