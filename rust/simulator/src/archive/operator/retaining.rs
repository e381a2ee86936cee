//! Requests for retention: commit a position of a named reader, or set a policy for a recording.
//!
//! A recording first gets a reader at its start, and then a policy. So retention must never delete data that the reader
//! has not committed.

use aeron_archive::client::AeronArchive;
use aeron_archive::extensions::{RetentionPolicy, RetentionScope};

use super::Operator;
use super::activity::Activity;
use crate::archive::ledger::{Ledger, Retention, Tape};

/// Name of the reader of each recording.
const READER: &str = "reader";
/// Maximum number of segments that a policy keeps.
const MAX_SEGMENTS: i64 = 3;
/// Range of the maximum age in a policy, in milliseconds.
const AGES_MS: std::ops::Range<i64> = 200..3_000;

/// A request for retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetentionRequest {
    /// The reader commits this position.
    Commit(i64),
    /// The recording gets a policy with this maximum number of bytes, or with a maximum age.
    SetPolicy(Option<i64>),
}

impl RetentionRequest {
    /// Returns the name of the request for error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit(_) => "a commit",
            Self::SetPolicy(_) => "a policy",
        }
    }

    /// Registers that the archive has granted the request.
    pub fn apply(self, tape: &mut Tape) {
        match (self, &mut tape.retention) {
            (Self::Commit(committed), retention @ None) => {
                *retention = Some(Retention {
                    committed,
                    max_bytes: None,
                });
            }
            // `committed` already has the position. It was set when the request was sent.
            (Self::Commit(_), Some(_)) => {}
            (Self::SetPolicy(max_bytes), Some(retention)) => retention.max_bytes = max_bytes,
            (Self::SetPolicy(_), None) => {}
        }
    }
}

impl Operator {
    /// Commits a position of the reader of a recording, or sets the policy of the recording.
    pub(super) fn retain(
        &mut self,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let is_candidate = |tape: &Tape| tape.is_certain() && !tape.is_rotten && tape.readers == 0;
        let tape = self.any_tape(ledger, is_candidate)?;
        let fraction = self.random.f64();
        let it = ledger.tape_mut(tape);
        let id = it.recording_id?;
        let Some(retention) = it.retention else {
            let operation = archive.commit_reader(id, READER, it.start, None, None);
            return Some(Activity::Retaining(
                tape,
                RetentionRequest::Commit(it.start),
                operation,
            ));
        };
        if self.random.bool() {
            let position = it.boundary(fraction).max(it.start);
            if position <= retention.committed {
                return None;
            }
            it.retention = Some(Retention {
                committed: position,
                ..retention
            });
            let operation = archive.commit_reader(id, READER, position, None, None);
            return Some(Activity::Retaining(
                tape,
                RetentionRequest::Commit(position),
                operation,
            ));
        }
        let segments = self.random.i64(0..=MAX_SEGMENTS);
        let max_bytes = self.random.bool().then(|| segments * it.segment_length);
        it.retention = Some(Retention {
            max_bytes: None,
            ..retention
        });
        let policy = RetentionPolicy {
            scope: RetentionScope::Recording(id),
            max_bytes,
            max_age_ms: max_bytes.is_none().then(|| self.random.i64(AGES_MS)),
        };
        let operation = archive.set_retention(&policy);
        Some(Activity::Retaining(
            tape,
            RetentionRequest::SetPolicy(max_bytes),
            operation,
        ))
    }
}
