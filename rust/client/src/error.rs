//! [`Error`]: all errors of a client as one type.
//!
//! Every variant says what happened to which object. [`Error::code`] returns the number that Aeron's C client would
//! report, so that a binding can map errors without parsing texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aeron_memory::broadcast::ReceiveError;
use aeron_memory::cnc::SemanticVersion;
use aeron_memory::log::CorruptLog;
use aeron_memory::log::buffers::OpenLogError;
use aeron_protocol::{DecodeError, ErrorCode};

/// Result of a client call.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed client call, or an error that the client's conductor reports to its error handler.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No live driver responded within the driver timeout, or the driver of a running client has ended.
    #[error("{0}")]
    DriverTimeout(DriverTimeout),
    /// The driver closed this client because the client's heartbeat was too old.
    #[error("client {client_id} was timed out by the media driver")]
    ClientTimeout {
        /// Id of the client.
        client_id: i64,
    },
    /// The conductor was not run for longer than the inter-service timeout.
    #[error(
        "client conductor was not serviced for {elapsed:?}, the inter-service timeout is {timeout:?}"
    )]
    ServiceTimeout {
        /// Time since the conductor ran last.
        elapsed: Duration,
        /// The driver's client liveness timeout.
        timeout: Duration,
    },
    /// The driver freed this client's heartbeat counter.
    #[error("unexpected close of heartbeat timestamp counter: {counter_id}")]
    HeartbeatCounterClosed {
        /// Counter id of the heartbeat counter.
        counter_id: i32,
    },
    /// The driver freed the position counter of an open image and gave it to another client. Either another process had
    /// the subscription removed, or the driver timed this client out before the client noticed.
    #[error(
        "unexpected close of subscriber position counter: {counter_id} of image {correlation_id}: the media driver removed its subscription"
    )]
    PositionCounterClosed {
        /// Id of the image.
        correlation_id: i64,
        /// Counter id of the position counter.
        counter_id: i32,
    },
    /// The client was closed because events of the driver were lost. Events came faster than the conductor read them,
    /// or are damaged.
    #[error("events of the media driver are lost: {0}")]
    EventsLost(ReceiveError),
    /// An event of the driver could not be decoded; it was ignored.
    #[error("event of the media driver: {0}")]
    MalformedEvent(DecodeError),
    /// The driver refused a command.
    #[error("{message}, errorCodeValue={code}", code = code.value())]
    Registration {
        /// Correlation id of the refused command.
        correlation_id: i64,
        /// Reason as an error code.
        code: ErrorCode,
        /// Reason as the driver's text.
        message: String,
    },
    /// The driver reported an error of a channel endpoint that this client uses.
    #[error("channel endpoint with status counter {status_indicator_id}: {message}")]
    ChannelEndpoint {
        /// Counter id of the endpoint's channel status.
        status_indicator_id: i32,
        /// The driver's text.
        message: String,
    },
    /// The ring buffer to the driver had no room for a command.
    #[error("could not write the {command} command: the ring buffer to the media driver is full")]
    CommandBufferFull {
        /// Name of the command.
        command: &'static str,
    },
    /// The command was not sent: the driver would refuse it as malformed, or it fits into no ring buffer.
    #[error("{command} command: {reason}")]
    InvalidCommand {
        /// Name of the command.
        command: &'static str,
        /// Reason.
        reason: String,
    },
    /// The client is closed.
    #[error("Aeron client is closed{}", because(.0))]
    ClientClosed(CloseCause),
    /// The publication, subscription, image or counter is closed.
    #[error("{resource} is closed{}", because(.cause))]
    ResourceClosed {
        /// `Publication`, `Subscription`, `Image` or `Counter`.
        resource: &'static str,
        /// Cause of the close.
        cause: CloseCause,
    },
    /// A call that waits for the driver was made from inside a handler of the client.
    #[error("reentrant calls not permitted during callbacks")]
    ReentrantCall,
    /// The application's [`InterruptCheck`](crate::InterruptCheck) ended a wait for the driver. The request was undone
    /// if possible.
    #[error("interrupted while waiting for the media driver")]
    Interrupted,
    /// The operation was cancelled.
    #[error("the operation was cancelled")]
    OperationCancelled,
    /// Another thread or a running handler uses the object.
    #[error("{0} is in use by another call; it serves one thread at a time")]
    InUse(&'static str),
    /// An argument is outside its range.
    #[error("{0}")]
    InvalidArgument(String),
    /// A setting is outside its range, or contradicts the driver's settings.
    #[error("{0}")]
    Configuration(String),
    /// The version of the driver's CnC file is not compatible with this client.
    #[error("CnC version not compatible: driverVersion={driver} insufficient for clientVersion={client}: {path}", path = path.display())]
    VersionMismatch {
        /// Path of the file.
        path: PathBuf,
        /// Version in the file.
        driver: SemanticVersion,
        /// Version of this client.
        client: SemanticVersion,
    },
    /// The driver's file is damaged or is not a CnC file.
    #[error("{path}: {reason}", path = path.display())]
    InvalidCncFile {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// There is no memory for a batch or for a message of several fragments. The messages were not consumed.
    #[error(
        "out of memory: {bytes} bytes for messages could not be allocated; they come again with the next poll"
    )]
    OutOfMemory {
        /// Size of the failed allocation in bytes.
        bytes: usize,
    },
    /// A file could not be opened or mapped.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: Arc<std::io::Error>,
    },
    /// A log buffer has values that no driver or publisher writes.
    #[error("log of {correlation_id}: {reason}")]
    CorruptLog {
        /// Id of the image, or original registration id of the publication.
        correlation_id: i64,
        /// Reason.
        reason: CorruptLog,
    },
    /// The driver named a log that cannot be opened.
    #[error("{path}: {source}", path = path.display())]
    OpenLog {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: Arc<OpenLogError>,
    },
    /// The driver named a counter id outside the counter buffers.
    #[error("counter id {0} of the media driver is out of range")]
    CounterOutOfRange(i32),
    /// An image of a spy cannot be rejected.
    #[error("spies can not reject images")]
    SpyCannotReject,
    /// A handler panicked; the client continues.
    #[error("a handler panicked: {0}")]
    HandlerPanicked(String),
    /// The object belongs to the parent of a forked process.
    #[error("this object belongs to the parent process; open a new client after fork")]
    Forked,
}

/// Reason why a driver is considered dead. Each reason has its own text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverTimeout {
    /// There is no CnC file, or it is shorter than its header.
    #[error("CnC file not created: {}", .0.display())]
    NoCncFile(PathBuf),
    /// The file exists, but its version is still 0.
    #[error("CnC file is created but not initialised: {}", .0.display())]
    NotInitialised(PathBuf),
    /// The file is shorter than its header says.
    #[error("CnC file is created but not populated: {}", .0.display())]
    NotPopulated(PathBuf),
    /// The driver's heartbeat was never written, or is too old: the driver died, or was closed.
    #[error("no driver heartbeat detected after {waited_ms} ms: {path}", path = .path.display())]
    NoHeartbeat {
        /// Path of the file.
        path: PathBuf,
        /// Time for which the client waited, in milliseconds.
        waited_ms: u64,
    },
    /// The driver was closed while the client ran.
    #[error("MediaDriver has been shutdown")]
    Shutdown,
    /// The driver's heartbeat became too old while the client ran.
    #[error("MediaDriver keepalive: age={age_ms}ms > timeout={timeout_ms}ms")]
    Keepalive {
        /// Age of the heartbeat, in milliseconds.
        age_ms: i64,
        /// The driver timeout, in milliseconds.
        timeout_ms: i64,
    },
    /// The driver's process has ended, for example because it was killed.
    #[error("the process {pid} of the MediaDriver has ended")]
    ProcessEnded {
        /// Process id of the driver.
        pid: i64,
    },
    /// The driver did not respond to a command within this time.
    #[error("no response from MediaDriver within {0:?}")]
    NoResponse(Duration),
}

impl From<DriverTimeout> for Error {
    fn from(timeout: DriverTimeout) -> Self {
        Self::DriverTimeout(timeout)
    }
}

/// Cause of the close of a client or one of its resources. `None` if nothing failed: the application closed it, or an
/// image's stream ended.
#[derive(Debug, Clone, Default)]
pub struct CloseCause(pub Option<Arc<Error>>);

impl CloseCause {
    /// Creates the cause for a close because of an error.
    pub(crate) fn error(error: Error) -> Self {
        Self(Some(Arc::new(error)))
    }
}

impl Error {
    /// Returns the number that Aeron's C client reports for this error. For refused commands this is the driver's code
    /// (1 to 14). Further codes: 1000 driver timeout or lost counter, 1001 client timeout or uninitialised CnC file,
    /// 1002 service timeout, 1004 full command buffer. Most other errors have an `errno` (EINVAL 22, EPERM 1, EINTR 4,
    /// EIO 5, ENOMEM 12, EBUSY 16 or the system's own).
    pub fn code(&self) -> i32 {
        match self {
            Self::DriverTimeout(DriverTimeout::NotInitialised(_)) => 1001,
            Self::DriverTimeout(_)
            | Self::HeartbeatCounterClosed { .. }
            | Self::PositionCounterClosed { .. } => 1000,
            Self::ClientTimeout { .. } => 1001,
            Self::ServiceTimeout { .. } => 1002,
            Self::CommandBufferFull { .. } => 1004,
            Self::Registration { code, .. } => code.value(),
            Self::ChannelEndpoint { .. } => 4,
            Self::EventsLost(_) => 11,
            Self::Io { source, .. } => source.raw_os_error().unwrap_or(5),
            Self::CorruptLog { .. } | Self::OpenLog { .. } | Self::CounterOutOfRange(_) => 5,
            Self::MalformedEvent(error) => error.code().value(),
            Self::ClientClosed(_)
            | Self::ResourceClosed { .. }
            | Self::ReentrantCall
            | Self::Forked => 1,
            Self::Interrupted | Self::OperationCancelled => 4,
            Self::OutOfMemory { .. } => 12,
            Self::InUse(_) => 16,
            Self::InvalidCommand { .. }
            | Self::InvalidArgument(_)
            | Self::Configuration(_)
            | Self::VersionMismatch { .. }
            | Self::InvalidCncFile { .. }
            | Self::SpyCannotReject
            | Self::HandlerPanicked(_) => 22,
        }
    }
}

fn because(cause: &CloseCause) -> String {
    cause
        .0
        .as_ref()
        .map_or_else(String::new, |error| format!(": {error}"))
}

/// An allocation of this many bytes failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutOfMemory(pub(crate) usize);

impl From<OutOfMemory> for Error {
    fn from(OutOfMemory(bytes): OutOfMemory) -> Self {
        Self::OutOfMemory { bytes }
    }
}

/// Error of a poll with a handler that may fail.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TryPollError<E> {
    /// The poll itself failed.
    #[error(transparent)]
    Poll(#[from] Error),
    /// The handler failed.
    #[error("{0}")]
    Handler(E),
}
