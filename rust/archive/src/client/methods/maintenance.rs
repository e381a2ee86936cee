//! Methods of the archive client that change existing recordings.

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::Result;

/// Maintenance.
impl AeronArchive {
    /// Truncates a recording that is not active. Returns the number of files to be deleted. A
    /// recording signal follows when the files are deleted.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn truncate_recording(&self, recording_id: i64, position: i64) -> Result<i64> {
        self.call(ArchiveCall::truncate_recording(recording_id, position))
    }

    /// Deletes a recording that is neither active nor being replayed. Returns the number of files
    /// to be deleted. A recording signal follows when the files are deleted.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn purge_recording(&self, recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::purge_recording(recording_id))
    }

    /// Moves the start of a recording to the base of a segment. The files before the new start are not
    /// deleted.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn detach_segments(&self, recording_id: i64, new_start_position: i64) -> Result<()> {
        self.call(ArchiveCall::detach_segments(
            recording_id,
            new_start_position,
        ))
    }

    /// Deletes the files before the start of a recording. Returns the number of files. A recording
    /// signal follows when the files are deleted.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn delete_detached_segments(&self, recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::delete_detached_segments(recording_id))
    }

    /// Moves the start of a recording to the base of a segment and deletes the files before the new
    /// start. Returns the number of these files. A recording signal follows when the files are
    /// deleted.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn purge_segments(&self, recording_id: i64, new_start_position: i64) -> Result<i64> {
        self.call(ArchiveCall::purge_segments(
            recording_id,
            new_start_position,
        ))
    }

    /// Attaches the detached files before the start of a recording, so that the recording starts
    /// earlier. Returns the number of attached files.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn attach_segments(&self, recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::attach_segments(recording_id))
    }

    /// Moves all segments of one recording to an adjacent recording. Returns the number of segments.
    ///
    /// # Errors
    /// See [`AeronArchive`].
    pub fn migrate_segments(&self, src_recording_id: i64, dst_recording_id: i64) -> Result<i64> {
        self.call(ArchiveCall::migrate_segments(
            src_recording_id,
            dst_recording_id,
        ))
    }

    /// Replaces the channel of a recording.
    ///
    /// # Errors
    /// See [`AeronArchive`]; an unknown recording is refused.
    pub fn update_channel(&self, recording_id: i64, channel: &str) -> Result<()> {
        self.call(ArchiveCall::update_channel(recording_id, channel))
    }
}
