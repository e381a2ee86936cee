//! [`Activity`]: the outstanding request of an operator, and how it goes on.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation, RecordingPositionKey,
    StartedReplay,
};
use aeron_client::{ExclusivePublication, PendingOperation};
use aeron_memory::log::Positions;

use super::copying::Copying;
use super::detaching::Detaching;
use super::lost_replay::LostReplay;
use super::removal::Removal;
use super::replay::{Replay, ReplaySpeed};
use super::retaining::RetentionRequest;
use super::{Goal, Operator, PATIENCE_NS, Recorded, Stage};
use crate::archive::ledger::{Ledger, Tape};
use crate::archive::stock::STOCK_STREAM_ID;
use crate::schedule::MS;
use crate::truth::Finding;

/// Maximum time between two reads of a slow replay. The archive must not delete what such a replay still needs.
const MAX_PAUSE_NS: i64 = 50 * MS;
/// Part of the error text if a replay has a speed, and the archive does not know the recorded pace.
const NO_TIMES: &str = "the index has no arrival times";
/// Channel of replays that do not use the network.
const IPC: &str = "aeron:ipc";

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
    LosingReplay(usize, Box<LostReplay>),
    LimitingStock(ArchiveOperation<i64>),
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
    pub tape: usize,
    pub begin: i64,
    pub end: Option<i64>,
    /// Requested maximum number of bytes per second.
    pub rate: Option<i64>,
    /// Requested speed in millionths.
    pub speed: Option<i64>,
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
            Self::LosingReplay(..) => "it waits for the end of a replay that never arrives",
            Self::LimitingStock(_) => "it sets the policy of the stock",
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
                    let was_full = stage.archives[self.plan.archive].was_full();
                    stage.ledger.check_listing(&tapes, &listing, was_full)?;
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
                    stage.ledger.tape_mut(tape).unsubscribed();
                    self.await_stop(tape, archive, stage)
                }
                Polled::Failed(error) => self.failed_on(tape, "a stop", &error, stage),
            },
            Activity::AwaitingStop(tape, mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::AwaitingStop(tape, operation)),
                Polled::Done(Some(position)) => {
                    self.granted += 1;
                    let was_full = stage.archives[self.plan.archive].was_full();
                    let tape = stage.ledger.tape_mut(tape);
                    tape.reports_stop(position, was_full)?;
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
            Activity::LimitingStock(mut operation) => match operation.poll().into() {
                Polled::Pending => Ok(Activity::LimitingStock(operation)),
                Polled::Done(_) => {
                    self.granted += 1;
                    self.plan.limits_stock = None;
                    Ok(Activity::Idle)
                }
                Polled::Failed(error) => self.failed("the policy of the stock", &error, stage),
            },
            Activity::LosingReplay(tape, mut lost) => {
                let now_ns = stage.clock.now_ns();
                match lost.poll(archive, now_ns).into() {
                    Polled::Pending if lost.is_overdue(now_ns) => {
                        match stage.is_excused(self.since_ns) {
                            true => Ok(Activity::Idle),
                            false => Err(format!(
                                "a replay without a subscriber of recording {:?} has not ended",
                                stage.ledger.tape(tape).recording_id
                            )),
                        }
                    }
                    Polled::Pending => Ok(Activity::LosingReplay(tape, lost)),
                    Polled::Done(()) => {
                        self.granted += 1;
                        Ok(Activity::Idle)
                    }
                    Polled::Failed(error) => {
                        self.failed_on(tape, "a replay that never arrives", &error, stage)
                    }
                }
            }
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
                || stream_id == STOCK_STREAM_ID
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
                "the extension of recording {:?} has started another recording: {key:?}",
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
