//! Messages between the frames that they came in and the columns that they go to.

use std::ops::Range;

use aeron_memory::log::frame::MAX_MESSAGE_LENGTH;

/// Messages whose rows are in no record batch yet, with their payloads one after the other.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// Payloads of the messages, then what there is of the open one.
    pub(super) values: Vec<u8>,
    pub(super) messages: Vec<Message>,
    /// Rows of all messages.
    rows: usize,
    /// Messages that were taken.
    taken: usize,
    open: Option<Beginning>,
    /// Where the payload of the open message begins.
    value_begin: usize,
}

/// How a message began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    pub(super) position: i64,
    pub(super) reserved_value: i64,
    pub(super) flags: u8,
}

/// A complete message, or some consecutive records of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) beginning: Beginning,
    /// Behind its last frame.
    pub(super) end_position: i64,
    /// Where its payload ends among all payloads.
    pub(super) value_end: usize,
    /// Number of its first row within the whole message.
    pub(super) first_row: usize,
    /// At least one.
    pub(super) rows: usize,
}

/// Rows of all these messages.
pub(super) fn row_count(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.rows).sum()
}

impl Staged {
    /// Rows of all messages.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether all messages were taken.
    pub(super) fn is_drained(&self) -> bool {
        self.taken == self.messages.len()
    }

    /// Whether a message has begun and not ended.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Bytes of the open message.
    #[inline]
    pub(super) fn open_length(&self) -> usize {
        self.values.len() - self.value_begin
    }

    /// Begins a message; one that did not end before is gone.
    #[inline]
    pub(super) fn begin(&mut self, beginning: Beginning) {
        self.abandon();
        self.open = Some(beginning);
    }

    /// Adds a fragment's payload to the open message. When that is longer than any can be, its position is an error.
    #[inline]
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<(), i64> {
        self.values.extend_from_slice(payload);
        match self.open {
            Some(beginning) if self.open_length() > MAX_MESSAGE_LENGTH => Err(beginning.position),
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

    /// Ends the open message, which is one or more records of `record_length` bytes. It counts as several when they are more than
    /// `limit`, so that no record batch gets too long.
    pub(super) fn end_records(&mut self, end_position: i64, record_length: usize, limit: usize) {
        let Some(beginning) = self.open.take() else {
            return;
        };
        let begin = self.value_begin;
        self.value_begin = self.values.len();
        let count = (self.value_begin - begin) / record_length;
        self.rows += count;
        for first_row in (0..count).step_by(limit) {
            let rows = limit.min(count - first_row);
            self.messages.push(Message {
                beginning,
                end_position,
                value_end: begin + (first_row + rows) * record_length,
                first_row,
                rows,
            });
        }
    }

    /// Takes the messages up to the one with which they have `limit` rows; answers which, and where their payloads are.
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

    /// Forgets all messages, the open one too.
    pub(super) fn clear(&mut self) {
        self.open = None;
        self.values.clear();
        self.messages.clear();
        self.rows = 0;
        self.taken = 0;
        self.value_begin = 0;
    }
}
