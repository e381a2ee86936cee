//! [`SinkError`]: why a task ends early, in one line that is complete in itself.

use std::fmt;

use aeron_client::Error;

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Partition of the task.
    pub partition: u32,
    /// Attempt at the partition, from 0 on.
    pub attempt: u32,
    /// Rows that were handed to the task.
    pub rows: u64,
    /// Rows of them that were published.
    pub published: u64,
    /// Whether they are the first ones; rows of several streams are published stream by stream.
    pub is_prefix: bool,
}

/// Why a task ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SinkError {
    /// Nobody subscribes.
    #[error(
        "no subscriber on channel={channel} streamId={stream_id} for {waited_ms} ms (connectTimeoutMs); {} rows of partition {} not sent",
        .progress.rows - .progress.published, .progress.partition
    )]
    NoSubscriber {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// How long was waited for one.
        waited_ms: u128,
        /// How far the task came.
        progress: Progress,
    },
    /// Subscribers are too far behind.
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
        /// How long was waited for room.
        waited_ms: u128,
        /// Position of the slowest subscriber that this machine's driver knows.
        subscribers: Option<i64>,
        /// Position up to which publishers may write.
        limit: i64,
        /// How far the task came.
        progress: Progress,
    },
    /// Subscribers did not read to the end.
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
        /// How long was waited for them.
        waited_ms: u128,
        /// Position of the slowest subscriber that this machine's driver knows.
        subscribers: Option<i64>,
        /// Position after the last message of the task.
        end: i64,
        /// How far the task came.
        progress: Progress,
    },
    /// A row cannot be sent as it is.
    #[error("row {row} of partition {}: {reason}; {progress}", .progress.partition)]
    Row {
        /// Number of the row within the partition.
        row: u64,
        /// What is wrong with it.
        reason: String,
        /// How far the task came.
        progress: Progress,
    },
    /// The rows cannot be sent at all.
    #[error("partition {}: {reason}; {progress}", .progress.partition)]
    Task {
        /// What is wrong.
        reason: String,
        /// How far the task came.
        progress: Progress,
    },
    /// The driver refused, or is gone.
    #[error("channel={channel} streamId={stream_id}: {error}; {progress}")]
    Driver {
        /// Channel of the publication.
        channel: String,
        /// Stream of the publication.
        stream_id: i32,
        /// What it was.
        error: Error,
        /// How far the task came.
        progress: Progress,
    },
    /// The caller wants to end.
    #[error("interrupted; {0}")]
    Interrupted(Progress),
}

impl SinkError {
    /// A word for programs: `NO_SUBSCRIBER`, `BACK_PRESSURE`, `RECORD`, `DRIVER_TIMEOUT`, `DRIVER` or `INTERRUPTED`.
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

impl fmt::Display for Progress {
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
