//! Methods that start and stop replications, which copy recordings of other archives.

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::Result;
use super::super::params::ReplicationParams;

/// Replications.
impl AeronArchive {
    /// Copies a recording of another archive to this archive. Returns the id of the replication. Signals and errors of
    /// the replication have this id as their correlation id.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::super::ArchiveClientError::InvalidArgument)
    /// if the parameters have both a live destination and a replication session id. See also
    /// [`AeronArchive`]. If the replication fails later,
    /// [`poll_for_error_response`](Self::poll_for_error_response) returns the error.
    pub fn replicate(
        &self,
        src_recording_id: i64,
        src_control_stream_id: i32,
        src_control_channel: &str,
        params: &ReplicationParams,
    ) -> Result<i64> {
        self.call(ArchiveCall::replicate(
            src_recording_id,
            src_control_stream_id,
            src_control_channel,
            params,
        )?)
    }

    /// Stops a replication.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown replication is refused.
    pub fn stop_replication(&self, replication_id: i64) -> Result<()> {
        self.call(ArchiveCall::stop_replication(replication_id))
    }

    /// Does the same as [`stop_replication`](Self::stop_replication). Returns `false` if no
    /// replication has this id.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn try_stop_replication(&self, replication_id: i64) -> Result<bool> {
        self.call(ArchiveCall::try_stop_replication(replication_id))
    }
}
