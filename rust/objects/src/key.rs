//! [`SegmentKey`]: the name of a copied segment. It contains the checksum of the bytes, so that a listing of the
//! storage alone tells which segments exist and how to verify them.

use aeron_archive::objects::RecordingIdentity;

/// Name of the manifest in the folder of a recording.
pub const MANIFEST_NAME: &str = "manifest.json";

/// Returns the name of a recording's folder: recording id, start time in milliseconds, and initial term id.
#[must_use]
pub fn folder(recording: &RecordingIdentity) -> String {
    let RecordingIdentity {
        recording_id,
        start_timestamp_ms,
        initial_term_id,
    } = recording;
    format!("{recording_id}-{start_timestamp_ms}-{initial_term_id:08x}")
}

/// Parses the name of a folder. Accepts only names exactly as [`folder`] returns them.
#[must_use]
pub fn parse_folder(name: &str) -> Option<RecordingIdentity> {
    let mut parts = name.splitn(3, '-');
    let parsed = RecordingIdentity {
        recording_id: parts.next()?.parse().ok()?,
        start_timestamp_ms: parts.next()?.parse().ok()?,
        initial_term_id: u32::from_str_radix(parts.next()?, 16).ok()? as i32,
    };
    (folder(&parsed) == name).then_some(parsed)
}

/// The name of a copied segment in the folder of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentKey {
    /// Position of the segment's first byte.
    pub base: i64,
    /// First position with data: the base, except in the first segment of a recording.
    pub from: i64,
    /// CRC-32C of the whole segment file.
    pub crc32c: u32,
}

impl SegmentKey {
    /// Returns the name, such as `00000000000000131072-131072-0badcafe.rec`. Sorted names have the order of
    /// their bases.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { base, from, crc32c } = self;
        format!("{base:020}-{from}-{crc32c:08x}.rec")
    }

    /// Parses a name. Accepts only names exactly as [`name`](Self::name) returns them.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".rec")?.splitn(3, '-');
        let parsed = Self {
            base: parts.next()?.parse().ok()?,
            from: parts.next()?.parse().ok()?,
            crc32c: u32::from_str_radix(parts.next()?, 16).ok()?,
        };
        (parsed.base >= 0 && parsed.from >= parsed.base && parsed.name() == name).then_some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_gives_back_its_key_and_names_sort_by_base(
            (base, after) in (0_i64..i64::MAX / 2, 0_i64..i64::MAX / 2),
            crc32c: u32,
            other in 0_i64..i64::MAX,
        ) {
            let key = SegmentKey { base, from: base + after, crc32c };
            prop_assert_eq!(SegmentKey::parse(&key.name()), Some(key));
            let other = SegmentKey { base: other, from: other, crc32c };
            prop_assert_eq!(key.name() < other.name(), key.base < other.base || (key.base == other.base && key.name() < other.name()));
        }

        #[test]
        fn a_folder_gives_back_its_recording(recording_id in 0_i64.., start_timestamp_ms in 0_i64.., initial_term_id: i32) {
            let recording = RecordingIdentity { recording_id, start_timestamp_ms, initial_term_id };
            prop_assert_eq!(parse_folder(&folder(&recording)), Some(recording));
        }

        #[test]
        fn any_text_is_parsed_without_a_panic(text in "[0-9a-f.rec-]{0,60}|.{0,40}") {
            if let Some(key) = SegmentKey::parse(&text) {
                prop_assert_eq!(key.name(), text.clone());
            }
            let _ = parse_folder(&text);
        }
    }
}
