//! Named readers that continue in a linked recording. Until such a reader has a position there, retention keeps the
//! linked recording for it.

use std::collections::BTreeSet;

use super::turn::{RetentionTurn, has_expired};
use crate::catalog::RecordingDescriptor;
use crate::retention::RetentionClock;
use crate::storage::Storage;

impl<S: Storage + Clone> RetentionTurn<'_, S> {
    /// Returns the readers of earlier linked recordings that have no position in this recording yet, each with the
    /// start position of this recording.
    pub(super) fn arriving_readers(
        &self,
        clock: &RetentionClock,
        recording_id: i64,
        end_position: i64,
    ) -> Vec<(&str, i64)> {
        let extensions = self.store.extensions();
        let Ok(recording) = self.store.recording(recording_id) else {
            return Vec::new();
        };
        let own = extensions.readers_of(recording_id);
        let mut names: BTreeSet<&str> = own.map(|reader| reader.name.as_str()).collect();
        let mut arriving = Vec::new();
        // Bytes from the end of the earlier recording to the end of this one, as far as they were recorded.
        let mut later_bytes = end_position - recording.start_position;
        let mut id = recording_id;
        while let Some(earlier) = self.predecessor(id) {
            for reader in extensions.readers_of(earlier.recording_id) {
                let end = earlier.stop_position.saturating_add(later_bytes);
                if names.insert(&reader.name) && !has_expired(clock, reader, end) {
                    arriving.push((reader.name.as_str(), recording.start_position));
                }
            }
            later_bytes += earlier.stop_position - earlier.start_position;
            id = earlier.recording_id;
        }
        arriving
    }

    /// Returns a reader that is at the end of this recording and has no position in the next linked recording yet. If
    /// this recording were deleted, the reader would be deleted too, and the next recording would not be kept for the
    /// reader.
    pub(super) fn leaving_reader(
        &self,
        clock: &RetentionClock,
        recording_id: i64,
        end_position: i64,
    ) -> Option<&str> {
        let extensions = self.store.extensions();
        let mut at_end = extensions
            .readers_of(recording_id)
            .filter(|reader| reader.position >= end_position)
            .peekable();
        at_end.peek()?;
        let is_next = |next: &&RecordingDescriptor| {
            let earlier = self.predecessor(next.recording_id);
            earlier.is_some_and(|earlier| earlier.recording_id == recording_id)
        };
        // A link joins a recording to a later one, so the id is higher.
        let later = extensions.infos_from(recording_id.saturating_add(1));
        let next = later
            .filter_map(|(id, _)| self.store.recording(id).ok())
            .find(is_next)?;
        let next_end = self.recordings.position(next.recording_id);
        let next_end = next_end.unwrap_or(next.stop_position.max(next.start_position));
        let end = end_position.saturating_add(next_end - next.start_position);
        at_end
            .filter(|reader| extensions.reader(next.recording_id, &reader.name).is_none())
            .find(|reader| !has_expired(clock, reader, end))
            .map(|reader| reader.name.as_str())
    }

    /// Returns the stopped recording that a recording continues, if it exists.
    fn predecessor(&self, recording_id: i64) -> Option<&RecordingDescriptor> {
        let link = self.store.extensions().link(recording_id)?;
        let earlier = self.store.recording(link.predecessor_id).ok()?;
        // The id must be lower, because otherwise the links of a damaged file could form a cycle.
        let is_earlier = earlier.recording_id < recording_id && !earlier.is_unfinished();
        is_earlier.then_some(earlier)
    }
}
