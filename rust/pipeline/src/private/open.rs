//! Opens a private archive: finds the end of every recording whose writer died, repairs the index, and reports losses.
//!
//! Only for the holder of the archive's lock. After a kill at any step the archive can be opened again.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use aeron_archive::catalog::{
    Catalog, CatalogEntry, CatalogError, DEFAULT_CAPACITY, RecordingDescriptor, RecordingState,
};
use aeron_archive::index::{IndexError, Progress, Repair, Tail, indexed_end, repair};
use aeron_archive::purge::remove_orphans;
use aeron_archive::recovery::{self, RecoveryError};
use aeron_archive::storage::Storage;
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, Recording, WriterState};
use super::published::Published;
use super::purge::SIDECARS;
use super::session::SessionKey;
use super::{ARCHIVE_TTL_HOURS, PrivateError};

/// The values that an offset has for a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRecording {
    /// Recording id.
    pub recording_id: i64,
    /// Position up to which Spark has committed the data.
    pub committed: i64,
    /// End of the batch that was logged last. Spark may request data up to this position.
    pub told: i64,
}

/// Findings of opening an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Lost ranges, by recording. To continue the query, [abandon](PrivateArchive::give_up) each recording that is
    /// listed here and exists.
    pub lost: Vec<LostRange>,
    /// Ranges whose arrival times are lost.
    pub lost_times: Vec<LostTimes>,
    /// Lines for the log.
    pub lines: Vec<String>,
}

/// A range of a recording that was recorded and cannot be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// The recording.
    pub recording_id: i64,
    /// First position.
    pub from: i64,
    /// End position.
    pub to: i64,
    /// Description of the damage, for display.
    pub reason: String,
}

/// A range of a recording that has lost its arrival times. Its rows are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostTimes {
    /// The recording.
    pub recording_id: i64,
    /// First position.
    pub from: i64,
    /// End position.
    pub to: i64,
    /// Whether a batch that is logged but not committed has rows of this range.
    pub is_needed: bool,
    /// Whether the times were lost at an earlier start. Such a range is reported only while it is needed.
    pub is_old: bool,
}

impl<S: Storage + Clone> PrivateArchive<S> {
    /// Creates the archive of a new query in an empty directory.
    ///
    /// # Errors
    /// A catalog exists already, or a file-system operation failed.
    pub fn create(storage: S, max_retained_bytes: u64) -> Result<Self, PrivateError> {
        let catalog = Catalog::create(&storage, DEFAULT_CAPACITY)?;
        Ok(Self::new(storage, catalog, max_retained_bytes))
    }

    /// Opens the archive of a dead query. `known` contains the positions of the checkpoint; data below them is never
    /// cut.
    ///
    /// # Errors
    /// The catalog or a segment is damaged in a way that a kill cannot cause, or a file-system operation failed. Lost
    /// data is not an error.
    pub fn open(
        storage: S,
        known: &[KnownRecording],
        max_retained_bytes: u64,
        now_ms: i64,
    ) -> Result<(Self, OpenReport), PrivateError> {
        let catalog = match Catalog::open(&storage, DEFAULT_CAPACITY) {
            // Killed before the catalog was created, so nothing can have been recorded.
            Err(CatalogError::Io { source, .. })
                if known.is_empty() && source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok((
                    Self::create(storage, max_retained_bytes)?,
                    OpenReport::default(),
                ));
            }
            catalog => catalog?,
        };
        remove_orphans(&storage, &catalog, &SIDECARS)?;
        let mut archive = Self::new(storage, catalog, max_retained_bytes);
        let mut report = OpenReport::default();
        let descriptors: Vec<_> = archive.catalog.recordings().cloned().collect();
        for descriptor in &descriptors {
            let known = KnownRecording::of(descriptor, known);
            archive.open_recording(descriptor, &known, now_ms, &mut report)?;
        }
        for known in known {
            archive.report_if_gone(known, &mut report);
            archive.note_committed(known.recording_id, known.committed);
        }
        archive.compact(now_ms)?;
        Ok((archive, report))
    }

    fn open_recording(
        &mut self,
        descriptor: &RecordingDescriptor,
        known: &KnownRecording,
        now_ms: i64,
        report: &mut OpenReport,
    ) -> Result<(), PrivateError> {
        let stream = RecordedStream::new(&descriptor.into())?;
        let end = self.end_of(descriptor, &stream, known.told, report)?;
        let tail = match descriptor.is_unfinished() {
            true => Tail::Killed { told: known.told },
            false => Tail::Stopped,
        };
        let found = self.make_whole(&stream, known.committed, end, tail)?;
        if descriptor.is_unfinished() {
            // Written last: after a kill before this point, the next open repeats the recovery.
            self.catalog.stop(descriptor.recording_id, end, now_ms)?;
        }
        let progress = report.note(known, end, found);
        let start = descriptor.start_position;
        let recording = Recording {
            key: SessionKey::of_recording(descriptor),
            stream,
            published: Arc::new(Published::new(end, start, progress)),
            state: WriterState::Ended {
                at_ms: now_ms,
                is_end_of_stream: false,
            },
        };
        self.recordings.insert(descriptor.recording_id, recording);
        Ok(())
    }

    /// Repairs the index of a recording. The inner error says why its segments cannot be read.
    fn make_whole(
        &self,
        stream: &RecordedStream,
        committed: i64,
        end: i64,
        tail: Tail,
    ) -> Result<Result<Repair, String>, PrivateError> {
        if let Some(name) = self.missing_segment(stream, committed, end)? {
            return Ok(Err(format!("{name} is missing")));
        }
        match repair(&self.storage, stream, end, tail) {
            Ok(repaired) => Ok(Ok(repaired)),
            Err(IndexError::Read(error)) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the end of a recording: the stop position in the catalog, or else the end that its files show.
    fn end_of(
        &self,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
        told: i64,
        report: &mut OpenReport,
    ) -> Result<i64, PrivateError> {
        if !descriptor.is_unfinished() {
            return Ok(descriptor.stop_position);
        }
        let start = descriptor.start_position;
        let indexed = indexed_end(&self.storage, stream).map_err(|source| IndexError::Storage {
            name: "index".to_owned(),
            source,
        })?;
        let recorded = indexed.map_or(told, |indexed| indexed.max(told));
        let end = match recovery::recover(&self.storage, stream, recorded) {
            // The rest of a recording with a lost segment is kept.
            Err(RecoveryError::Lost { .. }) => recovery::recover(&self.storage, stream, start)?,
            end => end?,
        };
        let mut line = format!(
            "recording {} of stream {} session {} was not stopped by its writer: it ends at {}",
            descriptor.recording_id, descriptor.stream_id, descriptor.session_id, end.position
        );
        if end.is_torn {
            line += ", a torn frame after it was removed";
        }
        if recorded > end.position {
            line += &format!(", and went to {recorded} before its last segment file was removed");
        }
        report.lines.push(line);
        Ok(end.position)
    }

    /// Returns the name of a missing segment file among those between two positions.
    fn missing_segment(
        &self,
        stream: &RecordedStream,
        from: i64,
        end: i64,
    ) -> Result<Option<String>, PrivateError> {
        let names = self
            .storage
            .names()
            .map_err(aeron_archive::purge::PurgeError::List)?;
        let names: BTreeSet<String> = names.into_iter().collect();
        let mut base = stream.segment_base(from);
        while from < end && base < end {
            let name = stream.segment_name(base);
            if !names.contains(&name) {
                return Ok(Some(name));
            }
            base += stream.segment_length();
        }
        Ok(None)
    }

    /// Reports a loss if a logged range belongs to a recording that does not exist, or that a tool marked invalid.
    fn report_if_gone(&self, known: &KnownRecording, report: &mut OpenReport) {
        if self.recordings.contains_key(&known.recording_id) {
            return;
        }
        let entry = self.catalog.entry(known.recording_id);
        let is_invalid = entry.is_some_and(|entry| entry.state == RecordingState::Invalid);
        let to = match entry {
            Some(entry) if is_invalid => entry.descriptor.stop_position.max(known.told),
            _ => known.told,
        };
        if known.committed >= to {
            return;
        }
        let reason = match is_invalid {
            true => "the catalog marks it as invalid".to_owned(),
            false => "the catalog does not have it any more".to_owned(),
        };
        report.lost.push(LostRange {
            recording_id: known.recording_id,
            from: known.committed,
            to,
            reason,
        });
    }

    /// Drops most entries of purged recordings when they are more than half of the catalog. Keeps the entries that a
    /// session needs if it comes back within a day.
    fn compact(&mut self, now_ms: i64) -> Result<(), PrivateError> {
        let entries = self.catalog.entries();
        let is_deleted = |entry: &&CatalogEntry| entry.state == RecordingState::Deleted;
        if entries.iter().filter(is_deleted).count() * 2 <= entries.len() {
            return Ok(());
        }
        let oldest_ms = now_ms.saturating_sub(ARCHIVE_TTL_HOURS * 3_600_000);
        let furthest = self.furthest_of_sessions();
        self.catalog.compact(&self.storage, |entry| {
            let RecordingDescriptor {
                recording_id,
                stop_timestamp_ms,
                ..
            } = entry.descriptor;
            stop_timestamp_ms >= oldest_ms && furthest.contains(&recording_id)
        })?;
        Ok(())
    }
}

impl KnownRecording {
    /// Returns the known positions of a recording, at least its start position.
    fn of(descriptor: &RecordingDescriptor, known: &[Self]) -> Self {
        let recording_id = descriptor.recording_id;
        let start = descriptor.start_position;
        let known = known
            .iter()
            .find(|known| known.recording_id == recording_id);
        let committed = known.map_or(start, |known| known.committed.max(start));
        Self {
            recording_id,
            committed,
            told: known.map_or(start, |known| known.told.max(committed)),
        }
    }
}

impl OpenReport {
    /// Adds the findings for a recording that ends at `end` to the report. Returns the progress of its messages.
    fn note(
        &mut self,
        known: &KnownRecording,
        end: i64,
        found: Result<Repair, String>,
    ) -> Progress {
        let &KnownRecording {
            recording_id,
            committed,
            told,
        } = known;
        let mut lose = |from: i64, to: i64, reason| {
            self.lost.push(LostRange {
                recording_id,
                from: from.min(to),
                to,
                reason,
            });
        };
        let repaired = match found {
            Ok(repaired) => repaired,
            Err(reason) => {
                lose(committed, end.max(told), reason);
                return Progress {
                    head: Some(committed.min(end)),
                    ..Progress::default()
                };
            }
        };
        if told > end {
            lose(end, told, format!("its segment files end at {end}"));
        }
        let times = repaired.lost.iter().map(|range| LostTimes {
            recording_id,
            from: range.from,
            to: range.to,
            is_needed: range.from < told && range.to > committed,
            is_old: range.is_old,
        });
        self.lost_times
            .extend(times.filter(|times| times.is_needed || !times.is_old));
        Progress {
            counts: repaired.counts,
            ..repaired.progress
        }
    }
}
