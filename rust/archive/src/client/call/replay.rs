//! Calls that start and stop replays.

use aeron_protocol::archive::extension::Capabilities;

use super::super::params::{NULL_COUNTER_ID, ReplayParams};
use super::{ArchiveCall, calls, extension_request, nothing, request, value};

calls! {
    /// Requests a token for replays of a recording over a response channel. The token is valid
    /// until the archive's connect timeout has passed.
    replay_token(recording_id: i64) -> i64 =
        with_response("replay token"),
        request ReplayToken(ReplayTokenRequest { recording_id }), value;

    /// Stops a replay. An unknown id is not an error.
    stop_replay(replay_session_id: i64) -> () =
        with_response("stop replay"),
        request StopReplay(StopReplayRequest { replay_session_id }), nothing;

    /// Stops all replays of a recording; [`NULL_VALUE`](aeron_protocol::archive::NULL_VALUE) stops the replays of all
    /// recordings.
    stop_all_replays(recording_id: i64) -> () =
        with_response("stop all replays"),
        request StopAllReplays(StopAllReplaysRequest { recording_id }), nothing;
}

impl ArchiveCall<i64> {
    /// Starts a replay of a recording on a channel and stream. If the parameters have a counter id,
    /// the value of that counter bounds the replay. If the parameters have a rate or a speed, only
    /// archives of this project support the call. The result is the id of the replay. The low 32
    /// bits of this id are the session id of the replay's stream.
    ///
    /// For a response channel, the parameters must have a token, and a separate publication must
    /// send the call. [`AeronArchive::async_start_replay`](super::super::AeronArchive::async_start_replay) does
    /// both.
    pub fn start_replay(
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Self {
        let (replay_channel, params) = (replay_channel.to_owned(), *params);
        if params.is_paced() {
            return Self::with_response(
                "start replay at a rate",
                extension_request!(ReplayAtRate(ReplayAtRateRequest {
                    recording_id,
                    position: params.position,
                    length: params.length,
                    replay_token: params.replay_token,
                    max_bytes_per_second: params.max_bytes_per_second,
                    speed_millionths: params.speed_millionths,
                    replay_stream_id,
                    file_io_max_length: params.file_io_max_length,
                    replay_channel: replay_channel.as_bytes(),
                })),
                value,
            )
            .requires(Capabilities::REPLAY_RATE);
        }
        if params.bounding_limit_counter_id == NULL_COUNTER_ID {
            return Self::with_response(
                "start replay",
                request!(Replay(ReplayRequest {
                    recording_id,
                    position: params.position,
                    length: params.length,
                    replay_stream_id,
                    file_io_max_length: params.file_io_max_length,
                    replay_token: params.replay_token,
                    replay_channel: replay_channel.as_bytes(),
                })),
                value,
            );
        }
        Self::with_response(
            "start bounded replay",
            request!(BoundedReplay(BoundedReplayRequest {
                recording_id,
                position: params.position,
                length: params.length,
                limit_counter_id: params.bounding_limit_counter_id,
                replay_stream_id,
                file_io_max_length: params.file_io_max_length,
                replay_token: params.replay_token,
                replay_channel: replay_channel.as_bytes(),
            })),
            value,
        )
    }
}
