//! [`StagedMessages`]: messages between reading their frames and building their columns.

use std::ops::Range;

use aeron_memory::log::frame::MAX_MESSAGE_LENGTH;

/// Messages whose rows are not in a record batch yet, with their payloads one after the other.
#[derive(Debug, Default)]
pub(super) struct StagedMessages {
    /// Payloads of the messages, followed by the payload of the open message so far.
    pub(super) values: Vec<u8>,
    pub(super) messages: Vec<Message>,
    /// Indexes of the malformed messages, which are kept as rows without values.
    malformed: Vec<usize>,
    /// Number of rows of all messages.
    rows: usize,
    /// Number of messages that were taken.
    taken: usize,
    open: Option<MessageStart>,
    /// Start of the open message's payload.
    value_begin: usize,
}

/// Header values of a message's first frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageStart {
    pub(super) position: i64,
    pub(super) reserved_value: i64,
    pub(super) flags: u8,
}

/// A complete message, or some consecutive records of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(super) beginning: MessageStart,
    /// Position after the last frame of the message.
    pub(super) end_position: i64,
    /// Offset in `values` of the end of the payload.
    pub(crate) value_end: usize,
    /// Index of the first row within the whole message.
    pub(crate) first_row: usize,
    /// Number of rows, at least one.
    pub(crate) rows: usize,
}

/// Returns the number of rows of these messages.
pub(super) fn row_count(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.rows).sum()
}

impl StagedMessages {
    /// Returns the number of rows of all messages.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether all messages were taken.
    pub(super) fn is_drained(&self) -> bool {
        self.taken == self.messages.len()
    }

    /// Returns the start position of the first message that was not taken. If all messages were taken, returns the
    /// start position of the open message.
    pub(super) fn first_begin(&self) -> Option<i64> {
        let next = self.messages.get(self.taken);
        let first = next.map(|message| message.beginning).or(self.open);
        first.map(|beginning| beginning.position)
    }

    /// Returns whether a message is open: it has begun and not ended.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns the payload of the open message so far.
    #[inline]
    pub(super) fn open_payload(&self) -> &[u8] {
        &self.values[self.value_begin..]
    }

    /// Begins a message. An open message is dropped.
    #[inline]
    pub(super) fn begin(&mut self, beginning: MessageStart) {
        self.abandon();
        self.open = Some(beginning);
    }

    /// Adds a fragment's payload to the open message. If the open message becomes longer than the maximum, the error is
    /// its start position.
    #[inline]
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<(), i64> {
        self.values.extend_from_slice(payload);
        match self.open {
            Some(beginning) if self.open_payload().len() > MAX_MESSAGE_LENGTH => {
                Err(beginning.position)
            }
            _ => Ok(()),
        }
    }

    /// Drops the open message.
    #[inline]
    pub(super) fn abandon(&mut self) {
        self.values.truncate(self.value_begin);
        self.open = None;
    }

    /// Ends the open message, which is one row.
    #[inline]
    pub(super) fn end_row(&mut self, end_position: i64) {
        if let Some(beginning) = self.open.take() {
            self.value_begin = self.values.len();
            self.rows += 1;
            self.messages.push(Message {
                beginning,
                end_position,
                value_end: self.value_begin,
                first_row: 0,
                rows: 1,
            });
        }
    }

    /// Ends the open message, which is malformed and becomes a row without values.
    pub(super) fn end_malformed(&mut self, end_position: i64) {
        self.malformed.push(self.messages.len());
        self.end_row(end_position);
    }

    /// Returns whether the message with this index is malformed.
    pub(super) fn is_malformed(&self, message: usize) -> bool {
        self.malformed.binary_search(&message).is_ok()
    }

    /// Returns whether a message of the range is malformed.
    pub(super) fn has_malformed(&self, messages: &Range<usize>) -> bool {
        let first = self
            .malformed
            .partition_point(|index| *index < messages.start);
        self.malformed
            .get(first)
            .is_some_and(|index| *index < messages.end)
    }

    /// Ends the open message, which consists of `rows` rows, at least one. If it has more than `limit` rows, which are
    /// of the same length, it is split into several messages, so that no record batch gets too long.
    pub(super) fn end_rows(&mut self, end_position: i64, rows: usize, limit: usize) {
        let Some(beginning) = self.open.take() else {
            return;
        };
        let begin = self.value_begin;
        self.value_begin = self.values.len();
        self.rows += rows;
        let row_length = (self.value_begin - begin) / rows;
        for first_row in (0..rows).step_by(limit) {
            let count = limit.min(rows - first_row);
            let is_last = first_row + count == rows;
            let value_end = begin + (first_row + count) * row_length;
            self.messages.push(Message {
                beginning,
                end_position,
                value_end: if is_last { self.value_begin } else { value_end },
                first_row,
                rows: count,
            });
        }
    }

    /// Takes messages until they have at least `limit` rows, or no message is left. Returns the range of their indexes,
    /// and the range of their payloads in `values`.
    pub(super) fn take(&mut self, limit: usize) -> (Range<usize>, Range<usize>) {
        let first = self.taken;
        let mut rows = 0;
        while rows < limit && self.taken < self.messages.len() {
            rows += self.messages[self.taken].rows;
            self.taken += 1;
        }
        let value_end = |message: usize| match message {
            0 => 0,
            behind => self.messages[behind - 1].value_end,
        };
        (first..self.taken, value_end(first)..value_end(self.taken))
    }

    /// Removes all messages, including the open one.
    pub(super) fn clear(&mut self) {
        self.open = None;
        self.values.clear();
        self.messages.clear();
        self.malformed.clear();
        self.rows = 0;
        self.taken = 0;
        self.value_begin = 0;
    }
}
