//! Requests of a client to an archive, on the control request streams.

mod ids;
mod maintenance;
mod query;
mod recording;
mod replay;
mod replication;
mod session;

pub use ids::RequestIds;
pub use maintenance::*;
pub use query::*;
pub use recording::*;
pub use replay::*;
pub use replication::*;
pub use session::*;

use super::declare::archive_message_set;

archive_message_set! {
    /// A request of a client to an archive.
    pub enum ArchiveRequest {
        /// Open a control session, with credentials.
        AuthConnect(AuthConnectRequest<'a>),
        /// Open a control session, without credentials.
        Connect(ConnectRequest<'a>),
        /// Close a control session.
        CloseSession(CloseSessionRequest),
        /// Respond to a challenge.
        ChallengeResponse(ChallengeResponse<'a>),
        /// Keep the session alive.
        KeepAlive(KeepAliveRequest),
        /// Request the id of the archive.
        ArchiveId(ArchiveIdRequest),
        /// Record a stream.
        StartRecording(StartRecordingRequest<'a>),
        /// Record a stream, with a subscription that may end by itself.
        StartRecording2(StartRecordingRequest2<'a>),
        /// Stop the recordings of a channel and stream.
        StopRecording(StopRecordingRequest<'a>),
        /// Stop the recordings of a subscription.
        StopRecordingSubscription(StopRecordingSubscriptionRequest),
        /// Stop one recording.
        StopRecordingByIdentity(StopRecordingByIdentityRequest),
        /// Continue a recording.
        ExtendRecording(ExtendRecordingRequest<'a>),
        /// Continue a recording, with a subscription that may end by itself.
        ExtendRecording2(ExtendRecordingRequest2<'a>),
        /// Replay a recording.
        Replay(ReplayRequest<'a>),
        /// Replay a recording up to the value of a counter.
        BoundedReplay(BoundedReplayRequest<'a>),
        /// Request a token for a replay.
        ReplayToken(ReplayTokenRequest),
        /// Stop a replay.
        StopReplay(StopReplayRequest),
        /// Stop all replays.
        StopAllReplays(StopAllReplaysRequest),
        /// List recordings.
        ListRecordings(ListRecordingsRequest),
        /// List recordings of a stream and channel.
        ListRecordingsForUri(ListRecordingsForUriRequest<'a>),
        /// List one recording.
        ListRecording(ListRecordingRequest),
        /// Find the newest recording of a stream.
        FindLastMatchingRecording(FindLastMatchingRecordingRequest<'a>),
        /// List subscriptions of the archive.
        ListRecordingSubscriptions(ListRecordingSubscriptionsRequest<'a>),
        /// Request a start position.
        StartPosition(StartPositionRequest),
        /// Request the position of an active recording.
        RecordingPosition(RecordingPositionRequest),
        /// Request a stop position.
        StopPosition(StopPositionRequest),
        /// Request the position after the last byte, for an active or ended recording.
        MaxRecordedPosition(MaxRecordedPositionRequest),
        /// Truncate the end of a recording.
        TruncateRecording(TruncateRecordingRequest),
        /// Delete a recording.
        PurgeRecording(PurgeRecordingRequest),
        /// Move the start of a recording and keep the files before the new start.
        DetachSegments(DetachSegmentsRequest),
        /// Delete the files before the start of a recording.
        DeleteDetachedSegments(DeleteDetachedSegmentsRequest),
        /// Move the start of a recording and delete the files before the new start.
        PurgeSegments(PurgeSegmentsRequest),
        /// Move the start of a recording back to its first detached file.
        AttachSegments(AttachSegmentsRequest),
        /// Move segments to another recording.
        MigrateSegments(MigrateSegmentsRequest),
        /// Replace the channel of a recording.
        UpdateChannel(UpdateChannelRequest<'a>),
        /// Copy a recording of another archive, with all parameters.
        Replicate2(ReplicateRequest2<'a>),
        /// Copy a recording of another archive.
        Replicate(ReplicateRequest<'a>),
        /// Copy a recording of another archive, with tags.
        TaggedReplicate(TaggedReplicateRequest<'a>),
        /// Stop a replication.
        StopReplication(StopReplicationRequest),
    }
}
