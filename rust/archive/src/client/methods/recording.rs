//! Methods that start, extend and stop recordings.

use aeron_client::{ExclusivePublication, Publication};

use super::super::aeron_archive::AeronArchive;
use super::super::channels::with_session_id;
use super::super::error::Result;
use super::super::operation::{
    ArchiveOperation, RecordedExclusivePublication, RecordedPublication,
};

/// Recordings.
impl AeronArchive {
    /// Adds a publication and starts to record it, from its first byte on.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::super::ArchiveClientError::InvalidArgument)
    /// if the client already has the publication. The driver returns an error. See also
    /// [`AeronArchive`].
    pub fn add_recorded_publication(&self, channel: &str, stream_id: i32) -> Result<Publication> {
        self.aeron().check_may_wait()?;
        self.async_add_recorded_publication(channel, stream_id)?
            .wait()
    }

    /// Does the same as [`add_recorded_publication`](Self::add_recorded_publication), without
    /// waiting.
    ///
    /// # Errors
    /// The command could not be sent to the driver. The operation returns the other errors.
    pub fn async_add_recorded_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ArchiveOperation<Publication>> {
        let steps = RecordedPublication::add(self, channel, stream_id)?;
        Ok(ArchiveOperation::new(self, steps))
    }

    /// Adds an exclusive publication and starts to record it, from its first byte on.
    ///
    /// # Errors
    /// The driver returns an error. See also [`AeronArchive`].
    pub fn add_recorded_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication> {
        self.aeron().check_may_wait()?;
        self.async_add_recorded_exclusive_publication(channel, stream_id)?
            .wait()
    }

    /// Does the same as
    /// [`add_recorded_exclusive_publication`](Self::add_recorded_exclusive_publication), without
    /// waiting.
    ///
    /// # Errors
    /// The command could not be sent to the driver. The operation returns the other errors.
    pub fn async_add_recorded_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ArchiveOperation<ExclusivePublication>> {
        let steps = RecordedExclusivePublication::add(self, channel, stream_id)?;
        Ok(ArchiveOperation::new(self, steps))
    }

    /// Returns the channel for a request that stops the recording of one publication. `channel` and
    /// `session_id` are the values of the publication.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidChannel`](super::super::ArchiveClientError::InvalidChannel) if
    /// the channel cannot be parsed.
    pub fn session_channel(channel: &str, session_id: i32) -> Result<String> {
        with_session_id(channel, session_id)
    }
}
