//! Names of segment files, and the segment that holds a position of a recording.
//!
//! All segment files of a recording have the same length: a power of two that is not less than the term length. The
//! first file begins at the beginning of the *term* that holds the start position. So the base of a segment is a
//! multiple of the term length, and not always a multiple of the segment length.

use crate::catalog::RecordingDescriptor;
use crate::index::{INDEX_EXTENSION, NEW_INDEX_EXTENSION};

/// Extension of a segment file's name, without the dot.
pub const SEGMENT_EXTENSION: &str = "rec";

/// Prefix of an index file's name. Some tools look for the segments of a recording by the id at the beginning of a
/// name. They must not find indexes.
const INDEX_PREFIX: &str = "index-";

/// Name of a file that belongs to one segment of a recording: the segment itself, or a sidecar, such as its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentFileName<'a> {
    /// Recording id.
    pub recording_id: i64,
    /// Base of the segment: the position of its first byte.
    pub base: i64,
    /// Extension after the dot.
    pub extension: &'a str,
    /// Whether this is an index with a name of older releases, without the prefix.
    pub is_old_index: bool,
}

/// Returns the name of a recording's segment file that begins at position `base`.
#[must_use]
pub fn segment_name(recording_id: i64, base: i64) -> String {
    sidecar_name(recording_id, base, SEGMENT_EXTENSION)
}

/// Returns the name of a sidecar, which belongs to the segment at `base`.
#[must_use]
pub fn sidecar_name(recording_id: i64, base: i64, extension: &str) -> String {
    let prefix = match is_index(extension) {
        true => INDEX_PREFIX,
        false => "",
    };
    format!("{prefix}{recording_id}-{base}.{extension}")
}

/// Returns the name that older releases gave to an index.
pub(crate) fn old_index_name(recording_id: i64, base: i64, extension: &str) -> String {
    format!("{recording_id}-{base}.{extension}")
}

fn is_index(extension: &str) -> bool {
    [INDEX_EXTENSION, NEW_INDEX_EXTENSION].contains(&extension)
}

impl<'a> SegmentFileName<'a> {
    /// Parses a file name. Accepts only the exact forms that an archive writes, such as `7-131072.rec`,
    /// `index-7-131072.idx` and, in older releases, `7-131072.idx`.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let (stem, extension) = name.split_once('.')?;
        let plain = stem.strip_prefix(INDEX_PREFIX);
        if plain.is_some() && !is_index(extension) {
            return None;
        }
        let (recording_id, base) = plain.unwrap_or(stem).split_once('-')?;
        Some(Self {
            recording_id: decimal(recording_id)?,
            base: decimal(base)?,
            extension,
            is_old_index: plain.is_none() && is_index(extension),
        })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> String {
        match self.is_old_index {
            true => old_index_name(self.recording_id, self.base, self.extension),
            false => sidecar_name(self.recording_id, self.base, self.extension),
        }
    }

    /// Returns the files among `names` that belong to a segment.
    pub(crate) fn among<N: AsRef<str>>(names: &'a [N]) -> impl Iterator<Item = Self> {
        names.iter().filter_map(|name| Self::parse(name.as_ref()))
    }
}

/// Parses digits without leading zeros, so that each number has only one name.
fn decimal(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = text == "0" || !text.starts_with('0');
    (plain && shortest).then(|| text.parse().ok()).flatten()
}

/// Returns the base of the segment that holds `position` of a recording that starts at `start_position`.
///
/// `position` must not be below the base of the first segment. Both lengths must be powers of two.
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
    /// Returns the base of the segment that holds `position`, which is not before the first segment.
    #[must_use]
    pub const fn segment_base(&self, position: i64) -> i64 {
        segment_base(
            position,
            self.start_position,
            self.term_length,
            self.segment_length,
        )
    }

    /// Returns the base of the first segment: the beginning of the term that holds the start position.
    #[must_use]
    pub const fn first_segment_base(&self) -> i64 {
        self.segment_base(self.start_position)
    }
}
