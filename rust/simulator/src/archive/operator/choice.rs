//! The choice of the next request of an operator, by the goal and the random numbers of the operator.

use aeron_archive::client::{AeronArchive, ArchiveCall, ReplayParams, ReplicationParams};
use aeron_memory::log::Positions;
use aeron_protocol::archive::{NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP};

use super::activity::{Activity, Question, ReplayedRange};
use super::copying::Copying;
use super::lost_replay::LostReplay;
use super::removal::{Change, Removal};
use super::{Goal, Operator, Recorded, Stage};
use crate::archive::ledger::{Ledger, Tape, UncertainChange};
use crate::archive::stock::Stock;
use crate::schedule::rarely;

/// Maximum number of recordings of an operator that run at the same time.
const MAX_RUNNING: usize = 2;
/// Maximum number of replays that an operator reads at the same time.
const MAX_REPLAYS: usize = 2;
/// Range of the maximum rates of replays, in bytes per second.
const RATES: std::ops::Range<i64> = 400_000..2_000_000;
/// Range of the speeds of replays, in millionths of the recorded pace.
const SPEEDS: std::ops::Range<i64> = 4_000_000..40_000_000;
/// Number of descriptors in a request for all of an archive's recordings.
const ALL_RECORDINGS: i32 = 10_000;
/// First stream id for replays.
const REPLAY_STREAM_ID: i32 = 500;
/// One in this number of requests is a replay that never arrives, if the operator requests such replays.
const LOST_REPLAYS: u8 = 24;
/// Stream id of an archive's control requests.
const CONTROL_STREAM_ID: i32 = 10;

/// Functions that choose the next activity.
impl Operator {
    pub(super) fn choose(
        &mut self,
        archive: &AeronArchive,
        stage: &mut Stage<'_>,
    ) -> Option<Activity> {
        if self.must_list {
            return self.list(archive, stage.ledger);
        }
        let is_interrupted = |tape: &&usize| {
            let it = stage.ledger.tape(**tape);
            it.is_certain() && it.is_interrupted
        };
        if let Some(tape) = self.tapes.iter().find(is_interrupted).copied() {
            let id = stage.ledger.tape(tape).recording_id?;
            let call = ArchiveCall::try_stop_recording_by_identity(id);
            let stopping = archive.begin(call).ok();
            return stopping.map(|it| Activity::Stopping(tape, it));
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
        if let Some(max_bytes) = self.plan.limits_stock {
            let call = ArchiveCall::set_retention(&Stock::policy(max_bytes));
            return archive.begin(call).ok().map(Activity::LimitingStock);
        }
        if self.plan.loses_replays && self.later.u8(..LOST_REPLAYS) == 0 {
            let connect_timeout_ns = stage.archives[self.plan.archive]
                .plan()
                .context
                .connect_timeout_ns;
            return self.lose_replay(archive, ledger, connect_timeout_ns);
        }
        if self.plan.retains && self.random.u8(..4) == 0 {
            return self.retain(archive, ledger, stage.clock.true_ms());
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

    /// Stops each active recording after all its data is recorded. Reads all recordings.
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
        let it = ledger.tape_mut(tape);
        it.doubt = Some(UncertainChange::Extended);
        it.may_be_subscribed = true;
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

    fn lose_replay(
        &mut self,
        archive: &AeronArchive,
        ledger: &Ledger,
        connect_timeout_ns: i64,
    ) -> Option<Activity> {
        let is_candidate = |tape: &usize| {
            let it = ledger.tape(*tape);
            it.is_certain() && !it.is_rotten && it.stop.unwrap_or(it.acknowledged) > it.start
        };
        let tape = self.tapes.iter().copied().find(is_candidate)?;
        let it = ledger.tape(tape);
        let lost = LostReplay::begin(
            archive,
            it.recording_id?,
            it.start,
            &self.plan.replay_channel,
            connect_timeout_ns,
        );
        lost.map(|lost| Activity::LosingReplay(tape, Box::new(lost)))
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
            .async_replay(id, &self.plan.replay_channel, stream_id, &params)
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
