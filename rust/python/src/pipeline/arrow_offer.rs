//! `offer_arrow` of publications: sends the rows of a record batch, or the values of an array. This method does not
//! need Spark.

use aeron_columns::write::{ArrowMessages, Payloads, Reserved, Rows};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use pyo3::prelude::*;

use crate::argument::wrong_type;
use crate::arrow::array_of;
use crate::errors::{from_offer, raise};
use crate::offer::{Outlet, is_temporary};
use crate::waiting::WaitPolicy;

/// Sends the rows of a record batch or the values of an array, from index `start` on. A record batch has the column
/// `value` and may have the column `reserved_value`.
///
/// Returns the number of rows that were appended before the timeout. Releases the GIL.
pub fn offer_arrow(
    outlet: &impl Outlet,
    data: &Bound<'_, PyAny>,
    start: usize,
    patience: WaitPolicy,
) -> PyResult<usize> {
    let array = array_of(data)?.ok_or_else(|| unsuitable(data))?;
    if array.null_count() > 0 {
        let reason = "an array with nulls cannot be sent: fill or drop them first";
        return Err(raise("InvalidArgumentError", reason));
    }
    let Some(rows) = array.as_struct_opt() else {
        let payloads = Payloads::of(&array).ok_or_else(|| unsuitable(data))?;
        return offer(data.py(), outlet, payloads, Reserved::Zero, start, patience);
    };
    let batch = RecordBatch::from(rows);
    let rows = Rows::of(&batch).map_err(|error| {
        raise(
            "InvalidArgumentError",
            match error.row {
                Some(row) => format!("row {row}: {error}"),
                None => error.to_string(),
            },
        )
    })?;
    if rows.headers.stream_ids.is_some() {
        let reason =
            "a publication has one stream and cannot use the column 'stream_id': drop the column";
        return Err(raise("InvalidArgumentError", reason));
    }
    let reserved = rows
        .headers
        .reserved_values
        .map_or(Reserved::Zero, Reserved::Column);
    offer(data.py(), outlet, rows.payloads, reserved, start, patience)
}

fn offer(
    py: Python<'_>,
    outlet: &impl Outlet,
    payloads: Payloads<'_>,
    reserved: Reserved<'_>,
    start: usize,
    patience: WaitPolicy,
) -> PyResult<usize> {
    let count = payloads.count();
    if start > count {
        return Err(raise(
            "InvalidArgumentError",
            format!("start={start} is beyond the {count} messages"),
        ));
    }
    let messages = ArrowMessages {
        payloads,
        reserved,
        order: None,
    };
    let mut next = start;
    let offered = patience.wait_without_gil(py, || {
        while next < count {
            match outlet.offer_batch(&messages, next) {
                Ok(appended) => next += appended.messages,
                Err(error) if is_temporary(error) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(()))
    })?;
    match offered {
        // If rows were sent before the error, their number is returned. The caller then resumes after these rows and
        // gets the error.
        Some(Err(error)) if next == start => Err(from_offer(error, || outlet.close_cause())),
        _ => Ok(next - start),
    }
}

#[cold]
fn unsuitable(data: &Bound<'_, PyAny>) -> PyErr {
    let kind = "a batch of rows: offer_arrow takes an Arrow array of binary or string, or a record batch with such a column 'value' (for a table, \
                call to_batches)";
    wrong_type(data, "data", kind)
}
