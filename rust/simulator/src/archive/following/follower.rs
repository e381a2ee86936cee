//! [`Follower`]: a process that reads the recordings of a stream one after the other, and then the live stream. The
//! follower commits its position as a named reader. After a death of the process, the next process continues at this
//! position.
//!
//! The follower works like `aeron.Follower` in Python.

use std::collections::{BTreeMap, BTreeSet};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientContext, ArchiveClientError, ArchiveOperation,
    ArchiveSessionState, AsyncConnect, PersistentSubscription, PersistentSubscriptionContext,
    PersistentSubscriptionCounters, PersistentSubscriptionError, PersistentSubscriptionState,
    StartPosition, TimedPosition,
};
use aeron_archive::extensions::{NamedReader, RetentionPolicy, RetentionScope};
use aeron_client::{Aeron, Counter, PendingOperation};
use aeron_protocol::archive::{ArchiveErrorCode, TimeEdge};
use fastrand::Rng;

use super::observed::check_next;
use super::plan::FollowedStreamPlan;
use super::tape::StreamTape;
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::payload::Message;
use crate::roles::{Graveyard, client_context};
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Name of the reader.
const READER: &str = "follower";
/// Maximum number of fragments read in one turn.
const FRAGMENTS_PER_TURN: usize = 16;
/// Maximum time for a response of the archive.
const MESSAGE_TIMEOUT_NS: u64 = 1_500 * MS as u64;
/// Time between two listings that search for the next recording after the current one has ended.
const LOOK_INTERVAL_NS: i64 = 100 * MS;
/// Maximum pause after the failure of a request or a subscription.
const RETRY_NS: i64 = 200 * MS;
/// Time after which the follower stops waiting for the response to a request.
const PATIENCE_NS: i64 = 6 * SECOND;
/// Average number of idle turns between two searches for a time.
const TURNS_BETWEEN_SEARCHES: usize = 50;
/// Maximum number of recordings in a listing.
const ALL_RECORDINGS: i32 = 10_000;
/// Type id of the counter that the follower passes as each counter of its subscription. The schedule does not read
/// these counters: it reads the status of the subscription.
const COUNTER_TYPE_ID: i32 = 1_001;

/// Environment of a follower during a turn.
pub struct FollowerStage<'a> {
    /// Host of the follower.
    pub host: &'a Host,
    /// Virtual time.
    pub clock: &'a VirtualClock,
    /// The published messages of the follower's stream.
    pub tape: &'a StreamTape,
    /// Seed of the schedule.
    pub seed: u64,
    /// Number of archive processes that were started.
    pub archive_lives: u64,
}

/// See the [module](self).
pub struct Follower {
    plan: FollowedStreamPlan,
    random: Rng,
    client: Option<Aeron>,
    counter: Option<Counter>,
    adding: Option<PendingOperation<Counter>>,
    session: FollowerSession,
    task: Option<(i64, Task)>,
    current: Option<Current>,
    subscription: Option<PersistentSubscription>,
    commits: Commits,
    has_policy: bool,
    must_look: bool,
    acts_from_ns: i64,
    commits_from_ns: i64,
    stalled_until_ns: i64,
    starts_from_ns: i64,
    /// Number of the archive process that granted the request to record.
    granted_life: Option<u64>,
    has_left_live: bool,
    was_live: bool,
    counts: FollowerCounts,
    /// Errors of requests and subscriptions. They help to find the cause of a finding.
    errors: Vec<String>,
}

/// Counts of the events of a follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerCounts {
    /// Messages delivered.
    pub delivered: u64,
    /// Granted commits.
    pub commits: u64,
    /// Changes from one recording to the next.
    pub changes: u64,
    /// Times that the live stream was joined.
    pub joined: u64,
    /// Positions found by time.
    pub found: u64,
}

enum FollowerSession {
    Away,
    Connecting(Box<AsyncConnect>),
    Connected(AeronArchive),
}

/// The recording that the follower reads, and the position after the last delivered message.
struct Current {
    recording: RecordingDescriptor,
    position: i64,
}

/// The outstanding request.
enum Task {
    Recording(ArchiveOperation<i64>),
    Listing(ArchiveOperation<Vec<RecordingDescriptor>>),
    ListingReaders(Vec<RecordingDescriptor>, ArchiveOperation<Vec<NamedReader>>),
    /// The first commit in a recording. After the response, the follower reads the recording.
    Opening(Box<Opening>, ArchiveOperation<i64>),
    Limiting(ArchiveOperation<i64>),
    Committing(Place, ArchiveOperation<i64>),
    Removing(ArchiveOperation<i64>),
    /// A search for the first message at or after a time, with the highest position that the archive may return.
    Finding(i64, ArchiveOperation<TimedPosition>),
}

struct Opening {
    recording: RecordingDescriptor,
    position: i64,
    /// Older recordings from which the reader must be removed.
    former: Vec<i64>,
}

/// A recording and a position in it.
type Place = (i64, i64);

/// The positions of the named reader.
#[derive(Debug, Default)]
struct Commits {
    /// The last position that was granted.
    granted: Option<Place>,
    /// Positions that were requested after the granted one, with unknown outcome.
    doubtful: Vec<Place>,
    /// The highest requested position of each recording.
    highest: BTreeMap<i64, i64>,
    /// Older recordings from which the reader must be removed.
    former: Vec<i64>,
    /// Recordings that were read to their end.
    left: BTreeSet<i64>,
}

impl Commits {
    fn request(&mut self, place: Place) {
        if !self.doubtful.contains(&place) {
            self.doubtful.push(place);
        }
        let highest = self.highest.entry(place.0).or_insert(place.1);
        *highest = place.1.max(*highest);
    }

    fn grant(&mut self, place: Place) {
        self.granted = Some(place);
        self.doubtful.clear();
    }

    /// Whether this may be the reader's position in the archive.
    fn may_be(&self, place: Place) -> bool {
        self.granted == Some(place) || self.doubtful.contains(&place)
    }
}

impl Follower {
    /// Creates a follower that starts in its first turn.
    pub fn new(plan: FollowedStreamPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            client: None,
            counter: None,
            adding: None,
            session: FollowerSession::Away,
            task: None,
            current: None,
            subscription: None,
            commits: Commits::default(),
            has_policy: false,
            must_look: false,
            acts_from_ns: i64::MIN,
            commits_from_ns: i64::MIN,
            stalled_until_ns: i64::MIN,
            starts_from_ns: i64::MIN,
            granted_life: None,
            has_left_live: false,
            was_live: false,
            counts: FollowerCounts::default(),
            errors: Vec::new(),
        }
    }

    /// Returns the host of the process.
    pub fn host(&self) -> HostId {
        self.plan.follower_host
    }

    /// Returns the id of the stream.
    pub fn stream_id(&self) -> i32 {
        self.plan.stream_id
    }

    /// Returns the counts of the follower.
    pub fn counts(&self) -> FollowerCounts {
        self.counts
    }

    /// Returns the number of the archive process that granted the request to record.
    pub fn granted_life(&self) -> Option<u64> {
        self.granted_life
    }

    /// Returns the state of the subscription, and whether the follower has ever left a live stream.
    pub fn state(&self) -> Option<(PersistentSubscriptionState, bool)> {
        let status = self.subscription.as_ref()?.status();
        Some((status.state(), self.has_left_live))
    }

    /// Returns the last errors.
    pub fn errors(&self) -> &[String] {
        &self.errors[self.errors.len().saturating_sub(20)..]
    }

    /// Returns the state for reports.
    pub fn summary(&self) -> String {
        let current = self.current.as_ref();
        format!(
            "follower of stream {}: recording {:?}, position {:?}, state {:?}, task {}, {:?}, {:?}",
            self.plan.stream_id,
            current.map(|it| it.recording.recording_id),
            current.map(|it| it.position),
            self.state(),
            self.task.as_ref().map_or("none", |(_, task)| task.name()),
            self.commits,
            self.counts
        )
    }

    /// Returns whether the reader may have committed this or a later position of the recording, or has left the
    /// recording.
    pub fn has_committed(&self, recording_id: i64, position: i64) -> bool {
        let highest = self.commits.highest.get(&recording_id);
        highest.is_some_and(|highest| position <= *highest)
            || self.commits.left.contains(&recording_id)
    }

    /// Pauses the process until the given time.
    pub fn stall(&mut self, until_ns: i64) {
        self.stalled_until_ns = until_ns;
    }

    /// Simulates the death of the process. Another one starts at the given time.
    pub fn crash(&mut self, starts_from_ns: i64, graveyard: &mut Graveyard) {
        let handles = (
            self.task.take(),
            self.subscription.take(),
            self.counter.take(),
            self.adding.take(),
            std::mem::replace(&mut self.session, FollowerSession::Away),
        );
        if let Some(client) = self.client.take() {
            graveyard.bury(client, handles);
        }
        self.current = None;
        self.was_live = false;
        self.starts_from_ns = starts_from_ns;
    }

    /// Returns a finding if a message before the position `recorded` of a recording was not delivered.
    pub fn unread(&self, tape: &StreamTape, id: i64, recorded: i64) -> Option<Finding> {
        let is_read = self.current.as_ref().is_some_and(|current| {
            let session = tape.session(current.recording.session_id);
            let next = session.and_then(|session| session.next_at(current.position));
            current.recording.recording_id == id && next.is_none_or(|next| next.end > recorded)
        });
        let text = self.summary();
        (!is_read).then(|| format!("not all of recording {id} up to {recorded} is read: {text}"))
    }
}

/// Turns.
impl Follower {
    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// A message is missing, comes twice, or is not in order; the archive has lost a position of the reader, or data
    /// that the reader has not committed.
    pub fn do_work(&mut self, stage: &FollowerStage<'_>) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        if now_ns < self.starts_from_ns.max(self.stalled_until_ns) {
            return Ok(0);
        }
        if self.client.is_none() {
            let mut context = client_context(stage.clock, stage.host.id());
            context.keepalive_interval_ns = 200 * MS as u64;
            context.driver_timeout_ms = MESSAGE_TIMEOUT_NS / 1_000_000;
            self.client = stage.host.connect(context);
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
        if client.is_closed() {
            self.lose_client();
            return Ok(1);
        }
        self.add_counter(&client);
        work_count += self.read(stage)?;
        work_count += self.run_session(&client, stage)?;
        Ok(work_count)
    }

    /// Closes the client and its resources. The next client of the process continues after the last delivered message.
    fn lose_client(&mut self) {
        self.subscription = None;
        self.was_live = false;
        (self.counter, self.adding, self.task) = (None, None, None);
        self.session = FollowerSession::Away;
        self.client = None;
        self.must_look = true;
    }

    fn add_counter(&mut self, client: &Aeron) {
        if self.counter.is_some() {
            return;
        }
        let adding = self.adding.take();
        let adding = adding.or_else(|| {
            client
                .async_add_counter(COUNTER_TYPE_ID, &[], "follower")
                .ok()
        });
        self.adding = adding;
        if let Some(Ok(Some(counter))) = self.adding.as_mut().map(PendingOperation::poll) {
            self.counter = Some(counter);
        }
    }

    /// Polls the subscription, and compares its messages with those that were published.
    fn read(&mut self, stage: &FollowerStage<'_>) -> Result<usize, Finding> {
        let (Some(subscription), Some(current)) = (&mut self.subscription, &mut self.current)
        else {
            return Ok(0);
        };
        let (id, session_id) = (current.recording.recording_id, current.recording.session_id);
        let mut found = Ok(());
        let mut delivered = 0;
        let polled = subscription.poll(
            |message| {
                let bytes = message.to_vec();
                let end = message.header().position();
                let message = Message::recognise(&bytes, stage.seed);
                let next = match stage.tape.session(session_id) {
                    Some(session) => check_next(session, current.position, message, end),
                    None => Err("the session is unknown".to_owned()),
                };
                delivered += 1;
                match next {
                    Ok(position) => current.position = position,
                    Err(finding) if found.is_ok() => {
                        found = Err(format!("follower of recording {id}: {finding}"));
                    }
                    Err(_) => {}
                }
            },
            FRAGMENTS_PER_TURN,
        );
        found?;
        self.counts.delivered += delivered;
        let status = subscription.status();
        let is_live = status.is_live();
        self.counts.joined += u64::from(is_live && !self.was_live);
        self.has_left_live |= self.was_live && !is_live;
        self.was_live = is_live;
        if let Some(failure) = status.failure_reason().cloned() {
            self.close_subscription();
            self.on_failure(&failure, stage)?;
            return Ok(1);
        }
        match polled {
            Ok(work_count) => Ok(work_count),
            Err(error) => Err(format!("the poll of a follower failed: {error}")),
        }
    }

    fn close_subscription(&mut self) {
        self.subscription = None;
        self.was_live = false;
        self.must_look = true;
    }

    /// Decides whether the failure of a subscription is allowed. If it is allowed, the follower later creates another
    /// subscription.
    fn on_failure(
        &mut self,
        failure: &PersistentSubscriptionError,
        stage: &FollowerStage<'_>,
    ) -> Result<(), Finding> {
        self.errors.push(failure.to_string());
        self.acts_from_ns = stage.clock.now_ns() + self.random.i64(MS..RETRY_NS);
        let is_loss = match failure {
            PersistentSubscriptionError::BeforeStart { .. } => true,
            PersistentSubscriptionError::UnknownRecording { recording_id } => {
                let position = self.current.as_ref().map_or(0, |current| current.position);
                !self.has_committed(*recording_id, position)
            }
            _ => false,
        };
        match is_loss {
            true => Err(format!(
                "retention has deleted what is not read: {failure}; {}",
                self.summary()
            )),
            false => Ok(()),
        }
    }

    fn run_session(&mut self, client: &Aeron, stage: &FollowerStage<'_>) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        match &mut self.session {
            FollowerSession::Away if now_ns < self.acts_from_ns => Ok(0),
            FollowerSession::Away => {
                self.acts_from_ns = now_ns + 50 * MS;
                let [request, response] = &self.plan.control;
                let context = archive_context(request, response, stage.clock);
                if let Ok(connecting) = AeronArchive::async_connect(client, context) {
                    self.session = FollowerSession::Connecting(Box::new(connecting));
                }
                Ok(1)
            }
            FollowerSession::Connecting(connecting) => match connecting.poll() {
                Ok(None) => Ok(0),
                Ok(Some(archive)) => {
                    self.session = FollowerSession::Connected(archive);
                    Ok(1)
                }
                Err(error) => {
                    self.errors.push(error.to_string());
                    self.session = FollowerSession::Away;
                    Ok(1)
                }
            },
            FollowerSession::Connected(archive) => {
                let archive = archive.clone();
                let work_count = archive.poll().unwrap_or(0);
                if archive.state().ok() != Some(ArchiveSessionState::Connected) {
                    self.task = None;
                    self.session = FollowerSession::Away;
                    // If the archive does not run any more, there is nothing to close.
                    let _ = archive.close();
                    return Ok(1);
                }
                Ok(work_count + self.act(&archive, stage)?)
            }
        }
    }

    fn act(&mut self, archive: &AeronArchive, stage: &FollowerStage<'_>) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        if let Some((since_ns, task)) = self.task.take() {
            let name = task.name();
            match self.go_on(task, archive, stage) {
                Ok(PolledTask::Pending(task)) if now_ns - since_ns <= PATIENCE_NS => {
                    self.task = Some((since_ns, task));
                    return Ok(0);
                }
                Ok(PolledTask::Pending(_)) => self.errors.push(format!("{name} has no response")),
                Ok(PolledTask::Next(task)) => self.task = Some((now_ns, task)),
                Ok(PolledTask::Done) => {}
                Err(TaskFailure::Request(error)) => {
                    self.errors.push(format!("{name}: {error}"));
                    self.acts_from_ns = now_ns + self.random.i64(MS..RETRY_NS);
                }
                Err(TaskFailure::Finding(finding)) => return Err(finding),
            }
            return Ok(1);
        }
        if now_ns < self.acts_from_ns {
            return Ok(0);
        }
        let task = self.choose(archive, now_ns);
        let task = task.or_else(|| self.find(archive, stage.tape));
        self.task = task.map(|task| (now_ns, task));
        Ok(usize::from(self.task.is_some()))
    }

    /// Chooses the next request.
    fn choose(&mut self, archive: &AeronArchive, now_ns: i64) -> Option<Task> {
        let plan = &self.plan;
        if self.granted_life.is_none() {
            let call = ArchiveCall::start_recording(
                &plan.recording_channel,
                plan.stream_id,
                plan.source_location,
                false,
            );
            return archive.begin(call).ok().map(Task::Recording);
        }
        let is_waiting = match &self.subscription {
            None => true,
            Some(it) => it.status().state() == PersistentSubscriptionState::AwaitLive,
        };
        if is_waiting || std::mem::take(&mut self.must_look) {
            self.acts_from_ns = now_ns + LOOK_INTERVAL_NS;
            let call =
                ArchiveCall::list_recordings_for_uri(0, ALL_RECORDINGS, "aeron", plan.stream_id);
            return archive.begin(call).ok().map(Task::Listing);
        }
        let current = self.current.as_ref()?;
        let place = (current.recording.recording_id, current.position);
        if let Some(former) = self.commits.former.last() {
            let call = ArchiveCall::remove_reader(*former, READER);
            return archive.begin(call).ok().map(Task::Removing);
        }
        if !std::mem::replace(&mut self.has_policy, true) {
            let policy = RetentionPolicy {
                scope: RetentionScope::Recording(place.0),
                max_bytes: Some(plan.max_bytes),
                max_age_ms: None,
            };
            let call = ArchiveCall::set_retention(&policy);
            return archive.begin(call).ok().map(Task::Limiting);
        }
        if now_ns < self.commits_from_ns || self.commits.granted == Some(place) {
            return None;
        }
        self.commits_from_ns = now_ns + self.random.i64(0..plan.commit_interval_ns);
        self.commits.request(place);
        let call = ArchiveCall::commit_reader(place.0, READER, place.1, None, None);
        let operation = archive.begin(call).ok()?;
        Some(Task::Committing(place, operation))
    }
}

impl Follower {
    /// Starts a search for the publication time of a random message that retention must keep.
    fn find(&mut self, archive: &AeronArchive, tape: &StreamTape) -> Option<Task> {
        let current = self.current.as_ref()?;
        let session = tape.session(current.recording.session_id)?;
        let is_time = self.random.usize(..TURNS_BETWEEN_SEARCHES) == 0;
        if !is_time || !self.plan.has_index || session.count() == 0 {
            return None;
        }
        let message = session.message(self.random.usize(..session.count() as usize))?;
        let first = session.first_since(message.published_ms)?;
        let (id, committed) = self.commits.granted?;
        if first.begin < committed || id != current.recording.recording_id {
            return None;
        }
        let timestamp_us = message.published_ms * 1_000;
        let call = ArchiveCall::find_position(id, TimeEdge::Since, timestamp_us);
        let operation = archive.begin(call).ok()?;
        Some(Task::Finding(first.begin, operation))
    }
}

/// Outcome of polling a request.
enum PolledTask {
    Pending(Task),
    Next(Task),
    Done,
}

enum TaskFailure {
    Request(ArchiveClientError),
    Finding(Finding),
}

impl From<ArchiveClientError> for TaskFailure {
    fn from(error: ArchiveClientError) -> Self {
        Self::Request(error)
    }
}

impl From<Finding> for TaskFailure {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::Recording(_) => "the request to record",
            Self::Listing(_) => "a listing",
            Self::ListingReaders(..) => "a listing of readers",
            Self::Opening(..) => "the first commit in a recording",
            Self::Limiting(_) => "a policy",
            Self::Committing(..) => "a commit",
            Self::Removing(_) => "the removal of a reader",
            Self::Finding(..) => "a search for a time",
        }
    }
}

/// Requests.
impl Follower {
    fn go_on(
        &mut self,
        task: Task,
        archive: &AeronArchive,
        stage: &FollowerStage<'_>,
    ) -> Result<PolledTask, TaskFailure> {
        match task {
            Task::Recording(mut operation) => match operation.poll() {
                Ok(None) => Ok(PolledTask::Pending(Task::Recording(operation))),
                Err(error)
                    if error.archive_code() != Some(ArchiveErrorCode::ActiveSubscription) =>
                {
                    Err(error.into())
                }
                // `ActiveSubscription`: an earlier request was granted, and its response was lost.
                Ok(Some(_)) | Err(_) => {
                    self.granted_life = Some(stage.archive_lives);
                    Ok(PolledTask::Done)
                }
            },
            Task::Listing(mut operation) => match operation.poll()? {
                None => Ok(PolledTask::Pending(Task::Listing(operation))),
                Some(recordings) if self.current.is_none() => {
                    let page = |from| ArchiveCall::list_readers(None, READER, from);
                    let operation = archive.list(page)?;
                    Ok(PolledTask::Next(Task::ListingReaders(
                        recordings, operation,
                    )))
                }
                Some(recordings) => Ok(self.look(recordings, archive, stage)?),
            },
            Task::ListingReaders(recordings, mut operation) => match operation.poll()? {
                None => Ok(PolledTask::Pending(Task::ListingReaders(
                    recordings, operation,
                ))),
                Some(readers) => Ok(self.begin(recordings, &readers, archive)?),
            },
            Task::Opening(opening, mut operation) => match operation.poll()? {
                None => Ok(PolledTask::Pending(Task::Opening(opening, operation))),
                Some(_) => {
                    self.open(*opening, stage)?;
                    Ok(PolledTask::Done)
                }
            },
            Task::Limiting(mut operation) => match operation.poll() {
                Ok(None) => Ok(PolledTask::Pending(Task::Limiting(operation))),
                Ok(Some(_)) => Ok(PolledTask::Done),
                Err(error) => {
                    self.has_policy = false;
                    Err(error.into())
                }
            },
            Task::Committing(place, mut operation) => match operation.poll() {
                Ok(None) => Ok(PolledTask::Pending(Task::Committing(place, operation))),
                Ok(Some(_)) => {
                    self.counts.commits += 1;
                    self.commits.grant(place);
                    Ok(PolledTask::Done)
                }
                Err(error) => {
                    // The follower has read more of the live stream than is recorded. If the recording has ended, the
                    // next listing shows this.
                    if error.archive_code() == Some(ArchiveErrorCode::InvalidPosition) {
                        self.commits.doubtful.retain(|it| *it != place);
                        self.must_look = true;
                    }
                    Err(error.into())
                }
            },
            Task::Finding(latest, mut operation) => match operation.poll()? {
                None => Ok(PolledTask::Pending(Task::Finding(latest, operation))),
                Some(found) if found.position > latest => Err(TaskFailure::Finding(format!(
                    "{found:?} is after the first message, which begins at {latest}: {}",
                    self.summary()
                ))),
                Some(_) => {
                    self.counts.found += 1;
                    Ok(PolledTask::Done)
                }
            },
            Task::Removing(mut operation) => match operation.poll()? {
                None => Ok(PolledTask::Pending(Task::Removing(operation))),
                Some(_) => {
                    self.commits.former.pop();
                    Ok(PolledTask::Done)
                }
            },
        }
    }

    /// Continues at the stored position of the reader. Without such a position, begins with the oldest recording that
    /// is newer than the recording of the last commit.
    fn begin(
        &mut self,
        mut recordings: Vec<RecordingDescriptor>,
        readers: &[NamedReader],
        archive: &AeronArchive,
    ) -> Result<PolledTask, Finding> {
        let position_in = |recording: &RecordingDescriptor| {
            let mut readers = readers.iter();
            let reader = readers.find(|it| it.recording_id == recording.recording_id);
            reader.map(|reader| reader.position)
        };
        let found = recordings.iter().rposition(|it| position_in(it).is_some());
        let granted = self.commits.granted;
        let Some(at) = found else {
            let is_lost = |place: Place| {
                let mut recordings = recordings.iter();
                recordings.any(|it| it.recording_id == place.0)
            };
            if granted.is_some_and(is_lost) {
                return Err(format!("the reader is lost: {}", self.summary()));
            }
            let begin = granted.map_or(i64::MIN, |(id, _)| id);
            recordings.retain(|it| it.recording_id > begin);
            return Ok(match recordings.into_iter().next() {
                None => PolledTask::Done,
                Some(recording) => {
                    let position = recording.start_position;
                    self.opening(recording, position, Vec::new(), archive)
                }
            });
        };
        let former = recordings[..at]
            .iter()
            .filter(|it| position_in(it).is_some());
        let former = former.map(|it| it.recording_id).collect();
        let recording = recordings.swap_remove(at);
        let position = position_in(&recording).unwrap_or(recording.start_position);
        if !self.commits.may_be((recording.recording_id, position)) {
            return Err(format!(
                "the reader is at {position} of recording {}: {}",
                recording.recording_id,
                self.summary()
            ));
        }
        Ok(self.opening(recording, position, former, archive))
    }

    /// Continues with the next recording if the current one has ended and all of it was delivered. Otherwise, stays
    /// with the current one.
    fn look(
        &mut self,
        recordings: Vec<RecordingDescriptor>,
        archive: &AeronArchive,
        stage: &FollowerStage<'_>,
    ) -> Result<PolledTask, Finding> {
        let Some(current) = &self.current else {
            return Ok(PolledTask::Done);
        };
        let (id, position) = (current.recording.recording_id, current.position);
        let session_id = current.recording.session_id;
        let now = recordings.iter().find(|it| it.recording_id == id).cloned();
        // The live stream may have delivered all messages of a later recording. The follower does not open such a
        // recording.
        let has_more = |it: &&RecordingDescriptor| {
            it.session_id != session_id || it.is_unfinished() || it.stop_position > position
        };
        let mut later = recordings.iter().filter(|it| it.recording_id > id);
        let next = later.find(has_more).cloned();
        let stop = match &now {
            // Retention has deleted the recording. It may do so, because the follower has committed its position.
            None if self.has_committed(id, position) => position,
            None => return Err(format!("recording {id} is lost: {}", self.summary())),
            Some(now) if now.is_unfinished() => i64::MAX,
            Some(now) => now.stop_position,
        };
        let session = stage.tape.session(session_id);
        let unread = session.and_then(|session| session.next_at(position));
        let is_read = unread.is_none_or(|unread| unread.end > stop);
        let next = next.filter(|next| {
            // The live stream may deliver messages from the gap between the two recordings. During this time, the
            // follower stays with the live stream.
            let has_reached = unread.is_none_or(|unread| unread.begin >= next.start_position);
            let is_live = next.session_id == session_id && self.subscription.is_some();
            is_read && (!is_live || has_reached || position <= stop)
        });
        if let Some(next) = next {
            let is_same = next.session_id == session_id;
            let begin = match is_same {
                true => next.start_position.max(position),
                false => next.start_position,
            };
            return Ok(self.opening(next, begin, vec![id], archive));
        }
        match (now, &self.subscription) {
            // If the live stream has delivered messages after the end of the recording, the follower waits for the next
            // recording.
            (Some(now), None) if position <= stop => {
                Ok(self.opening(now, position, Vec::new(), archive))
            }
            _ => Ok(PolledTask::Done),
        }
    }

    fn opening(
        &mut self,
        recording: RecordingDescriptor,
        position: i64,
        former: Vec<i64>,
        archive: &AeronArchive,
    ) -> PolledTask {
        let id = recording.recording_id;
        self.commits.request((id, position));
        let call = ArchiveCall::commit_reader(id, READER, position, None, None);
        let Ok(operation) = archive.begin(call) else {
            return PolledTask::Done;
        };
        let opening = Opening {
            recording,
            position,
            former,
        };
        PolledTask::Next(Task::Opening(Box::new(opening), operation))
    }

    /// Subscribes to a recording from the reader's position in it.
    fn open(&mut self, opening: Opening, stage: &FollowerStage<'_>) -> Result<(), Finding> {
        let Opening {
            recording,
            position,
            former,
        } = opening;
        let id = recording.recording_id;
        self.commits.grant((id, position));
        let is_change = self
            .current
            .as_ref()
            .is_some_and(|current| current.recording.recording_id != id);
        self.counts.changes += u64::from(is_change);
        self.commits.left.extend(&former);
        self.commits.former.extend(former);
        self.has_policy &= !is_change && self.current.is_some();
        self.close_subscription();
        self.must_look = false;
        let session_id = recording.session_id;
        self.current = Some(Current {
            recording,
            position,
        });
        let (Some(client), Some(counter)) = (&self.client, &self.counter) else {
            return Ok(());
        };
        let plan = &self.plan;
        let live_channel = AeronArchive::session_channel(&plan.live_channel, session_id)
            .map_err(|error| error.to_string())?;
        let [request, response] = &plan.control;
        let mut context = PersistentSubscriptionContext::new(
            archive_context(request, response, stage.clock),
            id,
            &live_channel,
            plan.stream_id,
            &plan.replay_channel,
            plan.stream_id + 5_000,
        );
        context.start_position = StartPosition::At(position);
        context.counters = PersistentSubscriptionCounters {
            state: Some(counter.clone()),
            join_difference: Some(counter.clone()),
            live_left: Some(counter.clone()),
            live_joined: Some(counter.clone()),
        };
        let subscription = PersistentSubscription::new(client, context);
        self.subscription = Some(subscription.map_err(|error| error.to_string())?);
        Ok(())
    }
}

fn archive_context(request: &str, response: &str, clock: &VirtualClock) -> ArchiveClientContext {
    ArchiveClientContext {
        message_timeout_ns: MESSAGE_TIMEOUT_NS,
        nano_clock: clock.nano_clock(),
        ..ArchiveClientContext::new(request, response)
    }
}
