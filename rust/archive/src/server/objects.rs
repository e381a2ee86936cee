//! Copies of sealed segments in object storage: which segments are copied, and which local files are deleted.
//!
//! A segment is copied if its recorder writes no more into it, and if it is complete: the last segment of a recording
//! is not copied, because an extension may continue it. A local file is deleted only if the settings say so, its copy
//! was read back, and the file has not changed since.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::time::UNIX_EPOCH;

use aeron_protocol::archive::NULL_VALUE;

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::unknown_copies::UnknownCopies;
use crate::catalog::RecordingDescriptor;
use crate::objects::{
    CopiedRange, CopiedSegments, CopierEvent, RecordingIdentity, SealedSegment, SegmentCopier,
    SegmentCopy,
};
use crate::pause::{self, Point};
use crate::retention::{RetentionHolder, RetentionOutcome};
use crate::segments::segment_name;
use crate::storage::{Access, Storage, StorageFile};

/// Longest time between two searches for segments to be copied, in nanoseconds.
const SEARCH_INTERVAL_NS: i64 = 1_000_000_000;
/// Maximum number of segments that wait for their copies.
const MAX_WAITING: usize = 64;
/// The catalog no longer has the segments, and none of their files is deleted yet.
const START_MOVED: Point = Point::new("objects-start-moved");

/// Settings of the local files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectSettings {
    /// Whether files with a verified copy are deleted.
    pub is_local_deleted: bool,
    /// Number of bytes at the end of each recording that stay on the disk.
    pub local_bytes: i64,
    /// Maximum number of events, of files that are compared with their copies, and of files in one deletion, in one
    /// duty cycle.
    pub copies_per_cycle: usize,
}

/// State of the copies in object storage. The conductor owns it.
pub(super) struct ObjectCopies {
    /// `None` without object storage.
    copier: Option<Box<dyn SegmentCopier>>,
    settings: ObjectSettings,
    copied: BTreeMap<i64, CopiedSegments>,
    /// Copies that are in the manifest, and have not been compared with the local files since the archive started.
    unchecked: VecDeque<(i64, SegmentCopy)>,
    /// Recordings of which the copier has not reported the copies yet.
    pub(super) unknown: UnknownCopies,
    /// Segments that were passed to the copier, and of which no event has come.
    waiting: BTreeSet<(i64, i64)>,
    /// Segments without a file.
    missing: BTreeSet<(i64, i64)>,
    /// Truncations that the copier has not accepted yet.
    truncations: VecDeque<(RecordingIdentity, i64)>,
    /// Recording at which the search continues; `None` between two searches.
    next_recording_id: Option<i64>,
    next_search_ns: i64,
}

impl ObjectCopies {
    /// Creates the state at the start of an archive. `unknown` are the recordings of which the copier will report the
    /// copies.
    pub fn new(
        copier: Option<Box<dyn SegmentCopier>>,
        settings: ObjectSettings,
        unknown: UnknownCopies,
    ) -> Self {
        Self {
            copier,
            settings,
            copied: BTreeMap::new(),
            unchecked: VecDeque::new(),
            unknown,
            waiting: BTreeSet::new(),
            missing: BTreeSet::new(),
            truncations: VecDeque::new(),
            next_recording_id: Some(0),
            next_search_ns: i64::MIN,
        }
    }

    /// Returns whether segments are copied.
    pub fn is_enabled(&self) -> bool {
        self.copier.is_some()
    }

    /// Begins a search in the next duty cycle, for example because segments were sealed.
    pub fn trigger(&mut self) {
        self.next_search_ns = i64::MIN;
    }

    /// Ends the copier.
    pub fn close(&mut self) {
        if let Some(mut copier) = self.copier.take() {
            copier.close();
        }
    }

    /// Returns the parts of a recording that are on the disk and in object storage; `None` if it has no copies.
    pub fn range(&self, recording: &RecordingDescriptor) -> Option<CopiedRange> {
        self.copied.get(&recording.recording_id)?.range(recording)
    }

    /// Returns the recording with the start position of its copies, if a replay from `position` begins in the copies.
    pub fn extended(
        &self,
        recording: &RecordingDescriptor,
        position: i64,
    ) -> Option<RecordingDescriptor> {
        if position == NULL_VALUE || position >= recording.start_position {
            return None;
        }
        self.whole(recording)
    }

    /// Returns the recording with the start position of its copies, if the copies begin before the local files.
    pub fn whole(&self, recording: &RecordingDescriptor) -> Option<RecordingDescriptor> {
        let start_position = self.range(recording)?.start_position;
        (start_position < recording.start_position).then(|| RecordingDescriptor {
            start_position,
            ..recording.clone()
        })
    }

    /// Returns the base of the first segment without a copy, up to `end_base`; `None` without object storage.
    pub fn copied_base(&self, recording: &RecordingDescriptor, end_base: i64) -> Option<i64> {
        self.copier.as_ref()?;
        let first = recording.first_segment_base();
        let copied = self.copied.get(&recording.recording_id);
        Some(copied.map_or(first, |copied| {
            copied.first_missing(first, end_base, recording.segment_length.into())
        }))
    }

    /// Forgets the copies of a recording that reach beyond `position`, because the recording was truncated there.
    pub fn forget(&mut self, recording: &RecordingDescriptor, position: i64) {
        let id = recording.recording_id;
        let length = i64::from(recording.segment_length);
        if let Some(copied) = self.copied.get_mut(&id) {
            copied.truncate(position, length);
        }
        self.unchecked.retain(|(recording_id, copy)| {
            *recording_id != id || copy.base.saturating_add(length) <= position
        });
        self.waiting.retain(|(recording_id, _)| *recording_id != id);
        self.missing.retain(|(recording_id, _)| *recording_id != id);
        if self.is_enabled() {
            let identity = RecordingIdentity::of(recording);
            self.truncations.push_back((identity, position));
        }
    }

    /// Checks that a migration would not give a recording two versions of the same positions: one in the moved
    /// segments, and one in object storage.
    ///
    /// # Errors
    /// The segments would move before the start of the destination. There, the destination has copies in object
    /// storage, or its copies are not known yet.
    pub fn check_migration(
        &self,
        source: &RecordingDescriptor,
        destination: &RecordingDescriptor,
    ) -> Result<(), ArchiveError> {
        if source.stop_position != destination.start_position {
            return Ok(());
        }
        let (id, start) = (destination.recording_id, destination.start_position);
        self.check_no_copies_before_start(destination, || {
            format!("no segments can be migrated before its start position {start}: migrate those of recording {id} to the end of the other one")
        })
    }

    /// Checks that an empty recording may be replaced by the replication of another recording.
    ///
    /// # Errors
    /// The recording has copies in object storage, which would be lost, or its copies are not known yet.
    pub fn check_replacement(&self, replaced: &RecordingDescriptor) -> Result<(), ArchiveError> {
        self.check_no_copies_before_start(replaced, || {
            "it cannot be replaced by another one: replicate to a new recording".to_owned()
        })
    }

    fn check_no_copies_before_start(
        &self,
        recording: &RecordingDescriptor,
        consequence: impl FnOnce() -> String,
    ) -> Result<(), ArchiveError> {
        let id = recording.recording_id;
        self.unknown.check(id)?;
        let first_copy = self.copied.get(&id).and_then(|copied| copied.iter().next());
        match first_copy.filter(|copy| copy.base < recording.first_segment_base()) {
            None => Ok(()),
            Some(copy) => Err(ArchiveError::generic(format!(
                "recording {id} has segments from position {} on in object storage, so {}",
                copy.from,
                consequence()
            ))),
        }
    }

    /// Forgets the copies that are wrong after a migration. The arguments are the recordings as they were before it.
    pub fn on_migrated(&mut self, source: &RecordingDescriptor, destination: &RecordingDescriptor) {
        // The source is now truncated to its start.
        self.forget(source, source.start_position);
        // Copies of the destination stay valid, but copies in progress begin again.
        let is_before = source.stop_position == destination.start_position;
        let valid_end = match is_before {
            true => i64::MAX,
            false => destination.stop_position,
        };
        self.forget(destination, valid_end);
    }

    /// Notes that a segment has no file. `is_current` says whether this is so for the present recording. A late event,
    /// after a truncation, a migration or a replacement, has no effect: it concerns a file of the earlier recording.
    fn on_missing(&mut self, segment: (i64, i64), is_current: bool) {
        let is_waiting = self.waiting.remove(&segment);
        if is_waiting && is_current {
            debug_assert!(
                self.copied
                    .get(&segment.0)
                    .is_none_or(|copied| copied.get(segment.1).is_none()),
                "the segment of recording {} at {} was requested although it has a copy",
                segment.0,
                segment.1
            );
            self.missing.insert(segment);
        }
    }

    /// Passes truncations to the copier. Returns whether the copier has accepted all of them. Before that, no copy may
    /// begin.
    fn pass_truncations(&mut self) -> bool {
        let Some(copier) = &mut self.copier else {
            return false;
        };
        while let Some((recording, position)) = self.truncations.front() {
            if !copier.forget(*recording, *position) {
                return false;
            }
            self.truncations.pop_front();
        }
        true
    }
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Processes events of the copier, and continues the search for segments to be copied and for files to be deleted.
    /// Returns the work count.
    pub(super) fn copy_segments(&mut self) -> usize {
        let polled = self.poll_copier();
        if !self.objects.pass_truncations() {
            return polled;
        }
        let work = polled + self.check_known();
        let objects = &mut self.objects;
        if objects.next_recording_id.is_none() && self.now_ns >= objects.next_search_ns {
            objects.next_search_ns = self.now_ns.saturating_add(SEARCH_INTERVAL_NS);
            objects.next_recording_id = Some(0);
        }
        let Some(from) = objects.next_recording_id else {
            return work;
        };
        // Copies that the manifests name are compared first. Otherwise their segments would be copied again.
        if !objects.unchecked.is_empty() {
            return work;
        }
        let recording = self.store.recordings_from(from).next().cloned();
        objects.next_recording_id = recording
            .as_ref()
            .map(|recording| recording.recording_id.saturating_add(1));
        debug_assert!(
            objects.next_recording_id.is_none_or(|next| next > from),
            "a search that examined recording {from} must not examine it again"
        );
        if let Some(recording) = recording {
            self.request_copies(&recording);
            self.delete_copied(&recording);
        }
        work + 1
    }

    fn poll_copier(&mut self) -> usize {
        let mut work = 0;
        while work < self.objects.settings.copies_per_cycle
            && let Some(event) = self
                .objects
                .copier
                .as_mut()
                .and_then(|copier| copier.poll())
        {
            work += 1;
            self.on_copier_event(event);
        }
        work
    }

    fn on_copier_event(&mut self, event: CopierEvent) {
        match event {
            CopierEvent::Known { recording, copies } => {
                self.objects.unknown.remove(recording.recording_id);
                if self.is_recording(&recording) {
                    self.on_known(recording.recording_id, copies);
                }
            }
            CopierEvent::Copied { recording, copy } => {
                let id = recording.recording_id;
                let is_waiting = self.objects.waiting.remove(&(id, copy.base));
                if is_waiting && self.is_recording(&recording) {
                    self.objects.copied.entry(id).or_default().insert(copy);
                    let counters = &self.counters.objects;
                    counters.copied_segments.fetch_add(1);
                    self.objects.trigger();
                    // Policies may have waited for the copy.
                    self.retention.trigger();
                }
            }
            CopierEvent::Missing { recording, base } => {
                let name = segment_name(recording.recording_id, base);
                let found = modified_ns(self.store.storage(), &name);
                let is_gone = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
                let is_current = is_gone && self.is_recording(&recording);
                let segment = (recording.recording_id, base);
                self.objects.on_missing(segment, is_current);
            }
            CopierEvent::Failed { text } => {
                self.counters.objects.failures.fetch_add(1);
                self.report(&format!("object storage: {text}"));
            }
            CopierEvent::Fetched { bytes } => {
                self.counters.objects.fetched_bytes.fetch_add(bytes);
            }
        }
    }

    fn is_recording(&self, identity: &RecordingIdentity) -> bool {
        let recording = self.store.recording(identity.recording_id);
        recording.is_ok_and(|recording| RecordingIdentity::of(recording) == *identity)
    }

    /// Takes copies that the manifest names. Those from before the start of the recording in the catalog have no local
    /// files, so replays may use them at once. The others are compared with the local files first.
    fn on_known(&mut self, id: i64, copies: Vec<SegmentCopy>) {
        let Ok(first_base) = self.store.recording(id).map(|it| it.first_segment_base()) else {
            return;
        };
        for copy in copies {
            match copy.base < first_base {
                true => self.objects.copied.entry(id).or_default().insert(copy),
                false => self.objects.unchecked.push_back((id, copy)),
            }
        }
    }

    /// Compares some of the manifests' copies with the local files. A copy is valid if its local file has not changed
    /// since the copy was made, or does not exist. A copy is also valid if it is before the start of the recording in
    /// the catalog.
    fn check_known(&mut self) -> usize {
        let most = self.objects.settings.copies_per_cycle;
        let count = self.objects.unchecked.len().min(most);
        for _ in 0..count {
            let Some((id, copy)) = self.objects.unchecked.pop_front() else {
                break;
            };
            let Ok(recording) = self.store.recording(id) else {
                continue;
            };
            let is_in_recording = copy.base.saturating_add(recording.segment_length.into())
                <= self.recorded_end(recording);
            if copy.base < recording.first_segment_base()
                || (is_in_recording && self.is_unchanged(id, &copy))
            {
                self.objects.copied.entry(id).or_default().insert(copy);
            }
        }
        count
    }

    /// Returns whether the local file is the one that was copied, or does not exist.
    fn is_unchanged(&self, recording_id: i64, copy: &SegmentCopy) -> bool {
        let name = segment_name(recording_id, copy.base);
        is_unchanged(modified_ns(self.store.storage(), &name), copy)
    }

    fn request_copies(&mut self, recording: &RecordingDescriptor) {
        let id = recording.recording_id;
        let end = recording.segment_base(self.recorded_end(recording));
        let Some(first) = self.objects.copied_base(recording, end) else {
            return;
        };
        let objects = &mut self.objects;
        let is_copied = |objects: &ObjectCopies, base| {
            let copied = objects.copied.get(&id);
            copied.is_some_and(|copied| copied.get(base).is_some())
                || objects.waiting.contains(&(id, base))
                || objects.missing.contains(&(id, base))
        };
        for base in (first..end).step_by(recording.segment_length as usize) {
            if objects.waiting.len() >= MAX_WAITING {
                return;
            }
            if is_copied(objects, base) {
                continue;
            }
            let Some(copier) = &mut objects.copier else {
                return;
            };
            let recording = recording.clone();
            if !copier.copy(SealedSegment { recording, base }) {
                return;
            }
            objects.waiting.insert((id, base));
        }
    }

    /// Deletes files with a verified copy, as far as the settings allow it.
    fn delete_copied(&mut self, recording: &RecordingDescriptor) {
        let id = recording.recording_id;
        let length = i64::from(recording.segment_length);
        if !self.objects.settings.is_local_deleted
            || self.store.is_changing(id)
            || self.recordings.is_starting(id)
        {
            return;
        }
        let first = recording.first_segment_base();
        // The segment with the last byte stays, so that the recording never looks empty.
        let kept = self.objects.settings.local_bytes.max(1);
        let end = self.recorded_end(recording);
        let mut limit = end.saturating_sub(kept).max(first);
        // Named readers hold nothing: they can read the copies.
        if let Some(position) = self.local_activity(recording).lowest_replay_position {
            limit = limit.min(position);
        }
        let limit = recording.segment_base(limit);
        let limit = limit.min(first + self.objects.settings.copies_per_cycle as i64 * length);
        let Some(copied) = self.objects.copied_base(recording, limit) else {
            return;
        };
        let new_start = self.unchanged_up_to(id, first..copied, length);
        if new_start > first {
            debug_assert!(
                new_start < end,
                "recording {id} ends at {end}, so its segments before {new_start} must not all be deleted"
            );
            debug_assert!(
                (new_start - first) % length == 0,
                "recording {id}: the new start {new_start} must be a segment base after {first}"
            );
            self.delete_before(recording, first, new_start);
        }
    }

    /// Reduces a deletion by retention to the segments with copies of their present bytes.
    pub(super) fn limit_to_copied(&mut self, outcome: &mut RetentionOutcome, first: i64) {
        let id = outcome.recording_id;
        let Ok(recording) = self.store.recording(id) else {
            return;
        };
        let length = i64::from(recording.segment_length);
        if !self.objects.is_enabled() || outcome.is_nothing() {
            return;
        }
        let end = self.unchanged_up_to(id, first..outcome.new_start_position, length);
        if end < outcome.new_start_position {
            outcome.new_start_position = end.max(outcome.start_position);
            outcome.held_by = RetentionHolder::Copy;
            outcome.reader.clear();
            self.objects.trigger();
        }
    }

    /// Returns the base of the first segment in `bases` without a copy of its present bytes. If all segments have such
    /// copies, returns the end of `bases`. If the returned segment has a copy of other bytes, the copy is forgotten, so
    /// that the segment is copied again.
    fn unchanged_up_to(&mut self, id: i64, bases: Range<i64>, length: i64) -> i64 {
        for base in bases.clone().step_by(length as usize) {
            let copied = self.objects.copied.get(&id);
            let copy = copied.and_then(|copied| copied.get(base));
            if !copy.is_some_and(|copy| self.is_unchanged(id, copy)) {
                if let Some(copied) = self.objects.copied.get_mut(&id) {
                    copied.remove(base);
                }
                return base;
            }
        }
        bases.end
    }

    fn delete_before(&mut self, recording: &RecordingDescriptor, first: i64, new_start: i64) {
        let id = recording.recording_id;
        let activity = self.local_activity(recording);
        debug_assert!(
            activity
                .lowest_replay_position
                .is_none_or(|position| position >= new_start),
            "recording {id}: segments before {new_start} are deleted while a replay reads them"
        );
        match self.store.remove_copied(id, new_start, &activity) {
            Ok(operation) => {
                pause::at(START_MOVED);
                // Before the first file is deleted: a replay that finds no file compares its position with this start.
                self.replays.set_local_start(id, new_start);
                self.counters
                    .objects
                    .freed_bytes
                    .fetch_add(new_start - first);
                self.deletions.begin_unrequested(operation);
                self.objects.trigger();
            }
            Err(error) => self.report(&format!("copied segments of recording {id}: {error}")),
        }
    }

    /// Returns the recorded position of an active recording, otherwise the stop position.
    fn recorded_end(&self, recording: &RecordingDescriptor) -> i64 {
        match recording.is_unfinished() {
            // Without a recorded position, the recorder has not begun yet or has just ended.
            true => {
                let position = self.recordings.position(recording.recording_id);
                position.unwrap_or(recording.start_position)
            }
            false => recording.stop_position,
        }
    }
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
    use std::sync::{Arc, Mutex};

    use super::*;

    const LENGTH: i64 = 64 * 1024;

    /// Accepts all requests, and notes the truncations.
    #[derive(Clone, Default)]
    struct Copier(Arc<Mutex<Vec<(i64, i64)>>>);

    impl SegmentCopier for Copier {
        fn copy(&mut self, _: SealedSegment) -> bool {
            true
        }

        fn forget(&mut self, recording: RecordingIdentity, position: i64) -> bool {
            let mut forgotten = self.0.lock().unwrap();
            forgotten.push((recording.recording_id, position));
            true
        }

        fn poll(&mut self) -> Option<CopierEvent> {
            None
        }

        fn close(&mut self) {}
    }

    fn recording(
        recording_id: i64,
        start_position: i64,
        stop_position: i64,
    ) -> RecordingDescriptor {
        RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id,
            start_timestamp_ms: 1,
            stop_timestamp_ms: 2,
            start_position,
            stop_position,
            initial_term_id: 0,
            segment_length: LENGTH as i32,
            term_length: LENGTH as i32,
            mtu_length: 1_408,
            session_id: 0,
            stream_id: 1,
            stripped_channel: "aeron:ipc".into(),
            original_channel: "aeron:ipc".into(),
            source_identity: "aeron:ipc".into(),
        }
    }

    fn copy(number: i64) -> SegmentCopy {
        SegmentCopy {
            base: number * LENGTH,
            from: number * LENGTH,
            modified_ns: None,
        }
    }

    /// Recording 1 has copies of four segments, recording 2 has copies of eight segments. Each recording has a waiting
    /// and a missing segment.
    fn copies(copier: &Copier) -> ObjectCopies {
        let settings = ObjectSettings {
            is_local_deleted: false,
            local_bytes: 0,
            copies_per_cycle: 16,
        };
        let mut objects = ObjectCopies::new(
            Some(Box::new(copier.clone())),
            settings,
            UnknownCopies::default(),
        );
        for (id, count) in [(1, 4), (2, 8)] {
            let copied = objects.copied.entry(id).or_default();
            (0..count).for_each(|number| copied.insert(copy(number)));
            objects.waiting.insert((id, count * LENGTH));
            objects.missing.insert((id, count * LENGTH));
        }
        objects
    }

    fn numbers(objects: &ObjectCopies, id: i64) -> Vec<i64> {
        let copied = objects.copied[&id].iter();
        copied.map(|copy| copy.base / LENGTH).collect()
    }

    #[test]
    fn a_migration_forgets_the_copies_of_the_moved_positions() {
        let copier = Copier::default();
        // Segments 2 and 3 of recording 1 move before the start of recording 2.
        let mut objects = copies(&copier);
        let first = recording(1, 2 * LENGTH, 4 * LENGTH);
        let second = recording(2, 4 * LENGTH, 9 * LENGTH);
        (0..4).for_each(|number| objects.copied.get_mut(&2).unwrap().remove(number * LENGTH));
        assert!(objects.check_migration(&first, &second).is_ok());
        objects.on_migrated(&first, &second);
        assert_eq!(numbers(&objects, 1), [0, 1]);
        assert_eq!(numbers(&objects, 2), [4, 5, 6, 7]);
        assert!(objects.waiting.is_empty() && objects.missing.is_empty());
        assert!(objects.pass_truncations());
        let forgotten = std::mem::take(&mut *copier.0.lock().unwrap());
        assert_eq!(forgotten, [(1, 2 * LENGTH), (2, i64::MAX)]);
        // Segments of recording 2 move to the end of recording 1. The copies of recording 1 stay valid.
        let mut objects = copies(&copier);
        let (source, destination) = (second, recording(1, 0, 4 * LENGTH));
        assert!(objects.check_migration(&source, &destination).is_ok());
        objects.on_migrated(&source, &destination);
        assert_eq!(numbers(&objects, 1), [0, 1, 2, 3]);
        assert_eq!(numbers(&objects, 2), [0, 1, 2, 3]);
    }

    #[test]
    fn segments_are_not_moved_to_positions_that_object_storage_has() {
        let objects = copies(&Copier::default());
        let source = recording(1, 2 * LENGTH, 4 * LENGTH);
        let error = objects
            .check_migration(&source, &recording(2, 4 * LENGTH, 9 * LENGTH))
            .unwrap_err();
        assert_eq!(
            error.message,
            "recording 2 has segments from position 0 on in object storage, so no segments can be migrated before its start position 262144: migrate those of recording 2 to the end of the other one"
        );
    }

    #[test]
    fn a_recording_with_copies_is_not_replaced_by_another_one() {
        let mut objects = copies(&Copier::default());
        let empty = recording(1, 4 * LENGTH, 4 * LENGTH);
        let error = objects.check_replacement(&empty).unwrap_err();
        assert_eq!(
            error.message,
            "recording 1 has segments from position 0 on in object storage, so it cannot be replaced by another one: replicate to a new recording"
        );
        assert!(objects.check_replacement(&recording(3, 0, 0)).is_ok());
        objects.unknown = UnknownCopies::new([3], 0);
        assert!(objects.check_replacement(&recording(3, 0, 0)).is_err());
    }

    #[test]
    fn a_copy_is_valid_if_its_file_has_the_same_time_or_does_not_exist() {
        let copied = SegmentCopy {
            modified_ns: Some(7),
            ..copy(0)
        };
        assert!(is_unchanged(Ok(Some(7)), &copied));
        assert!(!is_unchanged(Ok(Some(8)), &copied));
        assert!(!is_unchanged(Ok(None), &copy(0)));
        assert!(is_unchanged(Err(io::ErrorKind::NotFound.into()), &copied));
        assert!(!is_unchanged(
            Err(io::ErrorKind::PermissionDenied.into()),
            &copied
        ));
    }

    #[test]
    fn a_late_event_does_not_mark_a_new_segment_as_missing() {
        let segment = (1, 4 * LENGTH);
        let mut objects = copies(&Copier::default());
        objects.missing.clear();
        objects.on_missing(segment, true);
        assert!(objects.missing.contains(&segment) && !objects.waiting.contains(&segment));
        // The recording was truncated after the copier had the segment.
        let mut objects = copies(&Copier::default());
        objects.forget(&recording(1, 0, 5 * LENGTH), 4 * LENGTH);
        objects.on_missing(segment, true);
        assert!(!objects.missing.contains(&segment));
        // Another recording has the id now.
        objects.waiting.insert(segment);
        objects.on_missing(segment, false);
        assert!(!objects.missing.contains(&segment) && !objects.waiting.contains(&segment));
    }

    #[test]
    fn a_truncation_keeps_the_copies_of_the_manifest_before_its_position() {
        let mut objects = copies(&Copier::default());
        objects.unchecked = (0..4).map(|number| (1, copy(number))).collect();
        objects.forget(&recording(1, 0, 4 * LENGTH), 2 * LENGTH + 32);
        assert_eq!(objects.unchecked, [(1, copy(0)), (1, copy(1))]);
        assert_eq!(numbers(&objects, 1), [0, 1]);
    }
}
