//! Calls that start, extend and stop recordings.

use aeron_protocol::archive::{ArchiveErrorCode, SourceLocation};

use super::super::answer::Answer;
use super::super::error::{ArchiveClientError, Result};
use super::{ArchiveCall, nothing, request, value};

impl ArchiveCall<i64> {
    /// Starts to record a channel and stream. The result is the id of the archive's subscription.
    pub fn start_recording(
        channel: &str,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Self {
        let channel = channel.to_owned();
        Self::with_response(
            "start recording",
            request!(StartRecording2(StartRecordingRequest2 {
                stream_id,
                source_location,
                auto_stop,
                channel: channel.as_bytes(),
            })),
            value,
        )
    }

    /// Extends a recording by the image of a channel and stream. The result is the id of the archive's subscription.
    pub fn extend_recording(
        recording_id: i64,
        channel: &str,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Self {
        let channel = channel.to_owned();
        Self::with_response(
            "extend recording",
            request!(ExtendRecording2(ExtendRecordingRequest2 {
                recording_id,
                stream_id,
                source_location,
                auto_stop,
                channel: channel.as_bytes(),
            })),
            value,
        )
    }
}

impl ArchiveCall<()> {
    /// Stops the recordings of a channel and stream.
    pub fn stop_recording(channel: &str, stream_id: i32) -> Self {
        stop_recording(channel, stream_id, nothing)
    }

    /// Closes a recording subscription of the archive, and stops its recordings.
    pub fn stop_recording_subscription(subscription_id: i64) -> Self {
        stop_subscription(subscription_id, nothing)
    }
}

impl ArchiveCall<bool> {
    /// Does the same as [`stop_recording`](ArchiveCall::stop_recording). The result is `false` if
    /// the archive does not record the channel and stream.
    pub fn try_stop_recording(channel: &str, stream_id: i32) -> Self {
        stop_recording(channel, stream_id, unless_unknown_subscription)
    }

    /// Does the same as [`stop_recording_subscription`](ArchiveCall::stop_recording_subscription).
    /// The result is `false` if the archive has no subscription with this id.
    pub fn try_stop_recording_subscription(subscription_id: i64) -> Self {
        stop_subscription(subscription_id, unless_unknown_subscription)
    }

    /// Stops one recording. The result is `false` if the recording is not active.
    pub fn try_stop_recording_by_identity(recording_id: i64) -> Self {
        Self::with_response(
            "stop recording by identity",
            request!(StopRecordingByIdentity(StopRecordingByIdentityRequest {
                recording_id
            })),
            |outcome| Ok(value(outcome)? != 0),
        )
    }
}

fn stop_recording<T>(
    channel: &str,
    stream_id: i32,
    interpret: fn(Result<Answer>) -> Result<T>,
) -> ArchiveCall<T> {
    let channel = channel.to_owned();
    ArchiveCall::with_response(
        "stop recording",
        request!(StopRecording(StopRecordingRequest {
            stream_id,
            channel: channel.as_bytes(),
        })),
        interpret,
    )
}

fn stop_subscription<T>(
    subscription_id: i64,
    interpret: fn(Result<Answer>) -> Result<T>,
) -> ArchiveCall<T> {
    ArchiveCall::with_response(
        "stop recording subscription",
        request!(StopRecordingSubscription(
            StopRecordingSubscriptionRequest { subscription_id }
        )),
        interpret,
    )
}

fn unless_unknown_subscription(outcome: Result<Answer>) -> Result<bool> {
    succeeded_unless(outcome, ArchiveErrorCode::UnknownSubscription)
}

/// Returns `true` if the request succeeded, `false` for the error with this code. Other errors are
/// returned unchanged.
pub(super) fn succeeded_unless(outcome: Result<Answer>, code: ArchiveErrorCode) -> Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if is(&error, code) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is(error: &ArchiveClientError, code: ArchiveErrorCode) -> bool {
    error.archive_code() == Some(code)
}
