//! Batches: many messages appended with one call.
//!
//! A batch is cut into runs. A run is claimed with one addition to the tail, and one release store makes all its messages
//! readable. The outcome in the log is the same as that of offering the messages one by one.

use super::AppendError;
use crate::log::frame::Framing;

/// A run is ended by the message that makes it this long or longer, in bytes. Long enough to make its two atomic operations
/// cheap, short enough for the subscriber to find the bytes in the cache of the publisher's core.
pub(super) const TARGET_RUN_LENGTH: usize = 16 * 1024;
/// A run of several messages is not longer than this, in bytes, nor than the longest message: a publisher that dies inside a run
/// takes all of it along.
const MAX_RUN_LENGTH: usize = 64 * 1024;

/// The messages of a batch.
///
/// A message has the same length each time that it is asked for; a batch that changes meanwhile makes the call panic.
pub trait Messages {
    /// Number of messages.
    fn count(&self) -> usize;

    /// Bytes of the message at `index`, which is below [`count`](Self::count).
    fn message(&self, index: usize) -> &[u8];

    /// The length of all messages, if they have the same.
    #[inline]
    fn uniform_length(&self) -> Option<usize> {
        None
    }

    /// The reserved value in the headers of the message's frames. Asked for when the payload is written.
    #[inline(always)]
    fn reserved_value(&self, index: usize) -> i64 {
        let _ = index;
        0
    }
}

impl<T: AsRef<[u8]>> Messages for [T] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn message(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

/// Messages of the same length that lie at a fixed distance in one piece of memory.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    bytes: &'a [u8],
    length: usize,
    stride: usize,
    count: usize,
}

impl<'a> Records<'a> {
    /// `count` records of `length` bytes, each beginning `stride` bytes after the one before.
    ///
    /// `None` when `bytes` is too short for them.
    pub fn new(bytes: &'a [u8], length: usize, stride: usize, count: usize) -> Option<Self> {
        let begin_of_last = count.saturating_sub(1).checked_mul(stride)?;
        let fits = count == 0 || begin_of_last.checked_add(length)? <= bytes.len();
        fits.then_some(Self {
            bytes,
            length,
            stride,
            count,
        })
    }
}

impl Messages for Records<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn message(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.stride..][..self.length]
    }

    #[inline]
    fn uniform_length(&self) -> Option<usize> {
        Some(self.length)
    }
}

/// What a batch call appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Messages appended; 0 only when there was none to append.
    pub messages: usize,
    /// Stream position after the last of them, or of the publisher when there was none.
    pub position: i64,
}

/// The first messages of a batch that go into one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) messages: usize,
    pub(super) length: usize,
}

impl Run {
    /// The messages from index `first` on that fit into `room` bytes of term and begin less than `window` bytes ahead, up to
    /// the target length; a message longer than a run may be is a run of its own. Contains no message that is too long to be
    /// sent; may be empty.
    #[inline]
    pub(super) fn plan<M: Messages + ?Sized>(
        messages: &M,
        first: usize,
        framing: Framing,
        room: usize,
        window: u64,
    ) -> Self {
        let begin_before = window.min(TARGET_RUN_LENGTH as u64) as usize;
        let left = messages.count() - first;
        match messages.uniform_length() {
            Some(length) => Self::plan_uniform(length, left, framing, room, begin_before),
            None => Self::plan_mixed(messages, first, framing, room, begin_before),
        }
    }

    fn plan_uniform(
        length: usize,
        left: usize,
        framing: Framing,
        room: usize,
        begin_before: usize,
    ) -> Self {
        let Some(framed) = framing.framed_length(length) else {
            return Self::EMPTY;
        };
        let messages = left
            .min(room / framed)
            .min(begin_before.div_ceil(framed))
            .min((max_length(framing) / framed).max(1));
        Self {
            messages,
            length: messages * framed,
        }
    }

    fn plan_mixed<M: Messages + ?Sized>(
        messages: &M,
        first: usize,
        framing: Framing,
        room: usize,
        begin_before: usize,
    ) -> Self {
        let mut run = Self::EMPTY;
        let mut longest = room;
        while run.length < begin_before && first + run.messages < messages.count() {
            let length = messages.message(first + run.messages).len();
            match framing.framed_length(length) {
                Some(framed) if framed <= longest.saturating_sub(run.length) => {
                    run.messages += 1;
                    run.length += framed;
                }
                _ => break,
            }
            longest = room.min(max_length(framing));
        }
        run
    }

    const EMPTY: Self = Self {
        messages: 0,
        length: 0,
    };
}

/// Bytes that a run of several messages has at most.
fn max_length(framing: Framing) -> usize {
    MAX_RUN_LENGTH.min(framing.max_message_length())
}

/// Appends run after run with `append_run`, which is handed the index of the next message, until all messages are appended
/// or one cannot be for now. Nothing is left to append when `first` is the number of messages.
#[inline]
pub(super) fn append_runs<M: Messages + ?Sized>(
    messages: &M,
    first: usize,
    position: i64,
    mut append_run: impl FnMut(usize) -> Result<Appended, AppendError>,
) -> Result<Appended, AppendError> {
    if first >= messages.count() {
        let messages = 0;
        return Ok(Appended { messages, position });
    }
    let mut appended = append_run(first)?;
    while first + appended.messages < messages.count() {
        let Ok(run) = append_run(first + appended.messages) else {
            break;
        };
        appended.messages += run.messages;
        appended.position = run.position;
    }
    Ok(appended)
}
