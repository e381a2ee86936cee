//! [`Removal`]: a request that removes a part of a recording, or all of it.
//!
//! The archive grants the request, then deletes the files one by one, and then sends a signal. After the signal, the
//! files must not exist again. If a fault comes before the signal, some of the files may remain.

use aeron_archive::client::{AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation};
use aeron_protocol::archive::{RecordingSignal, RecordingSignalEvent};

use crate::archive::ledger::{Ledger, Tape, UncertainChange};

/// A change that removes a part of a recording, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Truncate(i64),
    PurgeSegments(i64),
    Delete,
}

impl Change {
    /// Returns the ledger's note of this change, for a request with an unknown outcome.
    pub fn doubt(self) -> UncertainChange {
        match self {
            Self::Truncate(position) => UncertainChange::Truncated(position),
            Self::PurgeSegments(position) => UncertainChange::Purged(position),
            Self::Delete => UncertainChange::Deleted,
        }
    }

    /// Whether the request deletes files at the end of the recording: those after the new stop position, or all files.
    fn removes_the_end(self) -> bool {
        !matches!(self, Self::PurgeSegments(_))
    }

    fn call(self, recording_id: i64) -> ArchiveCall<i64> {
        match self {
            Self::Truncate(position) => ArchiveCall::truncate_recording(recording_id, position),
            Self::PurgeSegments(position) => ArchiveCall::purge_segments(recording_id, position),
            Self::Delete => ArchiveCall::purge_recording(recording_id),
        }
    }

    fn apply(self, tape: &mut Tape) {
        match self {
            Self::Truncate(position) => tape.truncated_to(position),
            Self::PurgeSegments(position) => tape.purged_to(position),
            Self::Delete => tape.is_deleted = true,
        }
    }
}

/// See the [module](self).
pub(super) struct Removal {
    tape: usize,
    change: Change,
    operation: ArchiveOperation<i64>,
    correlation_id: i64,
    is_granted: bool,
    /// Whether the archive has announced that the files are deleted.
    has_ended: bool,
}

impl Removal {
    /// Sends the request. Returns `None` if it cannot be sent.
    pub fn begin(
        tape: usize,
        change: Change,
        recording_id: i64,
        archive: &AeronArchive,
    ) -> Option<Self> {
        let operation = archive.begin(change.call(recording_id)).ok()?;
        Some(Self {
            tape,
            change,
            operation,
            correlation_id: archive.last_correlation_id().ok()?,
            is_granted: false,
            has_ended: false,
        })
    }

    /// Returns the number of the tape.
    pub fn tape(&self) -> usize {
        self.tape
    }

    /// Handles a recording signal.
    pub fn on_signal(&mut self, signal: &RecordingSignalEvent) {
        self.has_ended |= signal.correlation_id == self.correlation_id
            && signal.signal == RecordingSignal::Delete;
    }

    /// Polls the request without waiting. Returns a value when the files are deleted.
    ///
    /// # Errors
    /// The archive refused the request, or could not delete a file.
    pub fn poll(
        &mut self,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Result<Option<()>, ArchiveClientError> {
        if !self.is_granted {
            if self.operation.poll()?.is_none() {
                return Ok(None);
            }
            self.is_granted = true;
            let tape = ledger.tape_mut(self.tape);
            tape.doubt = None;
            tape.may_have_removed_files |= self.change.removes_the_end();
            self.change.apply(tape);
        }
        while let Some(error) = archive.poll_for_error_response()? {
            if error.correlation_id() == Some(self.correlation_id) {
                let tape = ledger.tape_mut(self.tape);
                tape.has_left_segments |= !self.change.removes_the_end();
                return Err(error);
            }
        }
        if !self.has_ended {
            return Ok(None);
        }
        let tape = ledger.tape_mut(self.tape);
        tape.may_have_removed_files &= !self.change.removes_the_end();
        Ok(Some(()))
    }
}
