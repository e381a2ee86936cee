//! [`Operator`]: a client of an archive that requests recordings, replays, listings, extensions, truncations, purges
//! and replications.
//!
//! At most one request is outstanding at a time. Recordings and replays continue meanwhile. If the archive or its
//! driver is lost, the operator connects again, lists all recordings, and continues with the existing ones.

mod activity;
mod choice;
mod copying;
mod detaching;
mod lost_replay;
mod removal;
mod replay;
mod retaining;

use std::collections::BTreeSet;

use aeron_archive::client::{
    AeronArchive, ArchiveClientContext, ArchiveSessionState, AsyncConnect, RecordingPositionKey,
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

/// Maximum number of messages offered to each stream in one turn.
const MESSAGES_PER_TURN: usize = 8;
/// Maximum time for a response of the archive.
const MESSAGE_TIMEOUT_NS: u64 = 1_500 * MS as u64;
/// Maximum time that an operator waits for a result if no fault excuses the delay.
const PATIENCE_NS: i64 = 6 * SECOND;

/// Settings of an operator.
#[derive(Clone, Debug)]
pub struct OperatorPlan {
    /// Host of the client.
    pub host: HostId,
    /// Index of the operator's archive.
    pub archive: usize,
    /// Channels of the requests and of the responses.
    pub control: [String; 2],
    /// Channel of the operator's publications, without stream parameters.
    pub channel: String,
    /// Source location in requests to record.
    pub source_location: SourceLocation,
    /// Channel on which the operator receives replays.
    pub replay_channel: String,
    /// First stream id of the operator's publications; further streams use the following ids.
    pub first_stream_id: i32,
    /// Parameters of the operator's publications: term length, MTU.
    pub publishing: String,
    /// Length of the archive's segment files.
    pub segment_length: i64,
    /// Maximum message length in bytes.
    pub max_message_length: usize,
    /// Maximum number of recordings that the operator starts.
    pub max_tapes: usize,
    /// Whether frames of the operator's messages may contain pages of zeros, as torn frames do.
    pub has_empty_pages: bool,
    /// Index of the archive from which the operator replicates, and the channel of requests to that archive.
    pub replicates_from: Option<(usize, String)>,
    /// Whether the archive copies sealed segments to object storage, and then deletes their local files.
    pub has_copies: bool,
    /// Whether replays may have the recorded pace.
    pub has_speeds: bool,
    /// Whether the operator commits positions of named readers and sets retention policies.
    pub retains: bool,
    /// Whether the operator requests replays that never arrive.
    pub loses_replays: bool,
    /// Maximum number of bytes in the policy that the operator sets for the [stock](super::stock) of its archive.
    pub limits_stock: Option<i64>,
    /// Whether maximum ages are much longer than the schedule, so that nothing may be deleted because of its age.
    pub has_long_ages: bool,
}

/// Environment of an operator during a turn.
pub struct Stage<'a> {
    /// All hosts.
    pub hosts: &'a [Host],
    /// All archives.
    pub archives: &'a [ArchiveServer],
    /// Virtual time.
    pub clock: &'a VirtualClock,
    /// The recorded messages.
    pub ledger: &'a mut Ledger,
    /// Seed of the schedule.
    pub seed: u64,
    /// A failure of an activity that began before this time is excused.
    pub calm_since_ns: i64,
}

impl Stage<'_> {
    /// Whether a fault may be the cause of the failure of an activity that began at this time.
    fn is_excused(&self, begin_ns: i64) -> bool {
        begin_ns < self.calm_since_ns
    }

    /// Returns a value that stays the same while an archive and the driver on its host run without faults; `None` if
    /// one of them does not run, or if the archive's disk may return errors.
    fn undisturbed(&self, archive: usize) -> Option<(u64, u64)> {
        let archive = &self.archives[archive];
        let host = &self.hosts[archive.plan().host];
        host.cnc()?;
        Some((archive.undisturbed()?, host.starts()))
    }
}

/// See the [module](self).
pub struct Operator {
    plan: OperatorPlan,
    random: Rng,
    /// Random numbers for the requests that were added later, so that the other requests do not change.
    later: Rng,
    client: Option<Aeron>,
    session: Session,
    /// Start time of the session, or of the current activity.
    since_ns: i64,
    activity: Activity,
    acts_from_ns: i64,
    recorded: Vec<Recorded>,
    replays: Vec<Replay>,
    tapes: Vec<usize>,
    /// Tapes that were read to their end after the goal was set.
    verified: BTreeSet<usize>,
    /// Ids of recordings of the operator's streams, if no response has confirmed their start.
    strays: Vec<i64>,
    goal: Goal,
    must_list: bool,
    /// Number of successful requests.
    granted: u64,
}

/// Goal of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Do random activities.
    Work,
    /// Stop the operator's recordings and read all of them.
    Verify,
    /// Delete all recordings.
    Delete,
    /// Close the client.
    Leave,
}

enum Session {
    Away,
    Connecting(Box<AsyncConnect>),
    Connected(AeronArchive),
}

/// A stream that is being recorded, or was recorded until the publication, the archive or the driver was lost.
struct Recorded {
    tape: usize,
    publication: ExclusivePublication,
    subscription_id: i64,
    /// Channel in the request to record the stream.
    channel: String,
    /// Position counter of the recording.
    counter_id: Option<i32>,
    backlog: usize,
    next_length: Option<usize>,
}

impl Operator {
    /// Creates an operator that is not connected yet.
    pub fn new(plan: OperatorPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Rng::with_seed(seed),
            later: Rng::with_seed(!seed),
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

    /// Sets another goal.
    pub fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
        self.replays.iter_mut().for_each(Replay::hurry);
        self.verified.clear();
        self.must_list = true;
    }

    /// Returns the number of successful requests.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Returns the host of the client.
    pub fn host(&self) -> HostId {
        self.plan.host
    }

    /// Simulates the death of the client.
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

    /// Whether the operator has reached its goal.
    pub fn is_done(&self, ledger: &Ledger) -> bool {
        let is_idle = matches!(self.activity, Activity::Idle)
            && self.replays.is_empty()
            && self.recorded.is_empty()
            && !self.must_list;
        match self.goal {
            Goal::Work => true,
            Goal::Verify => {
                is_idle && self.detached(ledger).is_none() && self.unread(ledger).is_none()
            }
            Goal::Delete => {
                let is_gone = |tape: &usize| !ledger.tape(*tape).is_there();
                is_idle && self.strays.is_empty() && self.tapes.iter().all(is_gone)
            }
            Goal::Leave => self.client.is_none(),
        }
    }

    /// Returns the reason why the operator has not reached its goal.
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
    /// Does the work that is possible now. Returns a work count.
    ///
    /// # Errors
    /// The archive or its client broke a rule.
    pub fn do_work(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        self.expire_readers(stage);
        if self.goal == Goal::Leave {
            self.lose_client(stage.ledger);
            return Ok(0);
        }
        if self.client.is_none() {
            let mut context = client_context(stage.clock, self.plan.host);
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
                let is_lost = archive.state().ok() != Some(ArchiveSessionState::Connected);
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

    /// Closes the client and all its resources.
    fn lose_client(&mut self, ledger: &mut Ledger) {
        self.lose_session(ledger);
        self.recorded.clear();
        if let Some(client) = self.client.take() {
            client.close();
        }
    }

    /// Handles the loss of the archive or of the session.
    fn lose_session(&mut self, ledger: &mut Ledger) {
        if let Session::Connected(archive) = std::mem::replace(&mut self.session, Session::Away) {
            // If the archive does not run any more, there is nothing to close.
            let _ = archive.close();
        }
        self.abandon_activity(ledger);
        self.replays.clear();
    }

    /// Abandons the current activity. The outcome of the activity stays unknown.
    fn abandon_activity(&mut self, ledger: &mut Ledger) {
        let activity = std::mem::replace(&mut self.activity, Activity::Idle);
        activity.forget(ledger);
    }

    /// Offers messages to the recorded streams.
    fn publish(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        let mut work_count = 0;
        let (random, max) = (&mut self.random, self.plan.max_message_length);
        for recorded in &mut self.recorded {
            for _ in 0..recorded.backlog.min(MESSAGES_PER_TURN) {
                let length = *recorded
                    .next_length
                    .get_or_insert_with(|| message_length(random, max));
                let message = stage.ledger.next_message(recorded.tape, length);
                let bytes = match self.plan.has_empty_pages {
                    true => message.bytes_with_gaps(stage.seed),
                    false => message.bytes(stage.seed),
                };
                let Ok(end) = recorded.publication.offer(&bytes) else {
                    break;
                };
                stage.ledger.tape_mut(recorded.tape).on_published(
                    message,
                    end,
                    stage.clock.now_ns(),
                );
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

    /// Notes which readers of the operator may have expired.
    fn expire_readers(&self, stage: &mut Stage<'_>) {
        let running_since_ms = stage.archives[self.plan.archive].running_since_ms();
        let now_ms = stage.clock.true_ms();
        for tape in &self.tapes {
            let tape = stage.ledger.tape_mut(*tape);
            tape.expire_reader(running_since_ms, now_ms);
        }
    }

    /// Reads the position counters of the operator's recordings.
    fn observe(&mut self, stage: &mut Stage<'_>) -> Result<(), Finding> {
        let plan = stage.archives[self.plan.archive].plan();
        let Some(cnc) = stage.hosts[plan.host].cnc() else {
            return Ok(());
        };
        let counters = cnc.counters();
        let (now_ns, period) = (stage.clock.now_ns(), stage.undisturbed(self.plan.archive));
        for recorded in &mut self.recorded {
            let tape = stage.ledger.tape_mut(recorded.tape);
            let archive_id = Some(plan.context.archive_id);
            let Some(id) = tape.recording_id else {
                continue;
            };
            // A search in all counters in each turn would take a fifth of the time of a schedule.
            let known = recorded
                .counter_id
                .filter(|it| RecordingPositionKey::is_active(counters, *it, id));
            recorded.counter_id =
                known.or_else(|| RecordingPositionKey::find_by_recording(counters, id, archive_id));
            let position = recorded.counter_id.and_then(|it| counters.value(it));
            if let (Some(position), None) = (position, tape.stop) {
                tape.observe(position, now_ns, period)?;
            }
        }
        Ok(())
    }

    fn take_signals(&mut self, archive: &AeronArchive, ledger: &mut Ledger) -> Result<(), Finding> {
        while let Ok(Some(signal)) = archive.take_recording_signal() {
            match &mut self.activity {
                Activity::Replicating(copying) => copying.on_signal(&signal),
                Activity::Changing(removal) => removal.on_signal(&signal),
                _ => {}
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

    /// Reads the active replays.
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
            replay.begin <= tape.start && replay.end.is_some() && replay.end == tape.stop;
        if is_whole || tape.is_rotten {
            self.verified.insert(replay.reading.tape);
        }
    }
}

/// Returns a random message length. Most messages are short, and some may have several frames.
fn message_length(random: &mut Rng, max: usize) -> usize {
    match random.u8(..8) {
        0 => random.usize(HEADER_LENGTH..=max),
        1 | 2 => random.usize(HEADER_LENGTH..=max.min(1_500)),
        _ => random.usize(HEADER_LENGTH..=300),
    }
}
