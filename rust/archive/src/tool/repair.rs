//! [`RecordingRepair`]: writes the result of a verification into the catalog.

use super::{ArchiveFiles, BrokenRecording, ToolError, TornFragment, Verification};
use crate::catalog::RecordingState;
use crate::checksum::Checksum;
use crate::index::{INDEX_EXTENSION, cut_index, last_arrival_ms, rename_old};
use crate::recovery::cut_at;
use crate::segments::{SegmentFileName, sidecar_name};
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// Decision about a last fragment that may be torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TornDecision {
    /// Remove the fragment: the recording ends before it.
    Truncate,
    /// Keep the fragment: the recording ends after it.
    Keep,
}

/// The result of a repair of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingRepair {
    /// State after the repair.
    pub state: RecordingState,
    /// Stop position after the repair.
    pub stop_position: i64,
    /// Whether anything was changed.
    pub is_changed: bool,
}

impl Verification {
    /// Returns the stop position of the recording after a decision on its last fragment.
    #[must_use]
    pub fn stop_position_by(&self, decision: TornDecision) -> i64 {
        match (&self.torn, decision) {
            (Some(torn), TornDecision::Keep) if !torn.is_unacknowledged => torn.kept_position,
            _ => self.stop_position,
        }
    }

    /// Returns why the recording is broken after a decision on its last fragment. Returns `None` if it is not broken.
    #[must_use]
    pub fn problem_by(&self, decision: TornDecision) -> Option<String> {
        if let Some(broken) = &self.broken {
            return Some(broken.to_string());
        }
        match (&self.torn, decision) {
            (
                Some(TornFragment {
                    name,
                    mismatch: Some(mismatch),
                    is_unacknowledged: false,
                    ..
                }),
                TornDecision::Keep,
            ) => {
                let (name, mismatch) = (name.clone(), *mismatch);
                Some(BrokenRecording::FrameChecksum { name, mismatch }.to_string())
            }
            _ => None,
        }
    }
}

impl<S: Storage + Clone> ArchiveFiles<S> {
    /// Corrects the catalog according to a verification of the same files.
    ///
    /// A broken recording is marked as `INVALID`. For a sound recording, the stop position of the
    /// files is written. If a sound recording was marked as `INVALID` and has files, it becomes
    /// valid again. With [`TornDecision::Truncate`], a last fragment that may be torn is also removed
    /// from its file. If the index proves whether the recorder acknowledged the fragment, this decides instead. A
    /// deleted recording is not changed.
    ///
    /// A changed entry gets a new checksum of the algorithm `checksum`. If `checksum` is `None`, the algorithm of the
    /// entry's previous checksum is used, and an entry without a checksum does not get one.
    ///
    /// Indexes with names of older releases get their new names.
    ///
    /// # Errors
    /// A migration of the recording's segments is not finished, or the file system returns an
    /// error.
    pub fn repair(
        &mut self,
        verification: &Verification,
        decision: TornDecision,
        checksum: Option<Checksum>,
        now_ms: i64,
    ) -> Result<RecordingRepair, ToolError> {
        let recording_id = verification.recording_id;
        let entry = self.entry(recording_id)?;
        if entry.state == RecordingState::Deleted {
            return Ok(RecordingRepair {
                state: entry.state,
                stop_position: entry.descriptor.stop_position,
                is_changed: false,
            });
        }
        self.check_not_half_migrated(recording_id)?;
        let names = self.storage.names();
        let names = names.map_err(|source| ToolError::storage(".".to_owned(), source))?;
        let files: Vec<_> = SegmentFileName::among(&names).collect();
        rename_old(&self.storage, &files, |id| id == recording_id, usize::MAX);
        let entry = self.entry(recording_id)?;
        let checksum = checksum.or_else(|| entry.checksum_algorithm());
        let before = entry.clone();
        self.catalog.set_checksum(checksum);
        match verification.problem_by(decision) {
            Some(_) => self.catalog.invalidate(recording_id)?,
            None => self.confirm(verification, decision, now_ms)?,
        }
        let entry = self.entry(recording_id)?;
        Ok(RecordingRepair {
            state: entry.state,
            stop_position: entry.descriptor.stop_position,
            is_changed: *entry != before,
        })
    }

    fn confirm(
        &mut self,
        verification: &Verification,
        decision: TornDecision,
        now_ms: i64,
    ) -> Result<(), ToolError> {
        let recording_id = verification.recording_id;
        let descriptor = &self.entry(recording_id)?.descriptor;
        let recorded = descriptor.stop_position;
        let stop_position = verification.stop_position_by(decision);
        let stream = RecordedStream::of_recording(descriptor)?;
        let torn = verification.torn.as_ref();
        if torn.is_some_and(|it| it.is_unacknowledged || decision == TornDecision::Truncate) {
            cut_at(&self.storage, &stream, stop_position)?;
            let base = stream.segment_base(stop_position);
            cut_index(&self.storage, recording_id, base, stop_position).map_err(|source| {
                let name = sidecar_name(recording_id, base, INDEX_EXTENSION);
                ToolError::storage(name, source)
            })?;
        }
        if recorded != stop_position {
            let arrival_ms = last_arrival_ms(&self.storage, &stream, stop_position);
            let stopped_ms = arrival_ms.map_or(now_ms, |arrival_ms| arrival_ms.max(now_ms));
            self.catalog
                .correct_stop(recording_id, stop_position, stopped_ms)?;
        }
        if verification.has_segments {
            self.catalog.revalidate(recording_id)?;
        }
        Ok(())
    }
}
