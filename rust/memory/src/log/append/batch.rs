//! Batches: many messages appended with one call.
//!
//! A batch is divided into runs. One addition to the tail claims a run, and one release store makes all its messages
//! readable. The result in the log is the same as if the messages were offered one by one.

use super::AppendError;
use crate::log::frame::Framing;

/// Target length of a run, in bytes: a run ends with the first message that makes the run at least this long. The value
/// is so large that the two atomic operations of a run cost little for each message. It is so small that the subscriber
/// finds the bytes in the cache of the publisher's core.
pub(super) const TARGET_RUN_LENGTH: usize = 16 * 1024;
/// Maximum length in bytes of a run of several messages. Such a run is also not longer than the maximum message length.
/// If a publisher dies while it writes a run, the whole run is lost.
const MAX_RUN_LENGTH: usize = 64 * 1024;

/// The messages of a batch.
///
/// [`message`](Self::message) must always return the same length for the same index. If a length changes while the
/// batch is appended, the append panics.
pub trait MessageBatch {
    /// Returns the number of messages.
    fn count(&self) -> usize;

    /// Returns the bytes of the message at `index`, which is below [`count`](Self::count).
    fn message(&self, index: usize) -> &[u8];

    /// Returns the length of each message, if the type makes all messages equally long.
    #[inline]
    fn uniform_length(&self) -> Option<usize> {
        None
    }

    /// Returns the reserved value for the headers of the message's frames. Called when the payload is written.
    #[inline(always)]
    fn reserved_value(&self, index: usize) -> i64 {
        let _ = index;
        0
    }
}

impl<T: AsRef<[u8]>> MessageBatch for [T] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn message(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

/// Messages of equal length in one slice. The distance from the start of one message to the start of the next is
/// constant.
#[derive(Debug, Clone, Copy)]
pub struct FixedLengthMessages<'a> {
    bytes: &'a [u8],
    length: usize,
    stride: usize,
    count: usize,
}

impl<'a> FixedLengthMessages<'a> {
    /// Creates `count` messages of `length` bytes. Each message begins `stride` bytes after the start of the previous
    /// message.
    ///
    /// Returns `None` if `bytes` is too short.
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

impl MessageBatch for FixedLengthMessages<'_> {
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

/// Result of appending a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Number of messages appended; 0 only if there was no message to append.
    pub messages: usize,
    /// Stream position after the last appended message; if no message was appended, the publisher's position.
    pub position: i64,
}

/// Plan of one run: the number of its messages, and its length in the log in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) messages: usize,
    pub(super) length: usize,
}

impl Run {
    /// Plans a run that starts with the message `first`. The messages fit into `room` bytes of the term, and each
    /// message begins less than `window` bytes after the start of the run. The run ends with the message that reaches
    /// the target length. A message longer than the maximum run is a run of one message. If the first message does not
    /// fit or is too long to be sent, the run is empty.
    #[inline]
    pub(super) fn plan<M: MessageBatch + ?Sized>(
        messages: &M,
        first: usize,
        framing: Framing,
        room: usize,
        window: u64,
    ) -> Self {
        let begin_before = window.min(TARGET_RUN_LENGTH as u64) as usize;
        let left = messages.count() - first;
        let run = match messages.uniform_length() {
            Some(length) => Self::plan_uniform(length, left, framing, room, begin_before),
            None => Self::plan_mixed(messages, first, framing, room, begin_before),
        };
        debug_assert!(
            run.length <= room,
            "a run of {} bytes does not fit into the {room} bytes of the term",
            run.length
        );
        debug_assert!(
            run.messages <= left,
            "a run has {} messages, but only {left} are left",
            run.messages
        );
        run
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

    fn plan_mixed<M: MessageBatch + ?Sized>(
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

/// Returns the maximum number of bytes in a run of several messages.
fn max_length(framing: Framing) -> usize {
    MAX_RUN_LENGTH.min(framing.max_message_length())
}

/// Appends run after run with `append_run`, which receives the index of the next message. Stops when all messages are
/// appended, or when a run cannot be appended now. If `first` is not below the number of messages, appends nothing.
#[inline]
pub(super) fn append_runs<M: MessageBatch + ?Sized>(
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
        debug_assert!(
            run.messages > 0,
            "a batch that appends runs without messages never ends"
        );
        appended.messages += run.messages;
        appended.position = run.position;
    }
    Ok(appended)
}
