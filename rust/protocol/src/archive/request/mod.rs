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

use super::declare::archive_request_set;

archive_request_set! {
    /// A request of a client to an archive.
    pub enum ArchiveRequest {
        /// Open a control session, with credentials.
        AuthConnect(AuthConnectRequest<'a>): unchecked,
        /// Open a control session, without credentials.
        Connect(ConnectRequest<'a>): unchecked,
        /// Close a control session.
        CloseSession(CloseSessionRequest): unchecked,
        /// Respond to a challenge.
        ChallengeResponse(ChallengeResponse<'a>): unchecked,
        /// Keep the session alive.
        KeepAlive(KeepAliveRequest): read,
        /// Request the id of the archive.
        ArchiveId(ArchiveIdRequest): read,
        /// Record a stream.
        StartRecording(StartRecordingRequest<'a>): record,
        /// Record a stream, with a subscription that may end by itself.
        StartRecording2(StartRecordingRequest2<'a>): record,
        /// Stop the recordings of a channel and stream.
        StopRecording(StopRecordingRequest<'a>): record,
        /// Stop the recordings of a subscription.
        StopRecordingSubscription(StopRecordingSubscriptionRequest): record,
        /// Stop one recording.
        StopRecordingByIdentity(StopRecordingByIdentityRequest): record,
        /// Continue a recording.
        ExtendRecording(ExtendRecordingRequest<'a>): record,
        /// Continue a recording, with a subscription that may end by itself.
        ExtendRecording2(ExtendRecordingRequest2<'a>): record,
        /// Replay a recording.
        Replay(ReplayRequest<'a>): read,
        /// Replay a recording up to the value of a counter.
        BoundedReplay(BoundedReplayRequest<'a>): read,
        /// Request a token for a replay.
        ReplayToken(ReplayTokenRequest): read,
        /// Stop a replay.
        StopReplay(StopReplayRequest): read,
        /// Stop all replays.
        StopAllReplays(StopAllReplaysRequest): record,
        /// List recordings.
        ListRecordings(ListRecordingsRequest): read,
        /// List recordings of a stream and channel.
        ListRecordingsForUri(ListRecordingsForUriRequest<'a>): read,
        /// List one recording.
        ListRecording(ListRecordingRequest): read,
        /// Find the newest recording of a stream.
        FindLastMatchingRecording(FindLastMatchingRecordingRequest<'a>): read,
        /// List subscriptions of the archive.
        ListRecordingSubscriptions(ListRecordingSubscriptionsRequest<'a>): read,
        /// Request a start position.
        StartPosition(StartPositionRequest): read,
        /// Request the position of an active recording.
        RecordingPosition(RecordingPositionRequest): read,
        /// Request a stop position.
        StopPosition(StopPositionRequest): read,
        /// Request the position after the last byte, for an active or ended recording.
        MaxRecordedPosition(MaxRecordedPositionRequest): read,
        /// Truncate the end of a recording.
        TruncateRecording(TruncateRecordingRequest): admin,
        /// Delete a recording.
        PurgeRecording(PurgeRecordingRequest): admin,
        /// Move the start of a recording and keep the files before the new start.
        DetachSegments(DetachSegmentsRequest): admin,
        /// Delete the files before the start of a recording.
        DeleteDetachedSegments(DeleteDetachedSegmentsRequest): admin,
        /// Move the start of a recording and delete the files before the new start.
        PurgeSegments(PurgeSegmentsRequest): admin,
        /// Move the start of a recording back to its first detached file.
        AttachSegments(AttachSegmentsRequest): admin,
        /// Move segments to another recording.
        MigrateSegments(MigrateSegmentsRequest): admin,
        /// Replace the channel of a recording.
        UpdateChannel(UpdateChannelRequest<'a>): admin,
        /// Copy a recording of another archive, with all parameters.
        Replicate2(ReplicateRequest2<'a>): admin,
        /// Copy a recording of another archive.
        Replicate(ReplicateRequest<'a>): admin,
        /// Copy a recording of another archive, with tags.
        TaggedReplicate(TaggedReplicateRequest<'a>): admin,
        /// Stop a replication.
        StopReplication(StopReplicationRequest): admin,
    }
}
