//! [`Batch`]: whole messages of many fragments, copied once into one buffer, with what is known of them in columns.
//!
//! A message whose fragments did not all arrive within one poll is kept aside by the subscription and completed by a later
//! one. As long as a batch holds nothing but the beginning of such a message, keeping it aside costs no copy.

mod partial;
mod polling;

use crate::error::{Error, Result};

pub(crate) use self::partial::PartialMessages;

/// How much a poll adds to a batch at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Messages.
    pub messages: usize,
    /// Bytes of payload in the whole batch at which no further message is begun, so the last one may end beyond.
    pub bytes: usize,
}

/// Whole messages: their payloads one after the other, and one entry per message in each column.
#[derive(Debug)]
pub struct Batch {
    /// Payloads, then bytes without meaning.
    data: Vec<u8>,
    /// Bytes of `data` that are in use.
    used: usize,
    offsets: Vec<i32>,
    positions: Vec<i64>,
    session_ids: Vec<i32>,
    stream_ids: Vec<i32>,
    reserved_values: Vec<i64>,
    /// Messages for which every column has memory.
    room: usize,
}

/// Bytes of payload that a batch holds at most, whatever its limits: offsets are 32-bit, and one message may go beyond.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

/// The columns of a batch, taken out of it.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Payloads, one after the other.
    pub data: Vec<u8>,
    /// Where each message begins in `data`, and where the last one ends.
    pub offsets: Vec<i32>,
    /// Stream position after each message.
    pub positions: Vec<i64>,
    /// Session id of each message.
    pub session_ids: Vec<i32>,
    /// Stream id of each message.
    pub stream_ids: Vec<i32>,
    /// Reserved value of each message's first fragment.
    pub reserved_values: Vec<i64>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl Clone for Batch {
    fn clone(&self) -> Self {
        Self {
            data: self.data.clone(),
            used: self.used,
            offsets: self.offsets.clone(),
            positions: self.positions.clone(),
            session_ids: self.session_ids.clone(),
            stream_ids: self.stream_ids.clone(),
            reserved_values: self.reserved_values.clone(),
            // Cloned columns have memory for what is in them, and need not have more.
            room: self.len(),
        }
    }
}

impl Batch {
    /// A batch with room for so many messages and bytes of payload before it has to grow.
    pub fn with_capacity(messages: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(messages + 1);
        offsets.push(0);
        Self {
            data: vec![0; bytes],
            used: 0,
            offsets,
            positions: Vec::with_capacity(messages),
            session_ids: Vec::with_capacity(messages),
            stream_ids: Vec::with_capacity(messages),
            reserved_values: Vec::with_capacity(messages),
            room: messages,
        }
    }

    /// A batch of these columns, as [`into_columns`](Self::into_columns) takes them out.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the offsets do not ascend from 0 to the end of the data, or if a column has not one entry per
    /// message.
    pub fn from_columns(columns: Columns) -> Result<Self> {
        let Columns {
            data,
            offsets,
            positions,
            session_ids,
            stream_ids,
            reserved_values,
        } = columns;
        let count = positions.len();
        let lengths = [session_ids.len(), stream_ids.len(), reserved_values.len()];
        if lengths != [count; 3] || offsets.len() != count + 1 {
            return Err(Error::InvalidArgument(format!(
                "columns of a batch have {count} positions, {} offsets, and {lengths:?} other entries: they need one per message, and \
                 one offset more",
                offsets.len()
            )));
        }
        let end = offsets.last().map(|end| i64::from(*end));
        let ascend = offsets.first() == Some(&0) && offsets.is_sorted();
        if !ascend || end != i64::try_from(data.len()).ok() {
            return Err(Error::InvalidArgument(format!(
                "offsets of a batch must ascend from 0 to the {} bytes of its data",
                data.len()
            )));
        }
        Ok(Self {
            used: data.len(),
            data,
            offsets,
            positions,
            session_ids,
            stream_ids,
            reserved_values,
            room: count,
        })
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets all messages, keeping the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.offsets.truncate(1);
        self.positions.clear();
        self.session_ids.clear();
        self.stream_ids.clear();
        self.reserved_values.clear();
    }

    /// All payloads, one after the other.
    pub fn data(&self) -> &[u8] {
        &self.data[..self.used]
    }

    /// Where each message begins in [`data`](Self::data), and where the last one ends: one entry more than messages.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// Stream position after each message.
    pub fn positions(&self) -> &[i64] {
        &self.positions
    }

    /// Session id of each message.
    pub fn session_ids(&self) -> &[i32] {
        &self.session_ids
    }

    /// Stream id of each message.
    pub fn stream_ids(&self) -> &[i32] {
        &self.stream_ids
    }

    /// Reserved value of each message's first fragment.
    pub fn reserved_values(&self) -> &[i64] {
        &self.reserved_values
    }

    /// The message at this place.
    pub fn message(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.offsets.get(index)?, *self.offsets.get(index + 1)?);
        self.data.get(start as usize..end as usize)
    }

    /// The length of all messages, if they have the same.
    pub fn uniform_length(&self) -> Option<usize> {
        let length = self.offsets.get(1).copied()?;
        let uniform = self
            .offsets
            .windows(2)
            .all(|pair| pair[1] - pair[0] == length);
        uniform.then_some(length as usize)
    }

    /// The columns, without a copy.
    pub fn into_columns(mut self) -> Columns {
        self.data.truncate(self.used);
        Columns {
            data: self.data,
            offsets: self.offsets,
            positions: self.positions,
            session_ids: self.session_ids,
            stream_ids: self.stream_ids,
            reserved_values: self.reserved_values,
        }
    }
}
