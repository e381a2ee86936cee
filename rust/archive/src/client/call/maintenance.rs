//! Creates the [`ArchiveCall`](super::ArchiveCall)s that change existing recordings. Applications pass these calls to
//! the archive client.

use super::super::answer::Expected;
use super::{calls, nothing, request, value};

calls! {
    /// Truncates a recording at `position`. The result is the number of files that will be deleted.
    truncate_recording(recording_id: i64, position: i64) -> i64 =
        with_response("truncate recording"),
        request TruncateRecording(TruncateRecordingRequest { recording_id, position }), value;

    /// Deletes a recording. The result is the number of files that will be deleted.
    purge_recording(recording_id: i64) -> i64 =
        with_response("purge recording"),
        request PurgeRecording(PurgeRecordingRequest { recording_id }), value;

    /// Deletes the detached segment files before the start of a recording. The result is the number of these files.
    delete_detached_segments(recording_id: i64) -> i64 =
        with_response("delete detached segments"),
        request DeleteDetachedSegments(DeleteDetachedSegmentsRequest { recording_id }), value;

    /// Moves the start of a recording to the base of a segment and deletes the files before the new start. The result
    /// is the number of these files.
    purge_segments(recording_id: i64, new_start_position: i64) -> i64 =
        with_response("purge segments"),
        request PurgeSegments(PurgeSegmentsRequest { recording_id, new_start_position }), value;

    /// Attaches the detached files before the start of a recording, so that the recording starts
    /// earlier. The result is the number of attached files.
    attach_segments(recording_id: i64) -> i64 =
        with_response("attach segments"),
        request AttachSegments(AttachSegmentsRequest { recording_id }), value;

    /// Moves all segments of one recording to an adjacent recording. The result is the number of segments.
    migrate_segments(src_recording_id: i64, dst_recording_id: i64) -> i64 =
        with_response("migrate segments"),
        request MigrateSegments(MigrateSegmentsRequest { src_recording_id, dst_recording_id }), value;

    /// Moves the start of a recording to the base of a segment. The files before the new start are not
    /// deleted.
    detach_segments(recording_id: i64, new_start_position: i64) -> () =
        with_response("detach segments"),
        request DetachSegments(DetachSegmentsRequest { recording_id, new_start_position }), nothing;

    /// Replaces the channel of a recording. The session delays the call until no listing is running.
    update_channel(recording_id: i64, channel: &str) owns channel -> () =
        listing("update channel", Expected::Value),
        request UpdateChannel(UpdateChannelRequest { recording_id, channel: channel.as_bytes() }), nothing;
}
