//! Copies of sealed segments in object storage: which segments are copied, and which local files are deleted.
//!
//! A segment is copied if its recorder writes no more into it, and if it is complete: the last segment of a recording
//! is not copied, because an extension may continue it. A local file is deleted only if the settings say so, its copy
//! was read back, and the file has not changed since.

mod search;
mod unknown;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aeron_protocol::archive::NULL_VALUE;

use super::ArchiveError;
use crate::catalog::RecordingDescriptor;
use crate::objects::{CopiedRange, CopiedSegments, RecordingIdentity, SegmentCopier, SegmentCopy};

pub(super) use unknown::UnknownCopies;

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
    unknown: UnknownCopies,
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

    /// Returns the recordings of which the copies are not known yet.
    pub fn unknown(&self) -> &UnknownCopies {
        &self.unknown
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
    pub fn pass_truncations(&mut self) -> bool {
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::objects::{CopierEvent, SealedSegment};

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
