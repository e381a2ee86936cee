//! [`Batch`]: whole messages of many fragments, copied once into one buffer, with what is known of them in columns.
//!
//! A message whose fragments did not all arrive within one poll is kept aside by the subscription and completed by a later
//! one. As long as a batch holds nothing but the beginning of such a message, keeping it aside costs no copy.

use std::collections::HashMap;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::{
    FRAME_ALIGNMENT, HEADER_LENGTH, MAX_MESSAGE_LENGTH, aligned_length, flags,
};
use aeron_memory::log::reader::{Cursor, Fragment as LogFragment};
use aeron_memory::words::Words;

use crate::error::Result;
use crate::image::Image;

/// How much a poll adds to a batch at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Messages.
    pub messages: usize,
    /// Bytes of payload in the whole batch at which no further message is begun, so the last one may end beyond.
    pub bytes: usize,
}

/// Whole messages: their payloads one behind the other, and one entry per message in each column.
#[derive(Debug, Clone)]
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
}

/// Bytes of payload that a batch holds at most, whatever its limits: offsets are 32-bit, and one message may go beyond.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

/// The columns of a batch, taken out of it.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Payloads, one behind the other.
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

/// Messages whose last fragments have yet to arrive, by session.
#[derive(Debug, Default)]
pub(crate) struct PartialMessages {
    by_session: HashMap<i32, PartialMessage>,
}

#[derive(Debug, Default)]
struct PartialMessage {
    data: Vec<u8>,
    used: usize,
    /// Position where the next fragment begins.
    next_position: i64,
    reserved_value: i64,
}

/// The message that is being put together at the end of a batch's data.
struct Open {
    start: usize,
    next_position: i64,
    reserved_value: i64,
}

impl Default for Batch {
    fn default() -> Self {
        Self::with_capacity(0, 0)
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
        }
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

    /// All payloads, one behind the other.
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

    /// Adds what one image has, up to the end of its term; answers the number of messages.
    pub(crate) fn poll_image(
        &mut self,
        image: &Image,
        partial: &mut PartialMessages,
        limits: BatchLimits,
    ) -> Result<usize> {
        image.exclusively(|| {
            let Some(mut reading) = image.begin(None)? else {
                return Ok(0);
            };
            let before = self.len();
            let limits = BatchLimits {
                messages: before.saturating_add(limits.messages),
                bytes: limits.bytes.min(MAX_BATCH_BYTES),
            };
            let mut open = self.resume(partial, image.session_id());
            let outcome = loop {
                let is_full = self.len() >= limits.messages || self.used >= limits.bytes;
                if open.is_none() && is_full || image.is_closed() {
                    break Ok(());
                }
                match reading.next(Cursor::next_fragment) {
                    Ok(Some(fragment)) => {
                        self.add(&fragment, &mut open, &mut reading.cursor, limits)
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            self.set_aside(open, partial, image.session_id());
            self.session_ids.resize(self.len(), image.session_id());
            self.stream_ids.resize(self.len(), image.stream_id());
            outcome.map(|()| self.len() - before)
        })
    }

    /// Adds what a fragment holds; after a whole message also those that follow and are like it.
    #[inline(always)]
    fn add<'a>(
        &mut self,
        fragment: &LogFragment<'a, SharedBuffer>,
        open: &mut Option<Open>,
        cursor: &mut Cursor<'a, SharedBuffer>,
        limits: BatchLimits,
    ) {
        let place = fragment.flags() & flags::UNFRAGMENTED;
        if place == flags::UNFRAGMENTED {
            self.drop_open(open);
            self.copy(fragment);
            self.finish(fragment.position(), fragment.reserved_value());
            self.add_alike(fragment, cursor, limits);
        } else {
            self.add_part(fragment, place, open);
        }
    }

    /// Adds the messages that follow at once and have the same length, flags and type, and no reserved value.
    ///
    /// They are what a stream of records is made of. One compare tells them apart from others, nothing but their payloads
    /// is copied one by one, and the columns are filled for many at a time.
    #[inline(always)]
    fn add_alike<'a>(
        &mut self,
        like: &LogFragment<'a, SharedBuffer>,
        cursor: &mut Cursor<'a, SharedBuffer>,
        limits: BatchLimits,
    ) {
        let length = like.payload_length();
        if length > MAX_BLOCKWISE_LENGTH
            || self.len() >= limits.messages
            || self.used >= limits.bytes
        {
            return;
        }
        let bytes_left = (limits.bytes - self.used).div_ceil(length.max(1));
        let most = (limits.messages - self.len())
            .min(bytes_left)
            .min(MAX_ALIKE);
        self.make_room(most * length + FRAME_ALIGNMENT);
        let begin_position = cursor.position();
        let target = &mut self.data[self.used..];
        let count = match length.div_ceil(FRAME_ALIGNMENT) {
            1 => copy_alike(like, cursor, target, most, copy_chunk::<FRAME_ALIGNMENT>),
            2 => copy_alike(
                like,
                cursor,
                target,
                most,
                copy_chunk::<{ 2 * FRAME_ALIGNMENT }>,
            ),
            _ => copy_alike(like, cursor, target, most, copy_in_blocks),
        };
        self.finish_alike(count, length, begin_position);
    }

    /// Ends `count` messages of `length` bytes, the first of which begins at `begin_position` in the stream.
    fn finish_alike(&mut self, count: usize, length: usize, begin_position: i64) {
        let framed = aligned_length(length + HEADER_LENGTH) as i64;
        let used = self.used as i32;
        self.offsets
            .extend((1..=count as i32).map(|i| used + i * length as i32));
        self.positions
            .extend((1..=count as i64).map(|i| begin_position + i * framed));
        self.reserved_values.resize(self.positions.len(), 0);
        self.used += count * length;
    }

    fn add_part(
        &mut self,
        fragment: &LogFragment<'_, SharedBuffer>,
        place: u8,
        open: &mut Option<Open>,
    ) {
        if place & flags::BEGIN != 0 {
            self.drop_open(open);
            let reserved_value = fragment.reserved_value();
            *open = Some(Open {
                start: self.used,
                next_position: 0,
                reserved_value,
            });
        } else if !open.as_ref().is_some_and(|open| {
            let length = self.used - open.start + fragment.payload_length();
            open.next_position == fragment.begin_position() && length <= MAX_MESSAGE_LENGTH
        }) {
            // A fragment is missing, or no publisher sent this: the message is lost.
            return self.drop_open(open);
        }
        self.copy(fragment);
        let Some(message) = open else { return };
        message.next_position = fragment.position();
        if place & flags::END != 0 {
            let reserved_value = message.reserved_value;
            *open = None;
            self.finish(fragment.position(), reserved_value);
        }
    }

    /// Drops what there is of a message that will not be completed.
    #[inline(always)]
    fn drop_open(&mut self, open: &mut Option<Open>) {
        if let Some(open) = open.take() {
            self.used = open.start;
        }
    }

    /// Copies a payload behind what is in use.
    #[inline(always)]
    fn copy(&mut self, fragment: &LogFragment<'_, SharedBuffer>) {
        let length = fragment.payload_length();
        self.make_room(aligned_length(length));
        let target = &mut self.data[self.used..];
        if length <= MAX_BLOCKWISE_LENGTH {
            copy_in_blocks(fragment, target);
        } else {
            fragment.copy_payload(&mut target[..length]);
        }
        self.used += length;
    }

    #[inline(always)]
    fn make_room(&mut self, bytes: usize) {
        if self.data.len() - self.used < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let needed = self.used + bytes;
        self.data
            .resize(needed.max(self.data.len() * 2).max(MIN_DATA_LENGTH), 0);
    }

    #[inline(always)]
    fn finish(&mut self, position: i64, reserved_value: i64) {
        self.offsets.push(self.used as i32);
        self.positions.push(position);
        self.reserved_values.push(reserved_value);
    }

    /// Puts the beginning of a message that was kept aside at the end of the data.
    fn resume(&mut self, partial: &mut PartialMessages, session_id: i32) -> Option<Open> {
        if partial.by_session.is_empty() {
            return None;
        }
        let mut message = partial.by_session.remove(&session_id)?;
        let start = self.used;
        if start == 0 && message.data.len() >= self.data.len() {
            std::mem::swap(&mut self.data, &mut message.data);
        } else {
            self.make_room(message.used);
            self.data[start..start + message.used].copy_from_slice(&message.data[..message.used]);
        }
        self.used += message.used;
        Some(Open {
            start,
            next_position: message.next_position,
            reserved_value: message.reserved_value,
        })
    }

    /// Keeps the beginning of a message aside until its other fragments have arrived.
    fn set_aside(&mut self, open: Option<Open>, partial: &mut PartialMessages, session_id: i32) {
        let Some(Open {
            start,
            next_position,
            reserved_value,
        }) = open
        else {
            return;
        };
        let used = self.used - start;
        let data = if start == 0 {
            std::mem::take(&mut self.data)
        } else {
            self.data[start..self.used].to_vec()
        };
        self.used = start;
        partial.by_session.insert(
            session_id,
            PartialMessage {
                data,
                used,
                next_position,
                reserved_value,
            },
        );
    }
}

/// Copies the payloads that follow `like` and are like it one behind the other into `target`, at most `most`; answers how many.
#[inline(always)]
fn copy_alike<'a>(
    like: &LogFragment<'a, SharedBuffer>,
    cursor: &mut Cursor<'a, SharedBuffer>,
    mut target: &mut [u8],
    most: usize,
    copy: impl Fn(&LogFragment<'a, SharedBuffer>, &mut [u8]),
) -> usize {
    let mut count = 0;
    while count < most {
        let Some(fragment) = cursor.next_alike(like) else {
            break;
        };
        if fragment.reserved_value() != 0 {
            cursor.return_to(&fragment);
            break;
        }
        copy(&fragment, target);
        target = &mut target[like.payload_length()..];
        count += 1;
    }
    count
}

/// As [`copy_in_blocks`] where the blocks are known to have `N` bytes: most records are that short.
#[inline(always)]
fn copy_chunk<const N: usize>(fragment: &LogFragment<'_, SharedBuffer>, target: &mut [u8]) {
    let chunk = target.first_chunk_mut::<N>();
    let chunk = chunk.expect("the batch has room for whole blocks");
    fragment.term().copy_out(fragment.payload_offset(), chunk);
}

/// Copies a payload to the start of `target` in whole blocks of 32 bytes, which compile to a few moves.
///
/// The log is laid out in such blocks, so nothing behind the frame's own is read; what lies behind the payload in `target` is
/// overwritten by the next message.
#[inline(always)]
fn copy_in_blocks(fragment: &LogFragment<'_, SharedBuffer>, target: &mut [u8]) {
    let blocks = fragment.payload_length().div_ceil(FRAME_ALIGNMENT);
    let (targets, _) = target.as_chunks_mut::<FRAME_ALIGNMENT>();
    for (i, block) in targets[..blocks].iter_mut().enumerate() {
        let offset = fragment.payload_offset() + i * FRAME_ALIGNMENT;
        fragment.term().copy_out(offset, block);
    }
}

/// Messages that are added before the columns are filled and the image is looked at again.
const MAX_ALIKE: usize = 256;
/// Payloads up to this length are copied in blocks.
const MAX_BLOCKWISE_LENGTH: usize = 256;
/// Smallest data that is allocated, in bytes.
const MIN_DATA_LENGTH: usize = 4096;

const _: () = assert!(
    HEADER_LENGTH == FRAME_ALIGNMENT,
    "a payload begins on a block"
);

impl PartialMessages {
    /// Forgets the sessions that are gone.
    pub(crate) fn retain(&mut self, is_there: impl Fn(i32) -> bool) {
        self.by_session
            .retain(|session_id, _| is_there(*session_id));
    }
}
