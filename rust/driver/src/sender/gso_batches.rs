//! Cutting a stream into datagrams, and datagrams into GSO batches.
//!
//! A datagram holds as many whole frames as its limit allows. A [`GsoBatch`] is a row of datagrams that one call can send, all of
//! one length except that the last may be shorter. How datagrams are cut never depends on how many of them a batch may hold.
//!
//! A batch is the range of the term that the [`Cutter`] walked. Of padding only the header is sent, so a batch ends with that
//! header, and the next batch begins at the end of the padding.

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::scan::{Available, scan};
use aeron_memory::log::{CorruptLog, LogBuffers};
use arrayvec::ArrayVec;

use crate::media::transport::{GsoBatch, MAX_GSO_BATCH_LENGTH};

/// Most GSO batches that are cut at a time: the largest number of messages per send that can be configured.
pub const MAX_GSO_BATCHES: usize = 16;

/// What may be cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest datagram, in bytes.
    pub mtu_length: usize,
    /// Most batches, 1 to [`MAX_GSO_BATCHES`].
    pub max_gso_batches: usize,
    /// Most datagrams in a batch.
    pub max_gso_batch_datagrams: usize,
    /// What to do with a last datagram that has room for more.
    pub tail: Tail,
}

/// What to do with a last datagram that has room for more frames than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// It leaves.
    Send,
    /// It stays for now.
    Hold,
    /// It stays if it holds several frames: more of that kind are likely to join soon.
    HoldSeveral,
}

/// What stopped the cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing more is there, the term ends, or there are as many batches as allowed.
    Done,
    /// The next frame does not fit in what is left of the window.
    Window,
    /// The last datagram stays, as [`Tail`] says.
    Held,
}

/// GSO batches in the order in which they are sent.
#[derive(Debug)]
pub struct Cut<'a> {
    pub batches: ArrayVec<GsoBatch<'a>, MAX_GSO_BATCHES>,
    /// Position behind each batch, padding included.
    ends: ArrayVec<i64, MAX_GSO_BATCHES>,
    begin: i64,
    pub stop: Stop,
}

impl Cut<'_> {
    /// Position behind the first `count` batches.
    pub fn end_of(&self, count: usize) -> i64 {
        count
            .checked_sub(1)
            .and_then(|last| self.ends.get(last).copied())
            .unwrap_or(self.begin)
    }

    /// Whether the last of the first `count` batches has one frame in each datagram, as far as its first one tells.
    pub fn is_last_frame_alone(&self, log: &LogBuffers<SharedBuffer>, count: usize) -> bool {
        count.checked_sub(1).is_some_and(|last| {
            is_one_frame(log, self.end_of(last), self.batches[last].datagram_length())
        })
    }

    /// Bytes of the first `count` batches, without padding.
    pub fn length_of(&self, count: usize) -> usize {
        self.batches.iter().take(count).map(GsoBatch::length).sum()
    }
}

/// Cuts what is in the log from `position` on, within one term and at most `window` bytes with padding.
///
/// # Errors
/// A frame has an impossible length, or no frame can begin at `position`.
pub fn cut<'a>(
    log: &'a LogBuffers<SharedBuffer>,
    position: i64,
    window: i64,
    limits: &Limits,
) -> Result<Cut<'a>, CorruptLog> {
    let mut cutter = Cutter::new(log, position, window, limits);
    let (mut batches, mut ends) = (ArrayVec::new(), ArrayVec::new());
    while batches.len() < limits.max_gso_batches.min(MAX_GSO_BATCHES)
        && let Some(batch) = cutter.next_batch()?
    {
        batches.push(batch);
        ends.push(cutter.position());
    }
    Ok(Cut {
        batches,
        ends,
        begin: position,
        stop: cutter.stop,
    })
}

/// Walks one term from frame to frame.
struct Cutter<'a, 'l> {
    log: &'a LogBuffers<SharedBuffer>,
    limits: &'l Limits,
    term_begin: i64,
    /// Everything before in the term was cut.
    offset: usize,
    /// Nothing from here on may be cut: the end of the window or of the term.
    end: usize,
    /// Whether the window ends before the term.
    is_limited: bool,
    /// The frames at `offset`, if they were found while the batch before had no room for them.
    next: Option<Datagram>,
    /// The last datagram that was found has room for more frames than there are.
    is_last: bool,
    stop: Stop,
}

/// Whole frames at a cutter's offset.
#[derive(Clone, Copy)]
struct Datagram {
    length: usize,
    /// Bytes of padding after them that are not sent.
    padding: usize,
}

impl<'a, 'l> Cutter<'a, 'l> {
    fn new(
        log: &'a LogBuffers<SharedBuffer>,
        position: i64,
        window: i64,
        limits: &'l Limits,
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
            stop: Stop::Done,
        }
    }

    fn position(&self) -> i64 {
        self.term_begin + self.offset as i64
    }

    /// Cuts the longest batch that begins here.
    fn next_batch(&mut self) -> Result<Option<GsoBatch<'a>>, CorruptLog> {
        let Some(first) = self.next_datagram()? else {
            return Ok(None);
        };
        let (begin, mut padding) = (self.offset, first.padding);
        self.offset += first.length;
        for _ in 1..self.limits.max_gso_batch_datagrams {
            // The bytes after the header of padding are not sent: the batch ends with it.
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
        let batch = GsoBatch::new(
            self.log.term_at(self.term_begin),
            begin..self.offset,
            first.length,
        );
        self.offset += padding;
        Ok(Some(batch))
    }

    /// The datagram that begins here, if it may be sent now.
    fn next_datagram(&mut self) -> Result<Option<Datagram>, CorruptLog> {
        if let Some(datagram) = self.next.take() {
            return Ok(Some(datagram));
        }
        if self.is_last {
            return Ok(None);
        }
        if self.offset >= self.end {
            if self.is_limited {
                self.stop = Stop::Window;
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
                self.stop = Stop::Window;
                return Ok(None);
            }
        };
        let tail = self.limits.tail;
        if !is_full && tail.is_held(self.log, self.position(), length) {
            self.stop = Stop::Held;
            return Ok(None);
        }
        self.is_last = !is_full;
        Ok(Some(Datagram { length, padding }))
    }
}

impl Tail {
    fn is_held(self, log: &LogBuffers<SharedBuffer>, at: i64, length: usize) -> bool {
        match self {
            Tail::Send => false,
            Tail::Hold => true,
            Tail::HoldSeveral => !is_one_frame(log, at, length),
        }
    }
}

/// Whether `length` bytes of whole frames at `position` are a single one.
fn is_one_frame(log: &LogBuffers<SharedBuffer>, position: i64, length: usize) -> bool {
    let offset = log.positions().term_offset(position);
    let frame_length = log.term_at(position).load_i32_relaxed(offset);
    usize::try_from(frame_length).is_ok_and(|first| first.saturating_add(FRAME_ALIGNMENT) > length)
}
