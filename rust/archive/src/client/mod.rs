//! A client for archives. It works with the archive of this project ([`server`](crate::server)) and
//! with Aeron's archive of version 1.52.
//!
//! * [`AeronArchive`]: calls that wait, and operations that are polled. Any thread may use it.
//! * [`ArchiveSession`]: the state machine inside [`AeronArchive`], for programs with a loop of
//!   their own. It never blocks.
//! * [`PersistentSubscription`]: reads a recorded stream without gaps, first from a replay and then
//!   live.
//! * [`ReplayMerge`]: replays a recording and joins its live stream, once.
//! * [`RecordedPublisher`]: keeps each message until the archive has recorded it.
//!
//! [`AeronArchive`] and [`ArchiveSession`] send [`ArchiveCall`]s. An [`ArchiveCall`] is a request,
//! with a function that converts the archive's responses to a result.

mod aeron_archive;
mod answer;
mod backoff;
mod bounded;
mod call;
mod channels;
mod connecting;
mod context;
mod credentials;
mod descriptor;
mod error;
mod exchange;
mod extension;
mod handshake;
mod link;
mod methods;
mod operation;
mod params;
mod persistent;
mod recorded_publisher;
mod replay_merge;
mod replay_publications;
mod session;
#[cfg(test)]
mod tests;

pub use aeron_memory::counters::RecordingPositionKey;

pub use self::aeron_archive::{AeronArchive, AsyncConnect};
pub use self::call::{ArchiveCall, Ticket};
pub(crate) use self::channels::replay_request_channel;
pub use self::connecting::ConnectingSession;
pub use self::context::{
    ArchiveClientContext, ArchiveErrorHandler, MAX_CLIENT_NAME_LENGTH, RecordingSignalHandler,
    WaitingWork,
};
pub use self::credentials::{CredentialsSupplier, NoCredentials};
pub use self::descriptor::RecordingSubscription;
pub use self::error::{ArchiveClientError, Result};
pub use self::exchange::MAX_QUEUED_SIGNALS;
pub use self::extension::{ExtensionPage, ListedInfo, TimeRange, TimedPosition};
pub use self::operation::{ArchiveOperation, StartedReplay};
pub use self::params::{NULL_COUNTER_ID, ReplayParams, ReplicationParams};
pub use self::persistent::{
    FROM_LIVE, FROM_START, FailureReason, NO_JOIN_DIFFERENCE, PersistentSubscription,
    PersistentSubscriptionContext, PersistentSubscriptionCounters, PersistentSubscriptionError,
    PersistentSubscriptionListener, PersistentSubscriptionState, PersistentSubscriptionStatus,
    StartPosition,
};
pub use self::recorded_publisher::{
    ClientConnector, DEFAULT_PUBLISHER_BUFFER_LENGTH, DEFAULT_TAKEOVER_TIMEOUT_NS,
    MIN_PUBLISHER_BUFFER_LENGTH, RecordedOfferError, RecordedPublisher, RecordedPublisherContext,
    RecordedPublisherError, RecordedPublisherListener, RecordedPublisherStatus, Unrecorded,
};
pub use self::replay_merge::{ReplayMerge, ReplayMergeError, ReplayMergeParams};
pub use self::session::{ArchiveSession, ArchiveSessionState};
