//! [`Batch`]: whole messages, copied once into one buffer, with their header fields in columns.
//!
//! If not all fragments of a message arrive within one poll, the subscription sets the message aside, and a later poll
//! completes it. If the beginning of such a message is the whole content of a batch, the beginning is set aside without
//! a copy.

mod partial;
mod polling;

use crate::error::{Error, Result};

pub(crate) use self::partial::PartialMessages;

/// Limits for the messages that one poll adds to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Maximum number of messages.
    pub messages: usize,
    /// Number of payload bytes in the whole batch at which a poll starts no further message. The last message may end
    /// beyond this limit.
    pub bytes: usize,
}

/// Whole messages: their payloads one after the other, and one entry per message in each column.
#[derive(Debug)]
pub struct Batch {
    /// Payloads, followed by unused bytes.
    data: Vec<u8>,
    /// Bytes of `data` that are in use.
    used: usize,
    offsets: Vec<i32>,
    positions: Vec<i64>,
    session_ids: Vec<i32>,
    stream_ids: Vec<i32>,
    reserved_values: Vec<i64>,
    /// Number of messages for which every column has memory.
    room: usize,
}

/// Upper bound for [`BatchLimits::bytes`]: a poll treats larger values as this value. Offsets have 32 bits, and one
/// message may end beyond this limit.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

/// The columns of a batch.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Payloads, one after the other.
    pub data: Vec<u8>,
    /// Start of each message in `data`, and the end of the last one.
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
            // A cloned column may have no memory beyond its entries.
            room: self.len(),
        }
    }
}

impl Batch {
    /// Creates a batch with room for this many messages and bytes of payload.
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

    /// Creates a batch from columns, the reverse of [`into_columns`](Self::into_columns).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the offsets do not ascend from 0 to the end of the data, or if a column does not
    /// have one entry per message.
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

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Removes all messages but keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.offsets.truncate(1);
        self.positions.clear();
        self.session_ids.clear();
        self.stream_ids.clear();
        self.reserved_values.clear();
    }

    /// Returns all payloads, one after the other.
    pub fn data(&self) -> &[u8] {
        &self.data[..self.used]
    }

    /// Returns the start of each message in [`data`](Self::data), and the end of the last one. The result has one more
    /// entry than there are messages.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// Returns the stream position after each message.
    pub fn positions(&self) -> &[i64] {
        &self.positions
    }

    /// Returns the session id of each message.
    pub fn session_ids(&self) -> &[i32] {
        &self.session_ids
    }

    /// Returns the stream id of each message.
    pub fn stream_ids(&self) -> &[i32] {
        &self.stream_ids
    }

    /// Returns the reserved value of each message's first fragment.
    pub fn reserved_values(&self) -> &[i64] {
        &self.reserved_values
    }

    /// Returns the message with this index.
    pub fn message(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.offsets.get(index)?, *self.offsets.get(index + 1)?);
        self.data.get(start as usize..end as usize)
    }

    /// Returns the common length of all messages; `None` if the lengths differ or the batch is empty.
    pub fn uniform_length(&self) -> Option<usize> {
        let length = self.offsets.get(1).copied()?;
        let uniform = self
            .offsets
            .windows(2)
            .all(|pair| pair[1] - pair[0] == length);
        uniform.then_some(length as usize)
    }

    /// Returns the columns, without a copy.
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
