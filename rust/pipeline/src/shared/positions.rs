//! [`ReadPositions`]: positions at which reading starts or ends: the values of the options `startingOffsets` and
//! `endingOffsets`.

use std::collections::BTreeMap;

use aeron_protocol::archive::TimeEdge;

use super::messages::{ArchiveView, RecordedMessages};
use super::recordings::SharedRecording;
use super::times::position_at;
use crate::error::{LiveCode, LiveError};
use crate::offsets::{ArchiveName, Offset, RecordingOffset};

/// Positions in the recordings of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadPositions {
    /// The start of each recording.
    Earliest,
    /// The end of each recording at the time of the request.
    Latest,
    /// The positions in an offset. The offset belongs to a query on this archive, or to a private archive with
    /// recordings of the same sessions.
    Offset(Offset),
    /// Positions by recording id.
    ById(BTreeMap<i64, i64>),
    /// A time in microseconds since the epoch. Only messages that arrived before this time are before the position.
    Time(i64),
}

/// Reason why the value of an option cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PositionsError(String);

/// The bound of a range: its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEnd {
    /// Recordings without a position are read from their start.
    Start,
    /// Recordings without a position are not read.
    End,
}

impl RangeEnd {
    fn option(self) -> &'static str {
        match self {
            Self::Start => "startingOffsets",
            Self::End => "endingOffsets",
        }
    }

    fn edge(self) -> TimeEdge {
        match self {
            Self::Start => TimeEdge::Since,
            Self::End => TimeEdge::Until,
        }
    }
}

impl ReadPositions {
    /// Parses `earliest`, `latest`, `@` with microseconds since the epoch, the text of an offset, or a JSON object with
    /// positions by recording id.
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, PositionsError> {
        match text.to_ascii_lowercase().as_str() {
            "earliest" => return Ok(Self::Earliest),
            "latest" => return Ok(Self::Latest),
            _ => {}
        }
        if let Some(Ok(time_us)) = text.strip_prefix('@').map(str::parse) {
            return Ok(Self::Time(time_us));
        }
        if text.contains("\"aeron\"") {
            let offset = Offset::parse(text).map_err(|error| PositionsError(error.to_string()))?;
            return Ok(Self::Offset(offset));
        }
        let by_id: BTreeMap<i64, i64> = serde_json::from_str(text)
            .map_err(|error| PositionsError(format!("not positions by recording id: {error}")))?;
        for (id, position) in &by_id {
            if *id < 0 || *position < 0 || position % 32 != 0 {
                let reason = format!(
                    "position {position} of recording {id} is not a multiple of 32 from 0 on"
                );
                return Err(PositionsError(reason));
            }
        }
        Ok(Self::ById(by_id))
    }

    /// Returns the position in each recording. A recording without a position gets its start if `end` is
    /// [`RangeEnd::Start`]. Otherwise it is left out.
    ///
    /// # Errors
    /// A position is outside of its recording, or a recording does not exist or cannot be read.
    pub(super) fn resolve(
        &self,
        end: RangeEnd,
        archive: &ArchiveView,
        recordings: &[SharedRecording],
    ) -> Result<Vec<RecordingOffset>, LiveError> {
        let named = match self {
            Self::Earliest => recordings
                .iter()
                .map(|recording| (recording.id(), recording.start()))
                .collect(),
            Self::Latest => latest(archive, recordings)?,
            Self::Time(time_us) => recordings
                .iter()
                .map(|recording| {
                    let position = position_at(archive, recording, end.edge(), *time_us)?;
                    Ok((recording.id(), position))
                })
                .collect::<Result<_, LiveError>>()?,
            Self::ById(by_id) => by_id.clone(),
            Self::Offset(offset) => by_recording(end, offset, recordings)?,
        };
        check(end, &named, recordings)?;
        let position = |recording: &SharedRecording| match named.get(&recording.id()) {
            Some(&position) => Some(recording.at(position)),
            None if end == RangeEnd::Start => Some(recording.at(recording.start())),
            None => None,
        };
        Ok(recordings.iter().filter_map(position).collect())
    }
}

/// Returns the end of the last complete message of each recording.
fn latest(
    archive: &ArchiveView,
    recordings: &[SharedRecording],
) -> Result<BTreeMap<i64, i64>, LiveError> {
    let head = |recording: &SharedRecording| {
        let messages = RecordedMessages {
            archive,
            recording,
            may_estimate: false,
        };
        Ok((
            recording.id(),
            messages.head(recording.start(), recording.end)?,
        ))
    };
    recordings.iter().map(head).collect()
}

/// Returns the positions of an offset, by the ids of these recordings. In an offset of a private archive, the recording
/// ids are different. The function then finds the recordings by stream id and session id, because a message has the
/// same position in all recordings of its session.
fn by_recording(
    end: RangeEnd,
    offset: &Offset,
    recordings: &[SharedRecording],
) -> Result<BTreeMap<i64, i64>, LiveError> {
    let id = |taken: &RecordingOffset| match offset.archive() {
        ArchiveName::Shared(_) => Ok((taken.recording_id, taken.position)),
        ArchiveName::Private(_) => {
            let holds = |recording: &&SharedRecording| {
                let descriptor = &recording.descriptor;
                descriptor.stream_id == taken.stream_id
                    && descriptor.session_id == taken.session_id
                    && (recording.start()..=recording.end).contains(&taken.position)
            };
            match recordings.iter().rfind(holds) {
                Some(recording) => Ok((recording.id(), taken.position)),
                None => Err(LiveError::new(
                    LiveCode::Option,
                    format!(
                        "option {}: the archive has no recording of stream {} session {} with position {}",
                        end.option(),
                        taken.stream_id,
                        taken.session_id,
                        taken.position
                    ),
                )),
            }
        }
    };
    offset.recordings().iter().map(id).collect()
}

fn check(
    end: RangeEnd,
    named: &BTreeMap<i64, i64>,
    recordings: &[SharedRecording],
) -> Result<(), LiveError> {
    for (&id, position) in named {
        let problem = match super::recordings::find(recordings, id) {
            None => "is not among the selected recordings".to_owned(),
            Some(recording) if !(recording.start()..=recording.end).contains(position) => format!(
                "has positions {} to {}, not {position}",
                recording.start(),
                recording.end
            ),
            Some(_) => continue,
        };
        let text = format!("option {}: recording {id} {problem}", end.option());
        return Err(LiveError::new(LiveCode::Option, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_times_offsets_and_positions_by_id_are_parsed() {
        assert_eq!(
            ReadPositions::parse("Earliest"),
            Ok(ReadPositions::Earliest)
        );
        assert_eq!(ReadPositions::parse("latest"), Ok(ReadPositions::Latest));
        assert_eq!(ReadPositions::parse("@-7"), Ok(ReadPositions::Time(-7)));
        let by_id = ReadPositions::parse(r#"{"0": 4096, "12": 32}"#).unwrap();
        assert_eq!(
            by_id,
            ReadPositions::ById(BTreeMap::from([(0, 4096), (12, 32)]))
        );
        let text = r#"{"aeron": 1, "archive": "shared:7", "recordings": {"1001/-5/3": 64}}"#;
        let ReadPositions::Offset(offset) = ReadPositions::parse(text).unwrap() else {
            panic!("the text is an offset");
        };
        assert_eq!(offset.position(3), Some(64));
    }

    #[test]
    fn a_text_in_another_form_is_refused_with_the_reason() {
        for (text, reason) in [
            ("yesterday", "not positions by recording id"),
            (
                r#"{"0": 33}"#,
                "position 33 of recording 0 is not a multiple of 32",
            ),
            (r#"{"0": -32}"#, "position -32 of recording 0"),
            (
                r#"{"aeron": 2, "archive": "shared:7", "recordings": {}}"#,
                "version 2",
            ),
        ] {
            let error = ReadPositions::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
