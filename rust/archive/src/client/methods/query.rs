//! Methods that query recordings and subscriptions.

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::descriptor::RecordingSubscription;
use super::super::error::Result;
use crate::catalog::RecordingDescriptor;
use crate::segments::segment_base;

/// Queries.
impl AeronArchive {
    /// Lists up to `record_count` recordings in the order of their ids, from `from_recording_id` on.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_recordings(
        &self,
        from_recording_id: i64,
        record_count: i32,
    ) -> Result<Vec<RecordingDescriptor>> {
        self.call(ArchiveCall::list_recordings(
            from_recording_id,
            record_count,
        ))
    }

    /// Lists recordings like [`list_recordings`](Self::list_recordings), but only recordings with
    /// this stream id and a channel that contains `channel_fragment`.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_recordings_for_uri(
        &self,
        from_recording_id: i64,
        record_count: i32,
        channel_fragment: &str,
        stream_id: i32,
    ) -> Result<Vec<RecordingDescriptor>> {
        self.call(ArchiveCall::list_recordings_for_uri(
            from_recording_id,
            record_count,
            channel_fragment,
            stream_id,
        ))
    }

    /// Looks up one recording. Returns `None` if the archive does not have the recording.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_recording(&self, recording_id: i64) -> Result<Option<RecordingDescriptor>> {
        self.call(ArchiveCall::list_recording(recording_id))
    }

    /// Lists up to `subscription_count` recording subscriptions of the archive with a channel that
    /// contains `channel_fragment`.
    ///
    /// The search begins at index `pseudo_index` of the archive's subscriptions; this index also counts subscriptions
    /// that do not match. If `stream_id` is set, only the subscriptions of that stream match.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn list_recording_subscriptions(
        &self,
        pseudo_index: i32,
        subscription_count: i32,
        channel_fragment: &str,
        stream_id: Option<i32>,
    ) -> Result<Vec<RecordingSubscription>> {
        self.call(ArchiveCall::list_recording_subscriptions(
            pseudo_index,
            subscription_count,
            channel_fragment,
            stream_id,
        ))
    }

    /// Finds the last recording with this session id, this stream id, and a channel that contains `channel_fragment`.
    /// Returns its id, or `None` if no recording from `min_recording_id` on matches.
    ///
    /// # Errors
    /// See [`AeronArchive`]; a negative `min_recording_id` is refused.
    pub fn find_last_matching_recording(
        &self,
        min_recording_id: i64,
        channel_fragment: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<Option<i64>> {
        self.call(ArchiveCall::find_last_matching_recording(
            min_recording_id,
            channel_fragment,
            stream_id,
            session_id,
        ))
    }

    /// Returns the start position of a recording.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn start_position(&self, recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::start_position(recording_id))
    }

    /// Returns the recorded position of an active recording. Returns `None` if the recording is not active.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn recording_position(&self, recording_id: i64) -> Result<Option<i64>> {
        self.call(ArchiveCall::recording_position(recording_id))
    }

    /// Returns the stop position of a recording. Returns `None` while the recording is active.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn stop_position(&self, recording_id: i64) -> Result<Option<i64>> {
        self.call(ArchiveCall::stop_position(recording_id))
    }

    /// Returns the position of the first byte of the segment file that holds `position`. `position`
    /// must not be below the start position. Lengths are powers of two, in bytes.
    #[must_use]
    pub const fn segment_file_base_position(
        start_position: i64,
        position: i64,
        term_buffer_length: i32,
        segment_file_length: i32,
    ) -> i64 {
        segment_base(
            position,
            start_position,
            term_buffer_length,
            segment_file_length,
        )
    }

    /// Returns the recorded position of a recording if it is active, otherwise its stop position.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn max_recorded_position(&self, recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::max_recorded_position(recording_id))
    }
}
