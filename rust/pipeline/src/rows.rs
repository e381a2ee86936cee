//! Rows of a [`Partition`]: the frames and arrival times of its recording, handed to [`aeron_columns`].

use std::io;

use aeron_archive::reader::{ReadError, RecordingReader};
use aeron_archive::storage::Storage;
use aeron_archive::stream::StreamError;
use aeron_columns::read::{ArrivalTimes, Frame, Frames, Mode, Projection, Recording};
use arrow_array::RecordBatch;

use crate::partition::Partition;
use crate::private::Arrivals;

/// Reads the rows of a partition. For one thread.
pub struct RowReader<S: Storage> {
    rows: aeron_columns::read::RowReader<RecordedFrames<S>, Arrivals<S>>,
}

/// Why the rows of a partition cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// No recording is as the partition says.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Frames or arrival times cannot be read, or no row can show a message.
    #[error(transparent)]
    Rows(#[from] aeron_columns::read::RowError<ReadError>),
}

impl<S: Storage + Clone> RowReader<S> {
    /// A reader of the rows of `partition`, whose archive is `storage`. `channel` is what rows show when the recording does not
    /// name its own. No frame is read yet.
    ///
    /// # Errors
    /// The partition describes no possible range of a recording, or its index cannot be read.
    pub fn new(
        storage: S,
        partition: &Partition,
        projection: Projection,
        mode: Mode,
        channel: Option<&str>,
    ) -> Result<Self, RowError> {
        let stream = partition.stream()?;
        let piece = &partition.recording;
        let open_arrivals = || {
            let hint = partition.index_hint;
            Arrivals::new(storage.clone(), stream, partition.from, hint)
        };
        let arrivals = projection.has_timestamp().then(open_arrivals).transpose();
        let arrivals = arrivals.map_err(|source| aeron_columns::read::RowError::Arrivals {
            recording_id: piece.id,
            source,
        })?;
        let frames = RecordingReader::new(storage, stream, partition.from, partition.end)
            .map_err(aeron_columns::read::RowError::Frames)?;
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

    /// Messages and records that were dropped so far because they are malformed.
    pub fn malformed(&self) -> u64 {
        self.rows.malformed()
    }

    /// The next record batch, which has rows; `None` after the last.
    ///
    /// # Errors
    /// [`RowError`]; what comes after an error is not defined.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, RowError> {
        Ok(self.rows.next_batch()?)
    }
}

impl RowError {
    /// A word for programs: `RECORD`, `DATA_LOSS` for a segment that is gone, otherwise `RECORDING`.
    pub fn code(&self) -> &'static str {
        use aeron_columns::read::RowError as Cause;
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
