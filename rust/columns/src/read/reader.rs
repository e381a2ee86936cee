//! [`RowReader`]: reads frames as record batches.

use std::borrow::Cow;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};

use super::build::{MessageRows, Recording, sound_rows};
use super::format::PayloadDecoder;
use super::frames::{ArrivalTimes, Frames};
use super::kept::kept_rows;
use super::malformed::{Malformed, MalformedPolicy, Mode, RowCounts};
use super::projection::Projection;
use super::row_error::RowReadError;
use super::staged::{Message, StagedMessages, row_count};
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
                counts: RowCounts::default(),
            },
            recording,
            arrivals,
        }
    }

    /// Returns the numbers of messages, records and values so far that are not in the columns.
    pub fn counts(&self) -> RowCounts {
        self.judge.counts
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

/// Returns the rows of the next staged messages. Malformed rows are dropped, or have no values.
fn take_rows<'a>(
    staged: &'a mut StagedMessages,
    row_limit: usize,
    payload: &dyn PayloadDecoder,
    judge: &mut MalformedPolicy,
) -> Result<MessageRows<'a>, Malformed> {
    let (messages, range) = staged.take(row_limit);
    if staged.has_malformed(&messages) {
        return kept_rows(staged, messages, range, payload, judge);
    }
    let taken = &staged.messages[messages.clone()];
    let bad = match payload.columns(&mut staged.values, range.clone(), taken) {
        Ok(decoded) => {
            judge.counts.unknown += decoded.unknown;
            return Ok(MessageRows::new(Cow::Borrowed(taken), decoded.columns));
        }
        Err(bad) => bad,
    };
    if judge.mode == Mode::Permissive {
        return kept_rows(staged, messages, range, payload, judge);
    }
    let (mut values, sound) = sound_rows(payload, &staged.values, range, taken);
    let position = taken[bad.message].end_position;
    let dropped = match payload.rows_are_slices() {
        true => row_count(taken) - row_count(&sound),
        false => taken.len() - sound.len(),
    };
    judge.judge(dropped, position, bad.reason)?;
    let columns = sound_columns(payload, &mut values, &sound, judge)?;
    Ok(MessageRows::new(Cow::Owned(sound), columns))
}

/// Returns the columns of messages of which each was found to be sound.
pub(super) fn sound_columns(
    payload: &dyn PayloadDecoder,
    values: &mut Vec<u8>,
    sound: &[Message],
    judge: &mut MalformedPolicy,
) -> Result<Vec<ArrayRef>, Malformed> {
    let range = 0..values.len();
    match payload.columns(values, range, sound) {
        Ok(decoded) => {
            judge.counts.unknown += decoded.unknown;
            Ok(decoded.columns)
        }
        Err(bad) => Err(judge.malformed(sound[bad.message].end_position, bad.reason)),
    }
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
