//! [`Manifest`]: the copies of one recording, as text with a version and a checksum.
//!
//! The manifest is stored twice: in object storage beside the copies, and in the archive directory. Each of its two
//! lines is a JSON object. The first line has the format, the version, and the CRC-32C of the second line. The second
//! line has the recording, as the catalog described it at the latest copy, and its copies.

use std::collections::BTreeMap;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::{RecordingIdentity, SegmentCopy};
use serde::{Deserialize, Serialize};

use crate::key::SegmentKey;

/// Value of the field `format`.
const FORMAT: &str = "aeron-archive-objects";
/// Version of the format. A reader accepts only its own version.
const VERSION: u32 = 1;
/// Maximum length of a manifest that is read, in bytes. About a million copies fit.
pub const MAX_LENGTH: u64 = 128 << 20;

/// The copies of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The recording.
    pub recording: RecordingFields,
    copies: BTreeMap<i64, ObjectCopy>,
}

/// A verified copy of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCopy {
    /// Position of the segment's first byte.
    pub base: i64,
    /// First position with data: the base, except in the first segment of a recording.
    pub from: i64,
    /// CRC-32C of the whole segment file.
    pub crc32c: u32,
    /// Time at which the copied file was modified, in nanoseconds since the epoch, if it is known.
    pub modified_ns: Option<i64>,
}

/// The values of a recording that are needed to read it without its catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingFields {
    /// Recording id.
    pub recording_id: i64,
    /// Time at which the recording began, in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Length of a segment in bytes.
    pub segment_length: i32,
    /// Length of a term in bytes.
    pub term_length: i32,
    /// Longest frame in bytes.
    pub mtu_length: i32,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel with only the parameters that identify the stream.
    pub stripped_channel: String,
    /// Channel of the request.
    pub original_channel: String,
    /// Source of the stream.
    pub source_identity: String,
}

/// Reason why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The text does not have the form of a manifest, or its values are not possible.
    #[error("is not a manifest: {0}")]
    Malformed(String),
    /// A later version of this software wrote the manifest.
    #[error(
        "has version {version}, and this software reads version {VERSION}: use the software that wrote it"
    )]
    Version {
        /// Version of the manifest.
        version: u32,
    },
    /// The manifest belongs to another recording than the name of its file or object says.
    #[error("is the manifest of recording {recording_id}")]
    OtherRecording {
        /// Recording of the manifest.
        recording_id: i64,
    },
    /// The bytes are not those that were written.
    #[error("has CRC-32C {crc32c:08x}, expected {expected:08x}")]
    Checksum {
        /// Checksum of the second line.
        crc32c: u32,
        /// Checksum in the first line.
        expected: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    crc32c: u32,
}

#[derive(Serialize, Deserialize)]
struct Body {
    recording: RecordingFields,
    copies: Vec<ObjectCopy>,
}

impl Manifest {
    /// Creates a manifest without copies.
    #[must_use]
    pub fn new(recording: &RecordingDescriptor) -> Self {
        Self {
            recording: RecordingFields::of(recording),
            copies: BTreeMap::new(),
        }
    }

    /// Returns the identity of the recording.
    #[must_use]
    pub fn identity(&self) -> RecordingIdentity {
        RecordingIdentity {
            recording_id: self.recording.recording_id,
            start_timestamp_ms: self.recording.start_timestamp_ms,
            initial_term_id: self.recording.initial_term_id,
        }
    }

    /// Adds a copy, or replaces the copy with the same base.
    pub fn insert(&mut self, copy: ObjectCopy) {
        self.copies.insert(copy.base, copy);
    }

    /// Returns the copy of a segment.
    #[must_use]
    pub fn get(&self, base: i64) -> Option<&ObjectCopy> {
        self.copies.get(&base)
    }

    /// Returns all copies, by ascending base.
    pub fn copies(&self) -> impl DoubleEndedIterator<Item = &ObjectCopy> {
        self.copies.values()
    }

    /// Removes the copies that reach beyond `position`. Returns whether there were any.
    pub fn truncate(&mut self, position: i64) -> bool {
        let length = i64::from(self.recording.segment_length);
        let before = self.copies.len();
        self.copies
            .retain(|base, _| base.saturating_add(length) <= position);
        self.copies.len() < before
    }

    /// Adds copies that a listing of the storage shows, if the manifest has none with the same base. Of several listed
    /// copies with the same base, the last one counts.
    pub fn add_listed(&mut self, keys: impl IntoIterator<Item = SegmentKey>) {
        let mut listed = BTreeMap::new();
        for key in keys {
            listed.insert(key.base, ObjectCopy::listed(key));
        }
        listed.retain(|base, _| !self.copies.contains_key(base));
        self.copies.extend(listed);
    }

    /// Returns the manifest as text.
    ///
    /// # Panics
    /// Never: numbers and texts are always valid JSON.
    #[must_use]
    pub fn encode(&self) -> String {
        let body = Body {
            recording: self.recording.clone(),
            copies: self.copies.values().copied().collect(),
        };
        let body = serde_json::to_string(&body).expect("numbers and texts are JSON");
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            crc32c: crc32c::crc32c(body.as_bytes()),
        };
        let header = serde_json::to_string(&header).expect("numbers and texts are JSON");
        format!("{header}\n{body}\n")
    }

    /// Parses the text of a manifest.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn decode(text: &[u8]) -> Result<Self, ManifestError> {
        let malformed = |problem: &str| ManifestError::Malformed(problem.to_owned());
        let at = text.iter().position(|byte| *byte == b'\n');
        let (header, body) = text.split_at(at.ok_or_else(|| malformed("it has one line"))?);
        let body = body[1..].strip_suffix(b"\n").unwrap_or(&body[1..]);
        let header: Header = parsed(header)?;
        if header.format != FORMAT {
            return Err(malformed("it has another format"));
        }
        if header.version != VERSION {
            let version = header.version;
            return Err(ManifestError::Version { version });
        }
        let crc32c = crc32c::crc32c(body);
        if crc32c != header.crc32c {
            let expected = header.crc32c;
            return Err(ManifestError::Checksum { crc32c, expected });
        }
        let body: Body = parsed(body)?;
        let RecordingFields {
            segment_length,
            term_length,
            ..
        } = body.recording;
        let is_power = |length: i32| length > 0 && length.count_ones() == 1;
        if !is_power(segment_length) || !is_power(term_length) || term_length > segment_length {
            return Err(malformed("lengths of segments and terms are not possible"));
        }
        let mut manifest = Self {
            recording: body.recording,
            copies: BTreeMap::new(),
        };
        for copy in body.copies {
            if !is_segment_place(copy.base, copy.from, segment_length, term_length) {
                return Err(malformed(&format!(
                    "a copy at {} is not possible",
                    copy.base
                )));
            }
            manifest.insert(copy);
        }
        Ok(manifest)
    }
}

impl ObjectCopy {
    /// Returns the name of the object.
    #[must_use]
    pub fn key(&self) -> SegmentKey {
        SegmentKey {
            base: self.base,
            from: self.from,
            crc32c: self.crc32c,
        }
    }

    /// Returns the copy, as the archive sees it.
    #[must_use]
    pub fn segment_copy(&self) -> SegmentCopy {
        SegmentCopy {
            base: self.base,
            from: self.from,
            modified_ns: self.modified_ns,
        }
    }

    fn listed(key: SegmentKey) -> Self {
        Self {
            base: key.base,
            from: key.from,
            crc32c: key.crc32c,
            modified_ns: None,
        }
    }
}

impl RecordingFields {
    /// Returns the values of a recording in the catalog.
    #[must_use]
    pub fn of(recording: &RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id,
            start_timestamp_ms: recording.start_timestamp_ms,
            initial_term_id: recording.initial_term_id,
            segment_length: recording.segment_length,
            term_length: recording.term_length,
            mtu_length: recording.mtu_length,
            session_id: recording.session_id,
            stream_id: recording.stream_id,
            stripped_channel: recording.stripped_channel.to_string(),
            original_channel: recording.original_channel.to_string(),
            source_identity: recording.source_identity.to_string(),
        }
    }
}

/// Returns whether a segment may have its first byte at `base`, and its first data at `from`.
pub(crate) fn is_segment_place(
    base: i64,
    from: i64,
    segment_length: i32,
    term_length: i32,
) -> bool {
    let end = base.checked_add(segment_length.into());
    base >= 0
        && base % i64::from(term_length) == 0
        && end.is_some_and(|end| (base..end).contains(&from))
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, ManifestError> {
    serde_json::from_slice(text).map_err(|error| ManifestError::Malformed(error.to_string()))
}
