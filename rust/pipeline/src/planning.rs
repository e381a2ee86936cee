//! What one batch takes of each recording, and how its ranges become partitions.
//!
//! Pure arithmetic over message boundaries: a limit never cuts a message, and a batch that could take something takes at least
//! one message, however small its limit is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::private::{Counts, Cut};

/// More partitions than this are a mistake of the options, not a plan.
pub const MAX_PARTITIONS: usize = 100_000;

/// The messages of one recording.
pub trait Messages {
    /// Why they cannot be looked at.
    type Error;

    /// Counts of the messages from `from` to `to`, both a start, a head or an end of a message.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn counts(&self, from: i64, to: i64) -> Result<Counts, Self::Error>;

    /// The messages from `from` on, in order and none beyond `to`, that together are no more than `quota`; none when already the
    /// first is more.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn cut(&self, from: i64, to: i64, quota: Counts) -> Result<Cut, Self::Error>;
}

/// What is a row: a message, or a record of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Each message is a row.
    Messages,
    /// Each so many bytes of a payload are a row.
    Records {
        /// Length of a record, in bytes; not 0.
        length: u32,
    },
}

/// Limits of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most rows.
    pub rows: Option<u64>,
    /// Most bytes of payload.
    pub payload_bytes: Option<u64>,
}

/// Messages of one recording, from one position to another.
#[derive(Debug, Clone, Copy)]
pub struct Range<M> {
    /// The recording's messages.
    pub messages: M,
    /// Start of the recording, or end of the last message taken before.
    pub from: i64,
    /// Head of the recording, or end of a message.
    pub to: i64,
}

/// How ranges are cut into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// Fewest partitions, as far as there are messages.
    pub min_partitions: usize,
    /// Most rows of a partition, unless a single message has more.
    pub max_rows: Option<u64>,
    /// What counts as a row.
    pub rows: Rows,
}

/// A piece of a range that becomes a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which of the ranges.
    pub range: usize,
    /// Where it begins.
    pub from: i64,
    /// Where it ends.
    pub to: i64,
}

/// Why ranges cannot be cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutError<E> {
    /// A recording cannot be read.
    #[error(transparent)]
    Messages(#[from] E),
    /// The options ask for too many partitions.
    #[error(
        "maxRowsPerPartition={max_rows} would cut a batch of {rows} rows into {pieces} partitions, more than {MAX_PARTITIONS}; raise it, or set maxRowsPerTrigger"
    )]
    TooMany {
        /// Option `maxRowsPerPartition`.
        max_rows: u64,
        /// Rows of the batch.
        rows: u64,
        /// Partitions that it would have.
        pieces: u64,
    },
}

/// Takes everything.
const UNLIMITED: Counts = Counts {
    messages: i64::MAX,
    payload_bytes: i64::MAX,
};

impl Rows {
    /// Rows of so many messages.
    pub fn of(self, counts: Counts) -> u64 {
        let rows = match self {
            Self::Messages => counts.messages,
            Self::Records { length } => counts.payload_bytes / i64::from(length.max(1)),
        };
        rows.max(0) as u64
    }

    /// Messages that have at most so many rows.
    fn quota(self, rows: u64) -> Counts {
        let limit = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        match self {
            Self::Messages => Counts {
                messages: limit(rows),
                ..UNLIMITED
            },
            Self::Records { length } => Counts {
                payload_bytes: limit(rows.saturating_mul(length.into())),
                ..UNLIMITED
            },
        }
    }
}

impl Limits {
    /// Messages within the limits.
    fn quota(self, rows: Rows) -> Counts {
        let by_rows = self.rows.map_or(UNLIMITED, |limit| rows.quota(limit));
        let by_bytes = self
            .payload_bytes
            .map_or(UNLIMITED, |limit| Rows::Records { length: 1 }.quota(limit));
        Counts {
            messages: by_rows.messages,
            payload_bytes: by_rows.payload_bytes.min(by_bytes.payload_bytes),
        }
    }
}

/// How far a batch takes each of `ranges`, the oldest recording first: everything if the limits allow it, else shares in
/// proportion to what each has, what is left of them to the oldest.
///
/// # Errors
/// A recording cannot be read.
pub fn take<M: Messages>(
    ranges: &[Range<M>],
    limits: Limits,
    rows: Rows,
) -> Result<Vec<i64>, M::Error> {
    let counts = all_counts(ranges)?;
    let total = sum(&counts);
    let quota = limits.quota(rows);
    if fits(total, quota) {
        return Ok(ranges.iter().map(|range| range.to).collect());
    }
    let mut left = quota;
    let mut ends = Vec::with_capacity(ranges.len());
    for (range, counts) in ranges.iter().zip(counts) {
        let share = Counts {
            messages: share(quota.messages, counts.messages, total.messages),
            payload_bytes: share(
                quota.payload_bytes,
                counts.payload_bytes,
                total.payload_bytes,
            ),
        };
        ends.push(range.take(range.from, share, &mut left)?);
    }
    for (range, end) in ranges.iter().zip(&mut ends) {
        *end = range.take(*end, left, &mut left)?;
    }
    let has_taken = ranges
        .iter()
        .zip(&ends)
        .any(|(range, &end)| end > range.from);
    if let (false, Some(at)) = (has_taken, oldest_with_messages(ranges)?) {
        ends[at] = ranges[at].first_message(ranges[at].from)?.position;
    }
    Ok(ends)
}

/// Cuts ranges into partitions: one for each range that has messages, more where the options ask for it.
///
/// # Errors
/// A recording cannot be read; [`CutError::TooMany`].
pub fn cut<M: Messages>(
    ranges: &[Range<M>],
    cutting: Cutting,
) -> Result<Vec<Piece>, CutError<M::Error>> {
    let counts = all_counts(ranges)?;
    let pieces = numbers_of_pieces(&counts, cutting)?;
    let mut cut = Vec::with_capacity(pieces.iter().sum());
    for (number, range) in ranges.iter().enumerate() {
        let rows = cutting.rows.of(counts[number]);
        range.cut(number, rows, pieces[number], cutting, &mut cut)?;
    }
    Ok(cut)
}

impl<M: Messages> Range<M> {
    /// Takes messages from `from` on as far as `quota` goes, and takes them from what is `left`.
    fn take(&self, from: i64, quota: Counts, left: &mut Counts) -> Result<i64, M::Error> {
        let cut = self.messages.cut(from, self.to, quota)?;
        *left = *left - cut.counts;
        Ok(cut.position)
    }

    fn first_message(&self, from: i64) -> Result<Cut, M::Error> {
        self.messages.cut(from, self.to, Rows::Messages.quota(1))
    }

    /// Cuts the range into at least `pieces` of about equally many rows.
    fn cut(
        &self,
        number: usize,
        mut rows: u64,
        mut pieces: usize,
        cutting: Cutting,
        cut: &mut Vec<Piece>,
    ) -> Result<(), M::Error> {
        let mut from = self.from;
        while pieces > 0 && from < self.to {
            let share = rows.div_ceil(pieces as u64);
            let share = cutting.max_rows.map_or(share, |most| share.min(most));
            // The last piece takes the rest, also messages that are too short to be rows.
            let quota = match share == rows && pieces == 1 {
                true => UNLIMITED,
                false => cutting.rows.quota(share),
            };
            let mut piece = self.messages.cut(from, self.to, quota)?;
            if piece.position == from {
                piece = self.first_message(from)?;
            }
            if piece.position == from {
                // Behind the last message there are only frames that give no row.
                break;
            }
            rows = rows.saturating_sub(cutting.rows.of(piece.counts));
            pieces = (pieces - 1).max(1);
            cut.push(Piece {
                range: number,
                from,
                to: piece.position,
            });
            from = piece.position;
        }
        Ok(())
    }
}

/// How many partitions each range gets.
fn numbers_of_pieces<E>(counts: &[Counts], cutting: Cutting) -> Result<Vec<usize>, CutError<E>> {
    let wanted = |counts: &Counts| match cutting.max_rows {
        _ if counts.messages == 0 => 0,
        Some(most) => cutting.rows.of(*counts).div_ceil(most.max(1)).max(1),
        None => 1,
    };
    let total: u64 = counts.iter().map(wanted).sum();
    if let (true, Some(max_rows)) = (total > MAX_PARTITIONS as u64, cutting.max_rows) {
        return Err(CutError::TooMany {
            max_rows,
            rows: cutting.rows.of(sum(counts)),
            pieces: total,
        });
    }
    let mut pieces: Vec<usize> = counts
        .iter()
        .map(|counts| wanted(counts) as usize)
        .collect();
    add_pieces(&mut pieces, counts, cutting);
    Ok(pieces)
}

/// Raises the numbers of pieces to the fewest that are asked for: always where the pieces have the most messages.
fn add_pieces(pieces: &mut [usize], counts: &[Counts], cutting: Cutting) {
    let mut total: usize = pieces.iter().sum();
    let size = |number: usize, pieces: usize| counts[number].messages / pieces as i64;
    let divisible = |&number: &usize| pieces[number] > 0;
    let mut heap: BinaryHeap<(i64, Reverse<usize>)> = (0..pieces.len())
        .filter(divisible)
        .map(|number| (size(number, pieces[number]), Reverse(number)))
        .collect();
    while total < cutting.min_partitions {
        let Some((_, Reverse(number))) = heap.pop() else {
            break;
        };
        if counts[number].messages > pieces[number] as i64 {
            pieces[number] += 1;
            total += 1;
            heap.push((size(number, pieces[number]), Reverse(number)));
        }
    }
}

fn all_counts<M: Messages>(ranges: &[Range<M>]) -> Result<Vec<Counts>, M::Error> {
    let counts = |range: &Range<M>| range.messages.counts(range.from, range.to);
    ranges.iter().map(counts).collect()
}

fn oldest_with_messages<M: Messages>(ranges: &[Range<M>]) -> Result<Option<usize>, M::Error> {
    let counts = all_counts(ranges)?;
    Ok(counts.iter().position(|counts| counts.messages > 0))
}

fn sum(counts: &[Counts]) -> Counts {
    counts
        .iter()
        .fold(Counts::default(), |sum, &counts| sum + counts)
}

fn fits(counts: Counts, quota: Counts) -> bool {
    counts.messages <= quota.messages && counts.payload_bytes <= quota.payload_bytes
}

/// The part of `quota` for who has `own` of `total`, rounded down.
fn share(quota: i64, own: i64, total: i64) -> i64 {
    if total <= quota {
        return own;
    }
    (i128::from(quota) * i128::from(own) / i128::from(total)) as i64
}

#[cfg(test)]
mod tests;
