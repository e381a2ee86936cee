//! Cuts a stream into datagrams, and groups the datagrams into GSO batches.
//!
//! A datagram contains as many whole frames as its limit allows. A [`GsoBatch`] is a sequence of datagrams for one
//! system call. All datagrams of a batch have the same length, except that the last may be shorter. The boundaries of
//! datagrams never depend on the size of the batches.
//!
//! A batch is a range of the term that the [`Cutter`] has walked through. Only the header of a padding frame is sent.
//! If the range contains padding, the batch therefore ends with the header, and the next batch begins after the
//! padding.

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::scan::{Available, scan};
use aeron_memory::log::{CorruptLog, LogBuffers};
use arrayvec::ArrayVec;

use crate::media::transport::{GsoBatch, MAX_GSO_BATCH_LENGTH};

/// Maximum number of GSO batches in one cut. It is also the largest configurable number of messages per send.
pub const MAX_GSO_BATCHES: usize = 16;

/// Limits of a cut.
#[derive(Clone, Copy, Debug)]
pub struct CutLimits {
    /// Maximum length of a datagram in bytes.
    pub mtu_length: usize,
    /// Maximum number of batches, 1 to [`MAX_GSO_BATCHES`].
    pub max_gso_batches: usize,
    /// Maximum number of datagrams in a batch.
    pub max_gso_batch_datagrams: usize,
    /// The treatment of a last datagram with room for more frames.
    pub tail: TailPolicy,
}

/// The treatment of a last datagram that has room for more frames than the log contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPolicy {
    /// Send the datagram.
    Send,
    /// Hold the datagram back for now.
    Hold,
    /// Hold the datagram back if it contains several frames: more small messages are likely to follow soon.
    HoldSeveral,
}

/// The reason why the cut ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutEnd {
    /// The log contains no more frames, the term ends, or the maximum number of batches is reached.
    Done,
    /// The next frame does not fit into the rest of the window.
    Window,
    /// The last datagram was held back, according to [`TailPolicy`].
    Held,
}

/// GSO batches in stream order.
#[derive(Debug)]
pub struct CutBatches<'a> {
    pub batches: ArrayVec<GsoBatch<'a>, MAX_GSO_BATCHES>,
    /// End position of each batch, including padding.
    ends: ArrayVec<i64, MAX_GSO_BATCHES>,
    begin: i64,
    pub stop: CutEnd,
}

impl CutBatches<'_> {
    /// Returns the end position of the first `count` batches.
    pub fn end_of(&self, count: usize) -> i64 {
        debug_assert!(
            count <= self.ends.len(),
            "there are only {} batches, not {count}",
            self.ends.len()
        );
        count
            .checked_sub(1)
            .and_then(|last| self.ends.get(last).copied())
            .unwrap_or(self.begin)
    }

    /// Looks at the last batch of the first `count` batches. Returns whether the first datagram of this batch contains
    /// a single frame. The other datagrams of the batch are not checked.
    pub fn is_last_frame_alone(&self, log: &LogBuffers<SharedBuffer>, count: usize) -> bool {
        count.checked_sub(1).is_some_and(|last| {
            is_one_frame(log, self.end_of(last), self.batches[last].datagram_length())
        })
    }

    /// Returns the bytes of the first `count` batches, without padding.
    pub fn length_of(&self, count: usize) -> usize {
        self.batches.iter().take(count).map(GsoBatch::length).sum()
    }
}

/// Cuts the log into batches from `position`. The cut stays within one term and `window` bytes, including padding.
///
/// # Errors
/// A frame has an impossible length, or no frame can begin at `position`.
pub fn cut<'a>(
    log: &'a LogBuffers<SharedBuffer>,
    position: i64,
    window: i64,
    limits: &CutLimits,
) -> Result<CutBatches<'a>, CorruptLog> {
    let mut cutter = Cutter::new(log, position, window, limits);
    let (mut batches, mut ends) = (ArrayVec::new(), ArrayVec::new());
    while batches.len() < limits.max_gso_batches.min(MAX_GSO_BATCHES)
        && let Some(batch) = cutter.next_batch()?
    {
        debug_assert!(
            ends.last()
                .is_none_or(|previous| *previous < cutter.position()),
            "the batch that ends at {} is not after the previous batch",
            cutter.position()
        );
        batches.push(batch);
        ends.push(cutter.position());
    }
    Ok(CutBatches {
        batches,
        ends,
        begin: position,
        stop: cutter.stop,
    })
}

/// Walks through one term frame by frame.
struct Cutter<'a, 'l> {
    log: &'a LogBuffers<SharedBuffer>,
    limits: &'l CutLimits,
    term_begin: i64,
    /// End of the part of the term that is already cut.
    offset: usize,
    /// End of the part that may be cut: the end of the window or the end of the term.
    end: usize,
    /// Whether the window ends before the term.
    is_limited: bool,
    /// The frames at `offset`, if they were found before but did not fit into the previous batch.
    next: Option<CutDatagram>,
    /// Whether the datagram that was found last has room for more frames than the log contains.
    is_last: bool,
    stop: CutEnd,
}

/// Whole frames at a cutter's offset.
#[derive(Clone, Copy)]
struct CutDatagram {
    length: usize,
    /// Length of the padding after the frames, which is not sent.
    padding: usize,
}

impl<'a, 'l> Cutter<'a, 'l> {
    fn new(
        log: &'a LogBuffers<SharedBuffer>,
        position: i64,
        window: i64,
        limits: &'l CutLimits,
    ) -> Self {
        let positions = log.positions();
        let offset = positions.term_offset(position);
        let left = positions.term_length() - offset;
        let window = usize::try_from(window).unwrap_or(0);
        Self {
            log,
            limits,
            term_begin: positions.term_begin(position),
            offset,
            end: offset + window.min(left),
            is_limited: window < left,
            next: None,
            is_last: false,
            stop: CutEnd::Done,
        }
    }

    fn position(&self) -> i64 {
        self.term_begin + self.offset as i64
    }

    /// Cuts the longest batch that begins at the offset.
    fn next_batch(&mut self) -> Result<Option<GsoBatch<'a>>, CorruptLog> {
        let Some(first) = self.next_datagram()? else {
            return Ok(None);
        };
        let (begin, mut padding) = (self.offset, first.padding);
        self.offset += first.length;
        for _ in 1..self.limits.max_gso_batch_datagrams {
            // Only the header of a padding frame is sent, so the batch ends with the header.
            let is_whole = (self.offset - begin).is_multiple_of(first.length);
            if padding > 0 || !is_whole {
                break;
            }
            let Some(next) = self.next_datagram()? else {
                break;
            };
            if next.length > first.length
                || self.offset + next.length - begin > MAX_GSO_BATCH_LENGTH
            {
                self.next = Some(next);
                break;
            }
            self.offset += next.length;
            padding = next.padding;
        }
        debug_assert!(
            self.offset + padding <= self.log.term_length(),
            "a batch with {padding} bytes of padding that ends at {} crosses the end of its term",
            self.offset
        );
        let batch = GsoBatch::new(
            self.log.term_at(self.term_begin),
            begin..self.offset,
            first.length,
        );
        self.offset += padding;
        Ok(Some(batch))
    }

    /// Returns the datagram at the offset, if it may be sent now.
    fn next_datagram(&mut self) -> Result<Option<CutDatagram>, CorruptLog> {
        if let Some(datagram) = self.next.take() {
            return Ok(Some(datagram));
        }
        if self.is_last {
            return Ok(None);
        }
        if self.offset >= self.end {
            if self.is_limited {
                self.stop = CutEnd::Window;
            }
            return Ok(None);
        }
        let limit = self.limits.mtu_length.min(self.end - self.offset);
        let (length, padding, is_full) = match scan(self.log, self.position(), limit)? {
            Available::Frames { length: 0, .. } => return Ok(None),
            Available::Frames {
                length,
                padding,
                is_full,
            } => (length, padding, is_full),
            Available::TooLong(_) => {
                self.stop = CutEnd::Window;
                return Ok(None);
            }
        };
        let tail = self.limits.tail;
        if !is_full && tail.is_held(self.log, self.position(), length) {
            self.stop = CutEnd::Held;
            return Ok(None);
        }
        debug_assert!(
            length <= self.limits.mtu_length,
            "a datagram of {length} bytes is longer than the MTU of {} bytes",
            self.limits.mtu_length
        );
        self.is_last = !is_full;
        Ok(Some(CutDatagram { length, padding }))
    }
}

impl TailPolicy {
    fn is_held(self, log: &LogBuffers<SharedBuffer>, at: i64, length: usize) -> bool {
        match self {
            TailPolicy::Send => false,
            TailPolicy::Hold => true,
            TailPolicy::HoldSeveral => !is_one_frame(log, at, length),
        }
    }
}

/// Returns whether the `length` bytes of whole frames at `position` are a single frame.
fn is_one_frame(log: &LogBuffers<SharedBuffer>, position: i64, length: usize) -> bool {
    let offset = log.positions().term_offset(position);
    let frame_length = log.term_at(position).load_i32_relaxed(offset);
    usize::try_from(frame_length).is_ok_and(|first| first.saturating_add(FRAME_ALIGNMENT) > length)
}
