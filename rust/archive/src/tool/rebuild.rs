//! [`rebuild_catalog`]: writes a lost catalog again from the segment files.
//!
//! Names of segment files have the recording id and positions. Frames have stream id, term ids and lengths. So most
//! values of an entry can be found again. The channel and the source identity are only in the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::ToolError;
use super::scan::{SegmentScan, scan};
use crate::catalog::{
    CATALOG_FILE, Catalog, CatalogEntry, NULL_VALUE, RecordingDescriptor, RecordingState,
};
use crate::channel::stripped;
use crate::index::{IndexFile, IndexProof, IndexRecorder, last_arrival_ms};
use crate::objects::manifest_owner;
use crate::ownership::BootId;
use crate::recovery::{OnTornFragment, RecordingEnd, RecoveryError, RecoveryPolicy, find_end_from};
use crate::segments::{SEGMENT_EXTENSION, SegmentFileName, segment_name};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;
use aeron_memory::log::frame::aligned_length;
use aeron_memory::log::position::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};
use aeron_protocol::uri::{ChannelUri, Media, UriError};

/// End of the longest possible stream.
const MAX_POSITION: i64 = (MAX_TERM_LENGTH as i64) << 31;
/// MTU of a recording without data frames.
const DEFAULT_MTU_LENGTH: usize = 1408;

/// The result of a rebuild.
#[derive(Debug, Default)]
pub struct RebuiltCatalog {
    /// The recordings of the new catalog that have segment files, by ascending id.
    pub recordings: Vec<RebuiltRecording>,
    /// The recordings that are not in the new catalog. Their segment files stay.
    pub skipped: Vec<SkippedRecording>,
}

/// A recording that was found in segment files.
#[derive(Debug, PartialEq, Eq)]
pub struct RebuiltRecording {
    /// Recording id.
    pub recording_id: i64,
    /// Values of the new entry that are not certain, for display.
    pub notes: Vec<String>,
}

/// A recording whose entry cannot be written again.
#[derive(Debug, PartialEq, Eq)]
pub struct SkippedRecording {
    /// Recording id.
    pub recording_id: i64,
    /// Reason, for display.
    pub reason: String,
}

/// The channels of recordings that no other file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuiltChannel {
    /// The channel of the request; empty if it is unknown.
    pub original: String,
    /// The channel with only the parameters that the catalog keeps.
    pub stripped: String,
    /// Source identity: `aeron:ipc`, or empty.
    pub source_identity: String,
}

impl RebuiltChannel {
    /// Returns the values of recordings of a channel.
    ///
    /// # Errors
    /// The channel cannot be parsed.
    pub fn parse(channel: &str) -> Result<Self, UriError> {
        let is_ipc = ChannelUri::parse(channel)?.media() == Media::Ipc;
        Ok(Self {
            original: channel.to_owned(),
            stripped: stripped(channel)?,
            source_identity: if is_ipc { "aeron:ipc" } else { "" }.to_owned(),
        })
    }
}

/// Why a recording is skipped, or why the whole rebuild ends.
enum RebuildStop {
    Skipped(String),
    Interrupted,
}

impl From<String> for RebuildStop {
    fn from(reason: String) -> Self {
        Self::Skipped(reason)
    }
}

/// Writes a new catalog for a directory without a catalog. The caller owns the directory. No segment file is changed.
///
/// The catalog is written under another name and then renamed. If a compaction has left a new catalog, its entries are
/// used where they fit the segment files. `on_progress` is called after each segment file with the length of the file
/// in bytes, and may stop the work.
///
/// # Errors
/// The directory has a catalog, or the file system returns an error; [`ToolError::Interrupted`] if `on_progress` stops
/// the work. Nothing was changed, unless the last step failed.
pub fn rebuild_catalog<S: Storage + Clone>(
    storage: &S,
    channel: &RebuiltChannel,
    on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<RebuiltCatalog, ToolError> {
    let names = storage
        .names()
        .map_err(|source| ToolError::storage(".".to_owned(), source))?;
    if names.iter().any(|name| name == CATALOG_FILE) {
        return Err(ToolError::CatalogExists);
    }
    let compacted = Catalog::open_compacted(storage);
    let mut bases: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for file in SegmentFileName::among(&names).filter(|file| file.extension == SEGMENT_EXTENSION) {
        bases
            .entry(file.recording_id)
            .or_default()
            .insert(file.base);
    }
    let mut entries: BTreeMap<i64, (RecordingState, RecordingDescriptor)> = BTreeMap::new();
    for entry in compacted.iter().flat_map(Catalog::entries) {
        let id = entry.descriptor.recording_id;
        let state = match entry.state {
            // The files of a deleted recording may be the only data, so the next start must not delete them.
            RecordingState::Deleted if bases.contains_key(&id) => RecordingState::Invalid,
            state => state,
        };
        entries.insert(id, (state, entry.descriptor.clone()));
    }
    let mut rebuilt = RebuiltCatalog::default();
    for (&recording_id, bases) in &bases {
        let compacted = compacted.as_ref().and_then(|it| it.entry(recording_id));
        if compacted.is_some_and(|entry| entry.state != RecordingState::Valid) {
            continue;
        }
        let recording = Rebuild {
            storage,
            recording_id,
            channel,
            compacted: compacted.filter(|entry| entry.descriptor.check().is_ok()),
            notes: Vec::new(),
        };
        match recording.run(bases, on_progress) {
            Ok((descriptor, notes)) => {
                entries.insert(recording_id, (RecordingState::Valid, descriptor));
                rebuilt.recordings.push(RebuiltRecording {
                    recording_id,
                    notes,
                });
            }
            Err(RebuildStop::Skipped(reason)) => rebuilt.skipped.push(SkippedRecording {
                recording_id,
                reason,
            }),
            Err(RebuildStop::Interrupted) => return Err(ToolError::Interrupted),
        }
    }
    // No id is used twice, also not the id of a skipped recording or of a file that a deletion has left.
    let named = SegmentFileName::among(&names).map(|file| file.recording_id);
    let owners = names.iter().filter_map(|name| manifest_owner(name));
    let used = named.chain(owners).chain(entries.keys().copied()).max();
    let next_id = used.map_or(0, |id| id.saturating_add(1));
    let next_id = next_id.max(compacted.map_or(0, |it| it.next_recording_id()));
    Catalog::write_rebuilt(storage, next_id, entries.into_values())?;
    Ok(rebuilt)
}

/// The rebuild of one entry.
struct Rebuild<'a, S> {
    storage: &'a S,
    recording_id: i64,
    channel: &'a RebuiltChannel,
    /// The entry in the file of an interrupted compaction.
    compacted: Option<&'a CatalogEntry>,
    notes: Vec<String>,
}

/// The segment files of a recording without a gap, up to the last one.
struct Run {
    segment_length: i64,
    /// The files that have frames, with their bases.
    scans: Vec<(i64, SegmentScan)>,
    last_base: i64,
}

impl<S: Storage + Clone> Rebuild<'_, S> {
    fn run(
        mut self,
        bases: &BTreeSet<i64>,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(RecordingDescriptor, Vec<String>), RebuildStop> {
        let run = self.scan(bases, on_progress)?;
        let [(first_base, first), ..] = &run.scans[..] else {
            return Err("its segment files have no frames".to_owned().into());
        };
        let start_position = first_base + first.first_offset;
        let term_length = self.term_length(&run)?;
        let terms = first_base / i64::from(term_length);
        let (_, last) = run.scans.last().expect("the run has a first file");
        let recorder = self.recorder(&run);
        let session_id = recorder.map(|it| it.session_id).or(last.session_id);
        if session_id.is_none() {
            self.note("the session id is unknown: the frames have checksums");
        }
        let longest = run.scans.iter().map(|(_, scan)| scan.longest_frame).max();
        let longest = longest
            .filter(|&length| length > 0)
            .unwrap_or(DEFAULT_MTU_LENGTH);
        let found = RecordingDescriptor {
            control_session_id: recorder.map_or(0, |it| it.control_session_id),
            correlation_id: recorder.map_or(0, |it| it.correlation_id),
            recording_id: self.recording_id,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position,
            stop_position: NULL_VALUE,
            initial_term_id: first.term_id.wrapping_sub(terms as i32),
            segment_length: run.segment_length as i32,
            term_length,
            mtu_length: aligned_length(longest) as i32,
            session_id: session_id.unwrap_or(0),
            stream_id: first.stream_id,
            stripped_channel: Arc::from(self.channel.stripped.as_str()),
            original_channel: Arc::from(self.channel.original.as_str()),
            source_identity: Arc::from(self.channel.source_identity.as_str()),
        };
        let descriptor = self.with_compacted(found);
        let descriptor = self.with_stop(descriptor, &run)?;
        descriptor
            .check()
            .map_err(|damage| format!("its segment files are damaged: {damage}"))?;
        Ok((descriptor, self.notes))
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Scans the segment files after the last gap between them.
    fn scan(
        &mut self,
        bases: &BTreeSet<i64>,
        on_progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Run, RebuildStop> {
        let mut files = Vec::with_capacity(bases.len());
        for &base in bases {
            if base > MAX_POSITION {
                let name = segment_name(self.recording_id, base);
                return Err(format!("{name}: no stream has this position").into());
            }
            let (_, length) = self.open(base)?;
            files.push((base, length));
        }
        let longest = files.iter().map(|(_, length)| *length).max();
        let segment_length = segment_length(bases, longest.unwrap_or(0))?;
        // A file cannot begin where another one has not ended, so the gaps are found from the end.
        let mut first = files.len() - 1;
        while first > 0 && files[first - 1].0 + segment_length == files[first].0 {
            first -= 1;
        }
        if first > 0 {
            let name = segment_name(self.recording_id, files[first - 1].0);
            self.note(format!(
                "{first} segment files up to {name} are before a gap, and are left out"
            ));
        }
        let last_base = files.last().map_or(0, |(base, ..)| *base);
        let mut scans = Vec::new();
        for (base, length) in files.drain(first..) {
            let (file, _) = self.open(base)?;
            let name = segment_name(self.recording_id, base);
            let is_first = scans.is_empty();
            let found = scan(&file, length.min(segment_length as u64), is_first)
                .map_err(|source| format!("{name}: {source}"))?;
            scans.extend(found.map(|scan| (base, scan)));
            if on_progress(length).is_break() {
                return Err(RebuildStop::Interrupted);
            }
        }
        Ok(Run {
            segment_length,
            scans,
            last_base,
        })
    }

    fn open(&self, base: i64) -> Result<(S::File, u64), RebuildStop> {
        let name = segment_name(self.recording_id, base);
        let opened = self.storage.open(&name, Access::Read);
        opened
            .and_then(|file| {
                let length = file.length()?;
                Ok((file, length))
            })
            .map_err(|source| format!("{name}: {source}").into())
    }

    /// Returns the term length. If the recording has only a part of one term, every power of two above this part is
    /// possible.
    fn term_length(&mut self, run: &Run) -> Result<i32, RebuildStop> {
        let scans = &run.scans;
        let (first_base, first) = &scans[0];
        let of_files = scans.iter().find_map(|(base, scan)| {
            let terms = i64::from(scan.term_id.wrapping_sub(first.term_id));
            (terms > 0).then(|| (base - first_base) / terms)
        });
        let in_file = scans.iter().find_map(|(_, scan)| scan.term_length);
        let compacted = self
            .compacted
            .map(|it| i64::from(it.descriptor.term_length));
        let known = in_file.or(of_files).or(compacted);
        let least = scans.iter().map(|(_, scan)| scan.most_term_offset).max();
        let most = run.segment_length.min(MAX_TERM_LENGTH as i64);
        let assumed = match *first_base {
            0 => most,
            base => most.min(1 << base.trailing_zeros()),
        };
        let length = known.unwrap_or(assumed);
        let is_possible = length.count_ones() == 1
            && (MIN_TERM_LENGTH as i64..=most).contains(&length)
            && first_base % length == 0
            && least.is_none_or(|least| least <= length);
        if !is_possible {
            return Err(format!("its frames need an impossible term length of {length}").into());
        }
        if known.is_none() {
            self.note(format!(
                "the term length is assumed to be {length}: the recording has only a part of one term"
            ));
        }
        Ok(length as i32)
    }

    /// Returns the recorder that the last index names.
    fn recorder(&self, run: &Run) -> Option<IndexRecorder> {
        let base = run.scans.last()?.0;
        let index = IndexFile::open(self.storage, self.recording_id, base, Access::Read);
        index.ok()??.recorder().copied()
    }

    /// Takes the values that only the catalog has from the entry of an interrupted compaction, if the entry fits the
    /// segment files.
    fn with_compacted(&self, found: RecordingDescriptor) -> RecordingDescriptor {
        let Some(entry) = self.compacted.map(|entry| &entry.descriptor) else {
            return found;
        };
        let geometry = |it: &RecordingDescriptor| {
            (
                it.stream_id,
                it.initial_term_id,
                it.term_length,
                it.segment_length,
            )
        };
        if geometry(entry) != geometry(&found) {
            return found;
        }
        // The entry may have another start in the same segment, after the detachment of segments also in a later one.
        let start_position = entry.start_position.max(found.start_position);
        RecordingDescriptor {
            start_position,
            stop_position: NULL_VALUE,
            stop_timestamp_ms: NULL_VALUE,
            ..entry.clone()
        }
    }

    /// Sets the stop position and the times.
    fn with_stop(
        &mut self,
        mut descriptor: RecordingDescriptor,
        run: &Run,
    ) -> Result<RecordingDescriptor, RebuildStop> {
        let stream =
            RecordedStream::of_recording(&descriptor).map_err(|error| error.to_string())?;
        let stop_position = self.stop_position(&descriptor, &stream, run)?;
        descriptor.stop_position = stop_position;
        let compacted = self.compacted.map(|entry| &entry.descriptor);
        if let Some(entry) = compacted.filter(|entry| entry.stop_position == stop_position) {
            descriptor.start_timestamp_ms = entry.start_timestamp_ms;
            descriptor.stop_timestamp_ms = entry.stop_timestamp_ms;
            return Ok(descriptor);
        }
        let first_base = run.scans[0].0;
        let began_ms = self.first_arrival_ms(first_base);
        let ended_ms = last_arrival_ms(self.storage, &stream, stop_position);
        if descriptor.start_timestamp_ms == 0 {
            descriptor.start_timestamp_ms = match began_ms {
                Some(began_ms) => began_ms,
                None => self.modified_ms(first_base)?,
            };
        }
        let ended_or_modified = match ended_ms {
            Some(ended_ms) => ended_ms,
            None => self.modified_ms(run.last_base)?,
        };
        descriptor.stop_timestamp_ms = ended_or_modified.max(descriptor.start_timestamp_ms);
        if began_ms.is_none() || ended_ms.is_none() {
            self.note("the times are those of the segment files: the index does not have them");
        }
        Ok(descriptor)
    }

    fn stop_position(
        &mut self,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
        run: &Run,
    ) -> Result<i64, RebuildStop> {
        let find = |on_torn_fragment| -> Result<RecordingEnd, RecoveryError> {
            let policy = RecoveryPolicy {
                on_torn_fragment,
                checksum: None,
            };
            let boot_id = BootId::current();
            let prove = |base| IndexProof::read(self.storage, descriptor, stream, base, boot_id);
            let (start, last) = (stream.start_position(), Some(run.last_base));
            find_end_from(self.storage, stream, start, last, &policy, prove)
        };
        match find(OnTornFragment::Refuse) {
            Ok(end) => Ok(end.position),
            Err(RecoveryError::Torn { .. } | RecoveryError::Damaged { .. }) => {
                let end = find(OnTornFragment::Truncate).map_err(|error| error.to_string())?;
                // All bytes of the frame are in the file. A frame of a recording that was stopped is whole.
                let stop_position = end.kept_position.max(end.position);
                self.note(match stop_position > end.position {
                    true => format!(
                        "the last fragment, at position {}, may not be whole",
                        end.position
                    ),
                    false => format!(
                        "bytes that are no frame follow after the stop position {stop_position}"
                    ),
                });
                Ok(stop_position)
            }
            Err(error) => Err(error.to_string().into()),
        }
    }

    fn first_arrival_ms(&self, base: i64) -> Option<i64> {
        let file = IndexFile::open(self.storage, self.recording_id, base, Access::Read).ok()??;
        let first = file.entry(0).ok()??;
        Some(first.arrival_us?.div_euclid(1_000))
    }

    fn modified_ms(&self, base: i64) -> Result<i64, RebuildStop> {
        let (file, _) = self.open(base)?;
        let modified = file
            .modified()
            .map_err(|source: io::Error| source.to_string())?;
        let since_epoch = modified.duration_since(std::time::UNIX_EPOCH);
        Ok(since_epoch.map_or(0, |since| since.as_millis() as i64))
    }
}

/// Returns the length of the segment files of a recording. Archives create them with their full length.
fn segment_length(bases: &BTreeSet<i64>, longest_file: u64) -> Result<i64, String> {
    let distances = bases.iter().zip(bases.iter().skip(1));
    let least_distance = distances.map(|(base, next)| next - base).min();
    let of_files = i64::try_from(longest_file.max(MIN_TERM_LENGTH as u64).next_power_of_two());
    let of_files = of_files.unwrap_or(i64::MAX);
    // If files are missing or cut, one of the two numbers may be too large or too small.
    let length = match least_distance {
        Some(distance) if distance.count_ones() == 1 && distance >= of_files => {
            match longest_file.is_power_of_two() {
                true => of_files,
                false => distance,
            }
        }
        _ => of_files,
    };
    match length <= MAX_TERM_LENGTH as i64 {
        true => Ok(length),
        false => Err(format!(
            "a segment file has {longest_file} bytes, at most {MAX_TERM_LENGTH} are possible"
        )),
    }
}
