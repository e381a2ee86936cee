//! [`SharedPartitionReader`]: reads the rows of a [`SharedPartition`] from segment files or from a replay.

use std::path::Path;
use std::sync::Arc;

use aeron_archive::reader::ReadError;
use aeron_columns::read::{Mode, Projection, Recording, RowCounts, RowReadError, RowReader};
use aeron_objects::reading::CopiedDirectory;
use arrow_array::RecordBatch;

use super::connection::{ArchiveAccess, ArchiveConnections};
use super::files::archive_directory;
use super::partition::SharedPartition;
use super::replay::ReplayedFrames;
use crate::error::{LiveCode, LiveError};
use crate::private::Arrivals;
use crate::rows::{PartitionReadError, PartitionRowReader};

/// Reads the rows of a partition. Used by one thread.
pub struct SharedPartitionReader {
    rows: Rows,
    /// Description of the range for error texts.
    range: String,
}

enum Rows {
    Files(PartitionRowReader<CopiedDirectory>),
    Replay(RowReader<ReplayedFrames, Arrivals<CopiedDirectory>>),
}

impl SharedPartitionReader {
    /// Creates a reader. If `directory` is the archive's directory, the reader reads its files. Otherwise the reader
    /// starts a replay.
    ///
    /// A replay has no arrival times. Rows must not depend on the worker that reads them. Therefore, if there is a
    /// `directory` and the projection has the arrival time, this worker must see the directory. Without a `directory`,
    /// arrival times are null. With `verify_checksums`, frames in files with wrong checksums are errors.
    ///
    /// # Errors
    /// The archive or its files cannot be read, or the directory is necessary and is not the archive's directory.
    pub fn new(
        connections: &ArchiveConnections,
        access: &Arc<ArchiveAccess>,
        directory: Option<&Path>,
        partition: &SharedPartition,
        projection: Projection,
        mode: Mode,
        verify_checksums: bool,
    ) -> Result<Self, LiveError> {
        let range = format!(
            "recording {} from {} to {}",
            partition.recording.id, partition.from, partition.to
        );
        let files = directory.map(|path| find(path, connections, access, partition));
        let rows = match files.transpose() {
            Ok(Some(directory)) => {
                let path = directory.path().to_string_lossy().into_owned();
                let partition = partition.in_directory(&path);
                let reader = PartitionRowReader::new(
                    directory,
                    &partition,
                    projection,
                    mode,
                    None,
                    verify_checksums,
                );
                Rows::Files(reader.map_err(|error| of_files(&range, &error))?)
            }
            Err(reason) if projection.has_timestamp() => {
                let text = format!(
                    "column timestamp needs the archive's directory on each executor, and this one does not see it: {reason}; read without the column timestamp, or without archive.dir"
                );
                return Err(LiveError::new(LiveCode::Option, text));
            }
            Ok(None) | Err(_) => {
                Rows::Replay(replay(connections, access, partition, projection, mode)?)
            }
        };
        Ok(Self { rows, range })
    }

    /// Whether the reader reads a replay.
    pub fn is_replay(&self) -> bool {
        matches!(self.rows, Rows::Replay(_))
    }

    /// Returns the numbers of messages, records and values so far that are not in the columns.
    pub fn counts(&self) -> RowCounts {
        match &self.rows {
            Rows::Files(rows) => rows.counts(),
            Rows::Replay(rows) => rows.counts(),
        }
    }

    /// Returns the next record batch, which has at least one row; `None` after the last one.
    ///
    /// # Errors
    /// The frames or arrival times cannot be read, or a message does not fit the schema. After an error, further
    /// results are undefined.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, LiveError> {
        let range = &self.range;
        match &mut self.rows {
            Rows::Files(rows) => rows.next_batch().map_err(|error| of_files(range, &error)),
            Rows::Replay(rows) => rows.next_batch().map_err(of_replay),
        }
    }
}

/// Returns the archive's directory if this process sees it. If `path` is not the directory of the partition's archive,
/// asks the archive for its id and compares again, because an archive may have another id after a restart.
fn find(
    path: &Path,
    connections: &ArchiveConnections,
    access: &Arc<ArchiveAccess>,
    partition: &SharedPartition,
) -> Result<CopiedDirectory, String> {
    archive_directory(path, partition.archive_id).or_else(|reason| {
        let id = connections.with(access, |connection| Ok(connection.archive_id()));
        archive_directory(path, id.map_err(|_| reason)?)
    })
}

fn replay(
    connections: &ArchiveConnections,
    access: &Arc<ArchiveAccess>,
    partition: &SharedPartition,
    projection: Projection,
    mode: Mode,
) -> Result<RowReader<ReplayedFrames, Arrivals<CopiedDirectory>>, LiveError> {
    let stream = partition
        .stream()
        .map_err(|error| LiveError::new(LiveCode::Archive, error.to_string()))?;
    let piece = &partition.recording;
    let recording = Recording {
        id: piece.id,
        stream_id: piece.stream_id,
        session_id: piece.session_id,
        positions: stream.positions(),
        channel: piece.channel.clone(),
    };
    let frames = ReplayedFrames::start(connections, access, partition)?;
    let to = partition.to;
    Ok(RowReader::new(
        frames, to, recording, None, projection, mode,
    ))
}

/// Returns the error for a range that cannot be read from files. If a segment is missing, it was purged after the batch
/// was planned.
fn of_files(range: &str, error: &PartitionReadError) -> LiveError {
    let code = match error.code() {
        "RECORD" => LiveCode::Record,
        "DATA_LOSS" => LiveCode::DataLoss,
        _ => LiveCode::Archive,
    };
    let text = match code {
        LiveCode::DataLoss => format!("{range} cannot be read any more: {error}"),
        _ => error.to_string(),
    };
    LiveError::new(code, text)
}

fn of_replay(error: RowReadError<LiveError>) -> LiveError {
    match error {
        RowReadError::Frames(error) => error,
        RowReadError::Malformed(error) => LiveError::new(LiveCode::Record, error.to_string()),
        error => LiveError::new(LiveCode::Archive, error.to_string()),
    }
}

impl From<ReadError> for LiveError {
    fn from(error: ReadError) -> Self {
        let is_missing = matches!(
            &error,
            ReadError::Storage { source, .. } if source.kind() == std::io::ErrorKind::NotFound
        );
        let code = match is_missing {
            true => LiveCode::DataLoss,
            false => LiveCode::Archive,
        };
        Self::new(code, error.to_string())
    }
}
