//! Fills a batch with the messages of an image.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::{
    FRAME_ALIGNMENT, HEADER_LENGTH, MAX_MESSAGE_LENGTH, aligned_length, flags,
};
use aeron_memory::log::reader::{Cursor, LogFragment};
use aeron_memory::words::Words;

use super::partial::PartialMessages;
use super::{Batch, BatchLimits, MAX_BATCH_BYTES};
use crate::error::{Error, OutOfMemory, Result};
use crate::fragment::Fragment as Message;
use crate::image::{Image, Reading};

/// Result of an operation that allocates memory.
type Fallible<T> = std::result::Result<T, OutOfMemory>;

/// The unfinished message at the end of a batch's data.
struct Open {
    start: usize,
    /// Stream position at which this poll began to read the message.
    begin_position: i64,
    next_position: i64,
    reserved_value: i64,
    origin: MessageOrigin,
}

/// Source of the beginning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageOrigin {
    /// Read by this poll.
    Read,
    /// Copied from the message that an earlier poll set aside. The original still exists.
    Copied,
    /// Swapped with the message that an earlier poll set aside: the memory of that message now belongs to the batch.
    Swapped,
}

impl Batch {
    /// Adds the available messages of one image, up to the end of the current term. Returns the number of messages.
    ///
    /// If there is no memory for a message, this message is not consumed. The messages before it are in the batch and
    /// are consumed.
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
            let (before, session_id) = (self.len(), image.session_id());
            let mut open = self.resume(partial, session_id, reading.cursor.position())?;
            let limits = self.in_total(limits);
            let outcome = match self.read::<false>(image, &mut reading, &mut open, limits) {
                Err(error @ Error::OutOfMemory { .. }) => {
                    self.unread(open, partial, session_id, &mut reading.cursor);
                    Err(error)
                }
                outcome => self
                    .set_aside(open, partial, session_id, &mut reading.cursor)
                    .map_err(Error::from)
                    .and(outcome),
            };
            self.name_source(image);
            outcome.map(|()| self.len() - before)
        })
    }

    /// Adds the available messages of one image that consist of one fragment. Stops before the first message of several
    /// fragments, and at the end of the current term. Returns the number of messages.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::CorruptLog`] or [`Error::PositionCounterClosed`], which close the image;
    /// [`Error::OutOfMemory`]. The messages before the error are in the batch and are consumed.
    pub fn poll_unfragmented(&mut self, image: &Image, limits: BatchLimits) -> Result<usize> {
        image.exclusively(|| {
            let Some(mut reading) = image.begin(None)? else {
                return Ok(0);
            };
            let (before, limits) = (self.len(), self.in_total(limits));
            let outcome = self.read::<true>(image, &mut reading, &mut None, limits);
            self.name_source(image);
            outcome.map(|()| self.len() - before)
        })
    }

    /// Converts the limits of one poll to limits of the whole batch: adds the number of messages that the batch already
    /// has.
    fn in_total(&self, limits: BatchLimits) -> BatchLimits {
        BatchLimits {
            messages: self.len().saturating_add(limits.messages),
            bytes: limits.bytes.min(MAX_BATCH_BYTES),
        }
    }

    /// Adds the available fragments until the batch is full. If `ONLY_WHOLE`, stops before a message of several
    /// fragments.
    #[inline(always)]
    fn read<'a, const ONLY_WHOLE: bool>(
        &mut self,
        image: &Image,
        reading: &mut Reading<'a>,
        open: &mut Option<Open>,
        limits: BatchLimits,
    ) -> Result<()> {
        loop {
            let is_full = self.len() >= limits.messages || self.used >= limits.bytes;
            if open.is_none() && is_full || image.is_closed() {
                return Ok(());
            }
            let Some(fragment) = reading.next(Cursor::next_fragment)? else {
                return Ok(());
            };
            if ONLY_WHOLE && fragment.flags() & flags::UNFRAGMENTED != flags::UNFRAGMENTED {
                reading.cursor.return_to(&fragment);
                return Ok(());
            }
            if let Err(error) = self.add(&fragment, open, &mut reading.cursor, limits) {
                reading.cursor.return_to(&fragment);
                return Err(error.into());
            }
        }
    }

    /// Sets session id and stream id of the messages that were read from an image.
    fn name_source(&mut self, image: &Image) {
        debug_assert_eq!(
            self.offsets.len(),
            self.positions.len() + 1,
            "a batch must have one offset more than messages"
        );
        debug_assert_eq!(
            self.reserved_values.len(),
            self.positions.len(),
            "each message of a batch must have a reserved value"
        );
        self.session_ids.resize(self.len(), image.session_id());
        self.stream_ids.resize(self.len(), image.stream_id());
    }

    /// Adds a whole message. Changes nothing if there is no memory for it, or if the batch is full.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::InvalidArgument`] if the batch has [`MAX_BATCH_BYTES`] or more.
    pub fn push(&mut self, message: &Message<'_>) -> Result<()> {
        if self.used >= MAX_BATCH_BYTES {
            return Err(Error::InvalidArgument(format!(
                "a batch of {} bytes takes no further message, the limit is {MAX_BATCH_BYTES}: begin another batch",
                self.used
            )));
        }
        let (length, header) = (message.len(), message.header());
        self.make_room(length, 1)?;
        message.copy_to(&mut self.data[self.used..self.used + length]);
        self.used += length;
        self.finish(header.position(), header.reserved_value());
        self.session_ids.push(header.session_id());
        self.stream_ids.push(header.stream_id());
        Ok(())
    }

    /// Adds a fragment. After a whole message, also adds the messages that follow and have the same header fields.
    #[inline(always)]
    fn add<'a>(
        &mut self,
        fragment: &LogFragment<'a, SharedBuffer>,
        open: &mut Option<Open>,
        cursor: &mut Cursor<'a, SharedBuffer>,
        limits: BatchLimits,
    ) -> Fallible<()> {
        let place = fragment.flags() & flags::UNFRAGMENTED;
        if place == flags::UNFRAGMENTED {
            self.drop_open(open);
            self.copy(fragment)?;
            self.finish(fragment.position(), fragment.reserved_value());
            self.add_alike(fragment, cursor, limits);
            Ok(())
        } else {
            self.add_part(fragment, place, open)
        }
    }

    /// Adds the messages directly after `like` that have its length, flags and type, and no reserved value.
    ///
    /// Streams of records consist of such messages. Each message needs one comparison and one copy of its payload. The
    /// columns are filled for many messages at a time.
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
        let needed = most * length + FRAME_ALIGNMENT;
        if self.make_room(needed, most).is_err() {
            // Not an error: the caller then adds the messages one by one, which needs less memory at a time.
            return;
        }
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

    /// Adds the column entries of `count` messages of `length` bytes each. The first message begins at the stream
    /// position `begin_position`.
    fn finish_alike(&mut self, count: usize, length: usize, begin_position: i64) {
        let framed = aligned_length(length + HEADER_LENGTH) as i64;
        debug_assert!(
            self.used + count * length <= self.data.len(),
            "{count} messages of {length} bytes after byte {} must be within the {} bytes of the batch",
            self.used,
            self.data.len()
        );
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
    ) -> Fallible<()> {
        if place & flags::BEGIN != 0 {
            self.drop_open(open);
            self.copy(fragment)?;
            *open = Some(Open {
                start: self.used - fragment.payload_length(),
                begin_position: fragment.begin_position(),
                next_position: fragment.position(),
                reserved_value: fragment.reserved_value(),
                origin: MessageOrigin::Read,
            });
            return Ok(());
        }
        if !open.as_ref().is_some_and(|open| {
            let length = self.used - open.start + fragment.payload_length();
            open.next_position == fragment.begin_position() && length <= MAX_MESSAGE_LENGTH
        }) {
            // A fragment is missing, or the message is longer than any publisher can send: the message is lost.
            self.drop_open(open);
            return Ok(());
        }
        self.copy(fragment)?;
        let Some(message) = open else {
            return Ok(());
        };
        message.next_position = fragment.position();
        if place & flags::END != 0 {
            let reserved_value = message.reserved_value;
            *open = None;
            self.finish(fragment.position(), reserved_value);
        }
        Ok(())
    }

    /// Drops a message that cannot be completed.
    #[inline(always)]
    fn drop_open(&mut self, open: &mut Option<Open>) {
        if let Some(open) = open.take() {
            self.used = open.start;
        }
    }

    /// Copies a payload to the end of the used data. Also makes room in the columns for one message.
    #[inline(always)]
    fn copy(&mut self, fragment: &LogFragment<'_, SharedBuffer>) -> Fallible<()> {
        let length = fragment.payload_length();
        self.make_room(aligned_length(length), 1)?;
        let target = &mut self.data[self.used..];
        if length <= MAX_BLOCKWISE_LENGTH {
            copy_in_blocks(fragment, target);
        } else {
            fragment.copy_payload(&mut target[..length]);
        }
        self.used += length;
        Ok(())
    }

    /// Makes room for additional payload bytes and messages. If memory runs out, the contents do not change.
    #[inline(always)]
    fn make_room(&mut self, bytes: usize, messages: usize) -> Fallible<()> {
        if self.data.len() - self.used < bytes || self.room - self.len() < messages {
            return self.grow(bytes, messages);
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, bytes: usize, messages: usize) -> Fallible<()> {
        let needed = self.used + bytes;
        if self.data.len() < needed {
            let ample = needed.max(self.data.len() * 2).max(MIN_DATA_LENGTH);
            grow_zeroed(&mut self.data, ample).or_else(|_| grow_zeroed(&mut self.data, needed))?;
        }
        let needed = self.len() + messages;
        if self.room < needed {
            let room = needed.max(self.room * 2).max(MIN_MESSAGES);
            reserve(&mut self.offsets, room + 1)?;
            reserve(&mut self.positions, room)?;
            reserve(&mut self.session_ids, room)?;
            reserve(&mut self.stream_ids, room)?;
            reserve(&mut self.reserved_values, room)?;
            self.room = room;
        }
        Ok(())
    }

    #[inline(always)]
    fn finish(&mut self, position: i64, reserved_value: i64) {
        debug_assert!(
            self.used <= self.data.len() && self.used <= i32::MAX as usize,
            "the end {} of a message must be within the {} bytes of its batch, and fit into an offset",
            self.used,
            self.data.len()
        );
        self.offsets.push(self.used as i32);
        self.positions.push(position);
        self.reserved_values.push(reserved_value);
    }

    /// Takes the beginning of a message that an earlier poll set aside, and puts it at the end of the data. The poll
    /// starts to read at `begin_position`.
    ///
    /// The beginning is copied, or its memory is swapped with the memory of an empty batch. If memory runs out later in
    /// the poll, `unread` restores the beginning.
    fn resume(
        &mut self,
        partial: &mut PartialMessages,
        session_id: i32,
        begin_position: i64,
    ) -> Fallible<Option<Open>> {
        let Some(message) = partial.by_session.get_mut(&session_id) else {
            return Ok(None);
        };
        debug_assert!(
            message.used <= message.data.len(),
            "a message of {} bytes was set aside with {} bytes",
            message.used,
            message.data.len()
        );
        let start = self.used;
        let is_swapped = start == 0 && message.data.len() >= self.data.len();
        if is_swapped {
            std::mem::swap(&mut self.data, &mut message.data);
        } else {
            self.make_room(message.used, 0)?;
            self.data[start..start + message.used].copy_from_slice(&message.data[..message.used]);
        }
        self.used += message.used;
        Ok(Some(Open {
            start,
            begin_position,
            next_position: message.next_position,
            reserved_value: message.reserved_value,
            origin: match is_swapped {
                true => MessageOrigin::Swapped,
                false => MessageOrigin::Copied,
            },
        }))
    }

    /// Sets the beginning of a message aside until its other fragments have arrived.
    ///
    /// If there is no memory for the beginning, the poll consumes nothing of the message.
    fn set_aside(
        &mut self,
        open: Option<Open>,
        partial: &mut PartialMessages,
        session_id: i32,
        cursor: &mut Cursor<'_, SharedBuffer>,
    ) -> Fallible<()> {
        let Some(open) = open else {
            partial.forget(session_id);
            return Ok(());
        };
        debug_assert!(
            open.start <= self.used,
            "a message that begins at byte {} of the batch must not end at byte {}",
            open.start,
            self.used
        );
        let used = self.used - open.start;
        let kept = partial.entry(session_id).and_then(|message| {
            if open.start == 0 {
                message.data = std::mem::take(&mut self.data);
            } else {
                grow_zeroed(&mut message.data, used)?;
                message.data[..used].copy_from_slice(&self.data[open.start..self.used]);
            }
            message.used = used;
            message.next_position = open.next_position;
            message.reserved_value = open.reserved_value;
            Ok(())
        });
        if kept.is_err() {
            self.unread(Some(open), partial, session_id, cursor);
        } else {
            self.used = open.start;
        }
        kept
    }

    /// Reverts the reading of an incomplete message: the next poll delivers its fragments again.
    fn unread(
        &mut self,
        open: Option<Open>,
        partial: &mut PartialMessages,
        session_id: i32,
        cursor: &mut Cursor<'_, SharedBuffer>,
    ) {
        let origin = open
            .as_ref()
            .map_or(MessageOrigin::Read, |open| open.origin);
        match origin {
            // A message that an earlier poll set aside is now complete or lost.
            MessageOrigin::Read => partial.forget(session_id),
            MessageOrigin::Copied => {}
            MessageOrigin::Swapped => {
                if let Some(message) = partial.by_session.get_mut(&session_id) {
                    std::mem::swap(&mut self.data, &mut message.data);
                }
            }
        }
        if let Some(open) = open {
            self.used = open.start;
            cursor.return_to_position(open.begin_position);
        }
    }
}

/// Extends a vector with zeros to at least `length` bytes.
fn grow_zeroed(data: &mut Vec<u8>, length: usize) -> Fallible<()> {
    if data.len() < length {
        reserve(data, length)?;
        data.resize(length, 0);
    }
    Ok(())
}

/// Reserves memory so that a column has room for `length` entries in total.
fn reserve<T>(column: &mut Vec<T>, length: usize) -> Fallible<()> {
    column
        .try_reserve_exact(length.saturating_sub(column.len()))
        .map_err(|_| OutOfMemory(length.saturating_mul(size_of::<T>())))
}

/// Copies to `target` the payloads of up to `most` fragments that follow `like` and have the same header fields.
/// Returns the number of payloads.
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

/// Like [`copy_in_blocks`], with one block of a size that is known at compile time. Most records fit into such a block.
#[inline(always)]
fn copy_chunk<const N: usize>(fragment: &LogFragment<'_, SharedBuffer>, target: &mut [u8]) {
    let chunk = target.first_chunk_mut::<N>();
    let chunk = chunk.expect("the batch has room for whole blocks");
    fragment.term().copy_out(fragment.payload_offset(), chunk);
}

/// Copies a payload to the start of `target` in whole blocks of 32 bytes, which compile to a few moves.
///
/// Frames in the log are aligned to such blocks, so nothing after the frame is read. Bytes in `target` after the
/// payload are overwritten by the next message.
#[inline(always)]
fn copy_in_blocks(fragment: &LogFragment<'_, SharedBuffer>, target: &mut [u8]) {
    let blocks = fragment.payload_length().div_ceil(FRAME_ALIGNMENT);
    let (targets, _) = target.as_chunks_mut::<FRAME_ALIGNMENT>();
    for (i, block) in targets[..blocks].iter_mut().enumerate() {
        let offset = fragment.payload_offset() + i * FRAME_ALIGNMENT;
        fragment.term().copy_out(offset, block);
    }
}

/// Maximum number of messages that are added before the columns are filled and the image's state is read again.
const MAX_ALIKE: usize = 256;
/// Payloads up to this length in bytes are copied in blocks.
const MAX_BLOCKWISE_LENGTH: usize = 256;
/// Minimum allocation for the data, in bytes.
const MIN_DATA_LENGTH: usize = 4096;
/// Minimum number of messages for which the columns allocate memory.
const MIN_MESSAGES: usize = 64;

const _: () = assert!(
    HEADER_LENGTH == FRAME_ALIGNMENT,
    "a payload must begin at the start of a block"
);
