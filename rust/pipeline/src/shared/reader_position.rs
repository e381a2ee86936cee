//! [`QueryReader`]: keeps the committed offset of a query in the archive, as a named reader.
//!
//! Retention does not delete data that a named reader has not committed. The checkpoint alone decides where a query
//! goes on; the reader only tells the archive.

use std::collections::HashMap;

use aeron_archive::client::ArchiveClientError;
use aeron_protocol::archive::ArchiveErrorCode;

use super::connection::{ArchiveAccess, ArchiveConnections};
use crate::error::{LiveCode, LiveError};
use crate::offsets::RecordingOffset;

/// A named reader of each recording that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryReader {
    /// Name of the reader.
    pub name: String,
    /// Time without a commit after which the reader expires, in milliseconds; `None` for no such time.
    pub max_age_ms: Option<i64>,
}

impl QueryReader {
    /// Stores the positions that differ from those in `kept`, and notes them there.
    ///
    /// # Errors
    /// The archive does not support named readers, cannot be reached, or refuses a position.
    pub(super) fn commit(
        &self,
        connections: &ArchiveConnections,
        access: &ArchiveAccess,
        positions: &[RecordingOffset],
        kept: &mut HashMap<i64, i64>,
    ) -> Result<(), LiveError> {
        let is_new =
            |taken: &&RecordingOffset| kept.get(&taken.recording_id) != Some(&taken.position);
        let new: Vec<&RecordingOffset> = positions.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        connections.with(access, |connection| {
            let commit = |taken: &&RecordingOffset| {
                let (id, position) = (taken.recording_id, taken.position);
                connection.commit_reader(id, &self.name, position, self.max_age_ms, None)
            };
            // All requests are sent before the first wait.
            let mut commits: Vec<_> = new.iter().map(commit).collect();
            for commit in &mut commits {
                // Sends the request.
                commit
                    .poll()
                    .map(drop)
                    .or_else(|error| ignore_purged(access, error))?;
            }
            for mut commit in commits {
                commit
                    .wait()
                    .map(drop)
                    .or_else(|error| ignore_purged(access, error))?;
            }
            Ok(())
        })?;
        kept.extend(new.iter().map(|taken| (taken.recording_id, taken.position)));
        Ok(())
    }
}

/// Ignores that a recording was purged: the plan of the next batch reports it if its data are needed.
fn ignore_purged(access: &ArchiveAccess, error: ArchiveClientError) -> Result<(), LiveError> {
    if error.archive_code() == Some(ArchiveErrorCode::UnknownRecording) {
        return Ok(());
    }
    let cause = access.error(&error);
    match error {
        ArchiveClientError::NotSupported { .. } => {
            let text = format!("option archive.reader: {cause}");
            Err(LiveError::new(LiveCode::Option, text))
        }
        _ => Err(cause),
    }
}
