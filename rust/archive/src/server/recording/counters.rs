//! Adds the position counter of a recording (type id 100) when the archive starts to record.
//! Clients find the counter by its key.

use aeron_client::{Aeron, Counter, PendingOperation};

use crate::catalog::RecordingDescriptor;
use crate::text::truncated;

/// Type id of the counters.
const RECORDING_POSITION_TYPE_ID: i32 = 100;
/// Maximum length of the source identity in a key, in bytes. The ids and the length of the source identity occupy the
/// rest of the key's 112 bytes.
const MAX_SOURCE_IDENTITY_LENGTH: usize = 88;
/// Longest label of a counter, in bytes.
const MAX_LABEL_LENGTH: usize = 380;

/// Asks the driver to add the position counter of a recording.
pub(in crate::server) fn request_position_counter(
    aeron: &Aeron,
    recording: &RecordingDescriptor,
    archive_id: i64,
) -> aeron_client::Result<PendingOperation<Counter>> {
    aeron.async_add_counter(
        RECORDING_POSITION_TYPE_ID,
        &key(recording, archive_id),
        &label(recording, archive_id),
    )
}

fn key(recording: &RecordingDescriptor, archive_id: i64) -> Vec<u8> {
    let source = truncated(&recording.source_identity, MAX_SOURCE_IDENTITY_LENGTH);
    let mut key = Vec::with_capacity(24 + source.len());
    key.extend(recording.recording_id.to_le_bytes());
    key.extend(recording.session_id.to_le_bytes());
    key.extend((source.len() as i32).to_le_bytes());
    key.extend(source.as_bytes());
    key.extend(archive_id.to_le_bytes());
    key
}

fn label(recording: &RecordingDescriptor, archive_id: i64) -> String {
    let ids = format!(
        "rec-pos: {} {} {} ",
        recording.recording_id, recording.session_id, recording.stream_id
    );
    let suffix = format!(" - archiveId={archive_id}");
    let room = MAX_LABEL_LENGTH - ids.len() - suffix.len();
    format!(
        "{ids}{}{suffix}",
        truncated(&recording.stripped_channel, room)
    )
}
