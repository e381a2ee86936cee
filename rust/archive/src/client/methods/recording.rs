//! Methods that start, extend and stop recordings.

use aeron_client::{ExclusivePublication, Publication};
use aeron_protocol::archive::SourceLocation;

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
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

    /// Starts to record a channel and stream: each image becomes a recording. Returns the id of the archive's
    /// subscription.
    ///
    /// With `auto_stop`, the archive closes the subscription when the first recording of the
    /// subscription ends.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn start_recording(
        &self,
        channel: &str,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<i64> {
        self.call(ArchiveCall::start_recording(
            channel,
            stream_id,
            source_location,
            auto_stop,
        ))
    }

    /// Extends a recording by a stream that begins where the recording ends. Returns the id of the archive's
    /// subscription.
    ///
    /// # Errors
    /// See [`AeronArchive`]. If the stream does not continue the recording,
    /// [`poll_for_error_response`](Self::poll_for_error_response) returns an error later.
    pub fn extend_recording(
        &self,
        recording_id: i64,
        channel: &str,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<i64> {
        self.call(ArchiveCall::extend_recording(
            recording_id,
            channel,
            stream_id,
            source_location,
            auto_stop,
        ))
    }

    /// Stops the recordings of a channel and stream. Both must be the same as in the start request.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn stop_recording(&self, channel: &str, stream_id: i32) -> Result<()> {
        self.call(ArchiveCall::stop_recording(channel, stream_id))
    }

    /// Stops the recording of a publication that [`add_recorded_publication`](Self::add_recorded_publication) returned.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn stop_recording_publication(&self, publication: &Publication) -> Result<()> {
        let (channel, session_id) = (publication.channel(), publication.session_id());
        self.stop_recording(
            &Self::session_channel(channel, session_id)?,
            publication.stream_id(),
        )
    }

    /// Stops the recording of a publication that
    /// [`add_recorded_exclusive_publication`](Self::add_recorded_exclusive_publication) returned.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn stop_recording_exclusive_publication(
        &self,
        publication: &ExclusivePublication,
    ) -> Result<()> {
        let (channel, session_id) = (publication.channel(), publication.session_id());
        self.stop_recording(
            &Self::session_channel(channel, session_id)?,
            publication.stream_id(),
        )
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

    /// Closes a recording subscription of the archive, and stops its recordings.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn stop_recording_subscription(&self, subscription_id: i64) -> Result<()> {
        self.call(ArchiveCall::stop_recording_subscription(subscription_id))
    }

    /// Does the same as [`stop_recording`](Self::stop_recording). Returns `false` if the archive
    /// does not record the channel and stream.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn try_stop_recording(&self, channel: &str, stream_id: i32) -> Result<bool> {
        self.call(ArchiveCall::try_stop_recording(channel, stream_id))
    }

    /// Does the same as [`stop_recording_subscription`](Self::stop_recording_subscription). Returns
    /// `false` if the archive has no subscription with this id.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn try_stop_recording_subscription(&self, subscription_id: i64) -> Result<bool> {
        self.call(ArchiveCall::try_stop_recording_subscription(
            subscription_id,
        ))
    }

    /// Stops one recording. Returns `false` if the recording is not active.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn try_stop_recording_by_identity(&self, recording_id: i64) -> Result<bool> {
        self.call(ArchiveCall::try_stop_recording_by_identity(recording_id))
    }
}
