//! What becomes of messages and records that no row can show.

/// What becomes of malformed messages and records. The names are Spark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The first one is an error.
    FailFast,
    /// They give no row, and are counted.
    DropMalformed,
}

/// A message that no row can show, or one of its records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "malformed message on stream {stream_id}, session {session_id}, position {position} (recording {recording_id}): {reason}"
)]
pub struct Malformed {
    /// Stream of the message.
    pub stream_id: i32,
    /// Session of the message.
    pub session_id: i32,
    /// Position behind the message, as its row would say.
    pub position: i64,
    /// Recording that it lies in.
    pub recording_id: i64,
    /// What is wrong with it.
    pub reason: String,
}

/// Decides by the mode, and counts.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) mode: Mode,
    pub(super) recording_id: i64,
    pub(super) stream_id: i32,
    pub(super) session_id: i32,
    /// Messages and records that were dropped.
    pub(super) dropped: u64,
}

impl Judge {
    /// Drops `count` messages or records, the first of which is of the message that ends at `position`, or makes an error of it.
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

    /// The error for the message that ends at `position`.
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
