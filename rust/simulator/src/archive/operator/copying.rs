//! [`Copying`]: a recording of another archive that is replicated.

use aeron_archive::client::{AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation};
use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RecordingSignalEvent};

/// A recording of another archive that is replicated.
pub(super) struct Copying {
    /// The tape that is copied.
    pub source: usize,
    /// Position at which the copy ends.
    pub end: i64,
    operation: ArchiveOperation<i64>,
    replication_id: Option<i64>,
    destination: Option<i64>,
    has_ended: bool,
    stop: Option<ArchiveOperation<Option<i64>>>,
}

/// A copy that is whole.
pub(super) struct FinishedCopy {
    pub recording_id: i64,
    pub stop: i64,
}

impl Copying {
    /// A replication that was asked for.
    pub fn new(source: usize, end: i64, operation: ArchiveOperation<i64>) -> Self {
        Self {
            source,
            end,
            operation,
            replication_id: None,
            destination: None,
            has_ended: false,
            stop: None,
        }
    }

    /// A signal came.
    pub fn on_signal(&mut self, signal: &RecordingSignalEvent) {
        if self.replication_id != Some(signal.correlation_id) {
            return;
        }
        if signal.recording_id != NULL_VALUE {
            self.destination = Some(signal.recording_id);
        }
        self.has_ended |= signal.signal == RecordingSignal::ReplicateEnd;
    }

    /// Makes progress without waiting. Returns the copy once it is whole.
    ///
    /// # Errors
    /// The archive refuses, or the replication has ended without a recording.
    pub fn poll(
        &mut self,
        archive: &AeronArchive,
    ) -> Result<Option<FinishedCopy>, ArchiveClientError> {
        self.replication_id = self.operation.poll()?;
        let (true, Some(recording_id)) = (self.has_ended, self.destination) else {
            return match self.has_ended {
                true => Err(ArchiveClientError::OperationCancelled),
                false => Ok(None),
            };
        };
        let stop = match &mut self.stop {
            Some(stop) => stop,
            None => self
                .stop
                .insert(archive.begin(ArchiveCall::stop_position(recording_id))?),
        };
        Ok(match stop.poll()? {
            Some(Some(stop)) => Some(FinishedCopy { recording_id, stop }),
            // The copy is stopped after the signal.
            Some(None) => {
                self.stop = None;
                None
            }
            None => None,
        })
    }
}
