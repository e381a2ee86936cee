//! Treatment of messages and records that cannot become rows.

/// Treatment of malformed messages and records. The names are Spark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The first malformed message or record is an error.
    FailFast,
    /// Malformed messages and records are dropped and counted.
    DropMalformed,
    /// A malformed message or record is a row without values, which has its bytes in the column
    /// [`CORRUPT_RECORD`]. Such rows are counted.
    Permissive,
}

/// Name of the column with the bytes of malformed messages and records. The name is Spark's.
pub const CORRUPT_RECORD: &str = "_corrupt_record";

/// A message that cannot become a row, or that contains a record that cannot become a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "malformed message on stream {stream_id}, session {session_id}, position {position} (recording {recording_id}): {reason}"
)]
pub struct Malformed {
    /// Stream id of the message.
    pub stream_id: i32,
    /// Session id of the message.
    pub session_id: i32,
    /// Position after the message, as in its row.
    pub position: i64,
    /// Id of the recording that contains the message.
    pub recording_id: i64,
    /// Reason why the message is malformed.
    pub reason: String,
}

/// Drops, keeps or reports malformed messages according to the mode, and counts what is not in the columns.
#[derive(Debug)]
pub(super) struct MalformedPolicy {
    pub(super) mode: Mode,
    pub(super) recording_id: i64,
    pub(super) stream_id: i32,
    pub(super) session_id: i32,
    pub(super) counts: RowCounts,
}

/// Numbers of messages, records and values that are not in the columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Malformed messages and records. They were dropped, or kept as rows without values.
    pub malformed: u64,
    /// Messages that were skipped because they have another template or schema.
    pub skipped: u64,
    /// Values of enums that the schema does not know. They are null.
    pub unknown: u64,
}

impl MalformedPolicy {
    /// Counts `count` malformed messages or records, or returns an error for the first of them, according to the mode.
    ///
    /// `position` is the end of the first malformed message, or of the message with the first malformed record.
    #[cold]
    pub(super) fn judge(
        &mut self,
        count: usize,
        position: i64,
        reason: String,
    ) -> Result<(), Malformed> {
        match self.mode {
            Mode::FailFast => Err(self.malformed(position, reason)),
            Mode::DropMalformed | Mode::Permissive => {
                self.counts.malformed += count as u64;
                Ok(())
            }
        }
    }

    /// Returns the error for the message that ends at `position`.
    pub(super) fn malformed(&self, position: i64, reason: String) -> Malformed {
        Malformed {
            stream_id: self.stream_id,
            session_id: self.session_id,
            position,
            recording_id: self.recording_id,
            reason,
        }
    }
}
