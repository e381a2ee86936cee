//! Finds the segments to be copied and the local files to be deleted, and takes the events of the copier.

use std::io;
use std::ops::Range;
use std::time::UNIX_EPOCH;

use super::ObjectCopies;
use crate::catalog::RecordingDescriptor;
use crate::objects::{CopierEvent, RecordingIdentity, SealedSegment, SegmentCopy};
use crate::retention::{RetentionHolder, RetentionOutcome};
use crate::segments::segment_name;
use crate::server::outlets::ArchiveOutlets;
use crate::server::recording::Recordings;
use crate::storage::{Access, Storage, StorageFile};
use crate::store::ArchiveStore;

/// Longest time between two searches for segments to be copied, in nanoseconds.
const SEARCH_INTERVAL_NS: i64 = 1_000_000_000;
/// Maximum number of segments that wait for their copies.
const MAX_WAITING: usize = 64;

impl ObjectCopies {
    /// Processes events of the copier. Returns the work count, and whether a segment was copied.
    pub fn poll_copier<S: Storage + Clone>(
        &mut self,
        store: &ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> (usize, bool) {
        let (mut work, mut has_copied) = (0, false);
        while work < self.settings.copies_per_cycle
            && let Some(event) = self.copier.as_mut().and_then(|copier| copier.poll())
        {
            work += 1;
            has_copied |= self.on_copier_event(event, store, outlets);
        }
        (work, has_copied)
    }

    /// Returns whether a segment was copied.
    fn on_copier_event<S: Storage + Clone>(
        &mut self,
        event: CopierEvent,
        store: &ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> bool {
        let counters = &outlets.counters.objects;
        match event {
            CopierEvent::Known { recording, copies } => {
                self.unknown.remove(recording.recording_id);
                if is_recording(store, &recording) {
                    self.on_known(recording.recording_id, copies, store);
                }
            }
            CopierEvent::Copied { recording, copy } => {
                let id = recording.recording_id;
                let is_waiting = self.waiting.remove(&(id, copy.base));
                if is_waiting && is_recording(store, &recording) {
                    self.copied.entry(id).or_default().insert(copy);
                    counters.copied_segments.fetch_add(1);
                    self.trigger();
                    return true;
                }
            }
            CopierEvent::Missing { recording, base } => {
                let name = segment_name(recording.recording_id, base);
                let found = modified_ns(store.storage(), &name);
                let is_gone = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
                let is_current = is_gone && is_recording(store, &recording);
                let segment = (recording.recording_id, base);
                self.on_missing(segment, is_current);
            }
            CopierEvent::Failed { text } => {
                counters.failures.fetch_add(1);
                outlets.report(&format!("object storage: {text}"));
            }
            CopierEvent::Fetched { bytes } => {
                counters.fetched_bytes.fetch_add(bytes);
            }
        }
        false
    }

    /// Takes copies that the manifest names. Those from before the start of the recording in the catalog have no local
    /// files, so replays may use them at once. The others are compared with the local files first.
    fn on_known<S: Storage + Clone>(
        &mut self,
        id: i64,
        copies: Vec<SegmentCopy>,
        store: &ArchiveStore<S>,
    ) {
        let Ok(first_base) = store.recording(id).map(|it| it.first_segment_base()) else {
            return;
        };
        for copy in copies {
            match copy.base < first_base {
                true => self.copied.entry(id).or_default().insert(copy),
                false => self.unchecked.push_back((id, copy)),
            }
        }
    }

    /// Compares some of the manifests' copies with the local files. A copy is valid if its local file has not changed
    /// since the copy was made, or does not exist. A copy is also valid if it is before the start of the recording in
    /// the catalog. Returns the work count.
    pub fn check_manifests<S: Storage + Clone>(
        &mut self,
        store: &ArchiveStore<S>,
        recordings: &Recordings<S>,
    ) -> usize {
        let count = self.unchecked.len().min(self.settings.copies_per_cycle);
        for _ in 0..count {
            let Some((id, copy)) = self.unchecked.pop_front() else {
                break;
            };
            let Ok(recording) = store.recording(id) else {
                continue;
            };
            let is_in_recording = copy.base.saturating_add(recording.segment_length.into())
                <= recordings.recorded_end(recording);
            if copy.base < recording.first_segment_base()
                || (is_in_recording && is_local_unchanged(store.storage(), id, &copy))
            {
                self.copied.entry(id).or_default().insert(copy);
            }
        }
        count
    }

    /// Returns whether a search is in progress. Begins one if it is time.
    ///
    /// Copies that the manifests name are compared first. Otherwise their segments would be copied again.
    pub fn is_searching(&mut self, now_ns: i64) -> bool {
        if self.next_recording_id.is_none() && now_ns >= self.next_search_ns {
            self.next_search_ns = now_ns.saturating_add(SEARCH_INTERVAL_NS);
            self.next_recording_id = Some(0);
        }
        self.next_recording_id.is_some() && self.unchecked.is_empty()
    }

    /// Returns the next recording of the search; `None` at the end of the search.
    pub fn next_recording<S: Storage + Clone>(
        &mut self,
        store: &ArchiveStore<S>,
    ) -> Option<RecordingDescriptor> {
        let from = self.next_recording_id.take()?;
        let recording = store.recordings_from(from).next()?.clone();
        let next = recording.recording_id.saturating_add(1);
        debug_assert!(
            next > from,
            "a search that examined recording {from} must not examine it again"
        );
        self.next_recording_id = Some(next);
        Some(recording)
    }

    /// Passes the sealed segments of a recording without a copy to the copier. `end` is the end of the recording.
    pub fn request_copies(&mut self, recording: &RecordingDescriptor, end: i64) {
        let id = recording.recording_id;
        let end = recording.segment_base(end);
        let Some(first) = self.copied_base(recording, end) else {
            return;
        };
        let is_copied = |objects: &Self, base| {
            let copied = objects.copied.get(&id);
            copied.is_some_and(|copied| copied.get(base).is_some())
                || objects.waiting.contains(&(id, base))
                || objects.missing.contains(&(id, base))
        };
        for base in (first..end).step_by(recording.segment_length as usize) {
            if self.waiting.len() >= MAX_WAITING {
                return;
            }
            if is_copied(self, base) {
                continue;
            }
            let Some(copier) = &mut self.copier else {
                return;
            };
            let recording = recording.clone();
            if !copier.copy(SealedSegment { recording, base }) {
                return;
            }
            self.waiting.insert((id, base));
        }
    }

    /// Returns the new start of a recording if the files before it are deleted, as far as the settings and the verified
    /// copies allow it; `None` if no file is to be deleted. `end` is the end of the recording. Replays still read the
    /// files from `lowest_replay_position` on.
    pub fn local_start_of<S: Storage + Clone>(
        &mut self,
        store: &ArchiveStore<S>,
        recording: &RecordingDescriptor,
        end: i64,
        lowest_replay_position: Option<i64>,
    ) -> Option<i64> {
        if !self.settings.is_local_deleted {
            return None;
        }
        let (id, length) = (recording.recording_id, i64::from(recording.segment_length));
        let first = recording.first_segment_base();
        // The segment with the last byte stays, so that the recording never looks empty.
        let kept = self.settings.local_bytes.max(1);
        let mut limit = end.saturating_sub(kept).max(first);
        // Named readers hold nothing: they can read the copies.
        if let Some(position) = lowest_replay_position {
            limit = limit.min(position);
        }
        let limit = recording.segment_base(limit);
        let limit = limit.min(first + self.settings.copies_per_cycle as i64 * length);
        let copied = self.copied_base(recording, limit)?;
        let new_start = self.unchanged_up_to(store.storage(), id, first..copied, length);
        if new_start <= first {
            return None;
        }
        debug_assert!(
            new_start < end,
            "recording {id} ends at {end}, so its segments before {new_start} must not all be deleted"
        );
        debug_assert!(
            (new_start - first) % length == 0,
            "recording {id}: the new start {new_start} must be a segment base after {first}"
        );
        Some(new_start)
    }

    /// Reduces a deletion by retention to the segments with copies of their present bytes.
    pub fn limit_to_copied<S: Storage + Clone>(
        &mut self,
        store: &ArchiveStore<S>,
        outcome: &mut RetentionOutcome,
        first: i64,
    ) {
        let id = outcome.recording_id;
        let Ok(recording) = store.recording(id) else {
            return;
        };
        let length = i64::from(recording.segment_length);
        if !self.is_enabled() || outcome.is_nothing() {
            return;
        }
        let bases = first..outcome.new_start_position;
        let end = self.unchanged_up_to(store.storage(), id, bases, length);
        if end < outcome.new_start_position {
            outcome.new_start_position = end.max(outcome.start_position);
            outcome.held_by = RetentionHolder::Copy;
            outcome.reader.clear();
            self.trigger();
        }
    }

    /// Returns the base of the first segment in `bases` without a copy of its present bytes. If all segments have such
    /// copies, returns the end of `bases`. If the returned segment has a copy of other bytes, the copy is forgotten, so
    /// that the segment is copied again.
    fn unchanged_up_to<S: Storage>(
        &mut self,
        storage: &S,
        id: i64,
        bases: Range<i64>,
        length: i64,
    ) -> i64 {
        for base in bases.clone().step_by(length as usize) {
            let copied = self.copied.get(&id);
            let copy = copied.and_then(|copied| copied.get(base));
            if !copy.is_some_and(|copy| is_local_unchanged(storage, id, copy)) {
                if let Some(copied) = self.copied.get_mut(&id) {
                    copied.remove(base);
                }
                return base;
            }
        }
        bases.end
    }
}

fn is_recording<S: Storage + Clone>(store: &ArchiveStore<S>, identity: &RecordingIdentity) -> bool {
    let recording = store.recording(identity.recording_id);
    recording.is_ok_and(|recording| RecordingIdentity::of(recording) == *identity)
}

/// Returns whether the local file is the one that was copied, or does not exist.
fn is_local_unchanged<S: Storage>(storage: &S, recording_id: i64, copy: &SegmentCopy) -> bool {
    let name = segment_name(recording_id, copy.base);
    is_unchanged(modified_ns(storage, &name), copy)
}

/// Returns whether a copy has the bytes of its local file, or the file does not exist. A loss of power may have undone
/// the change of the catalog but not the deletion of the file. Then only the copy is left.
fn is_unchanged(modified_ns: io::Result<Option<i64>>, copy: &SegmentCopy) -> bool {
    match modified_ns {
        Ok(modified_ns) => modified_ns.is_some() && modified_ns == copy.modified_ns,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns the time at which a file was modified, in nanoseconds since the epoch; `None` if an `i64` cannot represent
/// this time.
fn modified_ns<S: Storage>(storage: &S, name: &str) -> io::Result<Option<i64>> {
    let modified = storage.open(name, Access::Read)?.modified()?;
    let since_epoch = modified.duration_since(UNIX_EPOCH).ok();
    Ok(since_epoch.and_then(|time| i64::try_from(time.as_nanos()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_valid_if_its_file_has_the_same_time_or_does_not_exist() {
        let copy = SegmentCopy {
            base: 0,
            from: 0,
            modified_ns: None,
        };
        let copied = SegmentCopy {
            modified_ns: Some(7),
            ..copy
        };
        assert!(is_unchanged(Ok(Some(7)), &copied));
        assert!(!is_unchanged(Ok(Some(8)), &copied));
        assert!(!is_unchanged(Ok(None), &copy));
        assert!(is_unchanged(Err(io::ErrorKind::NotFound.into()), &copied));
        assert!(!is_unchanged(
            Err(io::ErrorKind::PermissionDenied.into()),
            &copied
        ));
    }
}
