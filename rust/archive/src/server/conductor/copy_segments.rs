//! Copies sealed segments to object storage, and deletes local files with verified copies.

use super::ArchiveConductor;
use crate::catalog::RecordingDescriptor;
use crate::pause::{self, Point};
use crate::storage::Storage;

/// The catalog no longer has the segments, and none of their files is deleted yet.
const START_MOVED: Point = Point::new("objects-start-moved");

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Processes events of the copier, and continues the search for segments to be copied and for files to be deleted.
    /// Returns the work count.
    pub(super) fn copy_segments(&mut self) -> usize {
        let (polled, has_copied) = self.objects.poll_copier(&self.store, &mut self.outlets);
        if has_copied {
            // Policies may have waited for the copy.
            self.retention.trigger();
        }
        if !self.objects.pass_truncations() {
            return polled;
        }
        let work = polled + self.objects.check_manifests(&self.store, &self.recordings);
        let now_ns = self.now_ns();
        if !self.objects.is_searching(now_ns) {
            return work;
        }
        if let Some(recording) = self.objects.next_recording(&self.store) {
            let end = self.recordings.recorded_end(&recording);
            self.objects.request_copies(&recording, end);
            self.delete_copied(&recording, end);
        }
        work + 1
    }

    /// Deletes files with a verified copy.
    fn delete_copied(&mut self, recording: &RecordingDescriptor, end: i64) {
        let id = recording.recording_id;
        if self.store.is_changing(id) || self.recordings.is_starting(id) {
            return;
        }
        let recorded = self.recordings.position(id);
        let activity = self.replays.local_activity(recording, recorded);
        let lowest = activity.lowest_replay_position;
        let new_start = self
            .objects
            .local_start_of(&self.store, recording, end, lowest);
        let Some(new_start) = new_start else {
            return;
        };
        debug_assert!(
            lowest.is_none_or(|position| position >= new_start),
            "recording {id}: segments before {new_start} are deleted while a replay reads them"
        );
        match self.store.remove_copied(id, new_start, &activity) {
            Ok(operation) => {
                pause::at(START_MOVED);
                // Before the first file is deleted: a replay that finds no file compares its position with this start.
                self.replays.set_local_start(id, new_start);
                let freed = new_start - recording.first_segment_base();
                self.outlets.counters.objects.freed_bytes.fetch_add(freed);
                self.deletions.begin_unrequested(operation);
                self.objects.trigger();
            }
            Err(error) => self
                .outlets
                .report(&format!("copied segments of recording {id}: {error}")),
        }
    }
}
