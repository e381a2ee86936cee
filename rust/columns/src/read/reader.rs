//! [`RowReader`]: reads frames as record batches.

use std::borrow::Cow;

use arrow_array::{RecordBatch, RecordBatchOptions};

use super::build::{MessageRows, Recording, sound_rows};
use super::format::PayloadDecoder;
use super::frames::{ArrivalTimes, Frames};
use super::malformed::{Malformed, MalformedPolicy, Mode};
use super::projection::Projection;
use super::row_error::RowReadError;
use super::staged::{StagedMessages, row_count};
use super::walk::Walk;

/// Reads the rows of a range of frames. Only one thread at a time may use a reader.
pub struct RowReader<F, A> {
    walk: Walk<F>,
    projection: Projection,
    judge: MalformedPolicy,
    recording: Recording,
    arrivals: Option<A>,
}

impl<F: Frames, A: ArrivalTimes> RowReader<F, A> {
    /// Creates a reader of the messages in `frames` that begin before position `to`. No frame is read yet. Without
    /// `arrivals`, arrival times are unknown.
    pub fn new(
        frames: F,
        to: i64,
        recording: Recording,
        arrivals: Option<A>,
        projection: Projection,
        mode: Mode,
    ) -> Self {
        Self {
            walk: Walk::new(frames, to, projection.payload.as_ref()),
            projection,
            judge: MalformedPolicy {
                mode,
                recording_id: recording.id,
                stream_id: recording.stream_id,
                session_id: recording.session_id,
                dropped: 0,
                skipped: 0,
            },
            recording,
            arrivals,
        }
    }

    /// Returns the number of messages and records that were dropped because they are malformed.
    pub fn malformed(&self) -> u64 {
        self.judge.dropped
    }

    /// Returns the number of messages that were skipped because they have another template or schema.
    pub fn skipped(&self) -> u64 {
        self.judge.skipped
    }

    /// Returns the position up to which all complete messages were returned. A reader that begins there continues
    /// without a gap.
    ///
    /// A message is divided if it has too many records for one record batch. Therefore, before the end of the range,
    /// some rows of the message that begins at this position may have been returned.
    pub fn position(&self) -> i64 {
        self.walk.position()
    }

    /// Returns the next record batch, which has at least one row; `None` after the last.
    ///
    /// # Errors
    /// [`RowReadError`]. After an error the reader must not be used again.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, RowReadError<F::Error>> {
        loop {
            let payload = self.projection.payload.as_ref();
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

/// Returns the rows of the next staged messages, without the dropped rows.
fn take_rows<'a>(
    staged: &'a mut StagedMessages,
    row_limit: usize,
    payload: &dyn PayloadDecoder,
    judge: &mut MalformedPolicy,
) -> Result<MessageRows<'a>, Malformed> {
    let (messages, range) = staged.take(row_limit);
    let messages = &staged.messages[messages];
    let bad = match payload.columns(&mut staged.values, range.clone(), messages) {
        Ok(columns) => return Ok(MessageRows::new(Cow::Borrowed(messages), columns)),
        Err(bad) => bad,
    };
    let (mut values, sound) = sound_rows(payload, &staged.values, range, messages);
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
    Ok(MessageRows::new(Cow::Owned(sound), columns))
}

impl Projection {
    /// Returns the columns of these rows.
    fn batch<A: ArrivalTimes, E>(
        &self,
        rows: &MessageRows<'_>,
        recording: &Recording,
        arrivals: &mut Option<A>,
    ) -> Result<RecordBatch, RowReadError<E>> {
        let recording_id = recording.id;
        let columns = self.columns.iter();
        let arrays: Result<Vec<_>, _> = columns
            .map(|column| rows.column(*column, recording, arrivals))
            .collect();
        let arrays = arrays.map_err(|source| RowReadError::Arrivals {
            recording_id,
            source,
        })?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|source| {
            RowReadError::Columns {
                recording_id,
                source,
            }
        })
    }
}
