//! Builds Arrow columns from staged messages.

use std::borrow::Cow;
use std::io;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use aeron_memory::log::position::Positions;
use arrow_array::{
    ArrayRef, BinaryArray, Int16Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;

use super::format::PayloadDecoder;
use super::frames::ArrivalTimes;
use super::projection::ColumnSource;
use super::staged::{Message, row_count};

/// The values that all rows of a recording share.
#[derive(Debug)]
pub struct Recording {
    /// Recording id.
    pub id: i64,
    /// Stream id of the recording's frames.
    pub stream_id: i32,
    /// Session id of the recording's frames.
    pub session_id: i32,
    /// Geometry of the stream's terms and positions.
    pub positions: Positions,
    /// Channel that the rows show, if it is known.
    pub channel: Option<String>,
}

/// Messages with the columns of their payloads.
pub(super) struct MessageRows<'a> {
    pub(super) messages: Cow<'a, [Message]>,
    /// Number of rows of all messages.
    pub(super) count: usize,
    pub(super) payload: Vec<ArrayRef>,
    /// Bytes of the malformed rows; `None` if there are none.
    pub(super) corrupt: Option<BinaryArray>,
}

/// Returns the rows of `messages` whose values a column can hold, with their payloads one after the other.
pub(super) fn sound_rows(
    payload: &dyn PayloadDecoder,
    values: &[u8],
    range: Range<usize>,
    messages: &[Message],
) -> (Vec<u8>, Vec<Message>) {
    let mut sound = SoundRows::default();
    let mut begin = range.start;
    let are_sound = match payload.rows_are_slices() {
        true => vec![true; messages.len()],
        false => payload.sound(values, range, messages),
    };
    for (message, is_sound) in messages.iter().zip(are_sound) {
        let whole = &values[begin..message.value_end];
        if payload.rows_are_slices() {
            let row_length = whole.len() / message.rows;
            for row in 0..message.rows {
                let value = &whole[row * row_length..][..row_length];
                if payload.is_sound(value) {
                    sound.add(message, message.first_row + row, value);
                }
            }
        } else if is_sound {
            sound.add_whole(message, whole);
        }
        begin = message.value_end;
    }
    (sound.values, sound.messages)
}

#[derive(Default)]
struct SoundRows {
    values: Vec<u8>,
    messages: Vec<Message>,
}

impl SoundRows {
    fn add_whole(&mut self, message: &Message, value: &[u8]) {
        self.values.extend_from_slice(value);
        let value_end = self.values.len();
        self.messages.push(Message {
            value_end,
            ..*message
        });
    }

    /// Adds a row of `message`. Adjacent rows of one message become one [`Message`].
    fn add(&mut self, message: &Message, row: usize, value: &[u8]) {
        self.values.extend_from_slice(value);
        let value_end = self.values.len();
        match self.messages.last_mut() {
            Some(last)
                if last.end_position == message.end_position
                    && last.first_row + last.rows == row =>
            {
                last.rows += 1;
                last.value_end = value_end;
            }
            _ => self.messages.push(Message {
                value_end,
                first_row: row,
                rows: 1,
                ..*message
            }),
        }
    }
}

impl<'a> MessageRows<'a> {
    pub(super) fn new(messages: Cow<'a, [Message]>, payload: Vec<ArrayRef>) -> Self {
        Self {
            count: row_count(&messages),
            messages,
            payload,
            corrupt: None,
        }
    }

    /// Returns a column with a value for each row. Columns of payloads come from `self.payload`.
    pub(super) fn column<A: ArrivalTimes>(
        &self,
        column: ColumnSource,
        recording: &Recording,
        arrivals: &mut Option<A>,
    ) -> io::Result<ArrayRef> {
        let count = self.count;
        let positions = recording.positions;
        let beginning = |message: &Message| message.beginning.position;
        Ok(match column {
            ColumnSource::Payload(number) => self.payload[number].clone(),
            ColumnSource::StreamId => Arc::new(Int32Array::from_value(recording.stream_id, count)),
            ColumnSource::SessionId => {
                Arc::new(Int32Array::from_value(recording.session_id, count))
            }
            ColumnSource::RecordingId => Arc::new(Int64Array::from_value(recording.id, count)),
            ColumnSource::Channel => match &recording.channel {
                Some(channel) => Arc::new(StringArray::new_repeated(channel, count)),
                None => Arc::new(StringArray::new_null(count)),
            },
            ColumnSource::Position => int64s(self.per_row(|message| message.end_position)),
            ColumnSource::ReservedValue => {
                int64s(self.per_row(|message| message.beginning.reserved_value))
            }
            ColumnSource::TermId => {
                int32s(self.per_row(|message| positions.term_id(beginning(message))))
            }
            ColumnSource::TermOffset => {
                let offset = |message: &Message| positions.term_offset(beginning(message)) as i32;
                int32s(self.per_row(offset))
            }
            ColumnSource::Flags => {
                let flags = self.per_row(|message| i16::from(message.beginning.flags));
                Arc::new(Int16Array::new(flags.into(), None))
            }
            ColumnSource::RecordIndex => int32s(self.record_indexes()),
            ColumnSource::CorruptRecord => Arc::new(match &self.corrupt {
                Some(corrupt) => corrupt.clone(),
                None => BinaryArray::new_null(count),
            }),
            ColumnSource::Timestamp => self.timestamps(arrivals)?,
        })
    }

    /// Returns one value for each row: the result of `value` for the message of the row.
    fn per_row<T: Copy>(&self, value: impl Fn(&Message) -> T) -> Vec<T> {
        if self.count == self.messages.len() {
            return self.messages.iter().map(value).collect();
        }
        let mut values = Vec::with_capacity(self.count);
        for message in self.messages.iter() {
            values.extend(repeat_n(value(message), message.rows));
        }
        values
    }

    fn record_indexes(&self) -> Vec<i32> {
        let mut indexes = Vec::with_capacity(self.count);
        for message in self.messages.iter() {
            let first = message.first_row as i32;
            indexes.extend(first..first + message.rows as i32);
        }
        indexes
    }

    /// Returns, for each row, the arrival time of its message; null if the time is not known.
    fn timestamps<A: ArrivalTimes>(&self, arrivals: &mut Option<A>) -> io::Result<ArrayRef> {
        let mut times = Vec::with_capacity(self.count);
        let mut is_known = Vec::with_capacity(self.count);
        for message in self.messages.iter() {
            let time = match arrivals {
                Some(arrivals) => arrivals.at(message.end_position)?,
                None => None,
            };
            times.extend(repeat_n(time.unwrap_or(0), message.rows));
            is_known.extend(repeat_n(time.is_some(), message.rows));
        }
        let nulls = is_known
            .contains(&false)
            .then(|| NullBuffer::from(is_known));
        let times = TimestampMicrosecondArray::new(times.into(), nulls);
        Ok(Arc::new(times.with_timezone("UTC")))
    }
}

fn int32s(values: Vec<i32>) -> ArrayRef {
    Arc::new(Int32Array::new(values.into(), None))
}

fn int64s(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::new(values.into(), None))
}
