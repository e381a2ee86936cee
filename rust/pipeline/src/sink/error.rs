//! [`SinkError`]: the error that ends a task early. Its text is one line and is clear without other output.

use std::fmt;

use aeron_client::Error;

/// Progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkProgress {
    /// Partition of the task.
    pub partition: u32,
    /// Attempt at the partition, counted from 0.
    pub attempt: u32,
    /// Number of rows that were passed to the task.
    pub rows: u64,
    /// Number of these rows that were published.
    pub published: u64,
    /// Whether the published rows are the first rows of the partition. With several streams, they need not be the first
    /// ones, because rows are published stream by stream.
    pub is_prefix: bool,
}

/// Reason why a task ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SinkError {
    /// No subscriber is connected.
    #[error(
        "no subscriber on channel={channel} streamId={stream_id} for {waited_ms} ms (connectTimeoutMs); {} rows of partition {} not sent",
        .progress.rows - .progress.published, .progress.partition
    )]
    NoSubscriber {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// Time for which the task waited for a subscriber, in milliseconds.
        waited_ms: u128,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// Subscribers read too slowly.
    #[error(
        "back pressure on channel={channel} streamId={stream_id} for {waited_ms} ms (offerTimeoutMs): subscribers at position \
         {subscribers}, publisher limit {limit}; {progress}",
        subscribers = PositionText(*.subscribers)
    )]
    BackPressure {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// Time for which the task waited for room, in milliseconds.
        waited_ms: u128,
        /// Position of the slowest subscriber, if the local driver has its counter.
        subscribers: Option<i64>,
        /// Limit of the publication: the position up to which publishers may append.
        limit: i64,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// Subscribers did not read all messages in time.
    #[error(
        "drain of channel={channel} streamId={stream_id} after {waited_ms} ms (offerTimeoutMs): subscribers at position \
         {subscribers}, the last row ends at {end}; {progress}",
        subscribers = PositionText(*.subscribers)
    )]
    Undrained {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// Time for which the task waited for the subscribers, in milliseconds.
        waited_ms: u128,
        /// Position of the slowest subscriber, if the local driver has its counter.
        subscribers: Option<i64>,
        /// Position after the last message of the task.
        end: i64,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// A value of a row cannot be sent.
    #[error("row {row} of partition {}: {reason}; {progress}", .progress.partition)]
    Row {
        /// Number of the row within the partition.
        row: u64,
        /// Reason.
        reason: String,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// An error that concerns all rows of the task.
    #[error("partition {}: {reason}; {progress}", .progress.partition)]
    Task {
        /// Reason.
        reason: String,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// The driver refused a request, or stopped.
    #[error("channel={channel} streamId={stream_id}: {error}; {progress}")]
    Driver {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// Cause.
        error: Error,
        /// Progress of the task.
        progress: SinkProgress,
    },
    /// The caller interrupted the task.
    #[error("interrupted; {0}")]
    Interrupted(SinkProgress),
}

impl SinkError {
    /// Returns the name of the error's kind: `NO_SUBSCRIBER`, `BACK_PRESSURE`, `RECORD`, `DRIVER_TIMEOUT`, `DRIVER` or
    /// `INTERRUPTED`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSubscriber { .. } => "NO_SUBSCRIBER",
            Self::BackPressure { .. } | Self::Undrained { .. } => "BACK_PRESSURE",
            Self::Row { .. } | Self::Task { .. } => "RECORD",
            Self::Driver { error, .. } if is_driver_gone(error) => "DRIVER_TIMEOUT",
            Self::Driver { .. } => "DRIVER",
            Self::Interrupted(_) => "INTERRUPTED",
        }
    }
}

fn is_driver_gone(error: &Error) -> bool {
    match error {
        Error::DriverTimeout(_) | Error::HeartbeatCounterClosed { .. } => true,
        Error::ClientClosed(cause) | Error::ResourceClosed { cause, .. } => {
            cause.0.as_deref().is_some_and(is_driver_gone)
        }
        _ => false,
    }
}

impl fmt::Display for SinkProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            partition,
            attempt,
            rows,
            published,
            is_prefix,
        } = *self;
        if published == rows {
            return write!(
                f,
                "all {rows} rows of partition {partition} (attempt {attempt}) were published"
            );
        }
        if published == 0 {
            return write!(
                f,
                "no row of partition {partition} (attempt {attempt}) was published, 0..{} were not",
                rows - 1
            );
        }
        if is_prefix {
            return write!(
                f,
                "rows 0..{} of partition {partition} (attempt {attempt}) were published, {published}..{} were not",
                published - 1,
                rows - 1
            );
        }
        write!(
            f,
            "{published} rows of partition {partition} (attempt {attempt}) were published, {} were not",
            rows - published
        )
    }
}

struct PositionText(Option<i64>);

impl fmt::Display for PositionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(position) => position.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}
