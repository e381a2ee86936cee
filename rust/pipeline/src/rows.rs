//! Reads the rows of a [`Partition`]: passes the frames and arrival times of its recording to [`aeron_columns`].

use std::io;

use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_archive::storage::Storage;
use aeron_archive::stream::StreamError;
use aeron_columns::read::{ArrivalTimes, Frame, Frames, Mode, Projection, Recording, RowCounts};
use arrow_array::RecordBatch;

use crate::partition::Partition;
use crate::private::Arrivals;

/// Reads the rows of a partition. Used by one thread.
pub struct PartitionRowReader<S: Storage> {
    rows: aeron_columns::read::RowReader<RecordedFrames<S>, Arrivals<S>>,
}

/// Reason why the rows of a partition cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PartitionReadError {
    /// No recording can have the properties of the partition.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Frames or arrival times cannot be read, or a message does not fit the schema of the rows.
    #[error(transparent)]
    Rows(#[from] aeron_columns::read::RowReadError<ReadError>),
}

impl<S: Storage + Clone> PartitionRowReader<S> {
    /// Creates a reader of the rows of `partition` in the archive `storage`. `channel` is the value of the rows'
    /// channel column if the partition has no channel. With `verify_checksums`, frames with wrong checksums are errors.
    /// Reads no frame yet.
    ///
    /// # Errors
    /// The partition describes an impossible range of a recording, or its index cannot be read.
    pub fn new(
        storage: S,
        partition: &Partition,
        projection: Projection,
        mode: Mode,
        channel: Option<&str>,
        verify_checksums: bool,
    ) -> Result<Self, PartitionReadError> {
        let stream = partition.stream()?;
        let piece = &partition.recording;
        let open_arrivals = || {
            let hint = partition.index_hint;
            Arrivals::new(storage.clone(), stream, partition.from, hint)
        };
        let arrivals = projection.has_timestamp().then(open_arrivals).transpose();
        let arrivals = arrivals.map_err(|source| aeron_columns::read::RowReadError::Arrivals {
            recording_id: piece.id,
            source,
        })?;
        let frames = RecordingReader::new(storage, stream, partition.from, partition.end)
            .map_err(aeron_columns::read::RowReadError::Frames)?;
        let frames = match verify_checksums {
            true => frames.verifying(),
            false => frames,
        };
        let recording = Recording {
            id: piece.id,
            stream_id: piece.stream_id,
            session_id: piece.session_id,
            positions: stream.positions(),
            channel: piece.channel.as_deref().or(channel).map(str::to_owned),
        };
        Ok(Self {
            rows: aeron_columns::read::RowReader::new(
                RecordedFrames(frames),
                partition.to,
                recording,
                arrivals,
                projection,
                mode,
            ),
        })
    }

    /// Returns the numbers of messages, records and values so far that are not in the columns.
    pub fn counts(&self) -> RowCounts {
        self.rows.counts()
    }

    /// Returns the position up to which all complete messages were returned: see
    /// [`RowReader::position`](aeron_columns::read::RowReader::position).
    pub fn position(&self) -> i64 {
        self.rows.position()
    }

    /// Returns the next record batch, which has at least one row; `None` after the last one.
    ///
    /// # Errors
    /// The frames or arrival times cannot be read, or a message does not fit the schema. After an error, do not use the
    /// reader: further results are undefined.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, PartitionReadError> {
        Ok(self.rows.next_batch()?)
    }
}

impl PartitionReadError {
    /// Returns the name of the error's kind: `RECORD` if a message does not fit the schema, `DATA_LOSS` if a segment is
    /// missing, otherwise `RECORDING`.
    pub fn code(&self) -> &'static str {
        use aeron_columns::read::RowReadError as Cause;
        match self {
            Self::Rows(Cause::Malformed(_)) => "RECORD",
            Self::Rows(Cause::Frames(ReadError::Storage { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                "DATA_LOSS"
            }
            _ => "RECORDING",
        }
    }
}

/// The frames of a recording's files.
struct RecordedFrames<S: Storage>(RecordingReader<S>);

impl<S: Storage> Frames for RecordedFrames<S> {
    type Error = ReadError;

    #[inline(always)]
    fn position(&self) -> i64 {
        self.0.position()
    }

    #[inline(always)]
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        let frame = self.0.next_frame()?;
        Ok(frame.map(|frame| Frame {
            position: frame.position(),
            end_position: frame.end_position(),
            is_padding: frame.is_padding(),
            flags: frame.flags(),
            reserved_value: frame.reserved_value(),
            payload: frame.payload(),
        }))
    }
}

impl<S: Storage> ArrivalTimes for Arrivals<S> {
    #[inline]
    fn at(&mut self, position: i64) -> io::Result<Option<i64>> {
        Arrivals::at(self, position)
    }
}
