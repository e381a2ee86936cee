//! [`Copying`]: a replication of another archive's recording.

use aeron_archive::client::{AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation};
use aeron_protocol::archive::{NULL_VALUE, RecordingSignal, RecordingSignalEvent};

/// A replication of another archive's recording.
pub(super) struct Copying {
    /// Number of the tape to copy.
    pub source: usize,
    /// Position at which the copy ends.
    pub end: i64,
    operation: ArchiveOperation<i64>,
    replication_id: Option<i64>,
    destination: Option<i64>,
    has_ended: bool,
    stop: Option<ArchiveOperation<Option<i64>>>,
}

/// A complete copy.
pub(super) struct FinishedCopy {
    pub recording_id: i64,
    pub stop: i64,
}

impl Copying {
    /// Creates a replication that was requested.
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

    /// Handles a recording signal.
    pub fn on_signal(&mut self, signal: &RecordingSignalEvent) {
        if self.replication_id != Some(signal.correlation_id) {
            return;
        }
        if signal.recording_id != NULL_VALUE {
            self.destination = Some(signal.recording_id);
        }
        self.has_ended |= signal.signal == RecordingSignal::ReplicateEnd;
    }

    /// Polls the replication without waiting. Returns the copy when it is complete.
    ///
    /// # Errors
    /// The archive refused the request, or the replication ended without a recording.
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
            // The archive stops the copy's recording after it has sent the signal.
            Some(None) => {
                self.stop = None;
                None
            }
            None => None,
        })
    }
}
