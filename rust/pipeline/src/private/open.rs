//! Opens a private archive: finds the end of each recording with a killed writer, repairs the index, and reports
//! losses.
//!
//! Only the holder of the archive's lock may open the archive. After a kill at any step, the archive can be opened
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aeron_archive::catalog::{
    CATALOG_FILE, CatalogEntry, CatalogError, RecordingDescriptor, RecordingState,
};
use aeron_archive::index::{IndexError, IndexForm, Progress, Repair, Tail, indexed_end, repair};
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::storage::{Access, Storage};
use aeron_archive::store::{
    ArchiveStore, DetachedSegments, OpenPolicy, RecoveredRecording, StoreError, StoreOptions,
};
use aeron_archive::stream::RecordedStream;

use super::archive::{PrivateArchive, Recording, WriterState};
use super::published::Published;
use super::session::SessionKey;
use super::{ARCHIVE_TTL_HOURS, MIN_SEGMENT_LENGTH, PrivateError};

/// Positions of a recording in the checkpoint's offsets.
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
    /// Lost ranges, by recording. To continue the query, [abandon](PrivateArchive::give_up) each listed recording that
    /// exists.
    pub lost: Vec<LostRange>,
    /// Ranges with lost arrival times.
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
    /// Whether the times were lost at an earlier start. Such a range is reported only if `is_needed` is `true`.
    pub is_old: bool,
}

impl<S: Storage + Clone> PrivateArchive<S> {
    /// Opens the archive of a dead query, or creates the archive of a new query. `known` contains the positions of the
    /// checkpoint; recovery never cuts data below them.
    ///
    /// # Errors
    /// The catalog is missing although `known` names recordings. The catalog or a segment is damaged in a way that a
    /// kill cannot cause, or a file-system operation failed. Lost data is not an error.
    pub fn open(
        storage: S,
        known: &[KnownRecording],
        max_retained_bytes: u64,
        now_ms: i64,
    ) -> Result<(Self, OpenReport), PrivateError> {
        if !known.is_empty() {
            check_catalog(&storage)?;
        }
        let mut opening = Opening {
            known,
            recorded: BTreeMap::new(),
            dead: BTreeMap::new(),
        };
        let (store, _) = ArchiveStore::open_with(storage, options(), now_ms, &mut opening)?;
        // Only rows of all recordings together are the rows of the query.
        if let Some(fault) = store.faults().next() {
            return Err(fault.into());
        }
        let mut report = OpenReport::default();
        let mut archive = Self::new(store, max_retained_bytes);
        let descriptors: Vec<_> = archive.store.recordings().cloned().collect();
        for descriptor in &descriptors {
            let dead = opening.dead.remove(&descriptor.recording_id);
            archive.add_recording(descriptor, known, dead, now_ms, &mut report)?;
        }
        for known in known {
            archive.report_if_gone(known, &mut report);
            archive.note_committed(known.recording_id, known.committed);
        }
        archive.compact(now_ms)?;
        Ok((archive, report))
    }

    /// Adds a recording that exists. `dead` is its end if its writer was killed.
    fn add_recording(
        &mut self,
        descriptor: &RecordingDescriptor,
        known: &[KnownRecording],
        dead: Option<DeadRecording>,
        now_ms: i64,
        report: &mut OpenReport,
    ) -> Result<(), PrivateError> {
        let stream = RecordedStream::new(&descriptor.into())?;
        let (start, end) = (descriptor.start_position, descriptor.stop_position);
        let known = KnownRecording::of(&stream, known);
        let found = match dead {
            Some(dead) => {
                report.lines.push(dead.line(descriptor));
                dead.index
            }
            None => repair_index(self.storage(), &stream, known.committed, end, Tail::Stopped)?,
        };
        let progress = report.note(&known, end, found);
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

    /// Reports a loss if a logged range belongs to a recording that does not exist, or that a tool marked invalid.
    fn report_if_gone(&self, known: &KnownRecording, report: &mut OpenReport) {
        if self.recordings.contains_key(&known.recording_id) {
            return;
        }
        let entries = self.store.entries();
        let place = entries
            .binary_search_by_key(&known.recording_id, |entry| entry.descriptor.recording_id);
        let entry = place.ok().and_then(|place| entries.get(place));
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

    /// Removes entries of purged recordings from the catalog if they are more than half of its entries. Keeps the last
    /// entry of each session for a day, because a session that comes back needs it.
    fn compact(&mut self, now_ms: i64) -> Result<(), PrivateError> {
        let entries = self.store.entries();
        let is_deleted = |entry: &&CatalogEntry| entry.state == RecordingState::Deleted;
        if entries.iter().filter(is_deleted).count() * 2 <= entries.len() {
            return Ok(());
        }
        let oldest_ms = now_ms.saturating_sub(ARCHIVE_TTL_HOURS * 3_600_000);
        let furthest = self.furthest_of_sessions();
        self.store.compact(|entry| {
            let descriptor = &entry.descriptor;
            descriptor.ended_ms() >= oldest_ms && furthest.contains(&descriptor.recording_id)
        })?;
        Ok(())
    }
}

/// The repaired index of a recording, or the reason why its segments cannot be read.
type RepairedIndex = Result<Repair, String>;

/// The end of a recording with a killed writer.
struct DeadRecording {
    /// Position up to which the index or the checkpoint shows that the recording had data.
    recorded: i64,
    is_torn: bool,
    index: RepairedIndex,
}

/// The private archive's decisions while its store is opened.
struct Opening<'a> {
    known: &'a [KnownRecording],
    /// See [`DeadRecording::recorded`].
    recorded: BTreeMap<i64, i64>,
    dead: BTreeMap<i64, DeadRecording>,
}

impl<S: Storage> OpenPolicy<S> for Opening<'_> {
    fn known_position(&mut self, storage: &S, stream: &RecordedStream) -> Result<i64, StoreError> {
        let told = KnownRecording::of(stream, self.known).told;
        let recorded = recorded_position(storage, stream, told)?;
        self.recorded.insert(stream.recording_id(), recorded);
        Ok(recorded)
    }

    /// Repairs the index before the catalog gets the stop position. A killed writer may leave the last block without an
    /// index entry. After the catalog has a stop position, a missing entry would count as damage.
    fn recovered(
        &mut self,
        storage: &S,
        stream: &RecordedStream,
        recovered: &RecoveredRecording,
    ) -> Result<(), StoreError> {
        let known = KnownRecording::of(stream, self.known);
        let (id, end) = (recovered.recording_id, recovered.stop_position);
        let tail = Tail::Killed { told: known.told };
        let dead = DeadRecording {
            recorded: self.recorded.get(&id).copied().unwrap_or(end),
            is_torn: recovered.is_torn,
            index: repair_index(storage, stream, known.committed, end, tail)?,
        };
        self.dead.insert(id, dead);
        Ok(())
    }

    /// No client needs to be kept alive: the recorder connects its client after the archive is open.
    fn keep_alive(&mut self) {}
}

impl DeadRecording {
    /// Returns the log line about the recording.
    fn line(&self, descriptor: &RecordingDescriptor) -> String {
        let RecordingDescriptor {
            recording_id,
            stream_id,
            session_id,
            stop_position,
            ..
        } = descriptor;
        let mut line = format!(
            "recording {recording_id} of stream {stream_id} session {session_id} was not stopped by its writer: it ends at {stop_position}"
        );
        if self.is_torn {
            line += ", and a torn frame after this position was removed";
        }
        let recorded = self.recorded;
        if recorded > *stop_position {
            line += &format!(
                ", and had data up to {recorded} before its last segment file was removed"
            );
        }
        line
    }
}

impl KnownRecording {
    /// Returns the positions of a recording in `known`. They are at least the start position of the recording.
    fn of(stream: &RecordedStream, known: &[Self]) -> Self {
        let recording_id = stream.recording_id();
        let start = stream.start_position();
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
    /// Adds the losses of a recording that ends at `end` to the report. Returns the counts and the head of its
    /// messages.
    fn note(&mut self, known: &KnownRecording, end: i64, found: RepairedIndex) -> Progress {
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

/// Returns the options of the store. A torn last frame may be removed, because only this process writes the files and
/// Spark requests only recorded positions.
fn options() -> StoreOptions {
    StoreOptions {
        segment_length: MIN_SEGMENT_LENGTH,
        on_torn_fragment: OnTornFragment::Truncate,
        index: Some(IndexForm::Dense),
        detached_segments: DetachedSegments::Deleted,
        low_storage_space_threshold: 0,
        ..StoreOptions::default()
    }
}

/// Returns the end of a recording after a kill of its writer: the end of its index, or `told` if `told` is greater.
pub(super) fn recorded_position<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    told: i64,
) -> Result<i64, IndexError> {
    let indexed = indexed_end(storage, stream).map_err(|source| IndexError::Storage {
        name: "the index".to_owned(),
        source,
    })?;
    Ok(indexed.map_or(told, |indexed| indexed.max(told)))
}

fn check_catalog<S: Storage>(storage: &S) -> Result<(), StoreError> {
    match storage.open(CATALOG_FILE, Access::Read) {
        Ok(_) => Ok(()),
        Err(source) => Err(CatalogError::Io {
            doing: "open it",
            source,
        }
        .into()),
    }
}

/// Repairs the index of a recording. The inner error is the reason why its segments cannot be read.
fn repair_index<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    committed: i64,
    end: i64,
    tail: Tail,
) -> Result<RepairedIndex, StoreError> {
    if let Some(name) = missing_segment(storage, stream, committed, end)? {
        return Ok(Err(format!("{name} is missing")));
    }
    match repair(storage, stream, end, tail) {
        Ok(repaired) => Ok(Ok(repaired)),
        Err(IndexError::Read(error)) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name of the first missing segment file between two positions; `None` if no file is missing.
fn missing_segment<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    from: i64,
    end: i64,
) -> Result<Option<String>, StoreError> {
    let names = storage.names().map_err(|source| StoreError::Storage {
        name: ".".to_owned(),
        doing: "list its files",
        source,
    })?;
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
