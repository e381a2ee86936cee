//! Methods that remove, move or attach parts of recordings, or change a channel.

use aeron_archive::client::ArchiveCall;
use pyo3::prelude::*;

use super::PyAeronArchive;
use super::methods::archive_methods;
use crate::argument;
use crate::channel::Channel;
use crate::operations::PyPendingOperation;

archive_methods! {
    /// Truncates a recording that is not active.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     position: New stop position, in bytes. It is the present stop position, or a frame begins there.
    ///
    /// Returns:
    ///     The number of files to delete.
    truncate_recording, async_truncate_recording (recording_id, position) [slf, recording_id: i64, position: i64] {
        Self::request(slf, ArchiveCall::truncate_recording(recording_id, position))
    }

    /// Deletes a recording that is neither active nor being replayed.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of files to delete.
    purge_recording, async_purge_recording (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::purge_recording(recording_id))
    }

    /// Moves the start of a recording to the start of a segment, and keeps the files before the new start.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     new_start_position: New start position, in bytes. A segment must begin there.
    detach_segments, async_detach_segments (recording_id, new_start_position)
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::detach_segments(recording_id, new_start_position))
    }

    /// Deletes the files before the start of a recording.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of files to delete.
    delete_detached_segments, async_delete_detached_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::delete_detached_segments(recording_id))
    }

    /// Moves the start of a recording to the start of a segment, and deletes the files before the new start.
    ///
    /// The archive sends the signal `DELETE` after it has deleted the files.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     new_start_position: New start position, in bytes. A segment must begin there.
    ///
    /// Returns:
    ///     The number of files to delete.
    purge_segments, async_purge_segments (recording_id, new_start_position)
    [slf, recording_id: i64, new_start_position: i64] {
        Self::request(slf, ArchiveCall::purge_segments(recording_id, new_start_position))
    }

    /// Moves the start of a recording back, so that the recording includes the detached files
    /// before its start.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///
    /// Returns:
    ///     The number of attached files.
    attach_segments, async_attach_segments (recording_id) [slf, recording_id: i64] {
        Self::request(slf, ArchiveCall::attach_segments(recording_id))
    }

    /// Moves all segments of one recording to an adjacent recording of the same stream.
    ///
    /// Two recordings are adjacent if one begins where the other ends, at the start of a segment. The recording
    /// `src_recording_id` is empty afterwards.
    ///
    /// Args:
    ///     src_recording_id: Id of the recording that loses its segments.
    ///     dst_recording_id: Id of the recording that gets the segments.
    ///
    /// Returns:
    ///     The number of moved segments.
    migrate_segments, async_migrate_segments (src_recording_id, dst_recording_id)
    [slf, src_recording_id: i64, dst_recording_id: i64] {
        Self::request(slf, ArchiveCall::migrate_segments(src_recording_id, dst_recording_id))
    }

    /// Replaces the channel of a recording.
    ///
    /// Args:
    ///     recording_id: Id of the recording.
    ///     channel: The new channel.
    update_channel, async_update_channel (recording_id, channel) [slf, recording_id: i64, channel: Channel] {
        Self::request(slf, ArchiveCall::update_channel(recording_id, &channel.0))
    }
}
