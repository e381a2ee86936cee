//! `offer_arrow` of publications: sends the rows of record batches, or the values of arrays. This method does not need
//! Spark.

use aeron_columns::write::{
    ArrowMessages, Payloads, RESERVED_VALUE, Reserved, Rows, STREAM_ID, VALUE, plain,
};
use aeron_memory::log::append::MessageBatch as _;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;

use crate::arrow::{arrays_of, value_error};
use crate::errors::{from_offer, raise};
use crate::offer::{Outlet, is_temporary};
use crate::waiting::WaitPolicy;

/// Sends the rows of record batches or the values of arrays, from index `start` on. A record batch has the column
/// `value` and may have the column `reserved_value`.
///
/// Returns the number of rows that were appended before the timeout. Releases the GIL.
pub fn offer_arrow(
    outlet: &impl Outlet,
    data: &Bound<'_, PyAny>,
    start: usize,
    patience: WaitPolicy,
) -> PyResult<usize> {
    let arrays = arrays_of(data)?.ok_or_else(|| unsuitable(data, None))?;
    let batches = arrays.iter().map(|array| rows_of(data, array));
    let batches = batches.collect::<PyResult<Vec<_>>>()?;
    let mut messages = Vec::with_capacity(batches.len());
    let mut count = 0;
    for batch in &batches {
        messages.push(messages_of(batch, count)?);
        count += batch.num_rows();
    }
    if start > count {
        return Err(raise(
            "InvalidArgumentError",
            format!("start={start} is beyond the {count} messages"),
        ));
    }
    offer(data.py(), outlet, &messages, start, patience)
}

/// Returns the columns that are sent. An array of values becomes the column `value`.
fn rows_of(data: &Bound<'_, PyAny>, array: &ArrayRef) -> PyResult<RecordBatch> {
    if array.null_count() > 0 {
        let reason = "an array with nulls cannot be sent: fill or drop them first";
        return Err(raise("InvalidArgumentError", reason));
    }
    let Some(rows) = array.as_struct_opt() else {
        let values = plain(array);
        if Payloads::of(&values).is_none() {
            return Err(unsuitable(data, Some(array.data_type())));
        }
        if values.null_count() > 0 {
            let reason = "an array with nulls cannot be sent: fill or drop them first";
            return Err(raise("InvalidArgumentError", reason));
        }
        return RecordBatch::try_from_iter([(VALUE, values)]).map_err(value_error);
    };
    if rows.column_by_name(STREAM_ID).is_some() {
        let reason =
            "a publication has one stream and cannot use the column 'stream_id': drop the column";
        return Err(raise("InvalidArgumentError", reason));
    }
    let sent = [VALUE, RESERVED_VALUE].into_iter();
    let sent = sent.filter_map(|name| Some((name, plain(rows.column_by_name(name)?))));
    let sent: Vec<(&str, ArrayRef)> = sent.collect();
    if sent.is_empty() {
        let names = rows.column_names().join(", ");
        let reason = format!("there is no column 'value' to send, only {names}");
        return Err(raise("InvalidArgumentError", reason));
    }
    RecordBatch::try_from_iter(sent).map_err(value_error)
}

/// Returns the messages of a record batch. The index of its first row in the whole data is `first`.
fn messages_of(batch: &RecordBatch, first: usize) -> PyResult<ArrowMessages<'_>> {
    let rows = Rows::of(batch).map_err(|error| {
        raise(
            "InvalidArgumentError",
            match error.row {
                Some(row) => format!("row {}: {error}", first + row),
                None => error.to_string(),
            },
        )
    })?;
    Ok(ArrowMessages {
        payloads: rows.payloads,
        reserved: rows
            .headers
            .reserved_values
            .map_or(Reserved::Zero, Reserved::Column),
        order: None,
    })
}

/// Sends messages of several batches, from the index `start` on, which counts from the first batch.
fn offer(
    py: Python<'_>,
    outlet: &impl Outlet,
    batches: &[ArrowMessages<'_>],
    start: usize,
    patience: WaitPolicy,
) -> PyResult<usize> {
    let mut rest = batches;
    let mut next = start;
    let mut sent = 0;
    let offered = patience.wait_without_gil(py, || {
        while let Some((batch, later)) = rest.split_first() {
            if next >= batch.count() {
                next -= batch.count();
                rest = later;
                continue;
            }
            match outlet.offer_batch(batch, next) {
                Ok(appended) => {
                    next += appended.messages;
                    sent += appended.messages;
                }
                Err(error) if is_temporary(error) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(()))
    })?;
    match offered {
        // If rows were sent before the error, their number is returned. The caller then resumes after these rows and
        // gets the error.
        Some(Err(error)) if sent == 0 => Err(from_offer(error, || outlet.close_cause())),
        _ => Ok(sent),
    }
}

/// Returns the error for data that cannot be sent. It names the types, because the data may be large.
#[cold]
fn unsuitable(data: &Bound<'_, PyAny>, values: Option<&DataType>) -> PyErr {
    let kind = data.get_type();
    let kind = kind
        .fully_qualified_name()
        .map_or_else(|_| kind.to_string(), |name| name.to_string());
    let values = values.map_or_else(String::new, |values| {
        format!(" with values of type {values}")
    });
    let reason = format!(
        "data is of type {kind}{values}: offer_arrow takes bytes or text as an Arrow array, or rows with such a column 'value', \
         of any library with the Arrow C interface"
    );
    raise("ArgumentTypeError", reason)
}
