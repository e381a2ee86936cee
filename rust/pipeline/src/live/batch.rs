//! [`BatchPlanner`]: computes the end offset of a batch from its start, and the partitions between two offsets.

use std::collections::HashMap;

use aeron_archive::storage::Directory;

use crate::error::{LiveCode, LiveError};
use crate::offsets::{Offset, RecordingOffset};
use crate::partition::{Partition, RecordingPiece};
use crate::planning::{self, PlanLimits, Range, RangeCutting, RowKind};
use crate::private::{Index, RecordingInfo};
use crate::recorder::{RecorderSettings, StreamRecorder, has_new_messages};

/// Planner of one batch.
pub(super) struct BatchPlanner<'a> {
    pub recorder: &'a StreamRecorder,
    pub settings: &'a RecorderSettings,
    /// Recordings that were abandoned when the archive was opened. Their loss was counted then.
    pub given_up: &'a [i64],
}

/// A recording and the range to read from it.
type IndexedRecording<'a> = (&'a RecordingInfo, Range<Index<Directory>>);

impl BatchPlanner<'_> {
    /// Returns an error if an existing recording ends before its position in `start`.
    pub fn check(&self, start: &Offset, recordings: &[RecordingInfo]) -> Result<(), LiveError> {
        for taken in start.recordings() {
            let end = find(recordings, taken.recording_id).map(end_of);
            if let Some(end) = end.filter(|&end| end < taken.position) {
                let path = self.recorder.location().map(|location| location.path);
                return Err(LiveError::ends_too_early(
                    taken,
                    end,
                    &path.unwrap_or_default(),
                ));
            }
        }
        Ok(())
    }

    /// Returns the end of a batch that begins at `start`; `None` if there is no new data.
    pub fn end(
        &self,
        start: &Offset,
        recordings: &[RecordingInfo],
        frozen: Option<&HashMap<i64, i64>>,
        limits: PlanLimits,
        rows: RowKind,
    ) -> Result<Option<Offset>, LiveError> {
        let news = recordings
            .iter()
            .filter_map(|recording| self.news(start, recording, frozen));
        let (recorded, ranges): (Vec<_>, Vec<_>) = news.unzip();
        if ranges.is_empty() {
            return Ok(None);
        }
        let ends = planning::take(&ranges, limits, rows)?;
        let mut taken: Vec<RecordingOffset> = start.recordings().to_vec();
        // A recording that was purged entirely is left out, because Spark never requests its data again.
        taken.retain(|taken| find(recordings, taken.recording_id).is_some());
        for ((recording, range), position) in recorded.into_iter().zip(&ranges).zip(ends) {
            if position > range.from {
                let end = recording_offset(recording, position);
                taken.retain(|taken| taken.recording_id != end.recording_id);
                taken.push(end);
            }
        }
        Ok(Some(Offset::new(start.archive().clone(), taken)?))
    }

    fn news<'r>(
        &self,
        start: &Offset,
        recording: &'r RecordingInfo,
        frozen: Option<&HashMap<i64, i64>>,
    ) -> Option<IndexedRecording<'r>> {
        let id = recording.stream.recording_id();
        let taken = start.position(id);
        if !has_new_messages(recording, taken) {
            return None;
        }
        let head = recording.published.head()?;
        let to = match frozen {
            Some(frozen) => head.min(*frozen.get(&id)?),
            None => head,
        };
        let from = taken.unwrap_or(recording.stream.start_position());
        (to > from).then(|| self.piece(recording, from, to))
    }

    /// Plans the partitions of a batch. `start` is `None` if the batch is the first one from the archive of `end`.
    pub fn partitions(
        &self,
        start: Option<&Offset>,
        end: &Offset,
        cutting: RangeCutting,
    ) -> Result<Vec<String>, LiveError> {
        let recordings = self.recorder.recordings();
        let mut pieces = Vec::new();
        for taken in end.recordings() {
            let from = start.and_then(|start| start.position(taken.recording_id));
            if from != Some(taken.position) {
                pieces.extend(self.logged(&recordings, from, taken)?);
            }
        }
        let (recorded, ranges): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        let cut = planning::cut(&ranges, cutting)?;
        let location = self.recorder.location()?;
        let partition = |cut: &planning::RangePiece| {
            let partition = Partition {
                archive: location.clone(),
                recording: describe(recorded[cut.range]),
                from: cut.from,
                to: cut.to,
                end: cut.to,
                index_hint: ranges[cut.range].messages.entry_number(cut.from).ok(),
            };
            partition.to_json()
        };
        Ok(cut.iter().map(partition).collect())
    }

    /// Returns a range that Spark has logged; `None` if the range is lost and the settings accept the loss.
    fn logged<'r>(
        &self,
        recordings: &'r [RecordingInfo],
        from: Option<i64>,
        taken: &RecordingOffset,
    ) -> Result<Option<IndexedRecording<'r>>, LiveError> {
        let to = taken.position;
        let Some(recording) = find(recordings, taken.recording_id) else {
            if self.given_up.contains(&taken.recording_id) {
                return Ok(None);
            }
            let from = from.unwrap_or(0);
            return self.lose(taken, from, to, "the archive does not have it any more");
        };
        let start_position = recording.stream.start_position();
        let from = from.unwrap_or(start_position);
        if from > to {
            let key = taken.key();
            let text = format!("the offset of {key} goes backwards, from {from} to {to}");
            return Err(LiveError::new(LiveCode::Offset, text));
        }
        if from < start_position {
            return self.lose(
                taken,
                from,
                to,
                &format!("it was purged to {start_position}"),
            );
        }
        let end = end_of(recording);
        if to > end {
            return self.lose(taken, from, to, &format!("it ends at {end}"));
        }
        Ok(Some(self.piece(recording, from, to)))
    }

    fn lose<T>(
        &self,
        taken: &RecordingOffset,
        from: i64,
        to: i64,
        reason: &str,
    ) -> Result<Option<T>, LiveError> {
        let loss = self.loss(taken, from, to, reason);
        if self.settings.fail_on_data_loss {
            return Err(LiveError::new(LiveCode::DataLoss, loss));
        }
        self.recorder.count_loss(to - from, loss);
        Ok(None)
    }

    fn loss(&self, taken: &RecordingOffset, from: i64, to: i64, reason: &str) -> String {
        let path = self.recorder.location().map(|location| location.path);
        format!(
            "recording {} of stream {} session {} from {from} to {to} of {} cannot be read: {reason}; failOnDataLoss=false counts the loss and continues",
            taken.recording_id,
            taken.stream_id,
            taken.session_id,
            path.unwrap_or_default()
        )
    }

    fn piece<'r>(&self, recording: &'r RecordingInfo, from: i64, to: i64) -> IndexedRecording<'r> {
        let messages = index(self.recorder, recording);
        (recording, Range { messages, from, to })
    }
}

/// Counts the bytes and messages that are recorded after the positions of the last returned offset, `answered`. Stores
/// the sums in the statistics.
pub(super) fn count_backlog(
    recorder: &StreamRecorder,
    recordings: &[RecordingInfo],
    answered: &[RecordingOffset],
) {
    let (mut bytes, mut messages) = (0, 0);
    for recording in recordings {
        let id = recording.stream.recording_id();
        let taken = answered.iter().find(|taken| taken.recording_id == id);
        let taken = taken.map(|taken| taken.position);
        if let (true, Some(head)) = (
            has_new_messages(recording, taken),
            recording.published.head(),
        ) {
            let from = taken.unwrap_or(recording.stream.start_position());
            bytes += head - from;
            let counts = index(recorder, recording).count(from, head);
            messages += counts.map_or(0, |counts| counts.messages);
        }
    }
    let statistics = recorder.statistics();
    statistics.backlog_bytes.set(bytes);
    statistics.backlog_messages.set(messages);
}

/// Returns the head of a recording in the form in which an offset contains it.
pub(super) fn head_of(recording: &RecordingInfo) -> Option<RecordingOffset> {
    let head = recording.published.head()?;
    Some(recording_offset(recording, head))
}

fn index(recorder: &StreamRecorder, recording: &RecordingInfo) -> Index<Directory> {
    Index::new(recorder.storage(), recording.stream)
}

fn find(recordings: &[RecordingInfo], recording_id: i64) -> Option<&RecordingInfo> {
    let mut recordings = recordings.iter();
    recordings.find(|recording| recording.stream.recording_id() == recording_id)
}

/// Returns the position up to which a batch can read a recording.
fn end_of(recording: &RecordingInfo) -> i64 {
    let start = recording.stream.start_position();
    recording.published.head().unwrap_or(start)
}

fn recording_offset(recording: &RecordingInfo, position: i64) -> RecordingOffset {
    RecordingOffset {
        stream_id: recording.stream_id,
        session_id: recording.session_id,
        recording_id: recording.stream.recording_id(),
        position,
    }
}

fn describe(recording: &RecordingInfo) -> RecordingPiece {
    let stream = &recording.stream;
    let positions = stream.positions();
    RecordingPiece {
        id: stream.recording_id(),
        stream_id: recording.stream_id,
        session_id: recording.session_id,
        initial_term_id: positions.initial_term_id(),
        term_length: positions.term_length() as i32,
        segment_length: stream.segment_length() as i32,
        start_position: stream.start_position(),
        channel: None,
    }
}
