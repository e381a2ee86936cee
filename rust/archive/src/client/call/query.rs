//! Calls that ask for recordings, subscriptions and positions.

use super::super::answer::Expected;
use super::super::descriptor::RecordingSubscription;
use super::{ArchiveCall, count, request, value, value_if_set};
use crate::catalog::RecordingDescriptor;

impl ArchiveCall<Vec<RecordingDescriptor>> {
    /// Lists up to `record_count` recordings in the order of their ids, from `from_recording_id` on.
    pub fn list_recordings(from_recording_id: i64, record_count: i32) -> Self {
        Self::listing(
            "list recordings",
            Expected::Recordings(count(record_count)),
            request!(ListRecordings(ListRecordingsRequest {
                from_recording_id,
                record_count,
            })),
            |outcome| Ok(outcome?.into_recordings()),
        )
    }

    /// As [`list_recordings`](ArchiveCall::list_recordings), of recordings of one stream whose channel contains a text.
    pub fn list_recordings_for_uri(
        from_recording_id: i64,
        record_count: i32,
        channel_fragment: &str,
        stream_id: i32,
    ) -> Self {
        let channel = channel_fragment.to_owned();
        Self::listing(
            "list recordings for uri",
            Expected::Recordings(count(record_count)),
            request!(ListRecordingsForUri(ListRecordingsForUriRequest {
                from_recording_id,
                record_count,
                stream_id,
                channel: channel.as_bytes(),
            })),
            |outcome| Ok(outcome?.into_recordings()),
        )
    }
}

impl ArchiveCall<Option<RecordingDescriptor>> {
    /// Looks up one recording. The result is `None` if the archive does not have it.
    pub fn list_recording(recording_id: i64) -> Self {
        Self::listing(
            "list recording",
            Expected::Recordings(1),
            request!(ListRecording(ListRecordingRequest { recording_id })),
            |outcome| Ok(outcome?.into_recordings().pop()),
        )
    }
}

impl ArchiveCall<Vec<RecordingSubscription>> {
    /// Lists up to `subscription_count` subscriptions whose channel contains a text, from an index among all subscriptions on; of one
    /// stream if `stream_id` is set.
    pub fn list_recording_subscriptions(
        pseudo_index: i32,
        subscription_count: i32,
        channel_fragment: &str,
        stream_id: Option<i32>,
    ) -> Self {
        let channel = channel_fragment.to_owned();
        Self::listing(
            "list recording subscriptions",
            Expected::Subscriptions(count(subscription_count)),
            request!(ListRecordingSubscriptions(
                ListRecordingSubscriptionsRequest {
                    pseudo_index,
                    subscription_count,
                    apply_stream_id: stream_id.is_some(),
                    stream_id: stream_id.unwrap_or(0),
                    channel: channel.as_bytes(),
                }
            )),
            |outcome| Ok(outcome?.into_subscriptions()),
        )
    }
}

impl ArchiveCall<Option<i64>> {
    /// Finds the newest recording of a session and stream whose channel contains a text, with an id of at least `min_recording_id`.
    pub fn find_last_matching_recording(
        min_recording_id: i64,
        channel_fragment: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Self {
        let channel = channel_fragment.to_owned();
        Self::with_response(
            "find last matching recording",
            request!(FindLastMatchingRecording(
                FindLastMatchingRecordingRequest {
                    min_recording_id,
                    session_id,
                    stream_id,
                    channel: channel.as_bytes(),
                }
            )),
            value_if_set,
        )
    }

    /// Asks for the position up to which an active recording has come. The result is `None` if the recording is not active.
    pub fn recording_position(recording_id: i64) -> Self {
        Self::with_response(
            "recording position",
            request!(RecordingPosition(RecordingPositionRequest { recording_id })),
            value_if_set,
        )
    }

    /// Asks for the position at which a recording ended. The result is `None` while the recording is active.
    pub fn stop_position(recording_id: i64) -> Self {
        Self::with_response(
            "stop position",
            request!(StopPosition(StopPositionRequest { recording_id })),
            value_if_set,
        )
    }
}

impl ArchiveCall<i64> {
    /// Asks for the position of the first byte of a recording.
    pub fn start_position(recording_id: i64) -> Self {
        Self::with_response(
            "start position",
            request!(StartPosition(StartPositionRequest { recording_id })),
            value,
        )
    }

    /// Asks for the position up to which a recording has come, active or not.
    pub fn max_recorded_position(recording_id: i64) -> Self {
        Self::with_response(
            "max recorded position",
            request!(MaxRecordedPosition(MaxRecordedPositionRequest {
                recording_id
            })),
            value,
        )
    }
}
