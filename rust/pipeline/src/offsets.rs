//! [`Offset`]: the positions up to which a query has consumed the recordings of an archive. Spark keeps the text of the
//! offset in the checkpoint.
//!
//! Spark compares the texts of offsets. Therefore an offset has only one valid text. The parser refuses a text that
//! differs in more than blanks, and the error gives the reason.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Version of the text format.
const VERSION: u64 = 1;
/// Positions are multiples of this number of bytes.
const FRAME_ALIGNMENT: i64 = 32;
/// Number of hexadecimal digits in the id of a private archive.
const PRIVATE_ID_DIGITS: usize = 32;

/// For each recording of one archive, the position up to which a query has consumed the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offset {
    archive: ArchiveName,
    /// Sorted by recording id; each id occurs once.
    recordings: Vec<RecordingOffset>,
    /// Positions at which the batch that ends here begins to read the recordings that its start offset does not name.
    /// Sorted as `recordings`.
    starts: Vec<RecordingOffset>,
}

/// The archive that an offset belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArchiveName {
    /// A private archive, by its id: 16 bytes in hexadecimal digits.
    Private(String),
    /// The archive of an archive server, by its archive id.
    Shared(i64),
}

/// Position up to which a query has consumed one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingOffset {
    /// Stream id of the recording. Only for people who read the text.
    pub stream_id: i32,
    /// Session id of the recording. Only for people who read the text.
    pub session_id: i32,
    /// Recording id.
    pub recording_id: i64,
    /// Position after the last consumed message, in bytes.
    pub position: i64,
}

/// Reason why a text is not an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an offset of format aeron: {0}")]
pub struct OffsetError(String);

impl Offset {
    /// Returns the offset of a query that has consumed nothing yet.
    pub fn initial(archive: ArchiveName) -> Self {
        Self {
            archive,
            recordings: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Creates an offset from recordings in any order.
    ///
    /// # Errors
    /// A recording occurs twice, or a position is negative or not a multiple of 32.
    pub fn new(
        archive: ArchiveName,
        recordings: Vec<RecordingOffset>,
    ) -> Result<Self, OffsetError> {
        Ok(Self {
            archive,
            recordings: sorted(recordings)?,
            starts: Vec::new(),
        })
    }

    /// Returns the offset with the positions at which its batch begins to read new recordings, in any order.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_starts(self, starts: Vec<RecordingOffset>) -> Result<Self, OffsetError> {
        let starts = sorted(starts)?;
        Ok(Self { starts, ..self })
    }

    /// Parses the text of an offset.
    ///
    /// # Errors
    /// The text is not in the form that [`Display`](fmt::Display) writes. Only the blanks between its parts may differ.
    pub fn parse(text: &str) -> Result<Self, OffsetError> {
        serde_json::from_str(text).map_err(|error| OffsetError(error.to_string()))
    }

    /// Returns the archive that the recordings belong to.
    pub fn archive(&self) -> &ArchiveName {
        &self.archive
    }

    /// Returns the recordings, sorted by id.
    pub fn recordings(&self) -> &[RecordingOffset] {
        &self.recordings
    }

    /// Returns the position up to which a recording was consumed; `None` if the offset does not name the recording.
    pub fn position(&self, recording_id: i64) -> Option<i64> {
        position(&self.recordings, recording_id)
    }

    /// Returns the position at which the batch that ends here begins to read a new recording; `None` if the offset does
    /// not say it.
    pub fn start(&self, recording_id: i64) -> Option<i64> {
        position(&self.starts, recording_id)
    }
}

fn position(recordings: &[RecordingOffset], recording_id: i64) -> Option<i64> {
    let found = recordings.binary_search_by_key(&recording_id, |recording| recording.recording_id);
    found.ok().map(|at| recordings[at].position)
}

fn sorted(mut recordings: Vec<RecordingOffset>) -> Result<Vec<RecordingOffset>, OffsetError> {
    recordings.sort_by_key(|recording| recording.recording_id);
    for recording in &recordings {
        recording.check().map_err(OffsetError)?;
    }
    check_order(&recordings).map_err(OffsetError)?;
    Ok(recordings)
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let archive = &self.archive;
        write!(
            f,
            r#"{{"aeron": {VERSION}, "archive": "{archive}", "recordings": "#
        )?;
        write_recordings(f, &self.recordings)?;
        if !self.starts.is_empty() {
            f.write_str(r#", "starts": "#)?;
            write_recordings(f, &self.starts)?;
        }
        f.write_str("}")
    }
}

/// Writes recordings in the form that the text of an offset has. Progress reports contain the heads in this form.
pub fn write_recordings(f: &mut impl fmt::Write, recordings: &[RecordingOffset]) -> fmt::Result {
    f.write_str("{")?;
    for (number, recording) in recordings.iter().enumerate() {
        let separator = if number > 0 { ", " } else { "" };
        write!(
            f,
            r#"{separator}"{}": {}"#,
            recording.key(),
            recording.position
        )?;
    }
    f.write_str("}")
}

impl fmt::Display for ArchiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Private(id) => write!(f, "private:{id}"),
            Self::Shared(id) => write!(f, "shared:{id}"),
        }
    }
}

impl RecordingOffset {
    /// Returns `streamId/sessionId/recordingId`.
    pub fn key(&self) -> String {
        format!(
            "{}/{}/{}",
            self.stream_id, self.session_id, self.recording_id
        )
    }

    fn parse(key: &str, position: i64) -> Option<Self> {
        let mut parts = key.split('/');
        let recording = Self {
            stream_id: parts.next()?.parse().ok()?,
            session_id: parts.next()?.parse().ok()?,
            recording_id: parts.next()?.parse().ok()?,
            position,
        };
        // Accepts only the canonical form: no plus sign, no leading zeros, no extra parts.
        (recording.key() == key && recording.recording_id >= 0).then_some(recording)
    }

    fn check(&self) -> Result<(), String> {
        let (position, key) = (self.position, self.key());
        if position < 0 {
            return Err(format!("position {position} of {key} is negative"));
        }
        if position % FRAME_ALIGNMENT != 0 {
            return Err(format!(
                "position {position} of {key} is not a multiple of {FRAME_ALIGNMENT}"
            ));
        }
        Ok(())
    }
}

fn check_order(recordings: &[RecordingOffset]) -> Result<(), String> {
    for pair in recordings.windows(2) {
        let (before, after) = (pair[0].recording_id, pair[1].recording_id);
        if before == after {
            return Err(format!("recording {before} is there twice"));
        }
        if before > after {
            return Err(format!(
                "recording {before} stands before recording {after}; they are sorted by id"
            ));
        }
    }
    Ok(())
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OffsetVisitor)
    }
}

struct OffsetVisitor;

impl<'de> Visitor<'de> for OffsetVisitor {
    type Value = Offset;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"{"aeron": 1, "archive": .., "recordings": {..}}"#)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Offset, A::Error> {
        expect_field(&mut map, "aeron")?;
        let version: u64 = map.next_value()?;
        if version != VERSION {
            return Err(A::Error::custom(format_args!(
                "it has version {version}, this aeron reads version {VERSION}"
            )));
        }
        expect_field(&mut map, "archive")?;
        let archive = map.next_value()?;
        expect_field(&mut map, "recordings")?;
        let Recordings(recordings) = map.next_value()?;
        let mut next = map.next_key::<String>()?;
        let mut starts = Vec::new();
        if next.as_deref() == Some("starts") {
            Recordings(starts) = map.next_value()?;
            if starts.is_empty() {
                return Err(A::Error::custom("field 'starts' is empty"));
            }
            next = map.next_key()?;
        }
        match next {
            None => Ok(Offset {
                archive,
                recordings,
                starts,
            }),
            Some(field) => Err(A::Error::custom(format_args!("unknown field '{field}'"))),
        }
    }
}

fn expect_field<'de, A: MapAccess<'de>>(map: &mut A, name: &str) -> Result<(), A::Error> {
    match map.next_key::<String>()? {
        Some(field) if field == name => Ok(()),
        Some(field) => Err(A::Error::custom(format_args!(
            "field '{field}' stands where '{name}' belongs"
        ))),
        None => Err(A::Error::custom(format_args!("field '{name}' is missing"))),
    }
}

impl<'de> Deserialize<'de> for ArchiveName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format_args!(
                "archive '{text}' is neither private:<{PRIVATE_ID_DIGITS} hexadecimal digits> nor shared:<archive id>"
            ))
        })
    }
}

impl ArchiveName {
    fn parse(text: &str) -> Option<Self> {
        let name = if let Some(id) = text.strip_prefix("private:") {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let is_id = id.len() == PRIVATE_ID_DIGITS && id.bytes().all(is_digit);
            Self::Private(is_id.then(|| id.to_owned())?)
        } else {
            Self::Shared(text.strip_prefix("shared:")?.parse().ok()?)
        };
        (name.to_string() == text).then_some(name)
    }
}

/// Parser of the recordings in the text of an offset. Validates each recording while it parses.
struct Recordings(Vec<RecordingOffset>);

impl<'de> Deserialize<'de> for Recordings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordingsVisitor)
    }
}

struct RecordingsVisitor;

impl<'de> Visitor<'de> for RecordingsVisitor {
    type Value = Recordings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"{"streamId/sessionId/recordingId": position, ..}"#)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Recordings, A::Error> {
        let mut recordings = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let position = map.next_value()?;
            let recording = RecordingOffset::parse(&key, position).ok_or_else(|| {
                A::Error::custom(format_args!(
                    "'{key}' is not streamId/sessionId/recordingId in plain decimals"
                ))
            })?;
            recording.check().map_err(A::Error::custom)?;
            recordings.push(recording);
        }
        check_order(&recordings).map_err(A::Error::custom)?;
        Ok(Recordings(recordings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "9f0c000000000000000000000000beef";

    fn text(recordings: &str) -> String {
        format!(r#"{{"aeron": 1, "archive": "private:{ID}", "recordings": {recordings}}}"#)
    }

    fn refused(text: &str, reason: &str) {
        let error = Offset::parse(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn a_parsed_offset_is_written_as_the_same_text() {
        let text = text(r#"{"1001/-1204857/0": 98304, "1001/77/1": 4096}"#);
        let offset = Offset::parse(&text).unwrap();
        assert_eq!(offset.archive(), &ArchiveName::Private(ID.to_owned()));
        assert_eq!(offset.position(0), Some(98304));
        assert_eq!(offset.position(1), Some(4096));
        assert_eq!(offset.position(2), None);
        assert_eq!(offset.to_string(), text);
    }

    #[test]
    fn an_offset_has_the_starts_of_new_recordings() {
        let text = text(r#"{"1/2/3": 64}, "starts": {"1/2/3": 32}"#);
        let offset = Offset::parse(&text).unwrap();
        assert_eq!((offset.position(3), offset.start(3)), (Some(64), Some(32)));
        assert_eq!(offset.start(4), None);
        assert_eq!(offset.to_string(), text);
    }

    #[test]
    fn recordings_are_sorted_by_the_numeric_value_of_their_ids() {
        let recording = |recording_id| RecordingOffset {
            stream_id: 1,
            session_id: 2,
            recording_id,
            position: 32,
        };
        let offset =
            Offset::new(ArchiveName::Shared(-1), vec![recording(10), recording(9)]).unwrap();
        assert_eq!(
            offset.to_string(),
            r#"{"aeron": 1, "archive": "shared:-1", "recordings": {"1/2/9": 32, "1/2/10": 32}}"#
        );
        assert!(Offset::new(ArchiveName::Shared(0), vec![recording(9), recording(9)]).is_err());
    }

    /// 08-36
    #[test]
    fn a_text_in_another_form_is_refused_with_the_reason() {
        refused(&text("{}").replace(": 1,", ": 2,"), "version 2");
        refused(&text("{}").replace(": 1,", ": 1.0,"), "1.0");
        refused(&text("{}").replace("aeron", "Aeron"), "field 'Aeron'");
        refused(
            &text("{}").replace("{}}", r#"{}, "more": 1}"#),
            "unknown field 'more'",
        );
        refused(
            &text("{}").replace("{}}", r#"{}, "starts": {}}"#),
            "field 'starts' is empty",
        );
        refused(
            &text("{}").replace("{}}", r#"{}, "starts": {"1/2/3": 33}}"#),
            "not a multiple of 32",
        );
        refused(r#"{"aeron": 1}"#, "'archive' is missing");
        refused(r#"{"archive": "private:", "aeron": 1}"#, "field 'archive'");
        for archive in [
            "",
            "private:",
            "private:9F0C",
            "shared:",
            "shared:01",
            "shared:x",
            "public:1",
        ] {
            let text = text("{}").replace(&format!("private:{ID}"), archive);
            refused(&text, "neither private:");
        }
        for key in [
            "1001/77",
            "1001/77/1/2",
            "+1001/77/1",
            "1001/077/1",
            "a/b/c",
            "1001/77/-1",
            "99999999999/1/1",
        ] {
            refused(&text(&format!(r#"{{"{key}": 32}}"#)), "in plain decimals");
        }
        refused(&text(r#"{"1/2/3": -32}"#), "-32 of 1/2/3 is negative");
        refused(&text(r#"{"1/2/3": 33}"#), "not a multiple of 32");
        refused(&text(r#"{"1/2/3": 32.0}"#), "32.0");
        refused(
            &text(r#"{"1/2/3": 9223372036854775808}"#),
            "9223372036854775808",
        );
        refused(&text(r#"{"1/2/3": null}"#), "null");
        refused(
            &text(r#"{"1/2/3": 32, "9/9/3": 64}"#),
            "recording 3 is there twice",
        );
        refused(
            &text(r#"{"1/2/3": 32, "1/2/2": 32}"#),
            "recording 3 stands before recording 2",
        );
        refused(&format!("{} x", text("{}")), "trailing characters");
        refused("[]", "invalid type");
        refused("", "EOF");
        refused(&"[".repeat(100_000), "");
    }

    prop_compose! {
        fn offsets()(
            archive in prop_oneof![
                "[0-9a-f]{32}".prop_map(ArchiveName::Private),
                any::<i64>().prop_map(ArchiveName::Shared),
            ],
            positions in prop::collection::btree_map(
                0..=i64::MAX, (any::<(i32, i32)>(), 0..=i64::MAX / 32, prop::option::of(0..=i64::MAX / 32)), 0..20
            ),
        ) -> (ArchiveName, Vec<RecordingOffset>, Vec<RecordingOffset>) {
            let (mut recordings, mut starts) = (Vec::new(), Vec::new());
            for (recording_id, ((stream_id, session_id), frames, start)) in positions {
                let at = |frames| RecordingOffset { stream_id, session_id, recording_id, position: frames * 32 };
                recordings.push(at(frames));
                starts.extend(start.map(at));
            }
            (archive, recordings, starts)
        }
    }

    proptest! {
        /// 08-36
        #[test]
        fn the_same_positions_give_the_same_text_in_any_order(
            (archive, recordings, starts) in offsets(), rotation in 0usize..20,
        ) {
            let offset = |recordings, starts| {
                Offset::new(archive.clone(), recordings).unwrap().with_starts(starts).unwrap()
            };
            let rotated = |recordings: &[RecordingOffset]| {
                let mut rotated = recordings.to_vec();
                rotated.rotate_left(rotation % recordings.len().max(1));
                rotated
            };
            let (of_rotated, offset) =
                (offset(rotated(&recordings), rotated(&starts)), offset(recordings, starts));
            let text = offset.to_string();
            prop_assert_eq!(&of_rotated.to_string(), &text);
            prop_assert_eq!(Offset::parse(&text).unwrap(), offset);
        }

        /// 08-36
        #[test]
        fn the_text_of_a_parsed_offset_gives_the_same_offset_and_the_parser_never_panics(text in ".{0,200}") {
            if let Ok(offset) = Offset::parse(&text) {
                prop_assert_eq!(Offset::parse(&offset.to_string()).unwrap(), offset);
            }
        }
    }
}
