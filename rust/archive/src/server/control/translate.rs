//! Translates the messages of clients to requests of the conductor. Old and new forms of a message become one request.

use aeron_protocol::archive::extension::ExtensionRequest;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveRequest, NULL_LENGTH, NULL_SESSION_ID, NULL_VALUE,
    ReplicateRequest2, SourceLocation,
};

use crate::extensions::{RetentionPolicy, RetentionScope};
use crate::server::ArchiveError;
use crate::server::conductor::{ConductorRequest, ReaderCommit, WantedPosition};
use crate::server::listing::{Listing, PageRange, StreamFilter};
use crate::server::recording::RecordingRequest;
use crate::server::replay::{ReplayOrder, ReplayRange, RequestedPace};
use crate::server::replication::ReplicationRequest;

/// A message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientMessage<'a> {
    /// A request of Aeron's protocol.
    Aeron(ArchiveRequest<'a>),
    /// A request that this project adds.
    Addition(ExtensionRequest<'a>),
}

impl<'a> ClientMessage<'a> {
    /// Reads a message. Returns `None` for an unknown message: a newer client may send messages that this archive does
    /// not support.
    pub fn decode(message: &'a [u8]) -> Option<Result<Self, ArchiveDecodeError>> {
        match ArchiveRequest::decode(message) {
            Err(ArchiveDecodeError::UnknownTemplateId { .. }) => {
                match ExtensionRequest::decode(message) {
                    Err(ArchiveDecodeError::UnknownTemplateId { .. }) => None,
                    decoded => Some(decoded.map(Self::Addition)),
                }
            }
            decoded => Some(decoded.map(Self::Aeron)),
        }
    }

    /// Returns the recording id, the token and the correlation id of a replay request with a token.
    pub fn replay_token(&self) -> Option<(i64, i64, i64)> {
        let (id, token, correlation_id) = match self {
            Self::Aeron(ArchiveRequest::Replay(it)) => {
                (it.recording_id, it.replay_token, it.correlation_id)
            }
            Self::Aeron(ArchiveRequest::BoundedReplay(it)) => {
                (it.recording_id, it.replay_token, it.correlation_id)
            }
            Self::Addition(ExtensionRequest::ReplayAtRate(it)) => {
                (it.recording_id, it.replay_token, it.correlation_id)
            }
            _ => return None,
        };
        (token != NULL_VALUE).then_some((id, token, correlation_id))
    }

    /// Returns the request of the message; `None` for messages that only belong to the connection of a session.
    ///
    /// # Errors
    /// A text is not UTF-8, or a value has no meaning.
    pub fn request(&self) -> Result<Option<ConductorRequest<'a>>, ArchiveError> {
        match self {
            Self::Aeron(request) => of_aeron(request),
            Self::Addition(request) => of_addition(request),
        }
    }
}

/// Declares how the messages of a set become requests. A field without a value has the value of the message's field.
/// Messages after `_` only belong to the connection of a session, so an active session ignores them.
macro_rules! translations {
    (
        fn $function:ident($it:ident: $set:ident) {
            $( $message:ident => $request:ident $({ $( $field:ident $(: $value:expr)? ),* })?, )*
            _ => $($ignored:ident),*
        }
    ) => {
        fn $function<'a>(message: &$set<'a>) -> Result<Option<ConductorRequest<'a>>, ArchiveError> {
            match *message {
                $( $set::$message($it) => {
                    let _ = $it;
                    Ok(Some(ConductorRequest::$request $({
                        $( $field: translations!($it.$field $(, $value)?) ),*
                    })?))
                } )*
                $( $set::$ignored(_) => Ok(None), )*
            }
        }
    };
    ($it:ident.$field:ident) => { $it.$field };
    ($it:ident.$field:ident, $value:expr) => { $value };
}

translations! {
    fn of_aeron(it: ArchiveRequest) {
        ArchiveId => ArchiveId,
        StartRecording => StartRecording {
            request: recording(it.channel, it.stream_id, it.source_location, false)?
        },
        StartRecording2 => StartRecording {
            request: recording(it.channel, it.stream_id, it.source_location, it.auto_stop)?
        },
        ExtendRecording => ExtendRecording {
            recording_id, request: recording(it.channel, it.stream_id, it.source_location, false)?
        },
        ExtendRecording2 => ExtendRecording {
            recording_id, request: recording(it.channel, it.stream_id, it.source_location, it.auto_stop)?
        },
        StopRecording => StopRecording { stream_id, channel: text("channel", it.channel)? },
        StopRecordingSubscription => StopRecordingSubscription { subscription_id },
        StopRecordingByIdentity => StopRecordingByIdentity { recording_id },
        StartPosition => StartPosition { recording_id },
        RecordingPosition => RecordingPosition { recording_id },
        StopPosition => StopPosition { recording_id },
        MaxRecordedPosition => MaxRecordedPosition { recording_id },
        FindLastMatchingRecording => FindLastMatchingRecording {
            min_recording_id, session_id, filter: filter(it.stream_id, it.channel)
        },
        ListRecordings => List { listing: Listing::recordings(it.from_recording_id, it.record_count, None) },
        ListRecordingsForUri => List {
            listing: Listing::recordings(it.from_recording_id, it.record_count, Some(filter(it.stream_id, it.channel)))
        },
        ListRecording => List { listing: Listing::recording(it.recording_id) },
        ListRecordingSubscriptions => List {
            listing: Listing::subscriptions(
                it.pseudo_index, it.subscription_count, it.apply_stream_id.then_some(it.stream_id), it.channel.to_vec(),
            )
        },
        UpdateChannel => UpdateChannel { recording_id, channel: text("channel", it.channel)? },
        Replay => Replay {
            order: replay(
                it.recording_id, range(it.position, it.length, it.file_io_max_length), it.replay_stream_id, it.replay_channel,
            )?
        },
        BoundedReplay => Replay {
            order: ReplayOrder {
                limit_counter_id: Some(it.limit_counter_id),
                ..replay(
                    it.recording_id, range(it.position, it.length, it.file_io_max_length), it.replay_stream_id,
                    it.replay_channel,
                )?
            }
        },
        ReplayToken => ReplayToken { recording_id },
        StopReplay => StopReplay { replay_session_id },
        StopAllReplays => StopAllReplays { recording_id: set(it.recording_id) },
        TruncateRecording => TruncateRecording { recording_id, position },
        PurgeRecording => PurgeRecording { recording_id },
        DetachSegments => DetachSegments { recording_id, new_start_position },
        PurgeSegments => PurgeSegments { recording_id, new_start_position },
        DeleteDetachedSegments => DeleteDetachedSegments { recording_id },
        AttachSegments => AttachSegments { recording_id },
        MigrateSegments => MigrateSegments { src_recording_id, dst_recording_id },
        Replicate2 => Replicate { request: replication(&it)? },
        Replicate => Replicate {
            request: replication(&ReplicateRequest2 {
                src_recording_id: it.src_recording_id,
                dst_recording_id: it.dst_recording_id,
                src_control_stream_id: it.src_control_stream_id,
                src_control_channel: it.src_control_channel,
                live_destination: it.live_destination,
                ..OLD_REPLICATION
            })?
        },
        TaggedReplicate => Replicate {
            request: replication(&ReplicateRequest2 {
                src_recording_id: it.src_recording_id,
                dst_recording_id: it.dst_recording_id,
                channel_tag_id: it.channel_tag_id,
                subscription_tag_id: it.subscription_tag_id,
                src_control_stream_id: it.src_control_stream_id,
                src_control_channel: it.src_control_channel,
                live_destination: it.live_destination,
                ..OLD_REPLICATION
            })?
        },
        StopReplication => StopReplication { replication_id },
        _ => AuthConnect, Connect, CloseSession, ChallengeResponse, KeepAlive
    }
}

translations! {
    fn of_addition(it: ExtensionRequest) {
        Capabilities => Capabilities,
        CommitReader => CommitReader {
            commit: ReaderCommit {
                recording_id: it.recording_id,
                name: text("reader", it.name)?,
                position: it.position,
                max_age_ms: set(it.max_age_ms),
                max_lag: set(it.max_lag),
            }
        },
        RemoveReader => RemoveReader { recording_id, name: text("reader", it.name)? },
        ListReaders => ListReaders {
            recording_id: set(it.recording_id), name: text("reader", it.name)?, range: page(it.from_index, it.count)
        },
        SetRetention => SetRetention {
            policy: RetentionPolicy {
                scope: scope(
                    it.recording_id, it.apply_stream_id.then_some(it.stream_id), text("channel", it.channel)?,
                )?,
                max_bytes: set(it.max_bytes),
                max_age_ms: set(it.max_age_ms),
            }
        },
        ListRetention => ListRetention { range: page(it.from_index, it.count) },
        ApplyRetention => ApplyRetention { recording_id: set(it.recording_id), dry_run, trust_clock },
        SetRecordingName => SetRecordingName { recording_id, name: text("name", it.name)? },
        SetRecordingMetadata => SetRecordingMetadata { recording_id, metadata },
        ListRecordingInfo => ListRecordingInfo {
            recording_id: set(it.recording_id), name: text("name", it.name)?, range: page(it.from_index, it.count)
        },
        FindPosition => FindPosition {
            wanted: WantedPosition { recording_id: it.recording_id, timestamp_us: it.timestamp_us, edge: it.edge }
        },
        ReplayAtRate => Replay {
            order: ReplayOrder {
                pace: RequestedPace::new(it.max_bytes_per_second, it.speed_millionths)?,
                ..replay(
                    it.recording_id, range(it.position, it.length, it.file_io_max_length), it.replay_stream_id,
                    it.replay_channel,
                )?
            }
        },
        ListCopiedRanges => ListCopiedRanges {
            recording_id: set(it.recording_id), range: page(it.from_index, it.count)
        },
        _ =>
    }
}

/// The parameters that the old forms of a replication request do not have.
const OLD_REPLICATION: ReplicateRequest2<'static> = ReplicateRequest2 {
    control_session_id: NULL_VALUE,
    correlation_id: NULL_VALUE,
    src_recording_id: NULL_VALUE,
    dst_recording_id: NULL_VALUE,
    stop_position: NULL_VALUE,
    channel_tag_id: NULL_VALUE,
    subscription_tag_id: NULL_VALUE,
    src_control_stream_id: 0,
    file_io_max_length: NULL_LENGTH,
    replication_session_id: NULL_SESSION_ID,
    src_control_channel: &[],
    live_destination: &[],
    replication_channel: &[],
    encoded_credentials: &[],
    src_response_channel: &[],
};

fn replication(request: &ReplicateRequest2<'_>) -> Result<Box<ReplicationRequest>, ArchiveError> {
    let channel = |field: &str, bytes: &[u8]| match bytes.is_empty() {
        true => Ok(None),
        false => text(field, bytes).map(|channel| Some(channel.to_owned())),
    };
    let session_id = request.replication_session_id;
    Ok(Box::new(ReplicationRequest {
        source_recording_id: request.src_recording_id,
        destination_recording_id: set(request.dst_recording_id),
        stop_position: set(request.stop_position),
        channel_tag_id: set(request.channel_tag_id),
        subscription_tag_id: set(request.subscription_tag_id),
        control_channel: text("srcControlChannel", request.src_control_channel)?.to_owned(),
        control_stream_id: request.src_control_stream_id,
        live_destination: channel("liveDestination", request.live_destination)?,
        replication_channel: channel("replicationChannel", request.replication_channel)?,
        response_channel: channel("srcResponseChannel", request.src_response_channel)?,
        encoded_credentials: request.encoded_credentials.to_vec(),
        file_io_max_length: request.file_io_max_length,
        session_id: (session_id != NULL_SESSION_ID).then_some(session_id),
    }))
}

fn recording(
    channel: &[u8],
    stream_id: i32,
    source_location: SourceLocation,
    is_auto_stop: bool,
) -> Result<RecordingRequest, ArchiveError> {
    Ok(RecordingRequest {
        channel: text("channel", channel)?.to_owned(),
        stream_id,
        source_location,
        is_auto_stop,
    })
}

fn scope(
    recording_id: i64,
    stream_id: Option<i32>,
    channel_fragment: &str,
) -> Result<RetentionScope, ArchiveError> {
    match recording_id {
        NULL_VALUE => Ok(RetentionScope::Matching {
            stream_id,
            channel_fragment: channel_fragment.to_owned(),
        }),
        _ if stream_id.is_none() && channel_fragment.is_empty() => {
            Ok(RetentionScope::Recording(recording_id))
        }
        _ => Err(ArchiveError::generic(format!(
            "policy of recording {recording_id} with a stream or a channel: set recordingId=-1 for all recordings that match them"
        ))),
    }
}

fn filter(stream_id: i32, channel_fragment: &[u8]) -> StreamFilter {
    StreamFilter {
        stream_id,
        channel_fragment: channel_fragment.to_vec(),
    }
}

const fn range(position: i64, length: i64, file_io_max_length: i32) -> ReplayRange {
    ReplayRange {
        position,
        length,
        file_io_max_length,
    }
}

fn replay(
    recording_id: i64,
    range: ReplayRange,
    stream_id: i32,
    channel: &[u8],
) -> Result<ReplayOrder, ArchiveError> {
    Ok(ReplayOrder {
        recording_id,
        range,
        pace: RequestedPace::default(),
        limit_counter_id: None,
        stream_id,
        channel: text("replayChannel", channel)?.to_owned(),
        response_correlation_id: None,
    })
}

const fn page(from_index: i32, count: i32) -> PageRange {
    PageRange { from_index, count }
}

fn set(value: i64) -> Option<i64> {
    (value != NULL_VALUE).then_some(value)
}

/// Returns a field of a message as text. The bytes of the message may have any value.
pub(super) fn text<'a>(field: &str, bytes: &'a [u8]) -> Result<&'a str, ArchiveError> {
    std::str::from_utf8(bytes)
        .map_err(|error| ArchiveError::generic(format!("{field} is not text: {error}")))
}
