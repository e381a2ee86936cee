//! Blocks of a client's requests to an archive.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Request to connect, with or without credentials.
    pub struct ConnectLayout: 16 {
        /// Correlation id of the request.
        pub correlation_id: I64 = 0,
        /// Stream id of the responses.
        pub response_stream_id: I32 = 8,
        /// Semantic version of the protocol.
        pub version: I32 = 12,
    }

    /// A message that contains only the control session.
    pub struct SessionLayout: 8 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
    }

    /// Beginning of every request in a control session. A keepalive has no further fields.
    pub struct SessionRequestLayout: 16 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
    }

    /// A request that names a recording.
    pub struct RecordingRequestLayout: 24 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
    }

    /// A request that names a subscription of the archive.
    pub struct SubscriptionRequestLayout: 24 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Registration id of the archive's subscription.
        pub subscription_id: I64 = 16,
    }

    /// A request that names a replay.
    pub struct StopReplayLayout: 24 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the replay session.
        pub replay_session_id: I64 = 16,
    }

    /// A request that names a replication.
    pub struct StopReplicationLayout: 24 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the replication.
        pub replication_id: I64 = 16,
    }

    /// Request to start a recording; the channel follows.
    pub struct StartRecordingLayout: 24 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
        /// 0: local, 1: remote.
        pub source_location: I32 = 20,
    }

    /// Request to start a recording, with a subscription that may end by itself; the channel follows.
    pub struct StartRecording2Layout: 28 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
        /// 0: local, 1: remote.
        pub source_location: I32 = 20,
        /// Whether the subscription is closed when the first of its recordings ends. 0: false, 1: true.
        pub auto_stop: I32 = 24,
    }

    /// Request to stop a recording by its channel, which follows.
    pub struct StopRecordingLayout: 20 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
    }

    /// Request to extend a recording; the channel follows.
    pub struct ExtendRecordingLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Stream id.
        pub stream_id: I32 = 24,
        /// 0: local, 1: remote.
        pub source_location: I32 = 28,
    }

    /// Request to extend a recording, with a subscription that may end by itself; the channel follows.
    pub struct ExtendRecording2Layout: 36 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Stream id.
        pub stream_id: I32 = 24,
        /// 0: local, 1: remote.
        pub source_location: I32 = 28,
        /// Whether the subscription is closed when the first of its recordings ends. 0: false, 1: true.
        pub auto_stop: I32 = 32,
    }

    /// Request for a replay; the channel follows. Older clients send only the first 44 or 48 bytes of the block.
    pub struct ReplayLayout: 56 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Position of the first frame.
        pub position: I64 = 24,
        /// Number of bytes to replay.
        pub length: I64 = 32,
        /// Stream id of the replay.
        pub replay_stream_id: I32 = 40,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 44,
        /// Token of the replay. Since version 10 of the schema.
        pub replay_token: I64 = 48,
    }

    /// Request for a replay up to the position in a counter; the channel follows. Older clients send only the first 48
    /// or 52 bytes of the block.
    pub struct BoundedReplayLayout: 60 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Position of the first frame.
        pub position: I64 = 24,
        /// Number of bytes to replay.
        pub length: I64 = 32,
        /// Id of the counter that limits the replay.
        pub limit_counter_id: I32 = 40,
        /// Stream id of the replay.
        pub replay_stream_id: I32 = 44,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 48,
        /// Token of the replay. Since version 10 of the schema.
        pub replay_token: I64 = 52,
    }

    /// Query for recordings by id.
    pub struct ListRecordingsLayout: 28 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the first recording to list.
        pub from_recording_id: I64 = 16,
        /// Maximum number of recordings.
        pub record_count: I32 = 24,
    }

    /// Query for recordings by id, stream and channel. The channel follows.
    pub struct ListRecordingsForUriLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the first recording to list.
        pub from_recording_id: I64 = 16,
        /// Maximum number of recordings.
        pub record_count: I32 = 24,
        /// Stream id.
        pub stream_id: I32 = 28,
    }

    /// Query for the newest recording of a stream; the channel follows.
    pub struct FindLastMatchingRecordingLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Minimum recording id.
        pub min_recording_id: I64 = 16,
        /// Session id.
        pub session_id: I32 = 24,
        /// Stream id.
        pub stream_id: I32 = 28,
    }

    /// Query for subscriptions by stream and channel. The channel follows.
    pub struct ListRecordingSubscriptionsLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Index of the first subscription.
        pub pseudo_index: I32 = 16,
        /// Maximum number of subscriptions.
        pub subscription_count: I32 = 20,
        /// 0: any stream, 1: only the stream of the request.
        pub apply_stream_id: I32 = 24,
        /// Stream id.
        pub stream_id: I32 = 28,
    }

    /// Request to truncate the end of a recording.
    pub struct TruncateRecordingLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// Position at which the recording ends after the truncation.
        pub position: I64 = 24,
    }

    /// A request that moves the start of a recording.
    pub struct NewStartPositionLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Recording id.
        pub recording_id: I64 = 16,
        /// New start position.
        pub new_start_position: I64 = 24,
    }

    /// Request to move segments from one recording to another.
    pub struct MigrateSegmentsLayout: 32 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the recording from which segments are moved.
        pub src_recording_id: I64 = 16,
        /// Id of the recording to which segments are moved.
        pub dst_recording_id: I64 = 24,
    }

    /// Request for a replication.
    pub struct ReplicateLayout: 36 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the recording at the source.
        pub src_recording_id: I64 = 16,
        /// Id of the recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: I32 = 32,
    }

    /// Request for a replication with tags.
    pub struct TaggedReplicateLayout: 52 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the recording at the source.
        pub src_recording_id: I64 = 16,
        /// Id of the recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Tag of the channel.
        pub channel_tag_id: I64 = 32,
        /// Tag of the subscription.
        pub subscription_tag_id: I64 = 40,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: I32 = 48,
    }

    /// Request for a replication with all parameters. Older clients send only the first 60 or 64 bytes of the block.
    pub struct Replicate2Layout: 68 {
        /// Id of the control session.
        pub control_session_id: I64 = 0,
        /// Correlation id of the request.
        pub correlation_id: I64 = 8,
        /// Id of the recording at the source.
        pub src_recording_id: I64 = 16,
        /// Id of the recording at the destination.
        pub dst_recording_id: I64 = 24,
        /// Position at which the replication stops.
        pub stop_position: I64 = 32,
        /// Tag of the channel.
        pub channel_tag_id: I64 = 40,
        /// Tag of the subscription.
        pub subscription_tag_id: I64 = 48,
        /// Stream id of the source archive's control requests.
        pub src_control_stream_id: I32 = 56,
        /// Maximum length of a read from a file in bytes. Since version 7 of the schema.
        pub file_io_max_length: I32 = 60,
        /// Session of the replication. Since version 8 of the schema.
        pub replication_session_id: I32 = 64,
    }
}
