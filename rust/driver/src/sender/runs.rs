//! Cutting a stream into datagrams, and datagrams into runs.
//!
//! A datagram holds as many whole frames as its limit allows; a [`Run`] is a row of datagrams that one call can send, all of one
//! length except that the last may be shorter. How datagrams are cut never depends on how many of them a run may hold.

use aeron_memory::Words;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::scan::{Available, scan};
use aeron_memory::log::{CorruptLog, LogBuffers};
use arrayvec::ArrayVec;

use crate::media::transport::{MAX_RUN_LENGTH, Run};

/// Most runs that are cut at a time: the largest number of messages per send that can be configured.
pub const MAX_RUNS: usize = 16;

/// What may be cut.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest datagram, in bytes.
    pub mtu_length: usize,
    /// Most runs, 1 to [`MAX_RUNS`].
    pub max_runs: usize,
    /// Most datagrams in a run.
    pub max_run_datagrams: usize,
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
    /// Nothing more is there, the term ends, or there are as many runs as allowed.
    Done,
    /// The next frame does not fit in what is left of the window.
    Window,
    /// The last datagram stays, as [`Tail`] says.
    Held,
}

/// Runs in the order in which they are sent.
#[derive(Debug)]
pub struct Cut<'a> {
    pub runs: ArrayVec<Run<'a>, MAX_RUNS>,
    /// Position behind each run, padding included.
    ends: ArrayVec<i64, MAX_RUNS>,
    begin: i64,
    pub stop: Stop,
}

impl Cut<'_> {
    /// Position behind the first `count` runs.
    pub fn end_of(&self, count: usize) -> i64 {
        count
            .checked_sub(1)
            .and_then(|last| self.ends.get(last).copied())
            .unwrap_or(self.begin)
    }

    /// Whether the last of the first `count` runs has one frame in each datagram, as far as its first one tells.
    pub fn is_last_frame_alone(&self, log: &LogBuffers<SharedBuffer>, count: usize) -> bool {
        count.checked_sub(1).is_some_and(|last| {
            is_one_frame(log, self.end_of(last), self.runs[last].datagram_length)
        })
    }

    /// Bytes of the first `count` runs, without padding.
    pub fn length_of(&self, count: usize) -> usize {
        self.runs.iter().take(count).map(|run| run.length).sum()
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
    let mut cut = Cut {
        runs: ArrayVec::new(),
        ends: ArrayVec::new(),
        begin: position,
        stop: Stop::Done,
    };
    let positions = log.positions();
    let term_end = positions.term_begin(position) + positions.term_length() as i64;
    let window_end = position.saturating_add(window);
    let mut at = position;
    while at < term_end {
        if at >= window_end {
            cut.stop = Stop::Window;
            break;
        }
        let limit = limits.mtu_length.min((window_end - at) as usize);
        let (length, padding, is_full) = match scan(log, at, limit)? {
            Available::Frames { length: 0, .. } => break,
            Available::Frames {
                length,
                padding,
                is_full,
            } => (length, padding, is_full),
            Available::TooLong(_) => {
                cut.stop = Stop::Window;
                break;
            }
        };
        if !is_full && limits.tail.is_held(log, at, length) {
            cut.stop = Stop::Held;
            break;
        }
        let end = at + (length + padding) as i64;
        if !cut.append(log, at, length, end, limits) {
            break;
        }
        at = end;
        if !is_full {
            break;
        }
    }
    Ok(cut)
}

impl<'a> Cut<'a> {
    /// Adds a datagram to the last run, or begins another one with it; answers whether there was room.
    fn append(
        &mut self,
        log: &'a LogBuffers<SharedBuffer>,
        at: i64,
        length: usize,
        end: i64,
        limits: &Limits,
    ) -> bool {
        if let (Some(run), Some(run_end)) = (self.runs.last_mut(), self.ends.last_mut())
            && has_room(run, length, limits.max_run_datagrams)
        {
            run.length += length;
            *run_end = end;
            return true;
        }
        if self.runs.len() >= limits.max_runs.min(MAX_RUNS) {
            return false;
        }
        let offset = log.positions().term_offset(at);
        self.runs.push(Run::single(log.term_at(at), offset, length));
        self.ends.push(end);
        true
    }
}

/// Whether a datagram of `length` bytes may follow in the run.
fn has_room(run: &Run<'_>, length: usize, max_run_datagrams: usize) -> bool {
    run.length.is_multiple_of(run.datagram_length)
        && length <= run.datagram_length
        && run.length / run.datagram_length < max_run_datagrams
        && run.length + length <= MAX_RUN_LENGTH
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
