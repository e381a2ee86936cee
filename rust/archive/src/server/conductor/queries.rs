//! Returns facts about the archive and its recordings, and replaces the channel of a recording.

use aeron_protocol::archive::extension::Capabilities;
use aeron_protocol::archive::{ArchiveErrorCode, NULL_VALUE};

use super::ArchiveConductor;
use crate::server::ArchiveError;
use crate::server::listing::{Listing, StreamFilter};
use crate::server::outlets::ConductorReply;
use crate::storage::Storage;
use crate::store::StoreError;

/// The capabilities that this archive reports.
const CAPABILITIES: Capabilities = Capabilities::READERS
    .with(Capabilities::RETENTION)
    .with(Capabilities::RECORDING_INFO)
    .with(Capabilities::TIME)
    .with(Capabilities::REPLAY_RATE)
    .with(Capabilities::OBJECTS);

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Returns the id of the archive, unique among the archives of its driver.
    pub(super) fn archive_id(&self) -> Result<i64, ArchiveError> {
        Ok(self.archive_id)
    }

    /// Returns the bits of the capabilities.
    pub(super) fn capabilities(&self) -> Result<i64, ArchiveError> {
        Ok(CAPABILITIES.bits())
    }

    /// Returns the start position of a recording.
    ///
    /// # Errors
    /// The recording does not exist.
    pub(super) fn start_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        Ok(self.store.recording(recording_id)?.start_position)
    }

    /// Returns the recorded position of an active recording; −1 if the recording is not active.
    ///
    /// # Errors
    /// The recording does not exist.
    pub(super) fn recording_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        self.store.recording(recording_id)?;
        Ok(self.recordings.position(recording_id).unwrap_or(NULL_VALUE))
    }

    /// Returns the stop position of a recording; −1 while the recording is active.
    ///
    /// # Errors
    /// The recording does not exist.
    pub(super) fn stop_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        Ok(self.store.recording(recording_id)?.stop_position)
    }

    /// Returns the recorded position of an active recording, or the stop position of another
    /// recording.
    ///
    /// # Errors
    /// The recording does not exist.
    pub(super) fn max_recorded_position(&self, recording_id: i64) -> Result<i64, ArchiveError> {
        let stop_position = self.stop_position(recording_id)?;
        Ok(self
            .recordings
            .position(recording_id)
            .unwrap_or(stop_position))
    }

    /// Finds the recording with the highest id that has this session id and matches the filter. The id is at least
    /// `min_recording_id`.
    ///
    /// Returns −1 if no recording matches.
    ///
    /// # Errors
    /// `min_recording_id` is negative.
    pub(super) fn find_last_matching_recording(
        &self,
        min_recording_id: i64,
        session_id: i32,
        filter: &StreamFilter,
    ) -> Result<i64, ArchiveError> {
        if min_recording_id < 0 {
            return Err(ArchiveError::new(
                ArchiveErrorCode::UnknownRecording,
                format!("minRecordingId={min_recording_id} < 0"),
            ));
        }
        let newest = self
            .store
            .recordings()
            .rev()
            .take_while(|recording| recording.recording_id >= min_recording_id)
            .find(|recording| recording.session_id == session_id && filter.matches(recording));
        Ok(newest.map_or(NULL_VALUE, |recording| recording.recording_id))
    }

    /// Returns the listing. The requester reads it with the conductor as the source.
    pub(super) fn list(&self, listing: Listing) -> Result<Listing, ArchiveError> {
        Ok(listing)
    }

    /// Replaces the channel of a recording.
    ///
    /// # Errors
    /// The archive does not serve the recording, the channel is not valid, or the catalog cannot be written.
    pub(super) fn update_channel(
        &mut self,
        recording_id: i64,
        channel: &str,
    ) -> Result<ConductorReply, ArchiveError> {
        match self.store.recording(recording_id) {
            Ok(_) => {}
            Err(error @ StoreError::Unserved { .. }) => return Err(error.into()),
            Err(_) => return Ok(ConductorReply::RecordingUnknown(recording_id)),
        }
        let stripped = crate::channel::stripped(channel)?;
        self.store
            .update_channel(recording_id, channel, &stripped)?;
        Ok(ConductorReply::Value(0))
    }
}
