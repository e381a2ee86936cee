//! [`RowReader`]: from frames to record batches.

use std::borrow::Cow;

use arrow_array::{RecordBatch, RecordBatchOptions};

use super::build::{Recording, Rows};
use super::frames::{ArrivalTimes, Frames};
use super::malformed::{Judge, Malformed, Mode};
use super::projection::{Payload, Projection};
use super::row_error::RowError;
use super::staged::{Staged, row_count};
use super::walk::Walk;

/// Reads the rows of a range of frames. For one thread.
pub struct RowReader<F, A> {
    walk: Walk<F>,
    projection: Projection,
    judge: Judge,
    recording: Recording,
    arrivals: Option<A>,
}

impl<F: Frames, A: ArrivalTimes> RowReader<F, A> {
    /// A reader of the rows of `frames`: of messages that begin before position `to`. No frame is read yet. Without `arrivals`, no
    /// arrival time is known.
    pub fn new(
        frames: F,
        to: i64,
        recording: Recording,
        arrivals: Option<A>,
        projection: Projection,
        mode: Mode,
    ) -> Self {
        Self {
            walk: Walk::new(frames, to, &projection.payload),
            projection,
            judge: Judge {
                mode,
                recording_id: recording.id,
                stream_id: recording.stream_id,
                session_id: recording.session_id,
                dropped: 0,
            },
            recording,
            arrivals,
        }
    }

    /// Messages and records that were dropped so far because they are malformed.
    pub fn malformed(&self) -> u64 {
        self.judge.dropped
    }

    /// The next record batch, which has rows; `None` after the last.
    ///
    /// # Errors
    /// [`RowError`]; what comes after an error is not defined.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, RowError<F::Error>> {
        loop {
            let payload = &self.projection.payload;
            if self.walk.staged.is_drained() {
                self.walk.fill(payload, &mut self.judge)?;
                if self.walk.staged.is_drained() {
                    return Ok(None);
                }
            }
            let row_limit = self.walk.row_limit;
            let rows = take_rows(&mut self.walk.staged, row_limit, payload, &mut self.judge)?;
            if rows.count > 0 {
                return self
                    .projection
                    .batch(&rows, &self.recording, &mut self.arrivals)
                    .map(Some);
            }
        }
    }
}

/// The rows of the next staged messages, without those that are dropped.
fn take_rows<'a>(
    staged: &'a mut Staged,
    row_limit: usize,
    payload: &Payload,
    judge: &mut Judge,
) -> Result<Rows<'a>, Malformed> {
    let (messages, range) = staged.take(row_limit);
    let messages = &staged.messages[messages];
    let bad = match payload.columns(&mut staged.values, range.clone(), messages) {
        Ok(columns) => return Ok(Rows::new(Cow::Borrowed(messages), columns)),
        Err(bad) => bad,
    };
    let (mut values, sound) = payload.sound_rows(&staged.values, range, messages);
    let position = messages[bad.message].end_position;
    judge.judge(
        row_count(messages) - row_count(&sound),
        position,
        bad.reason,
    )?;
    let range = 0..values.len();
    let columns = payload
        .columns(&mut values, range, &sound)
        .map_err(|bad| judge.malformed(sound[bad.message].end_position, bad.reason))?;
    Ok(Rows::new(Cow::Owned(sound), columns))
}

impl Projection {
    /// The columns of these rows.
    fn batch<A: ArrivalTimes, E>(
        &self,
        rows: &Rows<'_>,
        recording: &Recording,
        arrivals: &mut Option<A>,
    ) -> Result<RecordBatch, RowError<E>> {
        let recording_id = recording.id;
        let columns = self.columns.iter();
        let arrays: Result<Vec<_>, _> = columns
            .map(|column| rows.column(*column, recording, arrivals))
            .collect();
        let arrays = arrays.map_err(|source| RowError::Arrivals {
            recording_id,
            source,
        })?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|source| {
            RowError::Columns {
                recording_id,
                source,
            }
        })
    }
}
