//! Keeps malformed messages and records as rows without values.

use std::borrow::Cow;
use std::iter::{Peekable, repeat_n};
use std::ops::Range;
use std::slice::Iter;

use arrow_array::builder::BinaryBuilder;
use arrow_array::{Array, ArrayRef, BinaryArray, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType};

use super::build::{MessageRows, sound_rows};
use super::format::PayloadDecoder;
use super::malformed::{Malformed, MalformedPolicy};
use super::reader::sound_columns;
use super::staged::{Message, StagedMessages};

/// Returns the rows of the taken messages. A malformed row has nulls as its values, and its bytes are kept.
///
/// The messages that are staged as malformed were counted before. Those that no column can hold are counted here.
pub(super) fn kept_rows<'a>(
    staged: &StagedMessages,
    taken: Range<usize>,
    range: Range<usize>,
    payload: &dyn PayloadDecoder,
    judge: &mut MalformedPolicy,
) -> Result<MessageRows<'a>, Malformed> {
    let messages = &staged.messages[taken.clone()];
    let (candidate_values, candidates) = candidates(staged, taken, range.start);
    let all = 0..candidate_values.len();
    let (mut values, sound) = sound_rows(payload, &candidate_values, all, &candidates);
    let columns = sound_columns(payload, &mut values, &sound, judge)?;
    let mut kept = KeptRows::default();
    let mut sound = sound.iter().peekable();
    let mut begin = range.start;
    for message in messages {
        let whole = &staged.values[begin..message.value_end];
        begin = message.value_end;
        match payload.rows_are_slices() {
            true => kept.add_slices(message, whole, &mut sound),
            false => kept.add_whole(message, whole, &mut sound),
        }
    }
    let counted_before = messages.len() - candidates.len();
    judge.counts.malformed += (kept.rows.malformed() - counted_before) as u64;
    let last = messages.last().map_or(0, |message| message.end_position);
    let rows = kept.finish(&columns);
    rows.map_err(|reason| judge.malformed(last, reason))
}

/// Returns the taken messages that are not staged as malformed, with their payloads one after the other. The payload of
/// the first taken message begins at `begin`.
fn candidates(
    staged: &StagedMessages,
    taken: Range<usize>,
    mut begin: usize,
) -> (Vec<u8>, Vec<Message>) {
    let mut values = Vec::new();
    let mut messages = Vec::with_capacity(taken.len());
    for index in taken {
        let message = staged.messages[index];
        if !staged.is_malformed(index) {
            values.extend_from_slice(&staged.values[begin..message.value_end]);
            messages.push(Message {
                value_end: values.len(),
                ..message
            });
        }
        begin = message.value_end;
    }
    (values, messages)
}

/// Sound messages that are not yet among the rows.
type Sound<'a> = Peekable<Iter<'a, Message>>;

/// The rows of messages, sound and malformed.
#[derive(Default)]
struct KeptRows {
    messages: Vec<Message>,
    rows: MixedRows,
}

/// Sound and malformed rows in their order.
#[derive(Debug, Default)]
pub(crate) struct MixedRows {
    /// Whether each row is sound.
    rows: Vec<bool>,
    /// Number of sound rows.
    sound: usize,
    corrupt: BinaryBuilder,
}

/// Most bytes that the nulls of malformed rows may take, besides [`NULLS_PER_BYTE`].
const MAX_NULLS: usize = 256 << 20;
/// Bytes that nulls may take for each byte of the malformed rows.
const NULLS_PER_BYTE: usize = 16;

/// Returns the bytes that a null of this type takes, at most.
fn null_length(kind: &DataType) -> usize {
    match kind {
        DataType::FixedSizeBinary(length) => *length as usize,
        DataType::FixedSizeList(item, count) => *count as usize * null_length(item.data_type()),
        DataType::Struct(members) => {
            let lengths = members.iter().map(|member| null_length(member.data_type()));
            lengths.sum()
        }
        _ => 16,
    }
}

impl KeptRows {
    /// Adds a message of which each row is a part of its bytes.
    fn add_slices(&mut self, message: &Message, whole: &[u8], sound: &mut Sound<'_>) {
        self.messages.push(*message);
        let row_length = whole.len() / message.rows;
        for row in 0..message.rows {
            let number = message.first_row + row;
            let found = sound.peek().filter(|sound| {
                let rows = sound.first_row..sound.first_row + sound.rows;
                sound.end_position == message.end_position && rows.contains(&number)
            });
            match found {
                Some(found) => {
                    if found.first_row + found.rows == number + 1 {
                        sound.next();
                    }
                    self.rows.add_sound(1);
                }
                None => self
                    .rows
                    .add_malformed(&whole[row * row_length..][..row_length]),
            }
        }
    }

    /// Adds a message that is decoded as a whole. If it is malformed, it is one row.
    fn add_whole(&mut self, message: &Message, whole: &[u8], sound: &mut Sound<'_>) {
        if sound
            .next_if(|sound| sound.end_position == message.end_position)
            .is_some()
        {
            self.messages.push(*message);
            self.rows.add_sound(message.rows);
            return;
        }
        self.messages.push(Message {
            first_row: 0,
            rows: 1,
            ..*message
        });
        self.rows.add_malformed(whole);
    }

    /// Returns the rows with the columns of the sound rows.
    fn finish<'a>(self, columns: &[ArrayRef]) -> Result<MessageRows<'a>, String> {
        let (columns, corrupt) = self.rows.finish(columns)?;
        let mut rows = MessageRows::new(Cow::Owned(self.messages), columns);
        rows.corrupt = Some(corrupt);
        Ok(rows)
    }
}

impl MixedRows {
    pub(crate) fn add_sound(&mut self, rows: usize) {
        self.sound += rows;
        self.rows.extend(repeat_n(true, rows));
        self.corrupt.extend(repeat_n(None::<&[u8]>, rows));
    }

    pub(crate) fn add_malformed(&mut self, bytes: &[u8]) {
        self.rows.push(false);
        self.corrupt.append_value(bytes);
    }

    /// Returns the number of all rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn malformed(&self) -> usize {
        self.rows.len() - self.sound
    }

    /// Returns the columns of the sound rows with a null for each malformed row, and the bytes of the malformed rows.
    /// The error is a reason.
    pub(crate) fn finish(
        mut self,
        columns: &[ArrayRef],
    ) -> Result<(Vec<ArrayRef>, BinaryArray), String> {
        let corrupt = self.corrupt.finish();
        self.check_nulls(columns, corrupt.values().len())?;
        let columns = columns.iter().map(|column| self.with_nulls(column));
        let columns: Result<_, _> = columns.collect();
        Ok((columns.map_err(|error| error.to_string())?, corrupt))
    }

    /// Checks the memory for the nulls of malformed rows: a null of a fixed length takes as much as a value.
    fn check_nulls(&self, columns: &[ArrayRef], bytes: usize) -> Result<(), String> {
        let lengths = columns.iter().map(|column| null_length(column.data_type()));
        let length: usize = lengths.sum();
        let limit = MAX_NULLS + NULLS_PER_BYTE * bytes;
        match self.malformed().saturating_mul(length) > limit {
            false => Ok(()),
            true => Err(format!(
                "{} malformed rows without values would take more than {limit} bytes: drop malformed messages, or read \
                 fewer columns, or fewer messages at once",
                self.malformed()
            )),
        }
    }

    fn with_nulls(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let data = column.to_data();
        let mut mixed = MutableArrayData::new(vec![&data], true, self.rows.len());
        let mut sound = 0;
        for run in self.rows.chunk_by(|one, next| one == next) {
            match run[0] {
                true => {
                    mixed.try_extend(0, sound, sound + run.len())?;
                    sound += run.len();
                }
                false => mixed.try_extend_nulls(run.len())?,
            }
        }
        Ok(make_array(mixed.freeze()))
    }
}
