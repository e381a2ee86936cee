//! The interface of the conductor: [`ConductorRequest`] and [`ConductorReply`] are values, and [`Requesters`] sends and
//! receives them. Control sessions are one requester, and a process that embeds an archive can be another.

use aeron_protocol::archive::{ArchiveErrorCode, RequestIds, TimeEdge};

use super::ArchiveConductor;
use crate::extensions::RetentionPolicy;
use crate::server::ArchiveError;
use crate::server::listing::{Listing, PageRange, StreamFilter};
use crate::server::outlets::{ConductorNotice, ConductorReply};
use crate::server::recording::RecordingRequest;
use crate::server::replay::ReplayOrder;
use crate::server::replication::ReplicationRequest;
use crate::storage::Storage;

/// The requester of a request, and the permissions of its user.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Caller<'a> {
    /// Ids of the requester and of its request. Later replies and signals have them.
    pub ids: RequestIds,
    /// Principal of the user; empty without authentication.
    pub principal: &'a [u8],
    /// Whether the user may record, and may therefore change what other users have created.
    pub may_record: bool,
}

/// How an accepted request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum Execution {
    /// The request is complete.
    Replied(ConductorReply),
    /// The operation that the request has started adds the reply to the notices.
    Pending,
}

/// The reply comes later, as a notice.
pub(in crate::server) struct Later;

/// The requesters of an archive: they send requests to the conductor, and receive its replies.
pub(in crate::server) trait Requesters<S: Storage + Clone> {
    /// [Executes](ArchiveConductor::execute) the requests that have arrived. Returns the work count.
    fn send_requests(&mut self, conductor: &mut ArchiveConductor<S>) -> usize;

    /// Receives the replies and signals of a duty cycle, in order. Returns the work count.
    fn receive(
        &mut self,
        notices: Vec<ConductorNotice>,
        conductor: &mut ArchiveConductor<S>,
    ) -> usize;
}

/// The position of a named reader, and when the reader expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct ReaderCommit<'a> {
    pub recording_id: i64,
    pub name: &'a str,
    pub position: i64,
    /// Maximum time without a commit, in milliseconds.
    pub max_age_ms: Option<i64>,
    /// Maximum number of bytes recorded after the reader's position.
    pub max_lag: Option<i64>,
}

/// The time of the position to be found in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct WantedPosition {
    pub recording_id: i64,
    /// Time in microseconds since the epoch.
    pub timestamp_us: i64,
    /// Whether a range begins or ends at the position.
    pub edge: TimeEdge,
}

/// Declares the requests: the fields of each request, and the operation that executes it. The operation is a method of
/// the conductor or of one of its owners. An operation without a result returns `()`, and the reply is 0.
macro_rules! conductor_requests {
    ($caller:ident => $(
        $(#[$doc:meta])*
        $variant:ident $({ $($field:ident: $type:ty),* })? => $($operation:ident).+($($argument:expr),*),
    )*) => {
        /// A request to the conductor.
        #[derive(Debug, Clone)]
        pub(in crate::server) enum ConductorRequest<'a> {
            $( $(#[$doc])* $variant $({ $($field: $type),* })?, )*
        }

        impl<S: Storage + Clone> ArchiveConductor<S> {
            /// Executes a request. Returns its reply, unless the reply comes later.
            ///
            /// # Errors
            /// The reason why the request is refused.
            pub fn execute(
                &mut self,
                $caller: &Caller<'_>,
                request: ConductorRequest<'_>,
            ) -> Result<Execution, ArchiveError> {
                match request {
                    $( ConductorRequest::$variant $({ $($field),* })? => {
                        self.$($operation).+($($argument),*).map(Execution::from)
                    } )*
                }
            }
        }
    };
}

conductor_requests! { caller =>
    /// Returns the id of the archive.
    ArchiveId => archive_id(),
    /// Records the images of a stream. The reply is the registration id of the subscription that the driver added.
    StartRecording { request: RecordingRequest } => start_recording(caller, request),
    /// Continues a recording with an image of a stream. The reply is like that of `StartRecording`.
    ExtendRecording { recording_id: i64, request: RecordingRequest }
        => extend_recording(caller, recording_id, request),
    /// Stops the recordings of the subscription with this stream id and channel.
    StopRecording { stream_id: i32, channel: &'a str } => recordings.stop_by_channel(stream_id, channel),
    /// Stops the recordings of the subscription with this registration id.
    StopRecordingSubscription { subscription_id: i64 } => recordings.stop_by_subscription(subscription_id),
    /// Stops one recording. The reply is 1 if it was active, otherwise 0.
    StopRecordingByIdentity { recording_id: i64 } => stop_recording_by_identity(recording_id),
    /// Returns the start position.
    StartPosition { recording_id: i64 } => start_position(recording_id),
    /// Returns the recorded position of an active recording; −1 if the recording is not active.
    RecordingPosition { recording_id: i64 } => recording_position(recording_id),
    /// Returns the stop position; −1 while the recording is active.
    StopPosition { recording_id: i64 } => stop_position(recording_id),
    /// Returns the position after the last byte, for an active or ended recording.
    MaxRecordedPosition { recording_id: i64 } => max_recorded_position(recording_id),
    /// Finds the newest recording with this session id and a channel that contains a text; −1 if there is none.
    FindLastMatchingRecording { min_recording_id: i64, session_id: i32, filter: StreamFilter }
        => find_last_matching_recording(min_recording_id, session_id, &filter),
    /// Lists recordings or the subscriptions of recordings.
    List { listing: Listing } => list(listing),
    /// Replaces the channel of a recording.
    UpdateChannel { recording_id: i64, channel: &'a str } => update_channel(recording_id, channel),
    /// Replays a recording. The reply is the id of the replay, when its first segment is open.
    Replay { order: ReplayOrder } => replay(caller, order),
    /// Returns a token with which the requester can request a replay on another publication.
    ReplayToken { recording_id: i64 } => replay_token(caller, recording_id),
    /// Stops a replay.
    StopReplay { replay_session_id: i64 } => stop_replay(caller, replay_session_id),
    /// Stops all replays of a recording; of all recordings without an id.
    StopAllReplays { recording_id: Option<i64> } => stop_all_replays(recording_id),
    /// Removes the end of a recording. The reply is the number of files; the signal `Delete` follows.
    TruncateRecording { recording_id: i64, position: i64 } => truncate_recording(caller, recording_id, position),
    /// Deletes a recording. The reply is the number of files; the signal `Delete` follows.
    PurgeRecording { recording_id: i64 } => purge_recording(caller, recording_id),
    /// Moves the start of a recording, and keeps the files before it.
    DetachSegments { recording_id: i64, new_start_position: i64 } => detach_segments(recording_id, new_start_position),
    /// Moves the start of a recording, and deletes the files before it.
    PurgeSegments { recording_id: i64, new_start_position: i64 }
        => purge_segments(caller, recording_id, new_start_position),
    /// Deletes the files before the start of a recording.
    DeleteDetachedSegments { recording_id: i64 } => delete_detached_segments(caller, recording_id),
    /// Moves the start of a recording back to its first detached file. The reply is the number of files.
    AttachSegments { recording_id: i64 } => attach_segments(recording_id),
    /// Moves the segments of a recording to an adjacent recording.
    MigrateSegments { src_recording_id: i64, dst_recording_id: i64 }
        => migrate_segments(caller, src_recording_id, dst_recording_id),
    /// Copies a recording of another archive. The reply is the id of the replication.
    Replicate { request: Box<ReplicationRequest> } => replicate(caller, *request),
    /// Ends a replication at its current position.
    StopReplication { replication_id: i64 } => stop_replication(replication_id),
    /// Returns the bits of the [`Capabilities`](aeron_protocol::archive::extension::Capabilities).
    Capabilities => capabilities(),
    /// Creates a named reader, or stores its position. The reply is the position.
    CommitReader { commit: ReaderCommit<'a> } => commit_reader(caller, &commit),
    /// Removes a named reader. The reply is 1, or 0 if it does not exist.
    RemoveReader { recording_id: i64, name: &'a str } => remove_reader(caller, recording_id, name),
    /// Lists named readers.
    ListReaders { recording_id: Option<i64>, name: &'a str, range: PageRange } => list_readers(recording_id, name, range),
    /// Sets or removes a retention policy. The reply is 1 if a policy was replaced or removed, otherwise 0.
    SetRetention { policy: RetentionPolicy } => set_retention(policy),
    /// Lists retention policies.
    ListRetention { range: PageRange } => list_retention(range),
    /// Applies the retention policies, or lists what they would delete. The reply is a listing, which comes later.
    ApplyRetention { recording_id: Option<i64>, dry_run: bool, trust_clock: bool }
        => apply_retention(caller, recording_id, dry_run, trust_clock),
    /// Replaces the name of a recording; empty for none.
    SetRecordingName { recording_id: i64, name: &'a str } => set_recording_name(recording_id, name),
    /// Replaces the metadata of a recording; empty for none.
    SetRecordingMetadata { recording_id: i64, metadata: &'a [u8] } => set_recording_metadata(recording_id, metadata),
    /// Lists names, metadata and links of recordings.
    ListRecordingInfo { recording_id: Option<i64>, name: &'a str, range: PageRange }
        => list_recording_info(recording_id, name, range),
    /// Finds a position by time. The reply is a listing, which comes later.
    FindPosition { wanted: WantedPosition } => find_position(caller, wanted),
    /// Lists the recordings with copies in object storage. The reply is a listing, which may come later.
    ListCopiedRanges { recording_id: Option<i64>, range: PageRange } => list_copied_ranges(caller, recording_id, range),
}

impl Caller<'_> {
    /// Checks that the user may change something that `owner` has created: the user is the owner, or has a role that
    /// may record. Everything without an owner belongs to everybody.
    ///
    /// # Errors
    /// The user may not change it.
    pub fn check_owner(&self, owner: &[u8]) -> Result<(), ArchiveError> {
        match owner.is_empty() || owner == self.principal || self.may_record {
            true => Ok(()),
            false => Err(ArchiveError::new(
                ArchiveErrorCode::UnauthorisedAction,
                "unauthorised action: it belongs to another user, and needs the role that may record",
            )),
        }
    }
}

impl<T: Into<ConductorReply>> From<T> for Execution {
    fn from(reply: T) -> Self {
        Self::Replied(reply.into())
    }
}

impl From<()> for Execution {
    fn from((): ()) -> Self {
        Self::Replied(ConductorReply::Value(0))
    }
}

impl From<Later> for Execution {
    fn from(_: Later) -> Self {
        Self::Pending
    }
}
