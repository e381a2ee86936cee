//! [`Rows`]: the columns of a record batch that determine the payload, stream and reserved value of each message.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::messages::Payloads;
use crate::layout::RecordEncodeError;

/// Name of the column of payloads: bytes or text.
pub const VALUE: &str = "value";
/// Name of the optional column of stream ids: 32-bit integers.
pub const STREAM_ID: &str = "stream_id";
/// Name of the optional column of reserved values: 64-bit integers.
pub const RESERVED_VALUE: &str = "reserved_value";

/// The rows of a record batch. Each row is one message.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Payloads of the messages.
    pub payloads: Payloads<'a>,
    /// Stream ids and reserved values of the messages.
    pub headers: Headers<'a>,
}

/// The stream ids and reserved values of rows.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    /// Stream ids, if the record batch has them.
    pub stream_ids: Option<&'a [i32]>,
    /// Reserved values, if the record batch has them.
    pub reserved_values: Option<&'a [i64]>,
}

/// Reason why rows cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RowSendError {
    /// Index of the row that cannot be sent, if the reason is in one row.
    pub row: Option<usize>,
    /// The reason.
    pub reason: String,
}

impl From<RecordEncodeError> for RowSendError {
    fn from(error: RecordEncodeError) -> Self {
        let (row, reason) = match error {
            RecordEncodeError::Null { row, column } => (
                Some(row),
                format!("column '{column}' is null, which a record cannot hold"),
            ),
            RecordEncodeError::Value {
                row,
                column,
                reason,
            } => (Some(row), format!("column '{column}' {reason}")),
            error => (None, error.to_string()),
        };
        Self { row, reason }
    }
}

impl<'a> Rows<'a> {
    /// Returns the rows of a record batch with a column [`VALUE`].
    ///
    /// # Errors
    /// A column is missing, has a wrong type, or contains a null.
    pub fn of(batch: &'a RecordBatch) -> Result<Self, RowSendError> {
        let column = batch.column_by_name(VALUE).ok_or_else(|| RowSendError {
            row: None,
            reason: format!("there is no column '{VALUE}' to send"),
        })?;
        check_nulls(VALUE, column)?;
        Ok(Self {
            payloads: Payloads::of(column)
                .ok_or_else(|| wrong_type(VALUE, column, "binary or string"))?,
            headers: Headers::of(batch)?,
        })
    }
}

impl<'a> Headers<'a> {
    /// Returns the columns [`STREAM_ID`] and [`RESERVED_VALUE`] of a record batch, if it has them.
    ///
    /// # Errors
    /// A column has a wrong type, or contains a null.
    pub fn of(batch: &'a RecordBatch) -> Result<Self, RowSendError> {
        Ok(Self {
            stream_ids: integers::<Int32Type>(batch, STREAM_ID, &DataType::Int32)?,
            reserved_values: integers::<Int64Type>(batch, RESERVED_VALUE, &DataType::Int64)?,
        })
    }
}

fn integers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
    kind: &DataType,
) -> Result<Option<&'a [T::Native]>, RowSendError> {
    let Some(column) = batch.column_by_name(name) else {
        return Ok(None);
    };
    check_nulls(name, column)?;
    let values = column.as_primitive_opt::<T>();
    let values = values.ok_or_else(|| wrong_type(name, column, &kind.to_string()))?;
    Ok(Some(values.values()))
}

fn check_nulls(name: &str, column: &dyn Array) -> Result<(), RowSendError> {
    if column.null_count() == 0 {
        return Ok(());
    }
    let row = (0..column.len()).find(|row| column.is_null(*row));
    let reason = format!("column '{name}' is null: fill it or filter such rows out");
    Err(RowSendError { row, reason })
}

fn wrong_type(name: &str, column: &dyn Array, expected: &str) -> RowSendError {
    let reason = format!(
        "column '{name}' is {}, expected {expected}: cast it",
        column.data_type()
    );
    RowSendError { row: None, reason }
}

/// Rows of one stream.
#[derive(Debug, PartialEq, Eq)]
pub struct RowsOfStream {
    /// Stream id.
    pub stream_id: i32,
    /// Indexes of the rows, in order; `None` for all rows.
    pub order: Option<Vec<u32>>,
}

/// Returns the rows of each stream. The streams are in the order of their first rows.
pub fn by_stream(stream_ids: &[i32]) -> Vec<RowsOfStream> {
    let Some(&first) = stream_ids.first() else {
        return Vec::new();
    };
    if stream_ids.iter().all(|id| *id == first) {
        let (stream_id, order) = (first, None);
        return vec![RowsOfStream { stream_id, order }];
    }
    let mut places = HashMap::new();
    let mut streams: Vec<RowsOfStream> = Vec::new();
    for (row, &stream_id) in stream_ids.iter().enumerate() {
        let place = *places.entry(stream_id).or_insert(streams.len());
        if place == streams.len() {
            let order = Some(Vec::new());
            streams.push(RowsOfStream { stream_id, order });
        }
        streams[place]
            .order
            .get_or_insert_default()
            .push(row as u32);
    }
    streams
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aeron_memory::log::append::MessageBatch as _;
    use arrow_array::{
        ArrayRef, BinaryArray, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray,
        StringArray,
    };

    use super::*;
    use crate::write::{ArrowMessages, Reserved};

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn payloads(batch: &RecordBatch) -> Vec<Vec<u8>> {
        let payloads = Rows::of(batch).unwrap().payloads;
        let (reserved, order) = (Reserved::Zero, None);
        let messages = ArrowMessages {
            payloads,
            reserved,
            order,
        };
        (0..messages.count())
            .map(|index| messages.message(index).to_vec())
            .collect()
    }

    #[test]
    fn bytes_and_texts_of_both_widths_and_slices_of_them_are_payloads_08_67() {
        let texts = ["", "a", "bcd", "é"];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(BinaryArray::from_iter_values(texts)),
            Arc::new(LargeBinaryArray::from_iter_values(texts)),
            Arc::new(StringArray::from_iter_values(texts)),
            Arc::new(LargeStringArray::from_iter_values(texts)),
        ];
        for column in columns {
            let whole = batch(vec![(VALUE, column)]);
            assert_eq!(payloads(&whole), texts.map(|text| text.as_bytes().to_vec()));
            let slice = whole.slice(1, 2);
            assert_eq!(payloads(&slice), [b"a".to_vec(), b"bcd".to_vec()]);
            assert!(payloads(&whole.slice(2, 0)).is_empty());
        }
    }

    #[test]
    fn nulls_and_wrong_types_are_refused_with_row_and_column_08_70() {
        let value: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let error = Rows::of(&batch(vec![(VALUE, value)])).unwrap_err();
        assert_eq!(error.row, Some(1));
        assert!(error.reason.contains("column 'value' is null"));

        let value: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let stream_id: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(2)]));
        let rows = batch(vec![(VALUE, Arc::clone(&value)), (STREAM_ID, stream_id)]);
        assert_eq!(Rows::of(&rows).unwrap_err().row, Some(0));

        let reserved: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let rows = batch(vec![(VALUE, value), (RESERVED_VALUE, reserved)]);
        let error = Rows::of(&rows).unwrap_err();
        assert_eq!(
            error.reason,
            "column 'reserved_value' is Int32, expected Int64: cast it"
        );

        let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(Rows::of(&batch(vec![(VALUE, number)])).is_err());
        let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(Rows::of(&batch(vec![("other", other)])).is_err());
    }

    #[test]
    fn rows_keep_their_order_within_each_stream_08_70_08_72() {
        let streams = |stream_ids: &[i32]| -> Vec<(i32, Option<Vec<u32>>)> {
            let streams = by_stream(stream_ids).into_iter();
            streams.map(|rows| (rows.stream_id, rows.order)).collect()
        };
        let rows = |rows: &[u32]| Some(rows.to_vec());
        assert_eq!(streams(&[]), []);
        assert_eq!(streams(&[7, 7]), [(7, None)]);
        assert_eq!(
            streams(&[7, 8, 7, 7, 9, 8]),
            [(7, rows(&[0, 2, 3])), (8, rows(&[1, 5])), (9, rows(&[4]))]
        );
    }
}
