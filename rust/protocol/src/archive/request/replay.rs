//! Requests that start and stop replays.

use aeron_layout::archive_message::request::{
    BoundedReplayLayout, RecordingRequestLayout, ReplayLayout, StopReplayLayout,
};

use super::super::declare::session_request;
use super::super::{NULL_LENGTH, NULL_VALUE};

/// Length that replays up to the end of the recording. While the recording is active, the replay follows the recording.
pub const REPLAY_ALL_AND_FOLLOW: i64 = -1;

/// Length that replays up to the end of the recording at the time when the replay starts.
pub const REPLAY_ALL_AND_STOP: i64 = -2;

session_request! {
    /// Publishes a recording on a channel. The result is the replay session id. Its low 32 bits are the session id of
    /// the publication.
    pub struct ReplayRequest<'a>(ReplayLayout) = 6 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
        pub position: i64,
        /// Number of bytes to replay, or [`REPLAY_ALL_AND_FOLLOW`], or [`REPLAY_ALL_AND_STOP`].
        pub length: i64,
        /// Stream id of the replay.
        pub replay_stream_id: i32,
        /// Maximum length of a read from a segment file in bytes; [`NULL_LENGTH`] for the archive's setting.
        pub file_io_max_length: i32 = NULL_LENGTH since 7,
        /// Token of [`ReplayTokenRequest`] for a replay over a response channel; [`NULL_VALUE`] otherwise.
        pub replay_token: i64 = NULL_VALUE since 10,
        data {
            /// Channel of the replay.
            replay_channel,
        }
    }
}

session_request! {
    /// Like [`ReplayRequest`], but does not replay beyond the value of a counter.
    pub struct BoundedReplayRequest<'a>(BoundedReplayLayout) = 18 {
        /// Recording id.
        pub recording_id: i64,
        /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
        pub position: i64,
        /// Number of bytes to replay, or [`REPLAY_ALL_AND_FOLLOW`], or [`REPLAY_ALL_AND_STOP`].
        pub length: i64,
        /// Id of the counter that contains the limit position.
        pub limit_counter_id: i32,
        /// Stream id of the replay.
        pub replay_stream_id: i32,
        /// Maximum length of a read from a segment file in bytes; [`NULL_LENGTH`] for the archive's setting.
        pub file_io_max_length: i32 = NULL_LENGTH since 7,
        /// Token of [`ReplayTokenRequest`] for a replay over a response channel; [`NULL_VALUE`] otherwise.
        pub replay_token: i64 = NULL_VALUE since 10,
        data {
            /// Channel of the replay.
            replay_channel,
        }
    }
}

session_request! {
    /// Requests a token that allows one replay of a recording over another connection. The result is the token.
    pub struct ReplayTokenRequest(RecordingRequestLayout) = 105 {
        /// Recording id.
        pub recording_id: i64,
    }
}

session_request! {
    /// Stops a replay. The result is 0, even if the replay does not exist.
    pub struct StopReplayRequest(StopReplayLayout) = 7 {
        /// Replay session id from the response to the start of the replay.
        pub replay_session_id: i64,
    }
}

session_request! {
    /// Stops all replays of a recording, or of all recordings. The result is 0.
    pub struct StopAllReplaysRequest(RecordingRequestLayout) = 19 {
        /// Recording id; [`NULL_VALUE`] for all recordings.
        pub recording_id: i64,
    }
}
