//! [`Deletions`]: deletes the files of truncated, purged or moved segments, one file in each duty cycle. Then compacts
//! the catalog.

use aeron_protocol::archive::{RecordingSignal, RequestIds};

use super::ArchiveError;
use super::outlets::{ArchiveOutlets, SignalPlace};
use super::replay::Replays;
use crate::storage::Storage;
use crate::store::{ArchiveStore, DeleteOperation};

/// Maximum number of catalog entries that a compaction keeps while the archive runs. The conductor writes these entries
/// in one duty cycle. The next start compacts a larger catalog.
const MAX_KEPT_ENTRIES: usize = 10_000;
/// Time from a failed compaction to the next attempt, in nanoseconds.
const COMPACTION_RETRY_NS: i64 = 60_000_000_000;

/// Unfinished deletions. Each deletion only concerns the files of its own recording.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    running: Vec<DeletionRequest>,
    /// Before this time, no compaction is tried; `None` if the last one has not failed.
    next_compaction_ns: Option<i64>,
}

#[derive(Debug)]
struct DeletionRequest {
    /// The request that started the deletion; `None` if no client has requested it.
    requester: Option<RequestIds>,
    operation: DeleteOperation,
}

impl Deletions {
    /// Adds the operation of a request, and replies with the number of its files. The files are
    /// deleted later.
    pub fn begin(
        &mut self,
        requester: RequestIds,
        count: usize,
        operation: DeleteOperation,
        outlets: &mut ArchiveOutlets,
    ) {
        outlets.reply(requester, Ok(count as i64));
        if operation.is_done() {
            announce(requester, operation.recording_id(), outlets);
        } else {
            self.running.push(DeletionRequest {
                requester: Some(requester),
                operation,
            });
        }
    }

    /// Adds an operation that no client has requested.
    pub fn begin_unrequested(&mut self, operation: DeleteOperation) {
        if !operation.is_done() {
            self.running.push(DeletionRequest {
                requester: None,
                operation,
            });
        }
    }

    /// Returns whether no deletion is in progress.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Deletes one file: the next file of the first operation whose recording has no stopping replay. Returns the work
    /// count.
    pub fn do_work<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
        replays: &Replays,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        // Waits until the stopping replays of the recording have ended. Its other replays do not read these files:
        // they begin at or after the start position, and end at the stop position.
        let is_next =
            |deletion: &DeletionRequest| !replays.is_stopping(deletion.operation.recording_id());
        let Some(at) = self.running.iter().position(is_next) else {
            return 0;
        };
        let DeletionRequest {
            requester,
            operation,
        } = &mut self.running[at];
        debug_assert!(
            !operation.is_done(),
            "the finished deletion of recording {} waits for a further step",
            operation.recording_id()
        );
        let error = operation.step(store).err().map(ArchiveError::from);
        if let (Some(error), Some(requester)) = (&error, *requester) {
            outlets.refuse(requester, error.clone());
        }
        if operation.is_done() {
            if let Some(requester) = *requester {
                announce(requester, operation.recording_id(), outlets);
            }
            self.running.remove(at);
        }
        if let Some(error) = error {
            outlets.report(&error.message);
        }
        1
    }

    /// Removes the catalog entries of deleted recordings, if a compaction is due and no file is being deleted. Returns
    /// the work count.
    pub fn compact_catalog<S: Storage + Clone>(
        &mut self,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        let now_ns = outlets.now_ns();
        match store.due_compaction() {
            Some(kept) if kept <= MAX_KEPT_ENTRIES => {}
            _ => return 0,
        }
        if !self.is_empty()
            || self
                .next_compaction_ns
                .is_some_and(|next_ns| now_ns < next_ns)
        {
            return 0;
        }
        let compacted = store.compact(|_| false);
        self.next_compaction_ns = None;
        if let Err(error) = compacted {
            self.next_compaction_ns = Some(now_ns.saturating_add(COMPACTION_RETRY_NS));
            outlets.report(&format!("compaction of the catalog: {error}"));
        }
        1
    }
}

fn announce(requester: RequestIds, recording_id: i64, outlets: &mut ArchiveOutlets) {
    let place = SignalPlace::recording(recording_id);
    outlets.signal(requester, RecordingSignal::Delete, place);
}
