//! [`RecorderAgent`]: the agent of the recorder. The recorder's thread runs its duty cycle until the recorder must
//! stop.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::Receiver as Queue;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aeron_agent::{BackoffIdleStrategy, IdleStrategy};
use aeron_archive::channel;
use aeron_archive::storage::Directory;
use aeron_client::{Context, Image};

use super::connection::{Ended, ImageEvent, RecorderConnection, is_driver_there};
use super::counters::Counters;
use super::ledger::JoinedImage;
use super::query_archive::QueryArchive;
use super::recorded::{BlockBuffer, PollError, Recorded, Session, describe};
use super::shared::{Phase, RecorderFault, SharedRecorder};
use super::{Command, OpenArchive, RecorderSettings};
use crate::error::{LiveCode, LiveError};
use crate::private::{ImageDescription, RecordingInfo, RecordingWriter, SessionKey};

/// Maximum sleep of the thread in nanoseconds while there are images without new data.
const MAX_PARK_NS: u64 = 1_000_000;
/// Maximum sleep of the thread in nanoseconds while there is no image. It is longer than [`MAX_PARK_NS`], because data
/// can arrive only after a new image.
const MAX_LONELY_PARK_NS: u64 = 10_000_000;
/// Interval at which the recorder tries to connect again during an outage.
const SECOND: Duration = Duration::from_secs(1);
/// Interval at which the recorder publishes statistics, starts a purge and updates the archive's heartbeat.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Reason in the error text for a gap that began while the query ran.
const IMAGE_LOST: &str =
    "its image went away before the stream ended, and came back at a later position";

/// The agent that runs on the recorder's thread.
pub(super) struct RecorderAgent {
    settings: Arc<RecorderSettings>,
    stripped_channel: String,
    shared: Arc<SharedRecorder>,
    commands: Queue<Command>,
    query: QueryArchive,
    connection: Option<RecorderConnection>,
    counters: Option<Counters>,
    /// Time at which the subscriptions were made, in epoch milliseconds.
    subscribed_since_ms: Option<i64>,
    recorded: Vec<Recorded>,
    buffer: BlockBuffer,
    /// Position in each recording up to which batches of Spark have taken the data.
    taken: HashMap<i64, i64>,
    /// Sessions that lost their image in this run before their stream ended.
    lost_sessions: HashSet<Session>,
    /// Reason why nothing was recorded before this connection.
    absence: String,
    /// Set while the recorder has no connection and tries to connect again.
    outage: Option<Outage>,
    /// Time for which the recorder tries to connect again if its client has ended only because the client or the driver
    /// was late.
    driver_timeout: Duration,
    has_warned_of_space: bool,
    is_purging: bool,
    next_second: Instant,
    next_report: Instant,
    /// Time at which polling stopped because the retained bytes reached their limit. `None` while the recorder polls.
    full_since: Option<Instant>,
}

/// A period without a connection, in which the recorder tries to connect again.
struct Outage {
    error: LiveError,
    /// Time at which the query fails if there is still no connection. `None`: the recorder tries without end.
    give_up_at: Option<Instant>,
}

impl Outage {
    fn endless(error: LiveError) -> Self {
        Self {
            error,
            give_up_at: None,
        }
    }

    fn is_over(&self) -> bool {
        self.give_up_at.is_some_and(|at| Instant::now() >= at)
    }
}

impl RecorderAgent {
    /// Opens the archive, subscribes, and records until it must stop.
    pub fn run(
        settings: Arc<RecorderSettings>,
        open: OpenArchive,
        shared: Arc<SharedRecorder>,
        commands: Queue<Command>,
    ) {
        match Self::open(settings, &open, &shared, commands) {
            Ok(mut agent) => {
                agent.work_until_stopped();
                agent.close();
            }
            Err(error) => shared.change(|state| state.phase = Phase::Ended(error)),
        }
    }

    fn open(
        settings: Arc<RecorderSettings>,
        open: &OpenArchive,
        shared: &Arc<SharedRecorder>,
        commands: Queue<Command>,
    ) -> Result<Self, LiveError> {
        let stripped_channel = channel::stripped(&settings.channel).map_err(|error| {
            LiveError::new(LiveCode::Option, format!("option channel: {error}"))
        })?;
        let context = (settings.make_context)()?;
        let (query, opened) = QueryArchive::open(&settings, open, &context.aeron_dir, shared)?;
        let now = Instant::now();
        let mut agent = Self {
            stripped_channel,
            shared: Arc::clone(shared),
            commands,
            query,
            connection: None,
            counters: None,
            subscribed_since_ms: None,
            recorded: Vec::new(),
            buffer: BlockBuffer::new(),
            taken: HashMap::new(),
            lost_sessions: HashSet::new(),
            absence: "sent while no query ran".to_owned(),
            outage: None,
            driver_timeout: Duration::from_millis(context.driver_timeout_ms),
            has_warned_of_space: false,
            is_purging: true,
            next_second: now,
            next_report: now,
            full_since: None,
            settings,
        };
        agent.show_recordings();
        agent.query.ledger.store_changes(now_ms(), shared);
        if let Err(error) = agent.connect(context) {
            agent.set_fault(error.clone(), false);
            agent.outage = (!agent.settings.fail_on_data_loss).then(|| Outage::endless(error));
        }
        debug_assert!(
            agent.connection.is_some() || agent.outage.is_some() || shared.fault().is_some(),
            "a recorder without a driver must connect again, or report why not"
        );
        shared.change(|state| state.phase = Phase::Open(opened));
        Ok(agent)
    }

    fn connect(&mut self, context: Context) -> Result<(), LiveError> {
        let (channel, stream_ids) = (&self.settings.channel, &self.settings.stream_ids);
        debug_assert!(
            self.connection.is_none() && self.recorded.is_empty(),
            "a recorder must end the {} recordings of its former client before it connects again",
            self.recorded.len()
        );
        let connection = RecorderConnection::open(context, channel, stream_ids, &self.shared)?;
        self.counters = Some(Counters::new(connection.aeron(), self.query.archive_id()));
        self.connection = Some(connection);
        self.subscribed_since_ms = Some(now_ms());
        Ok(())
    }

    fn work_until_stopped(&mut self) {
        let (mut idle, mut lonely) = (backoff(MAX_PARK_NS), backoff(MAX_LONELY_PARK_NS));
        while !self.shared.is_stopping() {
            if self.do_work() > 0 {
                idle.reset();
                lonely.reset();
            } else if self.recorded.is_empty() {
                lonely.idle_once();
            } else {
                idle.idle_once();
            }
        }
    }

    fn do_work(&mut self) -> usize {
        let mut work = self.take_commands() + self.run_client();
        let bytes = self.poll_images();
        if bytes > 0 {
            self.shared.wake();
        }
        work += bytes + self.purge();
        self.keep_time();
        work
    }

    fn take_commands(&mut self) -> usize {
        let mut count = 0;
        while let Ok(command) = self.commands.try_recv() {
            count += 1;
            match command {
                Command::SetTaken(positions) => self.taken = positions.into_iter().collect(),
                Command::Commit(positions) => {
                    if let Err(error) = self.query.archive.commit(positions) {
                        self.set_fault(error.into(), false);
                    }
                    self.is_purging = true;
                    self.show_recordings();
                }
                Command::ArchiveLost { bytes, reason } => {
                    let ledger = &mut self.query.ledger;
                    ledger.add_lost_archive(bytes, reason, &self.shared);
                }
            }
        }
        count
    }

    /// Runs the client's duty cycle and processes its image events. If the client has ended, ends the recordings of all
    /// its images.
    fn run_client(&mut self) -> usize {
        let Some(connection) = &self.connection else {
            return 0;
        };
        let mut work = connection.do_work();
        let ended = connection.ended();
        // If the client ended because it was late, its sessions are not lost: their publishers still run.
        let late: Vec<Session> = match &ended {
            Some(ended) if ended.is_late => self.recorded.iter().map(Recorded::session).collect(),
            _ => Vec::new(),
        };
        while let Some(event) = self
            .connection
            .as_ref()
            .and_then(RecorderConnection::next_event)
        {
            work += 1;
            match event {
                ImageEvent::Available(image) => self.begin(image),
                ImageEvent::Unavailable(image) => self.end(&image),
            }
        }
        if let Some(ended) = ended {
            self.disconnect(ended);
        }
        for session in &late {
            self.lost_sessions.remove(session);
        }
        // The totals must be stored before the first frame of a new image is recorded.
        self.query.ledger.store_urgent(now_ms(), &self.shared);
        work
    }

    fn begin(&mut self, image: Image) {
        self.shared.statistics.joined.add(1);
        let channel = &self.settings.channel;
        let started = describe(&image, channel, &self.stripped_channel)
            .and_then(|description| self.start_recording(&image, &description));
        match started {
            Ok((key, writer)) => self.recorded.push(Recorded { image, key, writer }),
            Err(error) => {
                let error = self.query.in_archive(&error);
                self.set_fault(error, false);
            }
        }
        self.show_recordings();
        self.warn_of_space();
    }

    fn start_recording(
        &mut self,
        image: &Image,
        description: &ImageDescription,
    ) -> Result<(SessionKey, RecordingWriter<Directory>), LiveError> {
        let key = SessionKey::of_image(description);
        let is_known = self.query.archive.recorded_head(&key).is_some();
        let writer = self.query.archive.start_recording(description, now_us())?;
        debug_assert!(
            self.recorded
                .iter()
                .all(|recorded| recorded.writer.recording_id() != writer.recording_id()),
            "two images must not be recorded in recording {}",
            writer.recording_id()
        );
        let is_lost = self.lost_sessions.contains(&Session::of(image));
        let joined = JoinedImage {
            key: &key,
            recording_id: writer.recording_id(),
            join_position: description.join_position,
            missed_since: writer.missed_since(),
            is_known,
            reason: if is_lost { IMAGE_LOST } else { &self.absence },
        };
        self.query.ledger.begin(&joined, &self.shared);
        Ok((key, writer))
    }

    fn end(&mut self, image: &Image) {
        let is_it = |recorded: &Recorded| {
            recorded.image.correlation_id() == image.correlation_id()
                && recorded.image.subscription_registration_id()
                    == image.subscription_registration_id()
        };
        if let Some(at) = self.recorded.iter().position(is_it) {
            self.end_at(at);
            self.show_recordings();
        }
    }

    fn end_all(&mut self) {
        while let Some(last) = self.recorded.len().checked_sub(1) {
            self.end_at(last);
        }
        self.show_recordings();
    }

    /// Ends the recording with index `at` in the list, at its recorded position.
    fn end_at(&mut self, at: usize) {
        let Recorded { image, key, writer } = self.recorded.swap_remove(at);
        let is_end_of_stream = image.is_end_of_stream();
        self.end_in_ledger(&key, &writer, is_end_of_stream);
        if is_end_of_stream {
            self.lost_sessions.remove(&Session::of(&image));
        } else {
            self.lost_sessions.insert(Session::of(&image));
        }
        self.shared.statistics.ended.add(1);
        let ended = self
            .query
            .archive
            .end_recording(writer, is_end_of_stream, now_ms());
        if let Err(error) = ended {
            self.set_fault(error.into(), false);
        }
        self.is_purging = true;
    }

    fn end_in_ledger(
        &mut self,
        key: &SessionKey,
        writer: &RecordingWriter<Directory>,
        is_end_of_stream: bool,
    ) {
        let (ledger, shared) = (&mut self.query.ledger, &self.shared);
        let recording_id = writer.recording_id();
        match writer.missed_since() {
            Some(since) if is_end_of_stream => {
                let bytes = writer.recorded_position() - since;
                let gap = ledger.settle(recording_id, bytes, shared);
                gap.into_iter()
                    .for_each(|gap| shared.add_line(gap.to_string()));
            }
            Some(_) => ledger.withdraw(recording_id, shared),
            None => {}
        }
        ledger.end(key, is_end_of_stream, now_ms());
    }

    /// Records a block of each image if there is room. Returns the number of bytes.
    fn poll_images(&mut self) -> usize {
        let mut retained = self.query.archive.retained_bytes();
        let limit = self.settings.max_retained_bytes;
        // Spark commits a batch only after it has planned a later batch. Therefore, if all recorded data is in a batch,
        // one more block is recorded beyond the limit. Without this block, Spark would have no data for the later
        // batch.
        let mut is_starving = retained >= limit && self.is_all_taken();
        self.note_full(retained >= limit && !is_starving);
        let mut total = 0;
        let mut at = 0;
        while at < self.recorded.len() {
            let recorded = &mut self.recorded[at];
            let limit = recorded.writer.block_limit(retained < limit || is_starving);
            match recorded.poll(limit, &mut self.buffer, now_us) {
                Ok(0) if recorded.is_over() => {
                    self.end_at(at);
                    self.show_recordings();
                    continue;
                }
                Ok(bytes) => {
                    total += bytes;
                    retained += bytes as u64;
                    is_starving &= bytes == 0;
                    self.note_gap(at, bytes);
                }
                Err(error) => {
                    self.fail(at, &error);
                    continue;
                }
            }
            at += 1;
        }
        self.shared.statistics.retained_bytes.set(retained as i64);
        total
    }

    /// Whether batches of Spark contain every complete message.
    fn is_all_taken(&self) -> bool {
        self.query.archive.recordings().all(|recording| {
            let taken = self.taken.get(&recording.stream.recording_id());
            !has_new_messages(&recording, taken.copied())
        })
    }

    fn note_full(&mut self, is_full: bool) {
        let now = Instant::now();
        if let Some(since) = self.full_since.take() {
            let full = now.duration_since(since);
            // The fraction of a millisecond is kept for the next call.
            let whole_ms = full.as_millis() as u64;
            self.shared
                .statistics
                .retention_full_ms
                .add(whole_ms as i64);
            let rest = since + Duration::from_millis(whole_ms);
            self.full_since = is_full.then_some(rest);
        } else if is_full {
            self.full_since = Some(now);
        }
    }

    /// Counts the missed bytes of the session before this recording. The number is known after the recording's first
    /// message has begun.
    fn note_gap(&mut self, at: usize, bytes: usize) {
        let recorded = &mut self.recorded[at];
        let gap = if bytes > 0 {
            recorded.writer.take_gap()
        } else {
            None
        };
        let Some(gap) = gap else {
            return;
        };
        let image = &recorded.image;
        let recording_id = recorded.writer.recording_id();
        let settled = self.query.ledger.settle(recording_id, gap, &self.shared);
        if !self.lost_sessions.contains(&Session::of(image)) {
            if let Some(gap) = settled {
                self.shared.add_line(gap.to_string());
            }
            return;
        }
        let line = format!(
            "{gap} bytes of stream {} session {} are lost: {IMAGE_LOST}",
            image.stream_id(),
            image.session_id()
        );
        if self.settings.fail_on_data_loss {
            let remedy = "set failOnDataLoss=false to go on after that";
            let error = LiveError::new(LiveCode::DataLoss, format!("{line}; {remedy}"));
            self.set_fault(error, true);
        } else {
            self.shared.statistics.lost_bytes.add(gap);
            self.shared.add_line(line);
        }
    }

    /// Ends a recording that cannot continue. The position of the image stays at the end of the recording, so that a
    /// restart of the query loses nothing.
    fn fail(&mut self, at: usize, error: &PollError) {
        let error = self.query.in_archive(error);
        self.end_at(at);
        self.show_recordings();
        self.set_fault(error, false);
    }

    /// Handles the end of the client and of all its images. The cause decides whether the recorder connects again.
    fn disconnect(&mut self, ended: Ended) {
        self.end_all();
        self.connection = None;
        self.counters = None;
        self.subscribed_since_ms = None;
        let Ended { error, is_late } = ended;
        self.absence =
            format!("sent while the query had no connection to its media driver: {error}");
        self.next_second = Instant::now();
        self.outage = match (self.settings.fail_on_data_loss, is_late) {
            (false, _) => Some(Outage::endless(error)),
            (true, true) => Some(Outage {
                error,
                give_up_at: Some(self.next_second + self.driver_timeout),
            }),
            (true, false) => return self.set_fault(error, false),
        };
        if let Some(outage) = &self.outage {
            let error = &outage.error;
            self.shared.add_line(format!("{error}; connecting again"));
        }
    }

    fn purge(&mut self) -> usize {
        if !self.is_purging {
            return 0;
        }
        match self.query.archive.work(now_ms(), self.subscribed_since_ms) {
            Ok(true) => {
                self.show_recordings();
                1
            }
            Ok(false) => {
                self.is_purging = false;
                0
            }
            Err(error) => {
                // `REPORT_INTERVAL` later the purge is tried again.
                self.is_purging = false;
                self.shared.add_line(error.to_string());
                0
            }
        }
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            self.query.show_life(now_ms(), &self.shared);
            self.keep_ledger();
            self.report();
        }
        if now >= self.next_second {
            self.next_second = now + SECOND;
            self.reconnect();
        }
    }

    fn keep_ledger(&mut self) {
        let QueryArchive {
            archive, ledger, ..
        } = &mut self.query;
        let head_of = |key: &SessionKey| archive.recorded_head(key);
        let (now_ms, since) = (now_ms(), self.subscribed_since_ms);
        ledger.give_up_absent(now_ms, since, head_of, &self.shared);
        ledger.store_changes(now_ms, &self.shared);
    }

    fn report(&mut self) {
        let statistics = &self.shared.statistics;
        if let (Some(counters), Some(connection)) = (&mut self.counters, &self.connection) {
            counters.update(connection.aeron(), statistics, &self.shared.recordings());
        }
        self.is_purging = true;
    }

    /// Connects again after an outage if a driver runs.
    fn reconnect(&mut self) {
        let Some(outage) = self.outage.take() else {
            return;
        };
        let context = (self.settings.make_context)();
        let context = context.ok().filter(is_driver_there);
        let tried = context.map(|context| {
            self.query.ledger.has_run_before = true;
            self.connect(context)
        });
        match tried {
            Some(Ok(())) => {
                let line = "connected to a media driver again".to_owned();
                return self.shared.add_line(line);
            }
            Some(Err(error)) => self.shared.add_line(error.to_string()),
            None => {}
        }
        if outage.is_over() {
            return self.set_fault(outage.error, false);
        }
        self.outage = Some(outage);
    }

    fn warn_of_space(&mut self) {
        if self.has_warned_of_space {
            return;
        }
        if let Some(line) = self.query.archive.space_warning() {
            self.has_warned_of_space = true;
            self.shared.add_line(line);
        }
    }

    fn show_recordings(&self) {
        self.shared
            .statistics
            .images
            .set(self.recorded.len() as i64);
        let recordings = self.query.archive.recordings().collect();
        self.shared.change(|state| state.recordings = recordings);
    }

    fn set_fault(&mut self, error: LiveError, is_urgent: bool) {
        self.query.record_error(&error);
        self.shared.set_fault(RecorderFault { error, is_urgent });
    }

    /// Writes the stop positions first, because a restarted query continues from them. Then removes the subscriptions.
    fn close(mut self) {
        self.end_all();
        self.query.ledger.store_changes(now_ms(), &self.shared);
        if let Some(connection) = &self.connection {
            connection.close();
        }
        self.query.close();
        self.shared
            .change(|state| state.phase = Phase::Ended(LiveError::closed()));
    }
}

/// Whether a recording has complete messages after `taken`.
pub(crate) fn has_new_messages(recording: &RecordingInfo, taken: Option<i64>) -> bool {
    let published = &recording.published;
    let from = taken.unwrap_or(recording.stream.start_position());
    published.head().is_some_and(|head| head > from) && published.counts().messages > 0
}

fn backoff(max_park_ns: u64) -> BackoffIdleStrategy {
    BackoffIdleStrategy::new(
        BackoffIdleStrategy::DEFAULT_MAX_SPINS,
        BackoffIdleStrategy::DEFAULT_MAX_YIELDS,
        BackoffIdleStrategy::DEFAULT_MIN_PARK_NS,
        max_park_ns,
    )
}

fn now_us() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |since_epoch| since_epoch.as_micros() as i64)
}

fn now_ms() -> i64 {
    now_us() / 1000
}
