//! Treatment of messages and records that cannot become rows.

/// Treatment of malformed messages and records. The names are Spark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The first malformed message or record is an error.
    FailFast,
    /// Malformed messages and records are dropped and counted.
    DropMalformed,
}

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

/// Drops or reports malformed messages according to the mode, and counts them.
#[derive(Debug)]
pub(super) struct MalformedPolicy {
    pub(super) mode: Mode,
    pub(super) recording_id: i64,
    pub(super) stream_id: i32,
    pub(super) session_id: i32,
    /// Number of messages and records that were dropped.
    pub(super) dropped: u64,
    /// Number of messages that are not of the format, and were skipped.
    pub(super) skipped: u64,
}

impl MalformedPolicy {
    /// Drops `count` messages or records, or returns an error for the first of them, according to the mode.
    ///
    /// `position` is the end of the first dropped message, or of the message with the first dropped record.
    #[cold]
    pub(super) fn judge(
        &mut self,
        count: usize,
        position: i64,
        reason: String,
    ) -> Result<(), Malformed> {
        match self.mode {
            Mode::FailFast => Err(self.malformed(position, reason)),
            Mode::DropMalformed => {
                self.dropped += count as u64;
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
