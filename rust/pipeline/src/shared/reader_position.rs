//! [`QueryReader`]: stores the committed offset of a query in the archive, as the positions of a named reader.
//!
//! Retention does not delete data that a named reader has not committed. After a restart, a query continues at the
//! offset in its checkpoint, not at the positions of the named reader.

use std::collections::HashMap;

use aeron_archive::client::{ArchiveCall, ArchiveClientError};
use aeron_protocol::archive::ArchiveErrorCode;

use super::connection::{ArchiveAccess, ArchiveConnections};
use crate::error::{LiveCode, LiveError};
use crate::offsets::RecordingOffset;

/// Named reader of all recordings that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryReader {
    /// Name of the reader.
    pub name: String,
    /// Time without a commit after which the reader expires, in milliseconds. `None`: the reader never expires.
    pub max_age_ms: Option<i64>,
}

impl QueryReader {
    /// Stores the positions in the archive, except those that are already in `kept`. Adds the stored positions to
    /// `kept`.
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
                let (name, max_age_ms) = (&self.name, self.max_age_ms);
                connection.begin(ArchiveCall::commit_reader(
                    id, name, position, max_age_ms, None,
                ))
            };
            // All requests are sent before the first wait, so that one round trip is enough.
            let commits: Result<Vec<_>, _> = new.iter().map(commit).collect();
            let mut commits = commits.map_err(|error| access.error(&error))?;
            for commit in &mut commits {
                // The first poll sends the request.
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

/// Ignores the error that a recording was purged. If the next batch needs its data, the planner of that batch reports
/// the loss.
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
