//! Scrubbing: reads the sealed segments of all recordings at a limited rate, and reports damage. It
//! does not change the recordings.
//!
//! A segment is sealed when its recorder does not write into it any more. In a *pass*, each sealed
//! segment is read once, in the order of recording ids. A segment with damage is reported once, and
//! the pass continues with the next segment.

mod budget;
mod segment;

use std::collections::HashSet;

use self::budget::ReadBudget;
use self::segment::{Finding, SegmentScrub, SegmentStep};
use super::outlets::ArchiveOutlets;
use super::recording::Recordings;
use crate::catalog::RecordingDescriptor;
use crate::checksum::Checksum;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Maximum number of reported findings. Later findings are only counted.
const MAX_REPORTED: usize = 1_000;

/// Settings of the scrubbing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScrubSettings {
    /// Number of bytes that are read per second; 0 turns the scrubbing off.
    pub bytes_per_second: i64,
    /// Time from the start of a pass to the start of the next pass, in nanoseconds.
    pub interval_ns: i64,
    /// Checksum that is verified in each frame; `None` if checksums are not verified.
    pub checksum: Option<Checksum>,
}

/// The progress of the scrubbing.
pub(super) struct Scrubber<S: Storage> {
    settings: ScrubSettings,
    budget: ReadBudget,
    /// Time at which the last pass began; `None` before the first pass. The next pass begins one
    /// interval later.
    pass_ns: Option<i64>,
    /// Recording id and base of the next segment; `None` between two passes.
    next: Option<(i64, i64)>,
    segment: Option<SegmentScrub<S>>,
    /// Recording id and position of the reported findings.
    reported: HashSet<(i64, i64)>,
}

impl<S: Storage> Scrubber<S> {
    pub fn new(settings: ScrubSettings) -> Self {
        Self {
            settings,
            budget: ReadBudget::new(settings.bytes_per_second),
            pass_ns: None,
            next: None,
            segment: None,
            reported: HashSet::new(),
        }
    }

    /// Returns whether a part of a segment may be read now. Begins a pass if a pass is due.
    fn may_read(&mut self, now_ns: i64) -> bool {
        if self.settings.bytes_per_second == 0 || !self.budget.is_open(now_ns) {
            return false;
        }
        if self.next.is_none() && self.segment.is_none() {
            let is_due = self.pass_ns.is_none_or(|begin_ns| {
                now_ns.saturating_sub(begin_ns) >= self.settings.interval_ns
            });
            if is_due {
                self.pass_ns = Some(now_ns);
                self.next = Some((0, 0));
            }
            return is_due;
        }
        true
    }
}

impl<S: Storage + Clone> Scrubber<S> {
    /// Reads a part of one segment, if the rate allows it. Returns the work count.
    pub fn do_work(
        &mut self,
        store: &ArchiveStore<S>,
        recordings: &Recordings<S>,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        if !self.may_read(outlets.now_ns()) {
            return 0;
        }
        let Some(mut segment) = self.segment.take() else {
            self.begin_segment(store, recordings);
            return 1;
        };
        let step = segment.step();
        self.budget.spend(segment.take_read_bytes());
        outlets
            .counters
            .scrub
            .checked_bytes
            .fetch_add(segment.take_checked_bytes());
        match step {
            SegmentStep::Continue => self.segment = Some(segment),
            SegmentStep::Sound => {}
            SegmentStep::Damaged(finding) => self.on_finding(&finding, store, recordings, outlets),
        }
        1
    }

    /// Opens the next sealed segment, or ends the pass.
    fn begin_segment(&mut self, store: &ArchiveStore<S>, recordings: &Recordings<S>) {
        let Some((recording_id, base)) = self.next else {
            return;
        };
        let from = (recording_id, base);
        let Some(recording) = store.recordings_from(recording_id).next() else {
            self.next = None;
            return;
        };
        let first = recording.first_segment_base();
        let base = match recording.recording_id == recording_id {
            true => base.max(first),
            false => first,
        };
        let end = sealed_end(recordings, recording);
        if base >= end {
            self.next = Some((recording.recording_id.saturating_add(1), 0));
            return;
        }
        self.next = Some((
            recording.recording_id,
            base + i64::from(recording.segment_length),
        ));
        debug_assert!(
            self.next > Some(from),
            "a pass must not check the segment of recording {} at {} again",
            from.0,
            from.1
        );
        let (storage, checksum) = (store.storage().clone(), self.settings.checksum);
        self.segment = SegmentScrub::new(storage, recording, (base, end), checksum);
    }

    /// Counts and reports damage, unless the damaged part was deleted in the meantime.
    fn on_finding(
        &mut self,
        finding: &Finding,
        store: &ArchiveStore<S>,
        recordings: &Recordings<S>,
        outlets: &mut ArchiveOutlets,
    ) {
        let Ok(recording) = store.recording(finding.recording_id) else {
            return;
        };
        let end = sealed_end(recordings, recording);
        if !(recording.start_position..end).contains(&finding.position) {
            return;
        }
        let key = (finding.recording_id, finding.position);
        if self.reported.contains(&key) {
            return;
        }
        outlets.counters.scrub.findings.fetch_add(1);
        if self.reported.len() < MAX_REPORTED {
            self.reported.insert(key);
            let text = format!(
                "scrub: recording {} is damaged: {}; restore {} from a copy, or run aeron archive verify",
                finding.recording_id, finding.problem, finding.file
            );
            outlets.report(&text);
        }
    }
}

/// Returns the end position of the recording's sealed segments.
fn sealed_end<S: Storage + Clone>(
    recordings: &Recordings<S>,
    recording: &RecordingDescriptor,
) -> i64 {
    if !recording.is_unfinished() {
        return recording.stop_position;
    }
    match recordings.position(recording.recording_id) {
        Some(position) => recording.segment_base(position),
        // No recorder writes, but the stop position is not stored yet. So it is unknown which segments are sealed.
        None => recording.start_position,
    }
}
