//! [`Activity`]: the outstanding request of an operator, and the choice of the next request.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation, RecordingPositionKey,
    ReplayParams, ReplicationParams, StartedReplay,
};
use aeron_client::{ExclusivePublication, PendingOperation};
use aeron_memory::log::Positions;
use aeron_protocol::archive::{NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP};

use super::copying::Copying;
use super::detaching::Detaching;
use super::removal::{Change, Removal};
use super::replay::{Replay, ReplaySpeed};
use super::retaining::RetentionRequest;
use super::{Goal, Operator, PATIENCE_NS, Recorded, Stage};
use crate::archive::ledger::{Ledger, Tape, UncertainChange};
use crate::schedule::{MS, rarely};
use crate::truth::Finding;

/// Maximum number of recordings of an operator that run at the same time.
const MAX_RUNNING: usize = 2;
/// Maximum number of replays that an operator reads at the same time.
const MAX_REPLAYS: usize = 2;
/// Maximum time between two reads of a slow replay. The archive must not delete what such a replay still needs.
const MAX_PAUSE_NS: i64 = 50 * MS;
/// Range of the maximum rates of replays, in bytes per second.
const RATES: std::ops::Range<i64> = 400_000..2_000_000;
/// Range of the speeds of replays, in millionths of the recorded pace.
const SPEEDS: std::ops::Range<i64> = 4_000_000..40_000_000;
/// Part of the error of a replay with a speed if the archive does not know the recorded pace.
const NO_TIMES: &str = "the index has no arrival times";
/// Channel of replays that do not use the network.
const IPC: &str = "aeron:ipc";
/// Number of descriptors in a request for all of an archive's recordings.
const ALL_RECORDINGS: i32 = 10_000;
/// First stream id for replays.
const REPLAY_STREAM_ID: i32 = 500;
/// Stream id of an archive's control requests.
const CONTROL_STREAM_ID: i32 = 10;

/// The request for which an operator waits.
pub(super) enum Activity {
    Idle,
    /// A listing, with the tapes that were known at the request.
    Listing(Vec<usize>, ArchiveOperation<Vec<RecordingDescriptor>>),
    /// A publication for a new stream, or for the continuation of a tape.
    Publishing(Option<usize>, PendingOperation<ExclusivePublication>),
    Recording(Recording, ArchiveOperation<i64>),
    /// The archive has accepted the request to record. The recording begins when its image comes.
    Beginning(Recording),
    Stopping(usize, ArchiveOperation<bool>),
    AwaitingStop(usize, ArchiveOperation<Option<i64>>),
    Asking(usize, Question, ArchiveOperation<i64>),
    Changing(Box<Removal>),
    Detaching(usize, Detaching),
    Replaying(ReplayedRange, ArchiveOperation<StartedReplay>),
    StoppingReplay(ArchiveOperation<()>),
    DeletingStray(i64, ArchiveOperation<i64>),
    Replicating(Box<Copying>),
    Retaining(usize, RetentionRequest, ArchiveOperation<i64>),
}

/// A stream to record.
pub(super) struct Recording {
    tape: usize,
    publication: ExclusivePublication,
    subscription_id: i64,
    channel: String,
}

/// The range of a tape to replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayedRange {
    tape: usize,
    begin: i64,
    end: Option<i64>,
    /// Requested maximum number of bytes per second.
    rate: Option<i64>,
    /// Requested speed in millionths.
    speed: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Start,
    /// The result must not be below the position that was acknowledged at the time of the request.
    MaxRecorded {
        acknowledged: i64,
    },
}

impl Activity {
    /// Abandons the request. If it is a change, the outcome of the change stays unknown.
    pub fn forget(&self, ledger: &mut Ledger) {
        if let Self::Replicating(copying) = self {
            ledger.tape_mut(copying.source).readers -= 1;
        }
    }

    /// Returns the name of the activity for error texts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Idle => "it does nothing",
            Self::Listing(..) => "it lists recordings",
            Self::Publishing(..) => "it adds a publication",
            Self::Recording(..) => "it starts a recording",
            Self::Beginning(_) => "it waits for a recording to begin",
            Self::Stopping(..) => "it stops a recording",
            Self::AwaitingStop(..) => "it waits for a stop position",
            Self::Asking(..) => "it asks for a position",
            Self::Changing(..) => "it changes a recording",
            Self::Detaching(..) => "it detaches or attaches segments",
            Self::Replaying(..) => "it starts a replay",
            Self::StoppingReplay(_) => "it stops a replay",
            Self::DeletingStray(..) => "it deletes an unknown recording",
            Self::Replicating(_) => "it replicates",
            Self::Retaining(..) => "it commits a reader or sets a policy",
        }
    }
}

/// Outcome of polling a request.
pub(super) enum Polled<T> {
    Pending,
    Done(T),
    Failed(ArchiveClientError),
}

impl<T> From<Result<Option<T>, ArchiveClientError>> for Polled<T> {
    fn from(polled: Result<Option<T>, ArchiveClientError>) -> Self {
        match polled {
            Ok(None) => Self::Pending,
            Ok(Some(value)) => Self::Done(value),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Operator {
    /// Continues the current activity, or chooses a new one.
    ///
    /// # Errors
    /// The archive broke a rule.
    pub(super) fn act(
        &mut self,
        archive: &AeronArchive,
        stage: &mut Stage<'_>,
    ) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        if matches!(self.activity, Activity::Idle) {
            if now_ns < self.acts_from_ns {
                return Ok(0);
            }
            self.since_ns = now_ns;
            // Sending a request fails if the session is about to be lost. The operator then stays idle.
            self.activity = self.choose(archive, stage).unwrap_or(Activity::Idle);
            self.acts_from_ns = now_ns + self.random.i64(MS..60 * MS);
            return Ok(1);
        }
        let activity = std::mem::replace(&mut self.activity, Activity::Idle);
        self.activity = self.go_on(activity, archive, stage)?;
        let is_over = matches!(self.activity, Activity::Idle);
        if !is_over && now_ns - self.since_ns > PATIENCE_NS {
            let name = self.activity.name();
            self.abandon_activity(stage.ledger);
            self.must_list = true;
            if !stage.is_excused(self.since_ns) {
                return Err(format!(
                    "the operator on host {} waits in vain: {name}",
                    self.plan.host
                ));
            }
        }
        Ok(usize::from(is_over))
    }

    fn go_on(
        &mut self,
        activity: Activity,
        archive: &AeronArchive,
        stage: &mut Stage<'_>,
    ) -> Result<Activity, Finding> {
        match activity {
            Activity::Idle => Ok(Activity::Idle),
            Activity::Listing(tapes, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Listing(tapes, operation)),
                Polled::Done(listing) => {
                    self.granted += 1;
                    self.must_list = false;
                    stage.ledger.check_listing(&tapes, &listing)?;
                    self.take_listing(&listing, stage.ledger);
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => self.failed("a listing", &error, stage),
            },
            Activity::Publishing(tape, mut operation) => match operation.poll() {
                Ok(None) => Ok(Activity::Publishing(tape, operation)),
                Ok(Some(publication)) => self.record(tape, publication, archive, stage),
                Err(error) => {
                    self.must_list = true;
                    self.failed("a publication", &error.into(), stage)
                }
            },
            Activity::Recording(mut recording, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Recording(recording, operation)),
                Polled::Done(subscription_id) => {
                    self.granted += 1;
                    recording.subscription_id = subscription_id;
                    Ok(Activity::Beginning(recording))
                }
                Polled::Failed(error) => {
                    self.must_list = true;
                    self.failed_on(recording.tape, "a recording", &error, stage)
                }
            },
            Activity::Beginning(recording) => self.begin(recording, stage),
            Activity::Stopping(tape, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Stopping(tape, operation)),
                Polled::Done(_) => {
                    self.granted += 1;
                    self.recorded.retain(|recorded| recorded.tape != tape);
                    self.await_stop(tape, archive, stage)
                }
                Polled::Failed(error) => self.failed_on(tape, "a stop", &error, stage),
            },
            Activity::AwaitingStop(tape, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::AwaitingStop(tape, operation)),
                Polled::Done(Some(position)) => {
                    self.granted += 1;
                    stage.ledger.tape_mut(tape).stopped_at(position)?;
                    Ok(Activity::Idle)
                }
                Polled::Done(None) => self.await_stop(tape, archive, stage),
                Polled::Failed(error) => self.failed_on(tape, "a stop position", &error, stage),
            },
            Activity::Asking(tape, question, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Asking(tape, question, operation)),
                Polled::Done(position) => {
                    self.granted += 1;
                    answered(question, position, stage.ledger.tape_mut(tape))?;
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => self.failed_on(tape, "a position", &error, stage),
            },
            Activity::Changing(mut removal) => match removal.poll(archive, stage.ledger).into() {
                Polled::Pending => Ok(Activity::Changing(removal)),
                Polled::Done(()) => {
                    self.granted += 1;
                    Ok(Activity::Idle)
                }
                // The position of a truncation may be before the local files by now.
                Polled::Failed(_) if stage.ledger.tape(removal.tape()).local_start.is_some() => {
                    self.must_list = true;
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => {
                    self.must_list = true;
                    self.failed_on(removal.tape(), "a change", &error, stage)
                }
            },
            Activity::Detaching(tape, mut detaching) => match detaching.poll().into() {
                Polled::Pending => Ok(Activity::Detaching(tape, detaching)),
                Polled::Done(()) => {
                    self.granted += 1;
                    detaching.apply(stage.ledger.tape_mut(tape));
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => {
                    self.must_list = true;
                    self.failed_on(tape, "a detachment or attachment", &error, stage)
                }
            },
            Activity::Replaying(range, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Replaying(range, operation)),
                Polled::Done(started) => {
                    self.granted += 1;
                    let now_ns = stage.clock.now_ns();
                    let ReplayedRange {
                        tape,
                        begin,
                        end,
                        rate,
                        speed,
                    } = range;
                    let mut replay = Replay::new(started, tape, begin, end, now_ns);
                    let must_be_heeded = self.plan.retains || self.plan.has_copies;
                    if must_be_heeded && self.goal == Goal::Work && self.random.bool() {
                        replay = replay.with_pauses(self.random.i64(0..MAX_PAUSE_NS));
                    }
                    let period = stage.undisturbed(self.plan.archive);
                    replay = replay.with_speed(speed.map(|millionths| ReplaySpeed {
                        millionths,
                        requested_ns: self.since_ns,
                        begun_ns: stage.ledger.tape(tape).recorded_by_ns(begin, period),
                    }));
                    if let Some(rate) = rate {
                        replay = replay.with_rate(rate, self.since_ns);
                    }
                    if self.plan.replay_channel == IPC {
                        replay = replay.over_ipc(stage.undisturbed(self.plan.archive));
                    }
                    self.replays.push(replay);
                    Ok(Activity::Idle)
                }
                Polled::Failed(_) if stage.ledger.tape(range.tape).is_rotten => {
                    self.verified.insert(range.tape);
                    Ok(Activity::Idle)
                }
                // After a fault, the index of a segment may be missing.
                Polled::Failed(error)
                    if range.speed.is_some() && error.to_string().contains(NO_TIMES) =>
                {
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => self.failed_on(range.tape, "a replay", &error, stage),
            },
            Activity::StoppingReplay(mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::StoppingReplay(operation)),
                Polled::Done(()) => Ok(Activity::Idle),
                Polled::Failed(error) => self.failed("the stop of a replay", &error, stage),
            },
            Activity::DeletingStray(id, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::DeletingStray(id, operation)),
                Polled::Done(_) => {
                    self.strays.retain(|stray| *stray != id);
                    Ok(Activity::Idle)
                }
                // The recording may still run, because its image has not ended.
                Polled::Failed(_) => {
                    self.must_list = true;
                    Ok(Activity::Idle)
                }
            },
            Activity::Retaining(tape, request, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::Retaining(tape, request, operation)),
                Polled::Done(_) => {
                    self.granted += 1;
                    request.apply(stage.ledger.tape_mut(tape));
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => self.failed_on(tape, request.name(), &error, stage),
            },
            Activity::Replicating(mut copying) => match copying.poll(archive).into() {
                Polled::Pending => Ok(Activity::Replicating(copying)),
                Polled::Done(copy) => {
                    self.granted += 1;
                    let is_excused = stage.is_excused(self.since_ns);
                    let source = stage.ledger.tape_mut(copying.source);
                    source.readers -= 1;
                    if copy.stop > copying.end || copy.stop < copying.end && !is_excused {
                        return Err(format!(
                            "a copy of recording {:?} ends at {}, not at {}",
                            source.recording_id, copy.stop, copying.end
                        ));
                    }
                    let tape = source.copy(self.plan.archive, copy.recording_id, copy.stop);
                    self.tapes.push(stage.ledger.add(tape));
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => {
                    stage.ledger.tape_mut(copying.source).readers -= 1;
                    self.must_list = true;
                    self.failed("a replication", &error, stage)
                }
            },
        }
    }

    /// Handles the failure of a request about a recording. Retention may have deleted a part of it in the meantime.
    ///
    /// # Errors
    /// Neither a fault nor retention explains the failure.
    pub(super) fn failed_on(
        &mut self,
        tape: usize,
        what: &str,
        error: &ArchiveClientError,
        stage: &Stage<'_>,
    ) -> Result<Activity, Finding> {
        if stage.ledger.tape(tape).retention.is_some() {
            self.must_list = true;
            return Ok(Activity::Idle);
        }
        self.failed(what, error, stage)
    }

    /// Handles the failure of a request.
    ///
    /// # Errors
    /// No fault explains the failure.
    fn failed(
        &self,
        what: &str,
        error: &ArchiveClientError,
        stage: &Stage<'_>,
    ) -> Result<Activity, Finding> {
        match stage.is_excused(self.since_ns) {
            true => Ok(Activity::Idle),
            false => Err(format!(
                "{what} of the operator on host {} failed: {error}",
                self.plan.host
            )),
        }
    }

    /// Closes publications of recordings that have ended. Notes the ids of unknown recordings.
    fn take_listing(&mut self, listing: &[RecordingDescriptor], ledger: &Ledger) {
        self.recorded
            .retain(|recorded| ledger.tape(recorded.tape).stop.is_none());
        let known = |id: i64| {
            let mut tapes = ledger.tapes().iter();
            tapes.any(|tape| tape.archive == self.plan.archive && tape.recording_id == Some(id))
        };
        let is_own = |stream_id: i32| {
            self.plan.replicates_from.is_some()
                || (self.plan.first_stream_id
                    ..self.plan.first_stream_id + self.plan.max_tapes as i32)
                    .contains(&stream_id)
        };
        let strays = listing
            .iter()
            .filter(|it| is_own(it.stream_id) && !known(it.recording_id));
        self.strays = strays.map(|it| it.recording_id).collect();
    }

    /// Requests a recording of a publication's stream, for a new tape or for the continuation of a tape.
    fn record(
        &mut self,
        tape: Option<usize>,
        publication: ExclusivePublication,
        archive: &AeronArchive,
        stage: &mut Stage<'_>,
    ) -> Result<Activity, Finding> {
        let is_auto_stop = self.random.bool();
        // The channel has the session id. Without it, a recording subscription that was not stopped would also record
        // the next publication of the stream.
        let channel = AeronArchive::session_channel(&self.plan.channel, publication.session_id())
            .map_err(|error| error.to_string())?;
        let (stream_id, location) = (publication.stream_id(), self.plan.source_location);
        let (tape, call) = match tape
            .and_then(|tape| Some((tape, stage.ledger.tape(tape).recording_id?)))
        {
            Some((tape, id)) => {
                let call =
                    ArchiveCall::extend_recording(id, &channel, stream_id, location, is_auto_stop);
                (tape, call)
            }
            None => {
                let tape = stage.ledger.add(self.new_tape(&publication));
                self.tapes.push(tape);
                let call =
                    ArchiveCall::start_recording(&channel, stream_id, location, is_auto_stop);
                (tape, call)
            }
        };
        let recording = Recording {
            tape,
            publication,
            subscription_id: -1,
            channel,
        };
        Ok(match archive.begin(call) {
            Ok(operation) => Activity::Recording(recording, operation),
            Err(_) => Activity::Idle,
        })
    }

    fn new_tape(&self, publication: &ExclusivePublication) -> Tape {
        let term_length = publication.term_buffer_length();
        let positions = Positions::new(term_length, publication.initial_term_id())
            .expect("a log has a valid term length");
        let mut tape = Tape::new(
            self.plan.archive,
            publication.stream_id(),
            &positions,
            publication.position().unwrap_or_default(),
        );
        tape.segment_length = self.plan.segment_length.max(tape.term_length);
        tape.local_start = self.plan.has_copies.then_some(tape.start);
        tape
    }

    /// Waits until the counter of a recording exists. The simulator reads the counters of the archive's host, even if
    /// the operator is on the other host.
    fn begin(&mut self, recording: Recording, stage: &mut Stage<'_>) -> Result<Activity, Finding> {
        let plan = stage.archives[self.plan.archive].plan();
        let archive_id = plan.context.archive_id;
        let session_id = recording.publication.session_id();
        let key = stage.hosts[plan.host].cnc().and_then(|cnc| {
            let counters = cnc.counters();
            let counter =
                RecordingPositionKey::find_by_session(counters, session_id, Some(archive_id))?;
            RecordingPositionKey::of(counters, counter)
        });
        let Some(key) = key else {
            return Ok(Activity::Beginning(recording));
        };
        let tape = stage.ledger.tape_mut(recording.tape);
        if tape.recording_id.is_some_and(|id| id != key.recording_id) {
            return Err(format!(
                "{:?} was extended, and {key:?} runs",
                tape.recording_id
            ));
        }
        tape.recording_id = Some(key.recording_id);
        tape.doubt = None;
        tape.extended();
        self.recorded.push(Recorded {
            tape: recording.tape,
            publication: recording.publication,
            subscription_id: recording.subscription_id,
            channel: recording.channel,
            counter_id: None,
            backlog: self.random.usize(..200),
            next_length: None,
        });
        Ok(Activity::Idle)
    }

    fn await_stop(
        &mut self,
        tape: usize,
        archive: &AeronArchive,
        stage: &Stage<'_>,
    ) -> Result<Activity, Finding> {
        let Some(id) = stage.ledger.tape(tape).recording_id else {
            return Ok(Activity::Idle);
        };
        let operation = archive.begin(ArchiveCall::stop_position(id));
        Ok(operation.map_or(Activity::Idle, |it| Activity::AwaitingStop(tape, it)))
    }
}

fn answered(question: Question, position: i64, tape: &mut Tape) -> Result<(), Finding> {
    let id = tape.recording_id;
    match question {
        Question::Start if tape.retention.is_some() || tape.local_start.is_some() => {
            tape.starts_at(position)
        }
        Question::Start if position != tape.start => Err(format!(
            "recording {id:?} is said to begin at {position}, not at {}",
            tape.start
        )),
        Question::Start => Ok(()),
        Question::MaxRecorded { acknowledged } if position < acknowledged => Err(format!(
            "recording {id:?} is said to be at {position}, below {acknowledged}"
        )),
        Question::MaxRecorded { .. } => tape.acknowledge(position),
    }
}

/// Functions that choose the next activity.
impl Operator {
    fn choose(&mut self, archive: &AeronArchive, stage: &mut Stage<'_>) -> Option<Activity> {
        if self.must_list {
            return self.list(archive, stage.ledger);
        }
        match self.goal {
            Goal::Work => self.choose_work(archive, stage),
            Goal::Verify => self.choose_verification(archive, stage.ledger),
            Goal::Delete => self.choose_deletion(archive, stage.ledger),
            Goal::Leave => None,
        }
    }

    fn choose_work(&mut self, archive: &AeronArchive, stage: &mut Stage<'_>) -> Option<Activity> {
        let ledger = &mut *stage.ledger;
        if self.plan.retains && self.random.u8(..4) == 0 {
            return self.retain(archive, ledger, stage.clock.now_ms());
        }
        match self.random.u8(..20) {
            0..=3 if self.recorded.len() < MAX_RUNNING => {
                if self.tapes.len() < self.plan.max_tapes && self.plan.replicates_from.is_none() {
                    return self.add_stream(archive);
                }
                self.replicate(archive, ledger)
            }
            0..=5 => {
                let at = self.any(self.recorded.len())?;
                self.recorded[at].backlog += self.random.usize(1..300);
                None
            }
            6 | 7 => {
                let at = self.any(self.recorded.len())?;
                self.stop(at, archive, ledger)
            }
            8 => self.list(archive, ledger),
            9 => {
                let tape = self.any_tape(ledger, Tape::is_certain)?;
                self.ask(tape, archive, ledger)
            }
            10..=12 if self.replays.len() < MAX_REPLAYS => {
                let tape = self.any_tape(ledger, Tape::is_certain)?;
                self.replay_some(tape, archive, ledger)
            }
            13 => {
                let at = self.any(self.replays.len())?;
                let replay = &mut self.replays[at];
                if replay.is_slow() {
                    return None;
                }
                replay.is_stopped = true;
                let call = ArchiveCall::stop_replay(replay.started.replay_session_id);
                archive.begin(call).ok().map(Activity::StoppingReplay)
            }
            14 | 15 if self.recorded.len() < MAX_RUNNING => {
                let tape = self.any_changeable(ledger)?;
                self.continue_stream(tape, archive, ledger)
            }
            16 | 17 => {
                let tape = self.any_changeable(ledger)?;
                let to = ledger.tape(tape).boundary(self.random.f64());
                self.change(tape, Change::Truncate(to), archive, ledger)
            }
            18 if !self.plan.retains && !self.plan.has_copies => {
                let tape = self.any_changeable(ledger)?;
                let it = ledger.tape(tape);
                let to = it.segment_base(it.stop?);
                if it.detached_from.is_some() {
                    return self.attach(tape, archive, ledger);
                }
                if to <= it.start {
                    return None;
                }
                match !it.has_left_segments && self.random.bool() {
                    true => self.detach(tape, archive, ledger),
                    false => self.change(tape, Change::PurgeSegments(to), archive, ledger),
                }
            }
            19 if self.random.bool() => {
                let tape = self.any_changeable(ledger)?;
                self.change(tape, Change::Delete, archive, ledger)
            }
            _ => None,
        }
    }

    fn list(&self, archive: &AeronArchive, ledger: &Ledger) -> Option<Activity> {
        let call = ArchiveCall::list_recordings(0, ALL_RECORDINGS);
        let operation = archive.begin(call).ok()?;
        let tapes = self.tapes.iter().copied();
        let known = tapes.filter(|tape| ledger.tape(*tape).recording_id.is_some());
        Some(Activity::Listing(known.collect(), operation))
    }

    /// Stops running recordings after all data is recorded, and reads all recordings.
    fn choose_verification(
        &mut self,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let is_whole = |recorded: &Recorded| {
            let tape = ledger.tape(recorded.tape);
            recorded.backlog == 0 && tape.acknowledged >= tape.published
        };
        if let Some(at) = self.recorded.iter().position(is_whole) {
            return self.stop(at, archive, ledger);
        }
        // If the publication was lost, the recording ends without a request.
        let is_ending = |tape: &&usize| {
            let it = ledger.tape(**tape);
            it.is_there() && it.stop.is_none() && self.recorded.iter().all(|it| it.tape != **tape)
        };
        if let Some(tape) = self.tapes.iter().find(is_ending).copied() {
            let call = ArchiveCall::stop_position(ledger.tape(tape).recording_id?);
            return archive
                .begin(call)
                .ok()
                .map(|it| Activity::AwaitingStop(tape, it));
        }
        if let Some(tape) = self.detached(ledger) {
            return self.attach(tape, archive, ledger);
        }
        if self.replays.len() >= MAX_REPLAYS {
            return None;
        }
        let tape = self.unread(ledger)?;
        let it = ledger.tape(tape);
        if it.doubt.is_some() {
            self.must_list = true;
            return None;
        }
        if self
            .replays
            .iter()
            .any(|replay| replay.reading.tape == tape)
        {
            return None;
        }
        let range = ReplayedRange {
            tape,
            begin: it.start,
            end: Some(it.stop?),
            rate: None,
            speed: None,
        };
        self.replay(range, REPLAY_ALL_AND_STOP, archive, ledger)
    }

    /// Returns a tape that was not read to its end after the goal was set.
    pub(super) fn unread(&self, ledger: &Ledger) -> Option<usize> {
        let is_unread = |tape: &&usize| {
            let it = ledger.tape(**tape);
            it.is_there()
                && (it.doubt.is_some() || it.stop != Some(it.start))
                && !self.verified.contains(*tape)
        };
        self.tapes.iter().find(is_unread).copied()
    }

    fn choose_deletion(&mut self, archive: &AeronArchive, ledger: &mut Ledger) -> Option<Activity> {
        if let Some(id) = self.strays.first().copied() {
            let call = ArchiveCall::purge_recording(id);
            return archive
                .begin(call)
                .ok()
                .map(|it| Activity::DeletingStray(id, it));
        }
        let tape = self.any_tape(ledger, Tape::is_there)?;
        if ledger.tape(tape).doubt.is_some() {
            self.must_list = true;
            return None;
        }
        self.change(tape, Change::Delete, archive, ledger)
    }

    fn add_stream(&mut self, archive: &AeronArchive) -> Option<Activity> {
        let place = match self.random.bool() {
            true => String::new(),
            false => {
                let initial = self.random.i32(..);
                let term = initial.wrapping_add(self.random.i32(0..4));
                let offset = self.random.i32(0..2_048) * 32;
                format!("|init-term-id={initial}|term-id={term}|term-offset={offset}")
            }
        };
        let stream_id = self.plan.first_stream_id + self.tapes.len() as i32;
        self.add_publication(None, &place, stream_id, archive)
    }

    fn continue_stream(
        &mut self,
        tape: usize,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let it = ledger.tape(tape);
        if self.plan.replicates_from.is_some() {
            return None;
        }
        let stop = it.stop?;
        if it.may_have_removed_files {
            return self.change(tape, Change::Truncate(stop), archive, ledger);
        }
        let positions = Positions::new(it.term_length as usize, it.initial_term_id).ok()?;
        let place = format!(
            "|init-term-id={}|term-id={}|term-offset={}",
            it.initial_term_id,
            positions.term_id(stop),
            positions.term_offset(stop)
        );
        let activity = self.add_publication(Some(tape), &place, it.stream_id, archive)?;
        ledger.tape_mut(tape).doubt = Some(UncertainChange::Extended);
        Some(activity)
    }

    fn add_publication(
        &self,
        tape: Option<usize>,
        place: &str,
        stream_id: i32,
        archive: &AeronArchive,
    ) -> Option<Activity> {
        let separator = if self.plan.channel.contains('?') {
            '|'
        } else {
            '?'
        };
        let channel = format!(
            "{}{separator}{}{place}",
            self.plan.channel, self.plan.publishing
        );
        let adding = archive
            .aeron()
            .async_add_exclusive_publication(&channel, stream_id);
        adding.ok().map(|it| Activity::Publishing(tape, it))
    }

    fn stop(&mut self, at: usize, archive: &AeronArchive, ledger: &Ledger) -> Option<Activity> {
        let recorded = &self.recorded[at];
        let (tape, stream_id) = (recorded.tape, recorded.publication.stream_id());
        let call = match self.random.u8(..4) {
            0 => ArchiveCall::try_stop_recording(&recorded.channel, stream_id),
            1 => ArchiveCall::try_stop_recording_subscription(recorded.subscription_id),
            2 => ArchiveCall::try_stop_recording_by_identity(ledger.tape(tape).recording_id?),
            // The close of the publication ends the recording without a request.
            _ => {
                self.recorded.remove(at).publication.close();
                let call = ArchiveCall::stop_position(ledger.tape(tape).recording_id?);
                let operation = archive.begin(call).ok()?;
                return Some(Activity::AwaitingStop(tape, operation));
            }
        };
        archive
            .begin(call)
            .ok()
            .map(|it| Activity::Stopping(tape, it))
    }

    fn ask(&mut self, tape: usize, archive: &AeronArchive, ledger: &Ledger) -> Option<Activity> {
        let id = ledger.tape(tape).recording_id?;
        let (question, call) = match self.random.bool() {
            true => (Question::Start, ArchiveCall::start_position(id)),
            false => {
                let acknowledged = ledger.tape(tape).acknowledged;
                let question = Question::MaxRecorded { acknowledged };
                (question, ArchiveCall::max_recorded_position(id))
            }
        };
        let operation = archive.begin(call).ok()?;
        Some(Activity::Asking(tape, question, operation))
    }

    fn replay_some(
        &mut self,
        tape: usize,
        archive: &AeronArchive,
        ledger: &Ledger,
    ) -> Option<Activity> {
        let it = ledger.tape(tape);
        let limit = it.stop.unwrap_or(it.acknowledged);
        let begin = match self.random.bool() {
            true => it.start,
            false => it.boundary(self.random.f64()),
        };
        if begin >= limit {
            return None;
        }
        let (length, end) = match (self.random.bool(), it.stop) {
            (true, None) => (REPLAY_ALL_AND_FOLLOW, None),
            (true, stop) => (REPLAY_ALL_AND_STOP, stop),
            (false, _) => (limit - begin, Some(limit)),
        };
        let rate = rarely(&mut self.random, 4).then(|| self.random.i64(RATES));
        let mut speed = None;
        if self.plan.has_speeds && rate.is_none() && self.random.bool() {
            speed = Some(self.random.i64(SPEEDS));
        }
        let range = ReplayedRange {
            tape,
            begin,
            end,
            rate,
            speed,
        };
        self.replay(range, length, archive, ledger)
    }

    fn replay(
        &mut self,
        range: ReplayedRange,
        length: i64,
        archive: &AeronArchive,
        ledger: &Ledger,
    ) -> Option<Activity> {
        let id = ledger.tape(range.tape).recording_id?;
        let params = ReplayParams {
            max_bytes_per_second: range.rate.unwrap_or(NULL_VALUE),
            speed_millionths: range.speed.unwrap_or(NULL_VALUE),
            ..ReplayParams::range(range.begin, length)
        };
        let stream_id = REPLAY_STREAM_ID + self.random.i32(0..10);
        let operation = archive
            .async_replay_with_id(id, &self.plan.replay_channel, stream_id, &params)
            .ok()?;
        Some(Activity::Replaying(range, operation))
    }

    fn change(
        &mut self,
        tape: usize,
        change: Change,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let id = ledger.tape(tape).recording_id?;
        let removal = Removal::begin(tape, change, id, archive)?;
        ledger.tape_mut(tape).doubt = Some(change.doubt());
        self.verified.remove(&tape);
        Some(Activity::Changing(Box::new(removal)))
    }

    fn replicate(&mut self, archive: &AeronArchive, ledger: &mut Ledger) -> Option<Activity> {
        let (source_archive, channel) = self.plan.replicates_from.clone()?;
        if self.tapes.len() >= self.plan.max_tapes {
            return None;
        }
        let is_source = |tape: &Tape| {
            tape.archive == source_archive
                && tape.is_certain()
                && !tape.is_rotten
                // The check of a copy needs a known start position, and retention may move the start of the source.
                && tape.retention.is_none()
                && tape.local_start.is_none()
                && tape.stop.is_some_and(|stop| stop > tape.start)
        };
        let sources: Vec<_> = (0..ledger.tapes().len())
            .filter(|tape| is_source(ledger.tape(*tape)))
            .collect();
        let source = sources[self.any(sources.len())?];
        let (id, end) = (ledger.tape(source).recording_id?, ledger.tape(source).stop?);
        let params = ReplicationParams::default();
        let call = ArchiveCall::replicate(id, CONTROL_STREAM_ID, &channel, &params).ok()?;
        let operation = archive.begin(call).ok()?;
        ledger.tape_mut(source).readers += 1;
        Some(Activity::Replicating(Box::new(Copying::new(
            source, end, operation,
        ))))
    }

    /// Returns a random number below `count`; `None` if `count` is 0.
    fn any(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.random.usize(..count))
    }

    pub(super) fn any_tape(
        &mut self,
        ledger: &Ledger,
        is_it: impl Fn(&Tape) -> bool,
    ) -> Option<usize> {
        let tapes = self.tapes.iter().copied();
        let tapes: Vec<_> = tapes.filter(|tape| is_it(ledger.tape(*tape))).collect();
        let at = self.any(tapes.len())?;
        Some(tapes[at])
    }

    /// Returns a random tape that may be changed: it is stopped, certain and not rotten, and no replay or replication
    /// reads it.
    fn any_changeable(&mut self, ledger: &Ledger) -> Option<usize> {
        let read: Vec<usize> = self.replays.iter().map(|it| it.reading.tape).collect();
        let tapes = self.tapes.iter().copied();
        let tapes: Vec<_> = tapes
            .filter(|tape| {
                let it = ledger.tape(*tape);
                it.is_certain()
                    && !it.is_rotten
                    && it.stop.is_some()
                    && it.readers == 0
                    && !read.contains(tape)
            })
            .collect();
        let at = self.any(tapes.len())?;
        Some(tapes[at])
    }
}
