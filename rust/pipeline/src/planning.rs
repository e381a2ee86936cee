//! Decides how much of each recording a batch contains, and cuts the ranges into partitions.
//!
//! The functions compute only with positions and counts of messages, and open no file. A limit never divides a message.
//! If any message is available, a batch contains at least one message, even if the message exceeds a limit of the
//! batch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::private::{Counts, Cut};

/// Limit for the number of partitions of a batch. A greater number indicates a mistake in the options.
pub const MAX_PARTITIONS: usize = 100_000;

/// The messages of one recording.
pub trait RecordingMessages {
    /// Reason why the messages cannot be read.
    type Error;

    /// Counts the messages from `from` to `to`. Each position must be the start or the head of the recording, or the
    /// end of a message.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn counts(&self, from: i64, to: i64) -> Result<Counts, Self::Error>;

    /// Returns the longest prefix of the messages from `from` up to `to` with a total within `quota`. The prefix is
    /// empty if the first message alone exceeds `quota`.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn cut(&self, from: i64, to: i64, quota: Counts) -> Result<Cut, Self::Error>;
}

/// Unit of a row: a message, or a record of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// Each message is a row.
    Messages,
    /// Every `length` bytes of a payload are a row.
    Records {
        /// Length of a record, in bytes; never 0.
        length: u32,
    },
}

/// Limits of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanLimits {
    /// Maximum number of rows; `None` for no limit.
    pub rows: Option<u64>,
    /// Maximum number of payload bytes; `None` for no limit.
    pub payload_bytes: Option<u64>,
}

/// The messages of one recording between two positions.
#[derive(Debug, Clone, Copy)]
pub struct Range<M> {
    /// The recording's messages.
    pub messages: M,
    /// Start of the recording, or end of the last message of earlier batches.
    pub from: i64,
    /// Head of the recording, or end of a message.
    pub to: i64,
}

/// Rules by which ranges are cut into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeCutting {
    /// Minimum number of partitions. There are fewer partitions if there are fewer messages, and there may be fewer if
    /// a message has several rows.
    pub min_partitions: usize,
    /// Maximum number of rows of a partition. A single message may have more rows.
    pub max_rows: Option<u64>,
    /// Unit of a row.
    pub rows: RowKind,
}

/// A piece of a range. Each piece becomes one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangePiece {
    /// Index of the range.
    pub range: usize,
    /// Start position.
    pub from: i64,
    /// End position.
    pub to: i64,
}

/// Reason why ranges cannot be cut.
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
        /// Value of the option `maxRowsPerPartition`.
        max_rows: u64,
        /// Number of rows in the batch.
        rows: u64,
        /// Number of partitions that the batch would have.
        pieces: u64,
    },
}

/// A quota that includes all messages.
const UNLIMITED: Counts = Counts {
    messages: i64::MAX,
    payload_bytes: i64::MAX,
};

impl RowKind {
    /// Returns the number of rows in messages with these counts.
    pub fn of(self, counts: Counts) -> u64 {
        let rows = match self {
            Self::Messages => counts.messages,
            Self::Records { length } => counts.payload_bytes / i64::from(length.max(1)),
        };
        rows.max(0) as u64
    }

    /// Returns the maximum counts of messages for at most `rows` rows.
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

impl PlanLimits {
    /// Returns the maximum counts of messages in a batch within these limits.
    fn quota(self, rows: RowKind) -> Counts {
        let by_rows = self.rows.map_or(UNLIMITED, |limit| rows.quota(limit));
        let by_bytes = self.payload_bytes.map_or(UNLIMITED, |limit| {
            RowKind::Records { length: 1 }.quota(limit)
        });
        Counts {
            messages: by_rows.messages,
            payload_bytes: by_rows.payload_bytes.min(by_bytes.payload_bytes),
        }
    }
}

/// Returns, for each of `ranges`, the end of the messages that a batch contains. The ranges are in the order of their
/// recordings, the oldest first. If the limits permit, the batch contains all messages. Otherwise, each range gets a
/// share in proportion to its size, and the oldest recordings get the remainder.
///
/// # Errors
/// A recording cannot be read.
pub fn take<M: RecordingMessages>(
    ranges: &[Range<M>],
    limits: PlanLimits,
    rows: RowKind,
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

/// Cuts ranges into partitions: one for each range that has messages, or more if the options ask for more.
///
/// # Errors
/// A recording cannot be read, or [`CutError::TooMany`].
pub fn cut<M: RecordingMessages>(
    ranges: &[Range<M>],
    cutting: RangeCutting,
) -> Result<Vec<RangePiece>, CutError<M::Error>> {
    let counts = all_counts(ranges)?;
    let pieces = numbers_of_pieces(&counts, cutting)?;
    let mut cut = Vec::with_capacity(pieces.iter().sum());
    for (number, range) in ranges.iter().enumerate() {
        let rows = cutting.rows.of(counts[number]);
        range.cut(number, rows, pieces[number], cutting, &mut cut)?;
    }
    Ok(cut)
}

impl<M: RecordingMessages> Range<M> {
    /// Takes the messages after `from` that fit into `quota`, and subtracts their counts from `left`. Returns the end
    /// of the last one.
    fn take(&self, from: i64, quota: Counts, left: &mut Counts) -> Result<i64, M::Error> {
        let cut = self.messages.cut(from, self.to, quota)?;
        *left = *left - cut.counts;
        debug_assert!(
            left.messages >= 0 && left.payload_bytes >= 0,
            "the ranges take more than their batch may have: {left:?} is left"
        );
        Ok(cut.position)
    }

    fn first_message(&self, from: i64) -> Result<Cut, M::Error> {
        self.messages.cut(from, self.to, RowKind::Messages.quota(1))
    }

    /// Cuts the range into `pieces` pieces with about the same number of rows each. `max_rows` may lead to more pieces,
    /// and messages with several rows may lead to fewer.
    fn cut(
        &self,
        number: usize,
        mut rows: u64,
        mut pieces: usize,
        cutting: RangeCutting,
        cut: &mut Vec<RangePiece>,
    ) -> Result<(), M::Error> {
        let mut from = self.from;
        while pieces > 0 && from < self.to {
            let share = rows.div_ceil(pieces as u64);
            let share = cutting.max_rows.map_or(share, |most| share.min(most));
            // The last piece contains all remaining messages, even those that are too short to be rows.
            let quota = match share == rows && pieces == 1 {
                true => UNLIMITED,
                false => cutting.rows.quota(share),
            };
            let mut piece = self.messages.cut(from, self.to, quota)?;
            if piece.position == from {
                piece = self.first_message(from)?;
            }
            if piece.position == from {
                // Only frames without a row follow the last message.
                break;
            }
            rows = rows.saturating_sub(cutting.rows.of(piece.counts));
            pieces = (pieces - 1).max(1);
            cut.push(RangePiece {
                range: number,
                from,
                to: piece.position,
            });
            from = piece.position;
        }
        Ok(())
    }
}

/// Returns the number of partitions for each range.
fn numbers_of_pieces<E>(
    counts: &[Counts],
    cutting: RangeCutting,
) -> Result<Vec<usize>, CutError<E>> {
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

/// Adds pieces until there are `min_partitions`. Each step adds one piece to the range with the most messages per
/// piece.
fn add_pieces(pieces: &mut [usize], counts: &[Counts], cutting: RangeCutting) {
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
        debug_assert!(
            pieces[number] > 0,
            "range {number} has no messages, so it must not be cut"
        );
        if counts[number].messages > pieces[number] as i64 {
            pieces[number] += 1;
            total += 1;
            heap.push((size(number, pieces[number]), Reverse(number)));
        }
    }
}

fn all_counts<M: RecordingMessages>(ranges: &[Range<M>]) -> Result<Vec<Counts>, M::Error> {
    let counts = |range: &Range<M>| range.messages.counts(range.from, range.to);
    ranges.iter().map(counts).collect()
}

fn oldest_with_messages<M: RecordingMessages>(
    ranges: &[Range<M>],
) -> Result<Option<usize>, M::Error> {
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

/// Returns `quota * own / total`, rounded down.
fn share(quota: i64, own: i64, total: i64) -> i64 {
    if total <= quota {
        return own;
    }
    (i128::from(quota) * i128::from(own) / i128::from(total)) as i64
}

#[cfg(test)]
mod tests;
