//! [`RecordingExtent`]: positions and times of a recording.

use crate::catalog::RecordingDescriptor;

/// Positions and times of a recording, for retention. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingExtent {
    /// Recording id.
    pub recording_id: i64,
    /// Position of the first frame.
    pub start_position: i64,
    /// Position of the first byte of the first segment: at most the start position.
    pub first_base: i64,
    /// Recorded position of an active recording, otherwise the stop position.
    pub end_position: i64,
    /// Length of a segment in bytes.
    pub segment_length: i64,
    /// Time at which recording began.
    pub start_timestamp_ms: i64,
    /// Time at which recording ended, at least the start time; `None` while it is active.
    pub stop_timestamp_ms: Option<i64>,
    /// Time of the newest byte of each segment, from the first segment on. The list contains only
    /// the times that were read, so it may be shorter than the number of segments.
    pub segment_times_ms: Vec<i64>,
}

impl RecordingExtent {
    /// Creates the extent of a recording, without the times of segments. An active recording ends at
    /// `recorded_position`, or at its start position if `recorded_position` is `None`. A stopped recording ends at its
    /// stop position.
    pub fn new(descriptor: &RecordingDescriptor, recorded_position: Option<i64>) -> Self {
        let is_unfinished = descriptor.is_unfinished();
        let end_position = match is_unfinished {
            true => recorded_position.unwrap_or(descriptor.start_position),
            false => descriptor.stop_position,
        };
        Self {
            recording_id: descriptor.recording_id,
            start_position: descriptor.start_position,
            first_base: descriptor.first_segment_base(),
            end_position,
            segment_length: descriptor.segment_length.into(),
            start_timestamp_ms: descriptor.start_timestamp_ms,
            stop_timestamp_ms: (!is_unfinished).then(|| descriptor.ended_ms()),
            segment_times_ms: Vec::new(),
        }
    }

    /// Returns the number of bytes from the first segment to the end.
    pub fn bytes(&self) -> i64 {
        (self.end_position - self.first_base).max(0)
    }

    /// Returns the number of segments before the segment with the last byte.
    pub fn sealed_segments(&self) -> usize {
        ((self.bytes() - 1).max(0) / self.segment_length) as usize
    }

    /// Returns the first position of the segment with this number, counted from the first segment.
    pub fn segment_base(&self, number: usize) -> i64 {
        debug_assert!(
            number <= self.sealed_segments(),
            "recording {} has no segment number {number}: its last segment is number {}",
            self.recording_id,
            self.sealed_segments()
        );
        self.first_base + number as i64 * self.segment_length
    }

    /// Returns the first position of the segment with the last byte.
    pub fn last_base(&self) -> i64 {
        self.segment_base(self.sealed_segments())
    }

    /// Returns the first position of the segment that contains `position`. If `position` is outside of
    /// the recording, returns the first position of the first or the last segment.
    pub fn base_of(&self, position: i64) -> i64 {
        let offset = (position - self.first_base).max(0);
        let base = self.first_base + offset / self.segment_length * self.segment_length;
        base.min(self.last_base())
    }

    /// Returns whether a removal that was computed from `earlier` is still valid: both extents have the same range. An
    /// active recording may have become longer. The caller passes two extents of the same recording.
    pub fn is_still(&self, earlier: &Self) -> bool {
        let is_same_end = match self.stop_timestamp_ms {
            Some(_) => self.end_position == earlier.end_position,
            None => self.end_position >= earlier.end_position,
        };
        is_same_end
            && self.first_base == earlier.first_base
            && self.stop_timestamp_ms == earlier.stop_timestamp_ms
    }
}
