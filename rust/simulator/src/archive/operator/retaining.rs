//! Requests for retention: commit a position of a named reader, or set a policy for a recording.
//!
//! A recording first gets a reader at its start, and then a policy. So retention must never delete data that the reader
//! has not committed, except if the reader has expired by its own limit.

use aeron_archive::client::{AeronArchive, ArchiveCall};
use aeron_archive::extensions::{RetentionPolicy, RetentionScope};
use fastrand::Rng;

use super::Operator;
use super::activity::Activity;
use crate::archive::ledger::{Ledger, ReaderLimits, Retention, Tape};

/// Name of the reader of each recording.
const READER: &str = "reader";
/// Maximum number of segments that a policy keeps.
const MAX_SEGMENTS: i64 = 3;
/// Range of the maximum age in a policy, in milliseconds.
const AGES_MS: std::ops::Range<i64> = 200..3_000;

/// Range of the maximum age of a reader, in milliseconds. The time between two commits may be longer than the age.
const READER_AGES_MS: std::ops::Range<i64> = 300..2_000;

/// Maximum age in schedules with wrong clocks, in milliseconds. No data and no reader becomes so old.
const LONG_AGE_MS: i64 = 24 * 3_600_000;

/// A request for retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetentionRequest {
    /// The reader commits a position and sets its own limits. `requested_ms` is the time of the request, in
    /// milliseconds.
    Commit {
        position: i64,
        limits: ReaderLimits,
        requested_ms: i64,
    },
    /// The recording gets a policy with this maximum number of bytes, or, if it is `None`, with a maximum age.
    SetPolicy(Option<i64>),
}

impl RetentionRequest {
    /// Returns the name of the request for error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit { .. } => "a commit",
            Self::SetPolicy(_) => "a policy",
        }
    }

    /// Registers that the archive has granted the request.
    pub fn apply(self, tape: &mut Tape) {
        match self {
            Self::Commit {
                position,
                limits,
                requested_ms,
            } => tape.committed(position, limits, requested_ms),
            Self::SetPolicy(max_bytes) => {
                if let Some(retention) = &mut tape.retention {
                    retention.max_bytes = max_bytes;
                }
            }
        }
    }
}

impl Operator {
    /// Commits a position of the reader of a recording, or sets the policy of the recording.
    pub(super) fn retain(
        &mut self,
        archive: &AeronArchive,
        ledger: &mut Ledger,
        now_ms: i64,
    ) -> Option<Activity> {
        let is_candidate = |tape: &Tape| tape.is_certain() && !tape.is_rotten && tape.readers == 0;
        let tape = self.any_tape(ledger, is_candidate)?;
        let fraction = self.random.f64();
        let it = ledger.tape_mut(tape);
        let Some(retention) = &mut it.retention else {
            let mut limits = reader_limits(&mut self.random, it.segment_length);
            if self.plan.has_long_ages {
                limits.max_age_ms = limits.max_age_ms.map(|_| LONG_AGE_MS);
            }
            let start = it.start;
            return commit(archive, (tape, it), start, limits, now_ms);
        };
        if self.random.bool() {
            let limits = retention.limits;
            let position = it.boundary(fraction).max(it.start);
            if position <= it.retention?.committed {
                return None;
            }
            it.retention = it.retention.map(|retention| Retention {
                committed: position,
                ..retention
            });
            return commit(archive, (tape, it), position, limits, now_ms);
        }
        let segments = self.random.i64(0..=MAX_SEGMENTS);
        let max_bytes = self.random.bool().then(|| segments * it.segment_length);
        retention.max_bytes = None;
        retention.may_delete |= max_bytes.is_some() || !self.plan.has_long_ages;
        let policy = RetentionPolicy {
            scope: RetentionScope::Recording(it.recording_id?),
            max_bytes,
            max_age_ms: max_bytes.is_none().then(|| match self.plan.has_long_ages {
                true => LONG_AGE_MS,
                false => self.random.i64(AGES_MS),
            }),
        };
        let operation = archive.begin(ArchiveCall::set_retention(&policy)).ok()?;
        Some(Activity::Retaining(
            tape,
            RetentionRequest::SetPolicy(max_bytes),
            operation,
        ))
    }
}

/// Draws the limits of a reader. Half of the readers never expire.
fn reader_limits(random: &mut Rng, segment_length: i64) -> ReaderLimits {
    let mut limits = ReaderLimits::default();
    match random.u8(..4) {
        0 => limits.max_age_ms = Some(random.i64(READER_AGES_MS)),
        1 => limits.max_lag = Some(random.i64(1..=MAX_SEGMENTS) * segment_length),
        _ => {}
    }
    limits
}

fn commit(
    archive: &AeronArchive,
    (number, tape): (usize, &Tape),
    position: i64,
    limits: ReaderLimits,
    now_ms: i64,
) -> Option<Activity> {
    let id = tape.recording_id?;
    let (max_age_ms, max_lag) = (limits.max_age_ms, limits.max_lag);
    let call = ArchiveCall::commit_reader(id, READER, position, max_age_ms, max_lag);
    let operation = archive.begin(call).ok()?;
    let request = RetentionRequest::Commit {
        position,
        limits,
        requested_ms: now_ms,
    };
    Some(Activity::Retaining(number, request, operation))
}
