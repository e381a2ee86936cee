//! [`SharedSource`]: the hooks of a streaming query on the recordings of an archive.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_protocol::archive::NULL_VALUE;

use super::ReadInterrupted;
use super::batch::{by_rows, ranges_of_terms};
use super::connection::{ArchiveAccess, ArchiveConnections};
use super::files::archive_directory;
use super::links::{gap, gap_lines, links, may_be_linked};
use super::messages::{ArchiveView, RecordedMessages};
use super::positions::{RangeEnd, ReadPositions};
use super::range::SharedRange;
use super::reader_position::QueryReader;
use super::recordings::{SharedRecording, SharedSelection, find};
use crate::error::{LiveCode, LiveError};
use crate::live::POLL_TIMEOUT_MS;
use crate::offsets::{ArchiveName, Offset, RecordingOffset, write_recordings};
use crate::planning::{self, PlanLimits, Range, RangeCutting};

/// Interval at which a hook that waits for data asks the archive.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Pause before the next attempt to reach an archive that does not run.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of a source.
pub struct SharedSettings {
    /// Connection settings of the archive.
    pub access: Arc<ArchiveAccess>,
    /// The connections of this process.
    pub connections: ArchiveConnections,
    /// Selection of the recordings that the query reads.
    pub selection: SharedSelection,
    /// Positions at which a query without a checkpoint starts.
    pub starting: ReadPositions,
    /// Limits of a batch, used if the trigger honours them.
    pub limits: PlanLimits,
    /// Rules by which a batch is cut into partitions.
    pub cutting: RangeCutting,
    /// Whether lost data ends the query; if `false`, the loss is only counted.
    pub fail_on_data_loss: bool,
    /// Directory of the archive, if it may be on this machine.
    pub directory: Option<PathBuf>,
    /// Whether rows have their arrival time.
    pub needs_timestamp: bool,
    /// The named reader that stores the committed offset. `None`: the query has no named reader.
    pub reader: Option<QueryReader>,
    /// Interrupt check of a waiting hook.
    pub is_interrupted: ReadInterrupted,
}

/// Source of a streaming query for the recordings of an archive server. Computes offsets and partitions.
///
/// Call the hooks from one thread at a time, as Spark does. [`close`](Self::close) may be called at any time from any
/// thread, even from a signal handler that runs while a hook waits.
pub struct SharedSource {
    settings: SharedSettings,
    is_closed: AtomicBool,
    state: Mutex<SharedQueryState>,
}

/// State that the hooks keep between calls. A restarted query does not need it, because the checkpoint has the offsets.
#[derive(Default)]
struct SharedQueryState {
    is_available_now: bool,
    /// End of each recording when a query with the trigger *available now* started.
    frozen: Option<HashMap<i64, i64>>,
    /// End of the last complete message of each recording, with the recorded position for which it was found.
    heads: HashMap<i64, (i64, i64)>,
    /// The recordings that the archive listed last.
    recordings: Vec<SharedRecording>,
    /// Positions of the last offset that was returned.
    answered: Vec<RecordingOffset>,
    /// Ranges of lost data that are counted: recording id and start position of each.
    lost: HashSet<(i64, i64)>,
    lost_bytes: i64,
    /// Positions of the named reader, by recording id.
    kept: HashMap<i64, i64>,
    lines: Vec<String>,
    /// Whether the log has a line with the reason why the archive's files are not read.
    is_directory_noted: bool,
}

/// State of the archive at one time.
struct Look {
    archive: ArchiveView,
    recordings: Vec<SharedRecording>,
}

impl Look {
    fn descriptors(&self) -> impl Iterator<Item = &RecordingDescriptor> {
        self.recordings
            .iter()
            .map(|recording| &recording.descriptor)
    }
}

impl SharedSource {
    /// Creates a source. Connects to nothing yet.
    pub fn new(settings: SharedSettings) -> Self {
        Self {
            settings,
            is_closed: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Refuses further calls. Does not wait, and does not close the connections, because other queries of the process
    /// may use them.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Removes and returns the pending log lines.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.state().lines)
    }

    fn state(&self) -> MutexGuard<'_, SharedQueryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<(), LiveError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(LiveError::closed());
        }
        match (self.settings.is_interrupted)() {
            true => Err(LiveError::new(LiveCode::Interrupted, "interrupted")),
            false => Ok(()),
        }
    }
}

/// Implementation of Spark's hooks.
impl SharedSource {
    /// Returns the offset of a query before its start is known. Every call returns the same offset.
    ///
    /// # Errors
    /// The source is closed.
    pub fn initial_offset(&self) -> Result<String, LiveError> {
        self.check_open()?;
        Ok(unknown_start().to_string())
    }

    /// Fixes the end of the query: no batch goes beyond the data that exists when the first batch is requested.
    pub fn prepare_for_available_now(&self) {
        let mut state = self.state();
        state.is_available_now = true;
        state.frozen = None;
    }

    /// Returns the end of the batch that begins at `start`; returns `start` itself if no data comes within
    /// [`POLL_TIMEOUT_MS`].
    ///
    /// # Errors
    /// `start` is not an offset of this source, the archive cannot be reached, or data is lost.
    pub fn latest_offset(&self, start: &str, is_limited: bool) -> Result<String, LiveError> {
        self.check_open()?;
        let start = shared(start)?;
        let state = &mut *self.state();
        let limits = match is_limited {
            true => self.settings.limits,
            false => PlanLimits::default(),
        };
        let deadline = Instant::now() + Duration::from_millis(POLL_TIMEOUT_MS);
        loop {
            let look = self.look(state)?;
            self.freeze(state, &look)?;
            let end = match start == unknown_start() {
                true => Some(self.first(state, &look, limits)?),
                false => self.next(state, &look, &start, limits)?,
            };
            state.recordings = look.recordings;
            if let Some(end) = end {
                state.answered = end.recordings().to_vec();
                return Ok(end.to_string());
            }
            state.answered = start.recordings().to_vec();
            let left = deadline.saturating_duration_since(Instant::now());
            if state.frozen.is_some() || left.is_zero() {
                return Ok(start.to_string());
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
            self.check_open()?;
        }
    }

    /// Returns the partitions of the batch from `start` to `end`. Spark has already logged both offsets, except with
    /// asynchronous progress tracking.
    ///
    /// # Errors
    /// The same errors as [`latest_offset`](Self::latest_offset), or the batch cannot be read any more.
    pub fn partitions(&self, start: &str, end: &str) -> Result<Vec<String>, LiveError> {
        self.check_open()?;
        let (start, end) = (shared(start)?, shared(end)?);
        let state = &mut *self.state();
        // In checkpoints of earlier releases, the first offset that names a recording does not say where it starts.
        // Then the batch has none of its rows, and the next batch begins there.
        let begin = |taken: &RecordingOffset| {
            let id = taken.recording_id;
            let logged = start.position(id).or_else(|| end.start(id));
            logged.unwrap_or(taken.position)
        };
        // The named reader is registered before the data is read. A query, also a restarted one, gets an error if the
        // archive does not support named readers. Later positions are stored only by `commit`, not here. With
        // asynchronous progress tracking, Spark plans a batch before it has logged `start`. After a kill, the query may
        // need the data before `start` again.
        let unregistered: Vec<_> = end
            .recordings()
            .iter()
            .filter(|taken| !state.kept.contains_key(&taken.recording_id))
            .map(|taken| RecordingOffset {
                position: begin(taken),
                ..*taken
            })
            .collect();
        self.keep(state, &unregistered)?;
        let look = self.look(state)?;
        let mut ranges = Vec::new();
        for taken in end.recordings() {
            let from = begin(taken);
            if from != taken.position {
                ranges.extend(self.logged(state, &look, from, taken)?);
            }
        }
        state.answered = end.recordings().to_vec();
        let pieces = self.cut(&look.archive, &ranges)?;
        let archive_id = look.archive.archive_id;
        let texts = pieces.iter().map(|piece| piece.text(archive_id)).collect();
        state.recordings = look.recordings;
        Ok(texts)
    }

    /// Stores the positions of `end` in the named reader, if the query has one. If the archive cannot store them, adds
    /// a log line. The next call of `commit` then stores its own positions.
    ///
    /// # Errors
    /// `end` is not an offset, the source is closed, or the call was interrupted.
    pub fn commit(&self, end: &str) -> Result<(), LiveError> {
        self.check_open()?;
        let end = shared(end)?;
        let state = &mut *self.state();
        match self.keep(state, end.recordings()) {
            Err(error) if error.code() == LiveCode::Interrupted => Err(error),
            Err(error) => {
                state.lines.push(format!("archive.reader: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the progress report that the user sees while the query runs, as JSON.
    ///
    /// # Errors
    /// The source is closed.
    pub fn report(&self) -> Result<String, LiveError> {
        self.check_open()?;
        let state = self.state();
        let ends: Vec<RecordingOffset> = state
            .recordings
            .iter()
            .map(|recording| recording.at(recording.end))
            .collect();
        let lag = |end: &RecordingOffset| {
            let mut taken = state.answered.iter();
            let taken = taken.find(|taken| taken.recording_id == end.recording_id)?;
            Some(RecordingOffset {
                position: (end.position - taken.position).max(0),
                ..*end
            })
        };
        let lags: Vec<RecordingOffset> = ends.iter().filter_map(lag).collect();
        let backlog: i64 = lags.iter().map(|lag| lag.position).sum();
        let channel = serde_json::json!(self.settings.access.control_channel);
        let mut text = String::from(r#"{"recordings": "#);
        // Writing to a `String` cannot fail.
        let _ = write_recordings(&mut text, &ends);
        let _ = write!(text, r#", "lagBytes": "#);
        let _ = write_recordings(&mut text, &lags);
        let _ = write!(
            text,
            r#", "backlogBytes": {backlog}, "lostBytes": {}, "archive": {channel}}}"#,
            state.lost_bytes
        );
        Ok(text)
    }
}

/// Requests to the archive.
impl SharedSource {
    /// Stores positions in the named reader, if the query has one.
    fn keep(
        &self,
        state: &mut SharedQueryState,
        positions: &[RecordingOffset],
    ) -> Result<(), LiveError> {
        let Some(reader) = &self.settings.reader else {
            return Ok(());
        };
        let (connections, access) = (&self.settings.connections, &self.settings.access);
        reader.commit(connections, access, positions, &mut state.kept)
    }

    /// Lists the recordings. If the archive does not run, tries again for [`ArchiveAccess::timeout`].
    fn look(&self, state: &mut SharedQueryState) -> Result<Look, LiveError> {
        let deadline = Instant::now() + self.settings.access.timeout;
        loop {
            match self.try_look(state) {
                Err(error) if is_unreachable(&error) && Instant::now() < deadline => {
                    std::thread::sleep(RETRY_INTERVAL);
                    self.check_open()?;
                }
                look => return look,
            }
        }
    }

    fn try_look(&self, state: &mut SharedQueryState) -> Result<Look, LiveError> {
        let settings = &self.settings;
        let (access, selection) = (&settings.access, &settings.selection);
        let (archive_id, recordings) = settings.connections.with(access, |connection| {
            Ok((
                connection.archive_id(),
                selection.list(access, &connection)?,
            ))
        })?;
        let directory = settings.directory.as_deref();
        let directory = directory.map(|path| archive_directory(path, archive_id));
        if let (Some(Err(reason)), false) = (&directory, state.is_directory_noted) {
            state.is_directory_noted = true;
            state.lines.push(format!(
                "the source reads by replays, because it does not see archive.dir: {reason}"
            ));
        }
        Ok(Look {
            archive: ArchiveView {
                access: Arc::clone(access),
                connections: settings.connections.clone(),
                archive_id,
                directory: directory.and_then(Result::ok),
                needs_timestamp: settings.needs_timestamp,
            },
            recordings,
        })
    }

    /// Fixes the end of a query that ends by itself (trigger *available now*).
    fn freeze(&self, state: &mut SharedQueryState, look: &Look) -> Result<(), LiveError> {
        if !state.is_available_now || state.frozen.is_some() {
            return Ok(());
        }
        let mut frozen = HashMap::new();
        for recording in &look.recordings {
            let head = head(state, &look.archive, recording, recording.start())?;
            frozen.insert(recording.id(), head);
        }
        state.frozen = Some(frozen);
        Ok(())
    }

    /// Returns the end of the first batch of a query without a checkpoint. Gaps between the existing recordings are
    /// only logged: they do not end the query.
    fn first(
        &self,
        state: &mut SharedQueryState,
        look: &Look,
        limits: PlanLimits,
    ) -> Result<Offset, LiveError> {
        let starting = &self.settings.starting;
        self.settings.selection.check_exists(&look.recordings)?;
        let starts = starting.resolve(RangeEnd::Start, &look.archive, &look.recordings)?;
        let is_read = |id: i64| {
            let taken = starts.iter().find(|taken| taken.recording_id == id);
            let recording = find(&look.recordings, id);
            taken
                .zip(recording)
                .is_some_and(|(taken, recording)| taken.position < recording.end)
        };
        let recordings: Vec<_> = look.descriptors().collect();
        let (connections, access) = (&self.settings.connections, &self.settings.access);
        let lines = gap_lines(connections, access, &recordings, is_read)?;
        state.lines.extend(lines);
        // An archive that does not report its id has the id -1, which marks an unknown start. So the offset gets the id
        // 0 instead.
        let archive = ArchiveName::Shared(look.archive.archive_id.max(0));
        let positions = starts.iter().map(|start| (start.recording_id, *start));
        let ends = self.advance(state, look, positions.collect(), limits)?;
        Ok(Offset::new(archive, ends)?.with_starts(starts)?)
    }

    /// Returns the end of the batch that begins at `start`; `None` if there is no new data.
    fn next(
        &self,
        state: &mut SharedQueryState,
        look: &Look,
        start: &Offset,
        limits: PlanLimits,
    ) -> Result<Option<Offset>, LiveError> {
        self.check_selected(start)?;
        self.check_purged(state, look, start)?;
        let mut taken: BTreeMap<i64, RecordingOffset> = start
            .recordings()
            .iter()
            .filter(|taken| find(&look.recordings, taken.recording_id).is_some())
            .map(|taken| (taken.recording_id, *taken))
            .collect();
        let is_joined = |recording: &&SharedRecording| {
            // If the query's end is fixed, recordings that began later are not read.
            let is_wanted = state
                .frozen
                .as_ref()
                .is_none_or(|frozen| frozen.contains_key(&recording.id()));
            is_wanted && !taken.contains_key(&recording.id())
        };
        let joined: Vec<_> = look.recordings.iter().filter(is_joined).collect();
        self.lose_gaps(state, look, &taken, &joined)?;
        let starts = joined
            .iter()
            .map(|recording| recording.at(recording.start()));
        let starts: Vec<_> = starts.collect();
        taken.extend(starts.iter().map(|start| (start.recording_id, *start)));
        let begins: Vec<_> = taken.values().copied().collect();
        let ends = self.advance(state, look, taken, limits)?;
        if starts.is_empty() && ends == begins {
            return Ok(None);
        }
        Ok(Some(
            Offset::new(start.archive().clone(), ends)?.with_starts(starts)?,
        ))
    }

    /// Returns the positions `taken` after one more batch.
    fn advance(
        &self,
        state: &mut SharedQueryState,
        look: &Look,
        mut taken: BTreeMap<i64, RecordingOffset>,
        limits: PlanLimits,
    ) -> Result<Vec<RecordingOffset>, LiveError> {
        let mut ranges = Vec::new();
        for recording in &look.recordings {
            let id = recording.id();
            let Some(from) = taken.get(&id).map(|taken| taken.position) else {
                continue;
            };
            let limit = match &state.frozen {
                None => i64::MAX,
                // The recording began after the query's end was fixed: it has no rows for this query.
                Some(frozen) => frozen.get(&id).copied().unwrap_or(from),
            };
            let from = from.max(recording.start());
            let to = head(state, &look.archive, recording, from)?.min(limit);
            if to > from {
                ranges.push(SharedRange {
                    recording,
                    from,
                    to,
                });
            }
        }
        for (range, position) in ranges
            .iter()
            .zip(self.ends(&look.archive, &ranges, limits)?)
        {
            if let (true, Some(entry)) =
                (position > range.from, taken.get_mut(&range.recording.id()))
            {
                entry.position = position;
            }
        }
        Ok(taken.into_values().collect())
    }

    /// Returns the ends of the ranges within the limits of a batch.
    fn ends(
        &self,
        archive: &ArchiveView,
        ranges: &[SharedRange<'_>],
        limits: PlanLimits,
    ) -> Result<Vec<i64>, LiveError> {
        if limits == PlanLimits::default() {
            return Ok(ranges.iter().map(|range| range.to).collect());
        }
        let counted: Vec<_> = ranges
            .iter()
            .map(|range| Range {
                messages: RecordedMessages {
                    archive,
                    recording: range.recording,
                    may_estimate: true,
                },
                from: range.from,
                to: range.to,
            })
            .collect();
        planning::take(&counted, limits, self.settings.cutting.rows)
    }

    /// Checks that the options still select the streams of the checkpoint.
    fn check_selected(&self, start: &Offset) -> Result<(), LiveError> {
        let SharedSelection::Channel(selection) = &self.settings.selection else {
            return Ok(());
        };
        let is_left_out = |taken: &&RecordingOffset| {
            !selection.stream_ids.is_empty() && !selection.stream_ids.contains(&taken.stream_id)
        };
        match start.recordings().iter().find(is_left_out) {
            None => Ok(()),
            Some(taken) => Err(LiveError::new(
                LiveCode::Offset,
                format!(
                    "option streamId: the checkpoint has a position in recording {} of stream {}, which the option does not name: name the stream too, or start with a new checkpoint",
                    taken.recording_id, taken.stream_id
                ),
            )),
        }
    }

    /// Checks that the recordings still have the data after `start`.
    fn check_purged(
        &self,
        state: &mut SharedQueryState,
        look: &Look,
        start: &Offset,
    ) -> Result<(), LiveError> {
        for taken in start.recordings() {
            match find(&look.recordings, taken.recording_id) {
                Some(recording) => {
                    same_stream(recording, taken)?;
                    if recording.start() > taken.position {
                        self.lose_purged(state, recording, taken, taken.position)?;
                    }
                    if recording.end < taken.position {
                        let archive =
                            format!("the archive on {}", self.settings.access.control_channel);
                        return Err(LiveError::ends_too_early(taken, recording.end, &archive));
                    }
                }
                None => self.lose_recording(state, taken)?,
            }
        }
        Ok(())
    }

    /// Reports a recording that does not exist any more. Data is lost if the last list of recordings had data after the
    /// position in `taken`.
    fn lose_recording(
        &self,
        state: &mut SharedQueryState,
        taken: &RecordingOffset,
    ) -> Result<(), LiveError> {
        let seen = find(&state.recordings, taken.recording_id).map(|recording| recording.end);
        match seen {
            Some(end) if end > taken.position => {
                let reason = "the archive does not have it any more";
                self.lose(state, taken, taken.position, end, reason)
            }
            _ => Ok(()),
        }
    }

    /// Reports each range that was not recorded between a recording that the query reads and a recording in `joined`
    /// that continues it.
    fn lose_gaps(
        &self,
        state: &mut SharedQueryState,
        look: &Look,
        taken: &BTreeMap<i64, RecordingOffset>,
        joined: &[&SharedRecording],
    ) -> Result<(), LiveError> {
        if joined.is_empty() || !may_be_linked(look.descriptors()) {
            return Ok(());
        }
        let (connections, access) = (&self.settings.connections, &self.settings.access);
        let links = connections.with(access, |connection| links(access, &connection))?;
        for recording in joined {
            let Some(link) = links.get(&recording.id()) else {
                continue;
            };
            if let (Some(taken), Some((from, to))) = (taken.get(&link.predecessor_id), gap(link)) {
                let reason = format!(
                    "these messages were not recorded, and recording {} continues the stream",
                    recording.id()
                );
                self.lose(state, taken, from, to, &reason)?;
            }
        }
        Ok(())
    }

    fn lose_purged(
        &self,
        state: &mut SharedQueryState,
        recording: &SharedRecording,
        taken: &RecordingOffset,
        from: i64,
    ) -> Result<(), LiveError> {
        let start = recording.start();
        self.lose(
            state,
            taken,
            from,
            start,
            &format!("it was purged to {start}"),
        )
    }

    /// Returns an error for a loss, or counts the loss. A loss is counted only once.
    fn lose(
        &self,
        state: &mut SharedQueryState,
        taken: &RecordingOffset,
        from: i64,
        to: i64,
        reason: &str,
    ) -> Result<(), LiveError> {
        let text = self.loss(taken, from, to, reason);
        if self.settings.fail_on_data_loss {
            return Err(LiveError::new(LiveCode::DataLoss, text));
        }
        if state.lost.insert((taken.recording_id, from)) {
            state.lost_bytes = state.lost_bytes.saturating_add(to.saturating_sub(from));
            state.lines.push(text);
        }
        Ok(())
    }

    fn loss(&self, taken: &RecordingOffset, from: i64, to: i64, reason: &str) -> String {
        format!(
            "recording {} of stream {} session {} from {from} to {to} of the archive on {} cannot be read: {reason}; failOnDataLoss=false counts the loss and continues",
            taken.recording_id,
            taken.stream_id,
            taken.session_id,
            self.settings.access.control_channel
        )
    }

    /// Returns the part of a logged range that can be read; `None` if the whole range is lost.
    fn logged<'r>(
        &self,
        state: &mut SharedQueryState,
        look: &'r Look,
        from: i64,
        taken: &RecordingOffset,
    ) -> Result<Option<SharedRange<'r>>, LiveError> {
        let to = taken.position;
        let Some(recording) = find(&look.recordings, taken.recording_id) else {
            self.lose(
                state,
                taken,
                from,
                to,
                "the archive does not have it any more",
            )?;
            return Ok(None);
        };
        same_stream(recording, taken)?;
        if from > to {
            let key = taken.key();
            let text = format!("the offset of {key} goes backwards, from {from} to {to}");
            return Err(LiveError::new(LiveCode::Offset, text));
        }
        if from < recording.start() {
            self.lose_purged(state, recording, taken, from)?;
        }
        if to > recording.end {
            let reason = format!("it ends at {}", recording.end);
            self.lose(state, taken, recording.end, to, &reason)?;
        }
        let range = SharedRange {
            recording,
            from: from.max(recording.start()),
            to: to.min(recording.end),
        };
        Ok((range.from < range.to).then_some(range))
    }

    fn cut<'a>(
        &self,
        archive: &ArchiveView,
        ranges: &[SharedRange<'a>],
    ) -> Result<Vec<SharedRange<'a>>, LiveError> {
        let cutting = self.settings.cutting;
        let is_more_wanted = cutting.min_partitions > ranges.len();
        // If a batch is shorter than a term, cuts at terms would give too few partitions. With the index in the
        // archive's directory, cuts between messages are found without reading frames.
        if cutting.max_rows.is_some() || (is_more_wanted && archive.directory.is_some()) {
            return by_rows(archive, ranges, cutting);
        }
        match is_more_wanted {
            true => ranges_of_terms(ranges, Some(cutting.min_partitions)),
            false => Ok(ranges.to_vec()),
        }
    }
}

/// Returns the end of the last complete message of a recording. `state` keeps the result until the recorded position
/// changes. If rows have arrival times, each call searches again, because the index may have new entries.
fn head(
    state: &mut SharedQueryState,
    archive: &ArchiveView,
    recording: &SharedRecording,
    from: i64,
) -> Result<i64, LiveError> {
    let known = state.heads.get(&recording.id()).copied();
    if let Some((end, head)) = known
        && end == recording.end
        && !archive.needs_timestamp
    {
        return Ok(head);
    }
    let from = known.map_or(from, |(_, head)| head.max(from));
    let messages = RecordedMessages {
        archive,
        recording,
        may_estimate: false,
    };
    let head = messages.head(from, recording.end)?;
    state.heads.insert(recording.id(), (recording.end, head));
    Ok(head)
}

/// Returns the offset of a query before its start is known. Spark does not log this offset, so each call must return
/// the same offset.
fn unknown_start() -> Offset {
    Offset::initial(ArchiveName::Shared(NULL_VALUE))
}

fn shared(text: &str) -> Result<Offset, LiveError> {
    let offset = Offset::parse(text)?;
    match offset.archive() {
        ArchiveName::Shared(_) => Ok(offset),
        ArchiveName::Private(_) => {
            let name = offset.archive();
            let text = format!(
                "the checkpoint belongs to archive {name}: start with a new checkpoint, and set startingOffsets to the offset of the old one"
            );
            Err(LiveError::new(LiveCode::Offset, text))
        }
    }
}

/// Checks that a recording has the stream id that the checkpoint names.
fn same_stream(recording: &SharedRecording, taken: &RecordingOffset) -> Result<(), LiveError> {
    let stream_id = recording.descriptor.stream_id;
    if stream_id == taken.stream_id {
        return Ok(());
    }
    let text = format!(
        "recording {} has stream {stream_id}, and the checkpoint names stream {}: is this another archive?",
        taken.recording_id, taken.stream_id
    );
    Err(LiveError::new(LiveCode::Offset, text))
}

fn is_unreachable(error: &LiveError) -> bool {
    matches!(
        error.code(),
        LiveCode::NotConnected | LiveCode::DriverTimeout
    )
}
