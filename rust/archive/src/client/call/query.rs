//! Calls that query recordings, subscriptions and positions.

use super::super::answer::Expected;
use super::super::descriptor::RecordingSubscription;
use super::{calls, count, request, value, value_if_set};
use crate::catalog::RecordingDescriptor;

calls! {
    /// Lists up to `record_count` recordings in the order of their ids, from `from_recording_id` on.
    list_recordings(from_recording_id: i64, record_count: i32) -> Vec<RecordingDescriptor> =
        listing("list recordings", Expected::Recordings(count(record_count))),
        request ListRecordings(ListRecordingsRequest { from_recording_id, record_count }),
        |outcome| Ok(outcome?.into_recordings());

    /// Lists recordings like [`list_recordings`](crate::client::ArchiveCall::list_recordings), but only recordings
    /// with this stream id and a channel that contains `channel_fragment`.
    list_recordings_for_uri(
        from_recording_id: i64, record_count: i32, channel_fragment: &str, stream_id: i32
    ) owns channel_fragment -> Vec<RecordingDescriptor> =
        listing("list recordings for uri", Expected::Recordings(count(record_count))),
        request ListRecordingsForUri(ListRecordingsForUriRequest {
            from_recording_id, record_count, stream_id, channel: channel_fragment.as_bytes()
        }), |outcome| Ok(outcome?.into_recordings());

    /// Looks up one recording. The result is `None` if the archive does not have the recording.
    list_recording(recording_id: i64) -> Option<RecordingDescriptor> =
        listing("list recording", Expected::Recordings(1)),
        request ListRecording(ListRecordingRequest { recording_id }), |outcome| Ok(outcome?.into_recordings().pop());

    /// Lists up to `subscription_count` recording subscriptions with a channel that contains
    /// `channel_fragment`. The search begins at index `pseudo_index` of the archive's subscriptions; this index also
    /// counts subscriptions that do not match. If `stream_id` is set, only the subscriptions of that stream match.
    list_recording_subscriptions(
        pseudo_index: i32, subscription_count: i32, channel_fragment: &str, stream_id: Option<i32>
    ) owns channel_fragment -> Vec<RecordingSubscription> =
        listing("list recording subscriptions", Expected::Subscriptions(count(subscription_count))),
        request ListRecordingSubscriptions(ListRecordingSubscriptionsRequest {
            pseudo_index, subscription_count, apply_stream_id: stream_id.is_some(),
            stream_id: stream_id.unwrap_or(0), channel: channel_fragment.as_bytes()
        }), |outcome| Ok(outcome?.into_subscriptions());

    /// Finds the last recording with this session id, this stream id, and a channel that contains `channel_fragment`.
    /// The result is its id, or `None` if no recording from `min_recording_id` on matches.
    find_last_matching_recording(
        min_recording_id: i64, channel_fragment: &str, stream_id: i32, session_id: i32
    ) owns channel_fragment -> Option<i64> =
        with_response("find last matching recording"),
        request FindLastMatchingRecording(FindLastMatchingRecordingRequest {
            min_recording_id, session_id, stream_id, channel: channel_fragment.as_bytes()
        }), value_if_set;

    /// Requests the recorded position of an active recording. The result is `None` if the recording is not active.
    recording_position(recording_id: i64) -> Option<i64> =
        with_response("recording position"),
        request RecordingPosition(RecordingPositionRequest { recording_id }), value_if_set;

    /// Requests the stop position of a recording. The result is `None` while the recording is active.
    stop_position(recording_id: i64) -> Option<i64> =
        with_response("stop position"),
        request StopPosition(StopPositionRequest { recording_id }), value_if_set;

    /// Requests the start position of a recording.
    start_position(recording_id: i64) -> i64 =
        with_response("start position"),
        request StartPosition(StartPositionRequest { recording_id }), value;

    /// Requests the recorded position of a recording if it is active, otherwise its stop position.
    max_recorded_position(recording_id: i64) -> i64 =
        with_response("max recorded position"),
        request MaxRecordedPosition(MaxRecordedPositionRequest { recording_id }), value;
}
