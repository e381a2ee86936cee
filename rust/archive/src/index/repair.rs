//! Repairs the index of a recording when the archive is opened.
//!
//! In a dense index, a kill leaves at most one block without its entry, because an entry is written before the next
//! block. In a sparse index, the blocks for which no entry was due also have no entry. The new entries of these blocks
//! have the time of the last write to their segment. In a sparse index, this time is not used if the machine may have
//! restarted since: a loss of power may set the time of a file back. All other missing or damaged entries have another
//! cause. A scan of the segments computes them again, but without arrival times: an unknown time is better than a wrong
//! time.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::reader::RecordingReader;
use crate::segments::{SegmentFileName, old_index_name, sidecar_name};
use crate::storage::{Access, Storage, StorageFile};
use crate::stream::RecordedStream;

use super::entry::MAX_UNINDEXED_BYTES;
use super::file::session_field;
use super::{
    Counts, ENTRY_LENGTH, HeadTracker, INDEX_EXTENSION, IndexEntry, IndexError, IndexFile,
    IndexForm, IndexHeader, IndexRecorder, IndexWriter, MAX_BLOCK_LENGTH, NEW_INDEX_EXTENSION,
    Progress,
};

/// Maximum number of entries that one read returns.
const ENTRIES_PER_READ: usize = 1024;

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The recorder stopped the recording. Every block has its entry.
    Stopped,
    /// The recorder was killed. The last block may have no entry. The blocks up to the acknowledged
    /// position `told` have their entries.
    Killed {
        /// The acknowledged position; the start position if no position was acknowledged.
        told: i64,
    },
}

/// Result of a repair: the recording's progress at its end, and the lost arrival times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Progress of the messages at the end.
    pub progress: Progress,
    /// Counts of the complete messages that the segments still contain.
    pub counts: Counts,
    /// Ranges with unknown arrival times, at most one for each segment. Some arrival times within such a range may be
    /// known.
    pub lost: Vec<LostArrivals>,
}

/// A range of a recording whose arrival times are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostArrivals {
    /// First position.
    pub from: i64,
    /// End position.
    pub to: i64,
    /// Whether an earlier repair already found these times lost.
    pub is_old: bool,
}

/// Returns the end of the last block with a complete entry in the last valid index file of a
/// recording. If this file has no entry, returns the first position of the file's segment. Returns
/// `None` if the recording has no valid index file.
///
/// # Errors
/// The file system returns an error.
pub fn indexed_end<S: Storage>(storage: &S, stream: &RecordedStream) -> io::Result<Option<i64>> {
    for base in index_bases(storage, stream)?.into_iter().rev() {
        let id = stream.recording_id();
        if let Some(file) = IndexFile::open(storage, id, base, Access::Read)? {
            let examined = Examined::of(&file, stream, base, base + stream.segment_length())?;
            return Ok(Some(examined.highest_end));
        }
    }
    Ok(None)
}

/// Returns the bases of the segments that have an index file, in ascending order.
pub(super) fn index_bases<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
) -> io::Result<Vec<i64>> {
    let first = stream.segment_base(stream.start_position());
    let mut bases: Vec<i64> = storage
        .names()?
        .iter()
        .filter_map(|name| SegmentFileName::parse(name))
        .filter(|name| name.extension == INDEX_EXTENSION)
        .filter(|name| name.recording_id == stream.recording_id())
        .map(|name| name.base)
        .filter(|&base| base >= first && stream.segment_base(base) == base)
        .collect();
    bases.sort_unstable();
    // A segment may have two indexes, one of them with a name of older releases.
    bases.dedup();
    Ok(bases)
}

/// Repairs the index of a recording that ends at `end`, segment by segment.
///
/// # Errors
/// The file system returns an error, or a segment that must be scanned cannot be read. Segments
/// that were repaired before the error stay repaired.
pub fn repair<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    end: i64,
    tail: Tail,
) -> Result<Repair, IndexError> {
    let mut repair = Repair {
        progress: Progress::default(),
        counts: Counts::default(),
        lost: Vec::new(),
    };
    let mut before = None;
    let mut base = stream.segment_base(stream.start_position());
    loop {
        let segment = RepairedSegment {
            storage,
            stream,
            base,
            end: end.min(base + stream.segment_length()),
            is_last: end <= base + stream.segment_length(),
            recorder: None,
            is_trusted: true,
        };
        let state = segment.repair(before, tail, &mut repair.lost)?;
        repair.progress = state.progress;
        before = Some(state);
        if segment.is_last {
            let id = stream.recording_id();
            let first = stream.segment_base(stream.start_position());
            let first = IndexFile::open(storage, id, first, Access::Read)
                .map_err(|source| segment.error(source))?;
            let purged = first.map_or(Counts::default(), |file| file.header().progress.counts);
            repair.counts = repair.progress.counts - purged;
            return Ok(repair);
        }
        base += stream.segment_length();
    }
}

/// Repairs the index of the last segment of a recording that ends at `end`. A new sparse index contains `recorder`.
///
/// If `is_trusted` is `false`, the existing entries are dropped, because another archive may have
/// written other bytes.
///
/// # Errors
/// The file system returns an error, or the segment cannot be read.
pub(crate) fn repair_last<S: Storage>(
    storage: &S,
    stream: &RecordedStream,
    end: i64,
    form: IndexForm,
    recorder: &IndexRecorder,
    is_trusted: bool,
) -> Result<State, IndexError> {
    let base = stream.segment_base(end);
    let mut segment = RepairedSegment {
        storage,
        stream,
        base,
        end,
        is_last: true,
        recorder: (form == IndexForm::Sparse).then_some(*recorder),
        is_trusted,
    };
    if let Some(recorder) = &mut segment.recorder {
        // The frames are those of the former recorder.
        let before = session_field(storage, stream, base, is_trusted);
        recorder.session_field = before.map_err(|source| IndexError::Storage {
            name: sidecar_name(stream.recording_id(), base, INDEX_EXTENSION),
            source,
        })?;
    }
    let tail = Tail::Killed {
        told: stream.start_position(),
    };
    segment.repair(None, tail, &mut Vec::new())
}

/// One segment whose index is repaired.
struct RepairedSegment<'a, S> {
    storage: &'a S,
    stream: &'a RecordedStream,
    base: i64,
    /// End of the recorded bytes in the segment.
    end: i64,
    is_last: bool,
    /// The recorder of the segment, if the index is sparse.
    recorder: Option<IndexRecorder>,
    /// Whether the existing entries are valid for the segment.
    is_trusted: bool,
}

/// Progress and arrival time at the end of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    pub progress: Progress,
    /// The latest arrival time in the segment or before it, in microseconds since the epoch.
    pub arrival_us: Option<i64>,
}

/// Result of a check of an index file's entries, in the order of the file up to the first invalid
/// entry.
#[derive(Debug)]
struct Examined {
    /// Number of valid entries at the beginning of the file.
    sound: u64,
    /// End of the last valid entry.
    end: i64,
    state: State,
    /// Whether nothing follows the valid entries, except for an incomplete entry.
    is_clean: bool,
    /// Range of positions of the valid entries without an arrival time.
    unknown: Option<(i64, i64)>,
    /// Arrival time of the block that crosses the limit. The recording was truncated within this
    /// block.
    cut_block: Option<i64>,
    /// Highest end position of all complete entries.
    highest_end: i64,
}

impl Examined {
    /// Examines the entries of a file. An entry is valid if it continues the previous entry and does not extend beyond
    /// `limit`.
    fn of<F: StorageFile>(
        file: &IndexFile<F>,
        stream: &RecordedStream,
        base: i64,
        limit: i64,
    ) -> io::Result<Self> {
        let begin = base.max(stream.start_position());
        let header = file.header();
        let mut examined = Self {
            sound: 0,
            end: begin,
            state: State {
                progress: header.progress,
                arrival_us: None,
            },
            is_clean: true,
            unknown: None,
            cut_block: None,
            highest_end: begin,
        };
        let mut bytes = vec![0; ENTRIES_PER_READ * ENTRY_LENGTH];
        let mut number = 0;
        // Reads one entry more than can be valid. If this entry exists, the file is damaged.
        let most = file.most_entries(limit) + 1;
        while number < most {
            let count = file.read(number, &mut bytes)?;
            if count == 0 {
                break;
            }
            for slot in bytes[..count * ENTRY_LENGTH].chunks_exact(ENTRY_LENGTH) {
                examined.take(slot.first_chunk().and_then(IndexEntry::decode), limit);
            }
            number += count as u64;
        }
        Ok(examined)
    }

    fn take(&mut self, entry: Option<IndexEntry>, limit: i64) {
        match entry {
            Some(entry) if self.is_clean && entry.end_position > limit => {
                self.cut_block = entry.arrival_us;
                self.is_clean = false;
            }
            Some(entry) if self.is_clean && self.is_next(&entry) => {
                self.sound += 1;
                if entry.arrival_us.is_none() {
                    let from = self.unknown.map_or(self.end, |(from, _)| from);
                    self.unknown = Some((from, entry.end_position));
                }
                self.end = entry.end_position;
                self.state.progress = entry.progress;
                self.state.arrival_us = self.state.arrival_us.max(entry.arrival_us);
            }
            _ => self.is_clean = false,
        }
        if let Some(entry) = entry.filter(|entry| entry.end_position <= limit) {
            self.highest_end = self.highest_end.max(entry.end_position);
        }
        debug_assert!(
            self.end <= self.highest_end,
            "the valid entries end at {}, after the highest end {} of all entries",
            self.end,
            self.highest_end
        );
    }

    fn is_next(&self, entry: &IndexEntry) -> bool {
        let progress = self.state.progress;
        let is_later = entry.arrival_us.is_none() || entry.arrival_us >= self.state.arrival_us;
        let grown = entry.progress.counts - progress.counts;
        entry.end_position > self.end
            && entry.progress.head >= progress.head
            && grown.messages >= 0
            && grown.payload_bytes >= 0
            && is_later
    }
}

impl<S: Storage> RepairedSegment<'_, S> {
    /// Repairs the index of the segment. Returns the progress at the segment's end.
    fn repair(
        &self,
        before: Option<State>,
        tail: Tail,
        lost: &mut Vec<LostArrivals>,
    ) -> Result<State, IndexError> {
        match self.keep(before, tail, lost) {
            // A scan of the segment failed. If the scan began at the last valid entry, the position in
            // this entry may be wrong, and the segment may be sound. So the whole segment is scanned.
            Err(IndexError::Read(_)) => self.rewrite(&self.header(before)?, None, before, lost),
            kept => kept,
        }
    }

    /// Does the same as [`repair`](Self::repair), but relies on the valid entries.
    fn keep(
        &self,
        before: Option<State>,
        tail: Tail,
        lost: &mut Vec<LostArrivals>,
    ) -> Result<State, IndexError> {
        let id = self.stream.recording_id();
        let file = IndexFile::open(self.storage, id, self.base, Access::Write)
            .map_err(|source| self.error(source))?;
        let Some(file) = file.filter(|_| self.is_trusted) else {
            let header = self.header(before)?;
            return self.rewrite(&header, None, before, lost);
        };
        let examined = Examined::of(&file, self.stream, self.base, self.end)
            .map_err(|source| self.error(source))?;
        lost.extend(examined.unknown.map(|(from, to)| LostArrivals {
            from,
            to,
            is_old: true,
        }));
        let before_arrival = before.and_then(|before| before.arrival_us);
        let state = State {
            arrival_us: examined.state.arrival_us.max(before_arrival),
            ..examined.state
        };
        let is_of_form = file.header().form == self.form();
        if is_of_form && examined.is_clean && examined.end == self.end {
            return Ok(state);
        }
        if is_of_form && examined.is_clean && self.is_killed_tail(examined.end, tail)? {
            let arrival_us = match self.has_file_times(&file) {
                true => self.modified()?.max(state.arrival_us),
                false => None,
            };
            let mut writer = IndexWriter::behind(file);
            return self.scan(examined.end, state, arrival_us, &mut |entry| {
                writer.append(entry)
            });
        }
        let header = IndexHeader {
            form: self.form(),
            ..*file.header()
        };
        self.rewrite(&header, Some((&file, &examined)), Some(state), lost)
    }

    /// Returns whether the time of the last write to the segment is certain. A loss of power may set the time of a file
    /// back, so the machine must not have restarted since the recorder began to write. A dense index does not name its
    /// recorder, so this function returns true for it.
    fn has_file_times(&self, file: &IndexFile<S::File>) -> bool {
        let Some(recorder) = &self.recorder else {
            return true;
        };
        let boot_id = file.recorder().and_then(|before| before.boot_id);
        boot_id.is_some() && boot_id == recorder.boot_id
    }

    /// Returns whether a kill explains why the last bytes have no entry.
    fn is_killed_tail(&self, indexed: i64, tail: Tail) -> Result<bool, IndexError> {
        let Tail::Killed { told } = tail else {
            return Ok(false);
        };
        if !self.is_last || told > indexed {
            return Ok(false);
        }
        let most = match self.form() {
            IndexForm::Dense => MAX_BLOCK_LENGTH as i64,
            IndexForm::Sparse => MAX_UNINDEXED_BYTES,
        };
        if self.end - indexed <= most {
            return Ok(true);
        }
        // A padding frame is a block of its own, and may be longer than `most`.
        let mut reader = RecordingReader::new(self.storage, *self.stream, indexed, self.end)?;
        let frame = reader.next_frame()?;
        Ok(frame.is_some_and(|frame| frame.is_padding() && frame.end_position() == self.end))
    }

    fn form(&self) -> IndexForm {
        match self.recorder {
            None => IndexForm::Dense,
            Some(_) => IndexForm::Sparse,
        }
    }

    /// Returns the header for a new index file of the segment.
    fn header(&self, before: Option<State>) -> Result<IndexHeader, IndexError> {
        let progress = match before {
            Some(state) => state.progress,
            None => Progress {
                counts: self.counts_from_next()?,
                ..Progress::default()
            },
        };
        Ok(IndexHeader {
            recording_id: self.stream.recording_id(),
            base_position: self.base,
            progress,
            form: self.form(),
        })
    }

    /// Returns counts for the start of the segment, chosen so that the counts at the end of the
    /// segment are equal to the counts in the header of the next segment. Without a next segment,
    /// the counts may begin at any value, because only differences of counts are used.
    fn counts_from_next(&self) -> Result<Counts, IndexError> {
        let next = self.base + self.stream.segment_length();
        let id = self.stream.recording_id();
        let next = IndexFile::open(self.storage, id, next, Access::Read)
            .map_err(|source| self.error(source))?;
        let Some(next) = next else {
            return Ok(Counts::default());
        };
        let begin = self.base.max(self.stream.start_position());
        let state = self.scan(begin, State::default(), None, &mut |_| Ok(()))?;
        Ok(next.header().progress.counts - state.progress.counts)
    }

    /// Writes a new index file with the valid entries, unchanged, and then the entries of a scan.
    /// The new file replaces the old file.
    fn rewrite(
        &self,
        header: &IndexHeader,
        sound: Option<(&IndexFile<S::File>, &Examined)>,
        before: Option<State>,
        lost: &mut Vec<LostArrivals>,
    ) -> Result<State, IndexError> {
        let name = |extension| sidecar_name(header.recording_id, self.base, extension);
        let new_name = name(NEW_INDEX_EXTENSION);
        match self.storage.remove(&new_name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.error(error)),
            _ => {}
        }
        let mut writer =
            IndexWriter::create_as(self.storage, &new_name, header, self.recorder.as_ref())
                .map_err(|source| self.error(source))?;
        let mut from = self.base.max(self.stream.start_position());
        if let Some((file, examined)) = sound {
            for number in 0..examined.sound {
                let entry = file.entry(number).map_err(|source| self.error(source))?;
                let entry = entry.ok_or_else(|| IndexError::Damaged {
                    name: name(INDEX_EXTENSION),
                })?;
                writer.append(&entry).map_err(|source| self.error(source))?;
            }
            from = examined.end;
        }
        let begin = State {
            progress: before.map_or(header.progress, |state| state.progress),
            arrival_us: before.and_then(|state| state.arrival_us),
        };
        let arrival_us = sound.and_then(|(_, examined)| examined.cut_block);
        let state = self.scan(from, begin, arrival_us, &mut |entry| writer.append(entry))?;
        self.storage
            .rename(&new_name, &name(INDEX_EXTENSION))
            .map_err(|source| self.error(source))?;
        // The former index may have a name of older releases.
        let old_name = old_index_name(header.recording_id, self.base, INDEX_EXTENSION);
        match self.storage.remove(&old_name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.error(error)),
            _ => {}
        }
        if from < self.end && arrival_us.is_none() {
            lost.push(LostArrivals {
                from,
                to: self.end,
                is_old: false,
            });
        }
        Ok(state)
    }

    /// Scans the blocks from `from` to the segment's end. The entries of all these blocks have the
    /// same arrival time.
    fn scan(
        &self,
        from: i64,
        before: State,
        arrival_us: Option<i64>,
        write: &mut dyn FnMut(&IndexEntry) -> io::Result<()>,
    ) -> Result<State, IndexError> {
        let mut tracker = HeadTracker::new(before.progress);
        let mut reader = RecordingReader::new(self.storage, *self.stream, from, self.end)?;
        let mut written = from;
        while let Some(frame) = reader.next_frame()? {
            tracker.take(&frame);
            let end_position = frame.end_position();
            if end_position == self.end || end_position - written >= MAX_BLOCK_LENGTH as i64 {
                written = end_position;
                let entry = IndexEntry {
                    end_position,
                    progress: tracker.progress(),
                    arrival_us,
                };
                write(&entry).map_err(|source| self.error(source))?;
            }
        }
        Ok(State {
            progress: tracker.progress(),
            arrival_us: arrival_us.max(before.arrival_us),
        })
    }

    /// Returns the time of the last write to the segment, in microseconds since the epoch.
    fn modified(&self) -> Result<Option<i64>, IndexError> {
        let name = self.stream.segment_name(self.base);
        let modified = self
            .storage
            .open(&name, Access::Read)
            .and_then(|file| file.modified())
            .map_err(|source| IndexError::Storage { name, source })?;
        Ok(Some(epoch_us(modified)))
    }

    fn error(&self, source: io::Error) -> IndexError {
        IndexError::Storage {
            name: sidecar_name(self.stream.recording_id(), self.base, INDEX_EXTENSION),
            source,
        }
    }
}

/// Converts a time to microseconds since the epoch.
pub(super) fn epoch_us(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(_) => 0,
    }
}
