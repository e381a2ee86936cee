//! [`Operator`]: a client of an archive, which has streams recorded, replayed, listed, extended, truncated, purged and replicated.
//!
//! One request is outstanding at a time; recordings and replays go on meanwhile. If the archive or its driver is lost, the operator
//! connects again, lists all recordings, and goes on with what is there.

mod activity;
mod copying;
mod replay;

use std::collections::BTreeSet;

use aeron_archive::client::{
    AeronArchive, ArchiveClientContext, AsyncConnect, RecordingPositionKey, SessionState,
};
use aeron_client::{Aeron, ExclusivePublication};
use aeron_protocol::archive::{RecordingSignal, SourceLocation};
use fastrand::Rng;

use self::activity::Activity;
use self::replay::Replay;
use super::ledger::Ledger;
use super::server::ArchiveServer;
use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::payload::HEADER_LENGTH;
use crate::roles::{Graveyard, client_context};
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Messages that are offered to each stream in one turn at most.
const MESSAGES_PER_TURN: usize = 8;
/// How long the archive may take for a response.
const MESSAGE_TIMEOUT_NS: u64 = 1_500 * MS as u64;
/// Without a fault everything that an operator waits for comes within this time.
const PATIENCE_NS: i64 = 6 * SECOND;

/// What an operator is.
#[derive(Clone, Debug)]
pub struct OperatorPlan {
    /// Where it is.
    pub host: HostId,
    /// Its archive.
    pub archive: usize,
    /// Channels of its requests and of the responses.
    pub control: [String; 2],
    /// Channel that it publishes on, without parameters of the stream.
    pub channel: String,
    /// Where the archive finds its streams.
    pub source_location: SourceLocation,
    /// Channel on which recordings are replayed to it.
    pub replay_channel: String,
    /// The streams that it publishes are this one and those that follow.
    pub first_stream_id: i32,
    /// Parameters of its publications: term length, MTU.
    pub publishing: String,
    /// Length of the archive's segment files.
    pub segment_length: i64,
    /// Its longest message.
    pub max_message_length: usize,
    /// Most recordings that it begins.
    pub max_tapes: usize,
    /// The archive whose recordings it has copied, and the channel of requests to that archive.
    pub replicates_from: Option<(usize, String)>,
}

/// What an operator has around it.
pub struct Stage<'a> {
    /// All hosts.
    pub hosts: &'a [Host],
    /// All archives.
    pub archives: &'a [ArchiveServer],
    /// The time.
    pub clock: &'a VirtualClock,
    /// What was recorded.
    pub ledger: &'a mut Ledger,
    /// Of the schedule.
    pub seed: u64,
    /// When the last fault ended.
    pub calm_since_ns: i64,
}

impl Stage<'_> {
    /// Whether a failure of what began at this time may come from a fault.
    fn is_excused(&self, begin_ns: i64) -> bool {
        begin_ns < self.calm_since_ns
    }
}

/// See the [module](self).
pub struct Operator {
    plan: OperatorPlan,
    random: Rng,
    client: Option<Aeron>,
    session: Session,
    /// When the session, or what it waits for, began.
    since_ns: i64,
    activity: Activity,
    acts_from_ns: i64,
    recorded: Vec<Recorded>,
    replays: Vec<Replay>,
    tapes: Vec<usize>,
    /// Tapes that were read to their end since the goal was set.
    verified: BTreeSet<usize>,
    /// Recordings of its streams that it does not know: nobody was told of their beginning.
    strays: Vec<i64>,
    goal: Goal,
    must_list: bool,
    /// Requests that the archive has granted.
    granted: u64,
}

/// What an operator is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// It does whatever comes to its mind.
    Work,
    /// It stops its recordings and reads all of them.
    Verify,
    /// It deletes all recordings.
    Delete,
    /// It leaves.
    Leave,
}

enum Session {
    Away,
    Connecting(Box<AsyncConnect>),
    Connected(AeronArchive),
}

/// A stream that is recorded, or was until its publication, the archive or the driver was lost.
struct Recorded {
    tape: usize,
    publication: ExclusivePublication,
    subscription_id: i64,
    /// Channel of the request to record it.
    channel: String,
    backlog: usize,
    next_length: Option<usize>,
}

impl Operator {
    /// An operator that does not know anybody yet.
    pub fn new(plan: OperatorPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            client: None,
            session: Session::Away,
            since_ns: 0,
            activity: Activity::Idle,
            acts_from_ns: 0,
            recorded: Vec::new(),
            replays: Vec::new(),
            tapes: Vec::new(),
            verified: BTreeSet::new(),
            strays: Vec::new(),
            goal: Goal::Work,
            must_list: true,
            granted: 0,
        }
    }

    /// From now on it is about something else.
    pub fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
        self.verified.clear();
        self.must_list = true;
    }

    /// Requests that the archive has granted.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Its host.
    pub fn host(&self) -> HostId {
        self.plan.host
    }

    /// Its client dies.
    pub fn crash(&mut self, ledger: &mut Ledger, graveyard: &mut Graveyard) {
        let activity = std::mem::replace(&mut self.activity, Activity::Idle);
        activity.forget(ledger);
        let session = std::mem::replace(&mut self.session, Session::Away);
        let handles = (
            activity,
            session,
            std::mem::take(&mut self.recorded),
            std::mem::take(&mut self.replays),
        );
        if let Some(client) = self.client.take() {
            graveyard.bury(client, handles);
        }
    }

    /// Whether it has reached its goal.
    pub fn is_done(&self, ledger: &Ledger) -> bool {
        let is_idle = matches!(self.activity, Activity::Idle)
            && self.replays.is_empty()
            && self.recorded.is_empty()
            && !self.must_list;
        match self.goal {
            Goal::Work => true,
            Goal::Verify => is_idle && self.unread(ledger).is_none(),
            Goal::Delete => {
                let is_gone = |tape: &usize| !ledger.tape(*tape).is_there();
                is_idle && self.strays.is_empty() && self.tapes.iter().all(is_gone)
            }
            Goal::Leave => self.client.is_none(),
        }
    }

    /// Why it has not reached its goal.
    pub fn complaint(&self, ledger: &Ledger) -> String {
        let tapes: Vec<_> = self
            .tapes
            .iter()
            .map(|tape| ledger.tape(*tape).summary())
            .collect();
        format!(
            "the operator on host {} is not done with {:?}: {}, {} recordings run, {} replays, tapes {tapes:#?}",
            self.plan.host,
            self.goal,
            self.activity.name(),
            self.recorded.len(),
            self.replays.len()
        )
    }
}

impl Operator {
    /// Does what it can now; answers how much that was.
    ///
    /// # Errors
    /// The archive or its client did what it must not do.
    pub fn do_work(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        if self.goal == Goal::Leave {
            self.lose_client(stage.ledger);
            return Ok(0);
        }
        if self.client.is_none() {
            let mut context = client_context(stage.clock);
            context.keepalive_interval_ns = 200 * MS as u64;
            context.driver_timeout_ms = MESSAGE_TIMEOUT_NS / 1_000_000;
            self.client = stage.hosts[self.plan.host].connect(context);
        }
        let Some(client) = self.client.clone() else {
            return Ok(0);
        };
        let mut work_count = client.do_work();
        if client.is_closed() {
            self.lose_client(stage.ledger);
            return Ok(1);
        }
        work_count += self.publish(stage)?;
        self.observe(stage)?;
        work_count += self.read(stage)?;
        work_count += self.run_session(&client, stage)?;
        Ok(work_count)
    }

    fn run_session(&mut self, client: &Aeron, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        match &mut self.session {
            Session::Away if now_ns < self.acts_from_ns => Ok(0),
            Session::Away => {
                self.since_ns = now_ns;
                self.acts_from_ns = now_ns + 50 * MS;
                if let Ok(connecting) = AeronArchive::async_connect(client, self.context(stage)) {
                    self.session = Session::Connecting(Box::new(connecting));
                }
                Ok(1)
            }
            Session::Connecting(connecting) => match connecting.poll() {
                Ok(None) => Ok(0),
                Ok(Some(archive)) => {
                    self.must_list = true;
                    self.session = Session::Connected(archive);
                    self.since_ns = now_ns;
                    Ok(1)
                }
                Err(error) => {
                    let begin_ns = self.since_ns;
                    self.lose_session(stage.ledger);
                    match stage.is_excused(begin_ns) {
                        true => Ok(1),
                        false => Err(format!(
                            "the operator on host {} cannot connect: {error}",
                            self.plan.host
                        )),
                    }
                }
            },
            Session::Connected(archive) => {
                let archive = archive.clone();
                let work_count = archive.poll().unwrap_or(0);
                self.take_signals(&archive, stage.ledger)?;
                let is_lost = archive.state().ok() != Some(SessionState::Connected);
                if is_lost {
                    let begin_ns = self.since_ns.max(now_ns - PATIENCE_NS);
                    self.lose_session(stage.ledger);
                    return match stage.is_excused(begin_ns) {
                        true => Ok(1),
                        false => Err(format!(
                            "the operator on host {} has lost its session without a fault",
                            self.plan.host
                        )),
                    };
                }
                Ok(work_count + self.act(&archive, stage)?)
            }
        }
    }

    fn context(&self, stage: &Stage<'_>) -> ArchiveClientContext {
        let [request, response] = &self.plan.control;
        ArchiveClientContext {
            message_timeout_ns: MESSAGE_TIMEOUT_NS,
            nano_clock: stage.clock.nano_clock(),
            ..ArchiveClientContext::new(request, response)
        }
    }

    /// Its client is closed, and everything of it.
    fn lose_client(&mut self, ledger: &mut Ledger) {
        self.lose_session(ledger);
        self.recorded.clear();
        if let Some(client) = self.client.take() {
            client.close();
        }
    }

    /// The archive is not there any more, or does not know the session.
    fn lose_session(&mut self, ledger: &mut Ledger) {
        if let Session::Connected(archive) = std::mem::replace(&mut self.session, Session::Away) {
            // The archive may be gone: then there is nothing to close.
            let _ = archive.close();
        }
        self.abandon_activity(ledger);
        self.replays.clear();
    }

    /// Nobody will hear of the outcome of what it does.
    fn abandon_activity(&mut self, ledger: &mut Ledger) {
        let activity = std::mem::replace(&mut self.activity, Activity::Idle);
        activity.forget(ledger);
    }

    /// Offers messages to the streams that are recorded.
    fn publish(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        let mut work_count = 0;
        let (random, max) = (&mut self.random, self.plan.max_message_length);
        for recorded in &mut self.recorded {
            for _ in 0..recorded.backlog.min(MESSAGES_PER_TURN) {
                let length = *recorded
                    .next_length
                    .get_or_insert_with(|| message_length(random, max));
                let message = stage.ledger.next_message(recorded.tape, length);
                let Ok(end) = recorded.publication.offer(&message.bytes(stage.seed)) else {
                    break;
                };
                stage
                    .ledger
                    .tape_mut(recorded.tape)
                    .on_published(message, end);
                recorded.next_length = None;
                recorded.backlog -= 1;
                work_count += 1;
            }
            if let Ok(position) = recorded.publication.position() {
                let tape = stage.ledger.tape_mut(recorded.tape);
                tape.published = tape.published.max(position);
            }
        }
        Ok(work_count)
    }

    /// Looks at the counters of its recordings: they tell everybody how far these are.
    fn observe(&mut self, stage: &mut Stage<'_>) -> Result<(), Finding> {
        let plan = stage.archives[self.plan.archive].plan();
        let Some(cnc) = stage.hosts[plan.host].cnc() else {
            return Ok(());
        };
        let counters = cnc.counters();
        for recorded in &self.recorded {
            let tape = stage.ledger.tape_mut(recorded.tape);
            let archive_id = Some(plan.context.archive_id);
            let position = tape
                .recording_id
                .and_then(|id| RecordingPositionKey::find_by_recording(counters, id, archive_id))
                .and_then(|counter| counters.value(counter));
            if let (Some(position), None) = (position, tape.stop) {
                tape.acknowledge(position)?;
            }
        }
        Ok(())
    }

    fn take_signals(&mut self, archive: &AeronArchive, ledger: &mut Ledger) -> Result<(), Finding> {
        while let Ok(Some(signal)) = archive.take_recording_signal() {
            if let Activity::Replicating(copying) = &mut self.activity {
                copying.on_signal(&signal);
            }
            let id = Some(signal.recording_id);
            let mut tapes = self.tapes.iter().copied();
            let tape = tapes.find(|tape| ledger.tape(*tape).recording_id == id);
            if let (Some(tape), RecordingSignal::Stop) = (tape, signal.signal) {
                ledger.tape_mut(tape).acknowledge(signal.position)?;
            }
        }
        Ok(())
    }

    /// Reads the replays that have begun.
    fn read(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        let mut work_count = 0;
        let mut replays = std::mem::take(&mut self.replays);
        let mut at = 0;
        while at < replays.len() {
            let replay = &mut replays[at];
            work_count += replay.poll(stage)?;
            match replay.is_over(stage)? {
                false => at += 1,
                true => {
                    let replay = replays.swap_remove(at);
                    self.note_read(&replay, stage.ledger);
                    work_count += 1;
                }
            }
        }
        self.replays = replays;
        Ok(work_count)
    }

    fn note_read(&mut self, replay: &Replay, ledger: &Ledger) {
        let tape = ledger.tape(replay.reading.tape);
        let is_whole =
            replay.begin == tape.start && replay.end.is_some() && replay.end == tape.stop;
        if is_whole || tape.is_rotten {
            self.verified.insert(replay.reading.tape);
        }
    }
}

/// Mostly short messages, and some that need several frames.
fn message_length(random: &mut Rng, max: usize) -> usize {
    match random.u8(..8) {
        0 => random.usize(HEADER_LENGTH..=max),
        1 | 2 => random.usize(HEADER_LENGTH..=max.min(1_500)),
        _ => random.usize(HEADER_LENGTH..=300),
    }
}
