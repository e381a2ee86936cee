//! [`LiveSource`]: the hooks of a live stream.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aeron_archive::pause::{self, Point};

use super::batch::{self, BatchPlanner};
use super::{Interrupt, POLL_TIMEOUT_MS, SLICE};
use crate::error::{LiveCode, LiveError};
use crate::offsets::{ArchiveName, Offset, RecordingOffset, write_recordings};
use crate::planning::{PlanLimits, RangeCutting};
use crate::private::{ArchiveRoots, KnownRecording, PrivateArchiveId, RecordingInfo};
use crate::recorder::{MakeContext, OpenArchive, RecorderSettings, StreamRecorder};

/// Spark has logged batch 0. The archive's directory does not exist yet.
const BATCH_ZERO: Point = Point::new("batch-zero");
/// The offsets of a batch are logged and its partitions are planned, but not yet returned.
const PLANNED: Point = Point::new("planned");

/// Settings of a live source.
pub struct LiveSettings {
    /// Channel of all subscriptions.
    pub channel: String,
    /// Streams to subscribe to.
    pub stream_ids: Vec<i32>,
    /// Creates the settings of the client that connects to a media driver.
    pub make_context: MakeContext,
    /// Absolute directory in which private archives are created; `None` for the default directories.
    pub archive_dir: Option<PathBuf>,
    /// Maximum number of bytes that are recorded and not yet committed.
    pub max_retained_bytes: u64,
    /// Limits of a batch, used if the trigger honours them.
    pub limits: PlanLimits,
    /// Rules by which a batch is cut into partitions.
    pub cutting: RangeCutting,
    /// Whether lost data ends the query; if `false`, the loss is only counted.
    pub fail_on_data_loss: bool,
    /// Whether rows have an arrival time.
    pub needs_timestamp: bool,
}

/// Source of a streaming query for live streams. Owns the recorder, and computes offsets and partitions from its
/// recordings.
///
/// Call the hooks from one thread at a time, as Spark does. [`close`](Self::close) may be called at any time from any
/// thread, even from an [`Interrupt`] that a hook calls.
pub struct LiveSource {
    settings: Arc<RecorderSettings>,
    limits: PlanLimits,
    cutting: RangeCutting,
    /// Set as soon as the source starts to open the archive. The lock is held only for short reads and writes.
    recorder: Mutex<Option<Arc<StreamRecorder>>>,
    is_closed: AtomicBool,
    state: Mutex<QueryState>,
}

/// State that the hooks keep between calls.
#[derive(Default)]
struct QueryState {
    /// Id of the archive of a new query. `initial_offset` returns it.
    initial: Option<PrivateArchiveId>,
    /// Id of the open archive.
    open: Option<PrivateArchiveId>,
    /// Recordings that were abandoned when the archive was opened.
    given_up: Vec<i64>,
    /// Ids of a lost archive and of the archive that replaces it.
    successor: Option<(PrivateArchiveId, PrivateArchiveId)>,
    is_available_now: bool,
    /// Whether the log has a line about the first batch, which has no rows.
    is_first_noted: bool,
    /// Upper bound of the position in each recording. Fixed when a query with the trigger *available now* requests its
    /// first batch.
    frozen: Option<HashMap<i64, i64>>,
    /// Recordings of the last offset that was returned.
    answered: Vec<RecordingOffset>,
    /// Start of the batch that was planned last. All batches before this one are finished.
    begun: Option<Offset>,
    /// Number of bytes and reason of the loss of an archive. Kept until the archive that replaces it is open.
    lost_archive: Option<(i64, String)>,
    lines: Vec<String>,
}

/// Result of opening the archive for a hook.
enum Opened {
    Recorder(Arc<StreamRecorder>),
    /// Nothing is open. The hook returns this offset until an archive is open.
    NotYet(Offset),
}

impl QueryState {
    /// Notes that Spark begins a batch at `start`. Spark has finished all earlier batches.
    fn begin(&mut self, start: &Offset, recorder: &StreamRecorder) {
        if self.begun.as_ref() == Some(start) {
            return;
        }
        recorder.set_taken(start.recordings());
        recorder.count_notes(self.begun.as_ref(), start);
        self.begun = Some(start.clone());
    }
}

impl LiveSource {
    /// Creates a source. Opens nothing yet.
    ///
    /// # Errors
    /// `archive_dir` is not an absolute path.
    pub fn new(settings: LiveSettings) -> Result<Self, LiveError> {
        let roots = ArchiveRoots::new(settings.archive_dir.as_deref())?;
        let recorder = RecorderSettings {
            channel: settings.channel,
            stream_ids: settings.stream_ids,
            make_context: settings.make_context,
            roots,
            max_retained_bytes: settings.max_retained_bytes,
            fail_on_data_loss: settings.fail_on_data_loss,
            needs_timestamp: settings.needs_timestamp,
        };
        Ok(Self {
            settings: Arc::new(recorder),
            limits: settings.limits,
            cutting: settings.cutting,
            recorder: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Stops the recordings, removes the subscriptions and unlocks the archive. Idempotent.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let recorder = self.slot().take();
        if let Some(recorder) = recorder {
            recorder.close();
        }
    }

    /// Removes and returns the pending log lines.
    pub fn take_lines(&self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.state().lines);
        if let Some(recorder) = &*self.slot() {
            lines.extend(recorder.take_lines());
        }
        lines
    }
}

/// Implementation of Spark's hooks.
impl LiveSource {
    /// Returns the offset of a new, empty archive. Every call returns the same offset.
    ///
    /// # Errors
    /// The system has no random bytes, or the source is closed.
    pub fn initial_offset(&self) -> Result<String, LiveError> {
        self.check_open()?;
        let mut state = self.state();
        let id = match state.initial {
            Some(id) => id,
            None => *state.initial.insert(new_id()?),
        };
        Ok(initial(id).to_string())
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
    /// `start` is not an offset of this source, the archive of `start` cannot be opened, or data is lost. If the media
    /// driver has ended or the disk is full, the error is returned after all recorded data was in a batch.
    pub fn latest_offset(
        &self,
        start: &str,
        is_limited: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<String, LiveError> {
        self.check_open()?;
        let start = Offset::parse(start)?;
        let state = &mut *self.state();
        let recorder = match self.open_for_latest(state, &start, interrupt)? {
            Opened::Recorder(recorder) => recorder,
            Opened::NotYet(offset) => return Ok(offset.to_string()),
        };
        state.begin(&start, &recorder);
        self.freeze(state, &recorder, &start);
        let limits = if is_limited {
            self.limits
        } else {
            PlanLimits::default()
        };
        let end = self.next_end(state, &recorder, &start, limits, interrupt)?;
        state.answered = end.recordings().to_vec();
        Ok(end.to_string())
    }

    /// Returns the partitions of the batch from `start` to `end`. Spark has already logged both offsets, except with
    /// asynchronous progress tracking. Opens the archive of `end` if it is not open.
    ///
    /// # Errors
    /// The same errors as [`latest_offset`](Self::latest_offset), or the batch cannot be read any more.
    pub fn partitions(
        &self,
        start: &str,
        end: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<String>, LiveError> {
        self.check_open()?;
        let (start, end) = (Offset::parse(start)?, Offset::parse(end)?);
        let state = &mut *self.state();
        let start = Some(&start).filter(|start| start.archive() == end.archive());
        let Some(recorder) = self.open_for_batch(state, start, &end, interrupt)? else {
            return Ok(Vec::new());
        };
        if state.initial == private_id(&end).ok()
            && end.recordings().is_empty()
            && !state.is_available_now
            && !std::mem::replace(&mut state.is_first_noted, true)
        {
            state.lines.push(
                "batch 0 of a new checkpoint has no rows: a live stream has no past. A query with the trigger once ends \
                 after this batch: use another trigger, or read recordings by archive.controlChannel"
                    .to_owned(),
            );
        }
        if let Some(start) = start {
            state.begin(start, &recorder);
        }
        let batch = BatchPlanner {
            recorder: &recorder,
            settings: &self.settings,
            given_up: &state.given_up,
        };
        let partitions = batch.partitions(start, &end, self.cutting)?;
        if let (true, Some(fault)) = (partitions.is_empty(), recorder.fault()) {
            return Err(fault.error);
        }
        state.answered = end.recordings().to_vec();
        pause::at(PLANNED);
        Ok(partitions)
    }

    /// Allows the recorder to delete the data before `end`. Returns before the data is deleted.
    ///
    /// # Errors
    /// `end` is not an offset, or the source is closed.
    pub fn commit(&self, end: &str) -> Result<(), LiveError> {
        self.check_open()?;
        let end = Offset::parse(end)?;
        let open = self.state().open;
        if let (Some(recorder), Ok(id)) = (&*self.slot(), private_id(&end))
            && open == Some(id)
        {
            recorder.commit(end.recordings());
        }
        Ok(())
    }

    /// Returns the progress report that the user sees while the query runs, as JSON.
    ///
    /// # Errors
    /// The source is closed.
    pub fn report(&self) -> Result<String, LiveError> {
        self.check_open()?;
        let state = self.state();
        let recorder = self.slot().clone();
        let mut heads = Vec::new();
        let mut text = String::from(r#"{"recordings": "#);
        if let Some(recorder) = &recorder {
            let recordings = recorder.recordings();
            heads.extend(recordings.iter().filter_map(batch::head_of));
            batch::count_backlog(recorder, &recordings, &state.answered);
        }
        // Writing to a `String` cannot fail.
        let _ = write_recordings(&mut text, &heads);
        let statistics = recorder.as_ref().map(|recorder| recorder.statistics());
        let has_unknown_gaps = statistics.is_some_and(|all| all.unknown_gaps.get() > 0);
        for (place, name) in crate::recorder::STATISTICS.into_iter().enumerate() {
            let mut value = statistics.map_or(0, |all| all.all()[place].get());
            if let ("lostBytes", Some((bytes, _))) = (name, &state.lost_archive) {
                value += bytes;
            }
            let _ = match name == "gapBytes" && value == 0 && has_unknown_gaps {
                true => write!(text, r#", "{name}": null"#),
                false => write!(text, r#", "{name}": {value}"#),
            };
        }
        text.push_str(&gaps_and_archive(recorder.as_deref()));
        text.push('}');
        Ok(text)
    }
}

/// Functions that open archives.
impl LiveSource {
    fn open_for_latest(
        &self,
        state: &mut QueryState,
        start: &Offset,
        interrupt: Interrupt<'_>,
    ) -> Result<Opened, LiveError> {
        let id = private_id(start)?;
        if let Some(recorder) = self.opened(state, id)? {
            return Ok(Opened::Recorder(recorder));
        }
        if state.initial == Some(id) && start.recordings().is_empty() {
            return Ok(Opened::NotYet(start.clone()));
        }
        if state.successor.is_none_or(|(gone, _)| gone != id) {
            let known = start.recordings().iter().map(|taken| KnownRecording {
                recording_id: taken.recording_id,
                committed: taken.position,
                told: taken.position,
            });
            match self.open(state, id, known.collect(), interrupt) {
                Err(error) if self.is_accepted(&error) => self.replace(state, id, 0, &error)?,
                opened => return opened.map(Opened::Recorder),
            }
        }
        let successor = state.successor.map_or(id, |(_, new)| new);
        Ok(Opened::NotYet(initial(successor)))
    }

    /// Opens the archive of a logged batch; `None` if the archive does not exist any more and the settings accept the
    /// loss.
    fn open_for_batch(
        &self,
        state: &mut QueryState,
        start: Option<&Offset>,
        end: &Offset,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<Arc<StreamRecorder>>, LiveError> {
        let id = private_id(end)?;
        if let Some(recorder) = self.opened(state, id)? {
            return Ok(Some(recorder));
        }
        if end.recordings().is_empty() {
            pause::at(BATCH_ZERO);
        }
        let position =
            |taken: &RecordingOffset| start.and_then(|start| start.position(taken.recording_id));
        let known: Vec<KnownRecording> = end
            .recordings()
            .iter()
            .map(|taken| KnownRecording {
                recording_id: taken.recording_id,
                committed: position(taken).unwrap_or(0),
                told: taken.position,
            })
            .collect();
        // The sum saturates, because positions in a checkpoint are untrusted input.
        let lost = known.iter().fold(0_i64, |sum, known| {
            sum.saturating_add(known.told.saturating_sub(known.committed).max(0))
        });
        match self.open(state, id, known, interrupt) {
            Err(error) if self.is_accepted(&error) => {
                self.replace(state, id, lost, &error)?;
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Returns the recorder if it has this archive open.
    fn opened(
        &self,
        state: &QueryState,
        id: PrivateArchiveId,
    ) -> Result<Option<Arc<StreamRecorder>>, LiveError> {
        match state.open {
            None => Ok(None),
            Some(open) if open == id => self.slot().clone().map(Some).ok_or_else(LiveError::closed),
            Some(open) => Err(LiveError::new(
                LiveCode::Offset,
                format!(
                    "the checkpoint belongs to private archive {id}, and this query records into {open}: use one checkpoint for one query"
                ),
            )),
        }
    }

    fn open(
        &self,
        state: &mut QueryState,
        id: PrivateArchiveId,
        known: Vec<KnownRecording>,
        interrupt: Interrupt<'_>,
    ) -> Result<Arc<StreamRecorder>, LiveError> {
        debug_assert!(
            state.open.is_none(),
            "a query must not record into archive {id} beside archive {:?}",
            state.open
        );
        let recorder =
            StreamRecorder::start(Arc::clone(&self.settings), OpenArchive { id, known })?;
        let recorder = Arc::new(recorder);
        *self.slot() = Some(Arc::clone(&recorder));
        let opened = loop {
            match recorder.wait_until_open(SLICE) {
                Ok(None) => {}
                Ok(Some(opened)) => break Ok(opened),
                Err(error) => break Err(error),
            }
            if interrupt() {
                break Err(interrupted());
            }
            if self.is_closed.load(Ordering::SeqCst) {
                break Err(LiveError::closed());
            }
        };
        match opened {
            Ok(opened) => {
                state.open = Some(id);
                state.given_up = opened.given_up;
                if let Some((bytes, reason)) = state.lost_archive.take() {
                    recorder.add_lost_archive(bytes, reason);
                }
                Ok(recorder)
            }
            Err(error) => {
                state.lines.extend(recorder.take_lines());
                self.slot().take();
                recorder.close();
                Err(error)
            }
        }
    }

    /// Whether the query continues in spite of an error.
    fn is_accepted(&self, error: &LiveError) -> bool {
        error.code() == LiveCode::DataLoss && !self.settings.fail_on_data_loss
    }

    /// Notes the loss of the checkpoint's archive, and chooses the id of the archive that replaces it.
    fn replace(
        &self,
        state: &mut QueryState,
        gone: PrivateArchiveId,
        lost_bytes: i64,
        error: &LiveError,
    ) -> Result<(), LiveError> {
        state.lines.push(error.to_string());
        let earlier = state.lost_archive.take().map_or(0, |(bytes, _)| bytes);
        let lost_bytes = earlier.saturating_add(lost_bytes);
        state.lost_archive = Some((lost_bytes, error.to_string()));
        state.successor = Some((gone, new_id()?));
        Ok(())
    }
}

/// Functions that plan batches.
impl LiveSource {
    /// Fixes the end of a query that ends by itself (trigger *available now*).
    fn freeze(&self, state: &mut QueryState, recorder: &StreamRecorder, start: &Offset) {
        if !state.is_available_now || state.frozen.is_some() {
            return;
        }
        let recordings = recorder.recordings();
        let heads: HashMap<i64, i64> = recordings
            .iter()
            .filter(|recording| recording.published.counts().messages > 0)
            .filter_map(batch::head_of)
            .map(|head| (head.recording_id, head.position))
            .collect();
        if heads.is_empty() && start.recordings().is_empty() {
            state.lines.push(
                "trigger availableNow on a fresh checkpoint ends without rows: a live stream has no past".to_owned(),
            );
        }
        state.frozen = Some(heads);
    }

    fn next_end(
        &self,
        state: &QueryState,
        recorder: &StreamRecorder,
        start: &Offset,
        limits: PlanLimits,
        interrupt: Interrupt<'_>,
    ) -> Result<Offset, LiveError> {
        let deadline = Instant::now() + Duration::from_millis(POLL_TIMEOUT_MS);
        let batch = BatchPlanner {
            recorder,
            settings: &self.settings,
            given_up: &state.given_up,
        };
        let frozen = state.frozen.as_ref();
        loop {
            let fault = recorder.fault();
            if let Some(fault) = fault.as_ref().filter(|fault| fault.is_urgent) {
                return Err(fault.error.clone());
            }
            let recordings = recorder.recordings();
            batch.check(start, &recordings)?;
            if let Some(end) = batch.end(start, &recordings, frozen, limits, self.cutting.rows)? {
                return Ok(end);
            }
            if let Some(fault) = fault {
                return Err(fault.error);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if frozen.is_some() || left.is_zero() {
                return Ok(start.clone());
            }
            recorder.wait_for_data(left.min(SLICE), |recordings| {
                recordings
                    .iter()
                    .any(|recording| is_behind(start, recording))
            });
            if interrupt() {
                return Err(interrupted());
            }
            self.check_open()?;
        }
    }
}

impl LiveSource {
    fn state(&self) -> MutexGuard<'_, QueryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<StreamRecorder>>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<(), LiveError> {
        match self.is_closed.load(Ordering::SeqCst) {
            true => Err(LiveError::closed()),
            false => Ok(()),
        }
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the part of the progress report with the latest gaps and the archive's directory.
fn gaps_and_archive(recorder: Option<&StreamRecorder>) -> String {
    let gaps = recorder.map(StreamRecorder::gaps).unwrap_or_default();
    let path = recorder.and_then(|recorder| recorder.location().ok());
    let path = path.map(|location| location.path);
    let fields = serde_json::json!({ "gaps": *gaps, "archive": path });
    let mut text = String::new();
    for name in ["gaps", "archive"] {
        // Writing to a `String` cannot fail.
        let _ = write!(text, r#", "{name}": {}"#, fields[name]);
    }
    text
}

/// Whether a recording has complete messages after its position in `start`.
fn is_behind(start: &Offset, recording: &RecordingInfo) -> bool {
    crate::recorder::has_new_messages(recording, start.position(recording.stream.recording_id()))
}

fn new_id() -> Result<PrivateArchiveId, LiveError> {
    PrivateArchiveId::random().map_err(|error| {
        LiveError::new(
            LiveCode::Archive,
            format!("no random bytes for an id: {error}"),
        )
    })
}

fn initial(id: PrivateArchiveId) -> Offset {
    Offset::initial(ArchiveName::Private(id.to_string()))
}

fn interrupted() -> LiveError {
    LiveError::new(LiveCode::Interrupted, "interrupted")
}

fn private_id(offset: &Offset) -> Result<PrivateArchiveId, LiveError> {
    let id = match offset.archive() {
        ArchiveName::Private(id) => PrivateArchiveId::parse(id),
        ArchiveName::Shared(_) => None,
    };
    id.ok_or_else(|| {
        let name = offset.archive();
        let text = format!("the checkpoint belongs to archive {name}: give archive.controlChannel, or use another checkpoint");
        LiveError::new(LiveCode::Offset, text)
    })
}
