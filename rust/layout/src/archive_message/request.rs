//! Blocks of a client's requests to an archive.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Connect request, with and without credentials.
    pub struct ConnectLayout: 16 {
        /// Id of the request.
        pub correlation_id: I64 = 0,
        /// Stream of the responses.
        pub response_stream_id: I32 = 8,
        /// Semantic version of the protocol.
        pub version: I32 = 12,
    }

    /// A message that contains only the control session.
    pub struct SessionLayout: 8 {
        /// Control session.
        pub control_session_id: I64 = 0,
    }

    /// The beginning of every request in a control session. A keepalive has no further fields.
    pub struct SessionRequestLayout: 16 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
    }

    /// A request that names a recording.
    pub struct RecordingRequestLayout: 24 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
    }

    /// A request that names a subscription of the archive.
    pub struct SubscriptionRequestLayout: 24 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Registration id of the archive's subscription.
        pub subscription_id: I64 = 16,
    }

    /// A request that names a replay.
    pub struct StopReplayLayout: 24 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The replay.
        pub replay_session_id: I64 = 16,
    }

    /// A request that names a replication.
    pub struct StopReplicationLayout: 24 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The replication.
        pub replication_id: I64 = 16,
    }

    /// Start of a recording.
    pub struct StartRecordingLayout: 24 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Stream.
        pub stream_id: I32 = 16,
        /// 0: local, 1: remote.
        pub source_location: I32 = 20,
    }

    /// Start of a recording that may stop by itself.
    pub struct StartRecording2Layout: 28 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Stream.
        pub stream_id: I32 = 16,
        /// 0: local, 1: remote.
        pub source_location: I32 = 20,
        /// 0: false, 1: true.
        pub auto_stop: I32 = 24,
    }

    /// Stop of a recording by its channel, which follows.
    pub struct StopRecordingLayout: 20 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Stream.
        pub stream_id: I32 = 16,
    }

    /// Extension of a recording.
    pub struct ExtendRecordingLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// Stream.
        pub stream_id: I32 = 24,
        /// 0: local, 1: remote.
        pub source_location: I32 = 28,
    }

    /// Extension of a recording that may stop by itself.
    pub struct ExtendRecording2Layout: 36 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// Stream.
        pub stream_id: I32 = 24,
        /// 0: local, 1: remote.
        pub source_location: I32 = 28,
        /// 0: false, 1: true.
        pub auto_stop: I32 = 32,
    }

    /// Replay. Older clients send only the first 44 or 48 bytes.
    pub struct ReplayLayout: 56 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// Position.
        pub position: I64 = 24,
        /// Length in bytes.
        pub length: I64 = 32,
        /// Stream of the replay.
        pub replay_stream_id: I32 = 40,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 44,
        /// Token of the replay. Since version 10 of the schema.
        pub replay_token: I64 = 48,
    }

    /// Replay up to a counter. Older clients send only the first 48 or 52 bytes.
    pub struct BoundedReplayLayout: 60 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// Position.
        pub position: I64 = 24,
        /// Length in bytes.
        pub length: I64 = 32,
        /// Counter that limits the replay.
        pub limit_counter_id: I32 = 40,
        /// Stream of the replay.
        pub replay_stream_id: I32 = 44,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 48,
        /// Token of the replay. Since version 10 of the schema.
        pub replay_token: I64 = 52,
    }

    /// Query of recordings by id.
    pub struct ListRecordingsLayout: 28 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// First recording id.
        pub from_recording_id: I64 = 16,
        /// Maximum number of recordings.
        pub record_count: I32 = 24,
    }

    /// Query of recordings by id, stream and channel, which follows.
    pub struct ListRecordingsForUriLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// First recording id.
        pub from_recording_id: I64 = 16,
        /// Maximum number of recordings.
        pub record_count: I32 = 24,
        /// Stream.
        pub stream_id: I32 = 28,
    }

    /// Query of the newest recording of a stream; its channel follows.
    pub struct FindLastMatchingRecordingLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Lowest recording id.
        pub min_recording_id: I64 = 16,
        /// Session.
        pub session_id: I32 = 24,
        /// Stream.
        pub stream_id: I32 = 28,
    }

    /// Query of subscriptions by stream and channel, which follows.
    pub struct ListRecordingSubscriptionsLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Index of the first subscription.
        pub pseudo_index: I32 = 16,
        /// Maximum number of subscriptions.
        pub subscription_count: I32 = 20,
        /// 0: any stream, 1: only the stream of the request.
        pub apply_stream_id: I32 = 24,
        /// Stream.
        pub stream_id: I32 = 28,
    }

    /// Truncation of the end of a recording.
    pub struct TruncateRecordingLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// Position.
        pub position: I64 = 24,
    }

    /// A request that moves the start of a recording.
    pub struct NewStartPositionLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// The recording.
        pub recording_id: I64 = 16,
        /// New start position.
        pub new_start_position: I64 = 24,
    }

    /// Move of segments from one recording to another.
    pub struct MigrateSegmentsLayout: 32 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Recording from which segments are moved.
        pub src_recording_id: I64 = 16,
        /// Recording to which segments are moved.
        pub dst_recording_id: I64 = 24,
    }

    /// Replication.
    pub struct ReplicateLayout: 36 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Recording at the source.
        pub src_recording_id: I64 = 16,
        /// Recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Stream of the source archive's control requests.
        pub src_control_stream_id: I32 = 32,
    }

    /// Replication with tags.
    pub struct TaggedReplicateLayout: 52 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Recording at the source.
        pub src_recording_id: I64 = 16,
        /// Recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Tag of the channel.
        pub channel_tag_id: I64 = 32,
        /// Tag of the subscription.
        pub subscription_tag_id: I64 = 40,
        /// Stream of the source archive's control requests.
        pub src_control_stream_id: I32 = 48,
    }

    /// Replication with all its parameters. Older clients send only the first 60 or 64 bytes.
    pub struct Replicate2Layout: 68 {
        /// Control session.
        pub control_session_id: I64 = 0,
        /// Id of the request.
        pub correlation_id: I64 = 8,
        /// Recording at the source.
        pub src_recording_id: I64 = 16,
        /// Recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Position after the last byte.
        pub stop_position: I64 = 32,
        /// Tag of the channel.
        pub channel_tag_id: I64 = 40,
        /// Tag of the subscription.
        pub subscription_tag_id: I64 = 48,
        /// Stream of the source archive's control requests.
        pub src_control_stream_id: I32 = 56,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 60,
        /// Session of the replication. Since version 8 of the schema.
        pub replication_session_id: I32 = 64,
    }
}
