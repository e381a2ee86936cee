//! [`SharedRange`]: a range of a recording of an archive server.

use super::partition::SharedPartition;
use super::recordings::SharedRecording;

/// A range of a recording to read.
#[derive(Clone, Copy)]
pub(super) struct SharedRange<'a> {
    pub recording: &'a SharedRecording,
    pub from: i64,
    pub to: i64,
}

impl SharedRange<'_> {
    /// Returns the text of the partition for a worker.
    pub fn text(&self, archive_id: i64) -> String {
        let partition = SharedPartition {
            archive_id,
            recording: self.recording.piece(),
            from: self.from,
            to: self.to,
        };
        partition.to_json()
    }

    /// Cuts the range between segments. Returns one piece for each segment.
    pub fn by_segments(&self) -> Vec<Self> {
        let segment_length = self.recording.stream.segment_length();
        let first = self.segment_base(self.from);
        self.cut_at((1..self.segment_count()).map(|number| first + number * segment_length))
    }

    pub fn segment_base(&self, position: i64) -> i64 {
        self.recording.stream.segment_base(position)
    }

    /// Returns the number of segments that contain a part of the range.
    pub fn segment_count(&self) -> i64 {
        let length = self.recording.stream.segment_length();
        (self.segment_base(self.to - 1) - self.segment_base(self.from)) / length + 1
    }

    /// Cuts the range at these ascending positions. Returns the pieces.
    pub fn cut_at(&self, cuts: impl Iterator<Item = i64>) -> Vec<Self> {
        let mut bounds = vec![self.from];
        for cut in cuts.chain([self.to]) {
            if bounds.last().is_some_and(|&last| last < cut) && cut <= self.to {
                bounds.push(cut);
            }
        }
        let piece = |pair: &[i64]| Self {
            recording: self.recording,
            from: pair[0],
            to: pair[1],
        };
        bounds.windows(2).map(piece).collect()
    }
}
