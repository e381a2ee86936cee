//! Segment files: their names, and which one holds a position of a recording.
//!
//! A recording's bytes lie in files of one length, a power of two of at least a term. The first one begins at the beginning of the
//! *term* that holds the start position, so bases are multiples of the term length, not of the segment length.

use crate::catalog::RecordingDescriptor;

/// Ending of the name of a segment file, without its dot.
pub const SEGMENT_EXTENSION: &str = "rec";

/// A file that belongs to one segment of a recording: the segment itself or a sidecar of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentFileName<'a> {
    /// The recording.
    pub recording_id: i64,
    /// Position of the segment's first byte.
    pub base: i64,
    /// What stands behind the dot.
    pub extension: &'a str,
}

/// Name of the file with the bytes from `base` on of a recording.
#[must_use]
pub fn segment_name(recording_id: i64, base: i64) -> String {
    sidecar_name(recording_id, base, SEGMENT_EXTENSION)
}

/// Name of a file that accompanies a segment.
#[must_use]
pub fn sidecar_name(recording_id: i64, base: i64, extension: &str) -> String {
    format!("{recording_id}-{base}.{extension}")
}

impl<'a> SegmentFileName<'a> {
    /// What a file name says, if it is written exactly as an archive would: `7-131072.rec`.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let (stem, extension) = name.split_once('.')?;
        let (recording_id, base) = stem.split_once('-')?;
        Some(Self {
            recording_id: decimal(recording_id)?,
            base: decimal(base)?,
            extension,
        })
    }
}

/// Digits alone, without leading zeros: one name for one number.
fn decimal(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = text == "0" || !text.starts_with('0');
    (plain && shortest).then(|| text.parse().ok()).flatten()
}

/// Base of the segment that holds `position` of a recording that starts at `start_position`.
///
/// `position` is at least the base of the start position; both lengths are powers of two.
#[must_use]
pub const fn segment_base(
    position: i64,
    start_position: i64,
    term_length: i32,
    segment_length: i32,
) -> i64 {
    let first = start_position & !(term_length as i64 - 1);
    first + ((position - first) & !(segment_length as i64 - 1))
}

impl RecordingDescriptor {
    /// Base of the segment that holds `position`, which is not before the first segment.
    #[must_use]
    pub const fn segment_base(&self, position: i64) -> i64 {
        segment_base(
            position,
            self.start_position,
            self.term_length,
            self.segment_length,
        )
    }

    /// Base of the first segment: the beginning of the term that holds the start position.
    #[must_use]
    pub const fn first_segment_base(&self) -> i64 {
        self.segment_base(self.start_position)
    }
}
