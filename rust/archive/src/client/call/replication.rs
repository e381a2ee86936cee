//! Creates the calls that start and stop replications.

use aeron_protocol::archive::ArchiveErrorCode;

use super::super::error::Result;
use super::super::params::ReplicationParams;
use super::recording::succeeded_unless;
use super::{ArchiveCall, calls, nothing, request, value};

impl ArchiveCall<i64> {
    /// Copies a recording of another archive. `src_control_channel` is the control channel of that
    /// archive. The result is the id of the replication. Signals and errors of the replication have
    /// this id as their correlation id.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`](super::super::ArchiveClientError::InvalidArgument)
    /// if the parameters have both a live destination and a replication session id.
    pub fn replicate(
        src_recording_id: i64,
        src_control_stream_id: i32,
        src_control_channel: &str,
        params: &ReplicationParams,
    ) -> Result<Self> {
        params.validate()?;
        let (channel, params) = (src_control_channel.to_owned(), params.clone());
        Ok(Self::with_response(
            "replicate",
            request!(Replicate2(ReplicateRequest2 {
                src_recording_id,
                dst_recording_id: params.dst_recording_id,
                stop_position: params.stop_position,
                channel_tag_id: params.channel_tag_id,
                subscription_tag_id: params.subscription_tag_id,
                src_control_stream_id,
                file_io_max_length: params.file_io_max_length,
                replication_session_id: params.replication_session_id,
                src_control_channel: channel.as_bytes(),
                live_destination: params.live_destination.as_bytes(),
                replication_channel: params.replication_channel.as_bytes(),
                encoded_credentials: &params.encoded_credentials,
                src_response_channel: params.src_response_channel.as_bytes(),
            })),
            value,
        ))
    }
}

calls! {
    /// Stops a replication.
    stop_replication(replication_id: i64) -> () =
        with_response("stop replication"),
        request StopReplication(StopReplicationRequest { replication_id }), nothing;

    /// Does the same as [`stop_replication`](crate::client::ArchiveCall::stop_replication). The result is `false`
    /// if no replication has this id.
    try_stop_replication(replication_id: i64) -> bool =
        with_response("stop replication"),
        request StopReplication(StopReplicationRequest { replication_id }),
        |outcome| succeeded_unless(outcome, ArchiveErrorCode::UnknownReplication);
}
