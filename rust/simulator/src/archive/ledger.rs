//! [`Ledger`]: the recorded messages, and the positions that clients know. Checks listings and replays of archives.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::FETCHED_EXTENSION;
use aeron_archive::segments::SegmentFileName;
use aeron_memory::log::Positions;

use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_protocol::frame::DataHeader;
use fastrand::Rng;

use crate::payload::Message;
use crate::truth::Finding;

/// Messages up to this length in bytes fit into one frame of each stream.
const LONGEST_UNFRAGMENTED: usize = 200;

/// Length of a sector in bytes.
const SECTOR_LENGTH: i64 = 512;
/// No schedule takes this time, in milliseconds.
const LONGEST_SCHEDULE_MS: i64 = 600_000;

/// A recording, as the clients of its archive know it.
#[derive(Clone, Debug)]
pub struct Tape {
    /// Index of the archive.
    pub archive: usize,
    /// Recording id; `None` until it is known.
    pub recording_id: Option<i64>,
    /// Stream id, unique among all tapes.
    pub stream_id: i32,
    /// Length of a term in bytes.
    pub term_length: i64,
    /// Length of a segment file in bytes.
    pub segment_length: i64,
    /// Id of the stream's first term.
    pub initial_term_id: i32,
    /// Position of the first byte that can be replayed.
    pub start: i64,
    /// Start position before segments were detached, if there are detached segments.
    pub detached_from: Option<i64>,
    /// Highest known start of the local files, if the archive deletes files that have copies in object storage.
    pub local_start: Option<i64>,
    /// Stop position, if a client knows that the recording has stopped.
    pub stop: Option<i64>,
    /// Published messages, without those that a truncation or purge has removed.
    messages: Vec<Published>,
    /// Number of all published messages.
    count: u32,
    /// End position of the published data, padding included.
    pub published: i64,
    /// Highest position that a client knows to be recorded.
    pub acknowledged: i64,
    /// Positions of the counter with the times at which they were first seen, since the last fault of the archive.
    observed: Vec<(i64, i64)>,
    /// The period without faults in which these positions were seen: a value of `Stage::undisturbed`.
    period: Option<(u64, u64)>,
    /// Whether a client knows that the recording is deleted.
    pub is_deleted: bool,
    /// A requested change if its outcome is unknown.
    pub doubt: Option<UncertainChange>,
    /// Whether files of a removed part may still exist, because the archive has not announced their deletion. A
    /// repeated request deletes them.
    pub may_have_removed_files: bool,
    /// Whether a segment before the start still exists, because the disk failed to delete it. An attachment also
    /// attaches this segment.
    pub has_left_segments: bool,
    /// Whether the outcome of an extension is unknown. The recording may then become active later, when its image
    /// comes.
    pub may_be_extended: bool,
    /// Whether a subscription of the recording may still be open: no response has confirmed its end.
    pub may_be_subscribed: bool,
    /// Whether the recording has stopped, and the archive may continue it without a request. Its stop position is then
    /// unknown.
    pub is_interrupted: bool,
    /// Number of running replications of this recording. Until they end, no client requests a change of the recording.
    pub readers: usize,
    /// Limits of retention for the recording; `None` if the operator has not set a policy.
    pub retention: Option<Retention>,
    /// Whether bits of the files were flipped. A replay may then end early, but must not return wrong data.
    pub is_rotten: bool,
}

/// Limits of retention for a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Highest position that the named reader may have committed. Data after this position must not be deleted before
    /// the reader expires.
    pub committed: i64,
    /// Position of the last granted commit.
    pub granted: i64,
    /// Limits of the reader.
    pub limits: ReaderLimits,
    /// Time at which the last granted commit was requested, in milliseconds since the epoch.
    pub committed_ms: i64,
    /// Whether the reader may have expired since its last granted commit.
    pub may_be_expired: bool,
    /// Maximum number of bytes; `None` if no response has confirmed a policy with this limit.
    pub max_bytes: Option<i64>,
    /// Whether a policy was requested that may delete data. If not, all ages are much longer than the schedule.
    pub may_delete: bool,
}

/// The limits of a named reader, after which the reader no longer holds data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderLimits {
    /// Maximum time without a commit in milliseconds.
    pub max_age_ms: Option<i64>,
    /// Maximum number of recorded bytes after the reader's position.
    pub max_lag: Option<i64>,
}

/// A published message of a tape.
#[derive(Clone, Copy, Debug)]
struct Published {
    end: i64,
    message: Message,
    /// Time of the offer in nanoseconds.
    published_ns: i64,
}

/// A change of a tape with unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncertainChange {
    /// The recording may end at this position.
    Truncated(i64),
    /// The recording may begin at this position.
    Purged(i64),
    /// The recording may begin at this position, and the segments before this position may be detached.
    Detached(i64),
    /// The detached segments may be attached again.
    Attached,
    /// The recording may be deleted.
    Deleted,
    /// The recording may be active again, or may have been active again for some time.
    Extended,
}

/// Progress of a replay of a tape.
#[derive(Clone, Copy, Debug)]
pub struct TapeReading {
    /// Number of the tape.
    pub tape: usize,
    /// End position of the last message read, or the start position.
    pub position: i64,
    /// Time in nanoseconds at which the last message read was published.
    pub published_ns: Option<i64>,
}

/// All tapes of a schedule.
#[derive(Debug, Default)]
pub struct Ledger {
    tapes: Vec<Tape>,
    received: u64,
}

impl Ledger {
    /// Adds a tape, and returns its number.
    pub fn add(&mut self, tape: Tape) -> usize {
        self.tapes.push(tape);
        self.tapes.len() - 1
    }

    /// Returns all tapes.
    pub fn tapes(&self) -> &[Tape] {
        &self.tapes
    }

    /// Returns a tape.
    pub fn tape(&self, number: usize) -> &Tape {
        &self.tapes[number]
    }

    /// Returns a tape for changes.
    pub fn tape_mut(&mut self, number: usize) -> &mut Tape {
        &mut self.tapes[number]
    }

    /// Returns the number of messages published on all tapes.
    pub fn published(&self) -> u64 {
        self.tapes.iter().map(|tape| u64::from(tape.count)).sum()
    }

    /// Returns the number of messages received from replays.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the next message to publish on a tape.
    pub fn next_message(&self, tape: usize, length: usize) -> Message {
        Message {
            publication: tape as u32,
            number: self.tapes[tape].count,
            length,
        }
    }

    /// Checks the bytes of a replayed message. `end` is the position after the message.
    ///
    /// # Errors
    /// The bytes were not recorded at this position, or they are not the next message.
    pub fn on_replayed(
        &mut self,
        reading: &mut TapeReading,
        message: Option<Message>,
        end: i64,
    ) -> Result<(), Finding> {
        let tape = &self.tapes[reading.tape];
        let id = tape.recording_id;
        let Some(message) = message else {
            return Err(format!(
                "replay of recording {id:?}: bytes at {end} were never published"
            ));
        };
        let at = tape
            .messages
            .partition_point(|it| it.end <= reading.position);
        let expected = tape.messages.get(at);
        // A replicated tape has the messages of its source tape.
        if expected.is_none_or(|it| it.end != end || it.message != message) {
            return Err(format!(
                "replay of recording {id:?}: {message:?} came at {end}, expected {expected:?} after {}",
                reading.position
            ));
        }
        reading.position = end;
        reading.published_ns = expected.map(|it| it.published_ns);
        self.received += 1;
        Ok(())
    }

    /// Returns the tape and the position of a sector of a stopped recording. If possible, a frame begins with the
    /// sector.
    pub fn any_sector(&self, archive: usize, random: &mut Rng) -> Option<(usize, i64)> {
        let (tape, position) = self.any_byte(archive, random)?;
        let it = &self.tapes[tape];
        let is_sector =
            |position: &i64| (position - it.segment_base(*position)) % SECTOR_LENGTH == 0;
        let ends = it.messages.iter().map(|message| message.end);
        let aligned: Vec<i64> = ends
            .filter(|end| *end > it.start && *end < it.published && is_sector(end))
            .collect();
        let position = match aligned.get(random.usize(..aligned.len().max(1))) {
            Some(aligned) => *aligned,
            None => {
                let base = it.segment_base(position);
                base + (position - base) / SECTOR_LENGTH * SECTOR_LENGTH
            }
        };
        Some((tape, position))
    }

    /// Returns the tape of an active recording that no replication reads.
    pub fn any_active(&self, archive: usize, random: &mut Rng) -> Option<usize> {
        let is_candidate = |tape: &Tape| {
            tape.archive == archive && tape.is_certain() && tape.stop.is_none() && tape.readers == 0
        };
        let tapes: Vec<_> = (0..self.tapes.len())
            .filter(|tape| is_candidate(&self.tapes[*tape]))
            .collect();
        tapes.get(random.usize(..tapes.len().max(1))).copied()
    }

    /// Returns the tape and the position of a recorded byte in which bits can be flipped. The byte is after a frame's
    /// header, because checksums do not cover headers.
    pub fn any_byte(&self, archive: usize, random: &mut Rng) -> Option<(usize, i64)> {
        let is_candidate = |tape: &Tape| {
            tape.archive == archive && tape.is_certain() && tape.stop.is_some() && tape.readers == 0
        };
        let tapes: Vec<_> = (0..self.tapes.len())
            .filter(|tape| is_candidate(&self.tapes[*tape]))
            .collect();
        let tape = *tapes.get(random.usize(..tapes.len().max(1)))?;
        let messages = &self.tapes[tape].messages;
        let Published { end, message, .. } = messages.get(random.usize(..messages.len().max(1)))?;
        if message.length > LONGEST_UNFRAGMENTED {
            return None;
        }
        let frame_length = (DataHeader::LENGTH + message.length).next_multiple_of(FRAME_ALIGNMENT);
        let begin = end - frame_length as i64 + DataHeader::LENGTH as i64;
        Some((tape, begin + random.i64(0..message.length as i64)))
    }

    /// Checks the descriptors of some tapes in a listing of all recordings of an archive. `was_full` tells whether the
    /// archive's disk was ever full.
    ///
    /// # Errors
    /// The listing contradicts the known state of a tape.
    pub fn check_listing(
        &mut self,
        tapes: &[usize],
        listing: &[RecordingDescriptor],
        was_full: bool,
    ) -> Result<(), Finding> {
        if !listing.is_sorted_by(|a, b| a.recording_id < b.recording_id) {
            return Err("the recording ids in a listing are not in ascending order".to_owned());
        }
        for tape in tapes {
            let tape = &mut self.tapes[*tape];
            if let Some(id) = tape.recording_id {
                let found = listing.iter().find(|it| it.recording_id == id);
                tape.check(id, found, was_full)?;
            }
        }
        Ok(())
    }

    /// Checks the names of an archive's files: the files of removed parts must not come back.
    ///
    /// # Errors
    /// A deleted file exists again.
    pub fn check_files(&self, archive: usize, names: &[String]) -> Result<(), Finding> {
        let files = names.iter().filter_map(|name| SegmentFileName::parse(name));
        for file in files.filter(|file| file.extension != FETCHED_EXTENSION) {
            let is_its = |tape: &&Tape| {
                tape.archive == archive && tape.recording_id == Some(file.recording_id)
            };
            if let Some(tape) = self.tapes.iter().find(is_its)
                && tape.must_not_have(file.base)
            {
                let base = file.base;
                let text = tape.summary();
                return Err(format!(
                    "the deleted segment at {base} is there again: {text}"
                ));
            }
        }
        Ok(())
    }
}

impl Tape {
    /// Creates a tape without messages.
    pub fn new(archive: usize, stream_id: i32, positions: &Positions, start: i64) -> Self {
        Self {
            archive,
            recording_id: None,
            stream_id,
            term_length: positions.term_length() as i64,
            segment_length: positions.term_length() as i64,
            initial_term_id: positions.initial_term_id(),
            start,
            detached_from: None,
            local_start: None,
            stop: None,
            messages: Vec::new(),
            count: 0,
            published: start,
            acknowledged: start,
            observed: Vec::new(),
            period: None,
            is_deleted: false,
            doubt: None,
            may_have_removed_files: false,
            has_left_segments: false,
            may_be_extended: false,
            may_be_subscribed: true,
            is_interrupted: false,
            readers: 0,
            retention: None,
            is_rotten: false,
        }
    }

    /// Registers a message that its publication accepted, with its end position.
    pub fn on_published(&mut self, message: Message, end: i64, now_ns: i64) {
        self.messages.push(Published {
            end,
            message,
            published_ns: now_ns,
        });
        self.count += 1;
    }

    /// Registers that the position counter shows a position. `period` stays the same while the archive runs without
    /// faults.
    ///
    /// # Errors
    /// The same errors as [`acknowledge`](Self::acknowledge).
    pub fn observe(
        &mut self,
        position: i64,
        now_ns: i64,
        period: Option<(u64, u64)>,
    ) -> Result<(), Finding> {
        if self.period != period {
            self.period = period;
            self.observed.clear();
        }
        if self
            .observed
            .last()
            .is_none_or(|(last, _)| position > *last)
        {
            self.observed.push((position, now_ns));
        }
        self.acknowledge(position)
    }

    /// Returns a time by which the frame at a position was recorded; `None` if a fault has come since then.
    pub fn recorded_by_ns(&self, position: i64, period: Option<(u64, u64)>) -> Option<i64> {
        let is_known = period.is_some()
            && self.period == period
            && self
                .observed
                .first()
                .is_some_and(|(first, _)| *first <= position);
        let at = self.observed.partition_point(|(end, _)| *end <= position);
        self.observed
            .get(at)
            .filter(|_| is_known)
            .map(|(_, at_ns)| *at_ns)
    }

    /// Registers that a client knows that the data up to a position is recorded.
    ///
    /// # Errors
    /// The position is beyond the end of the published data.
    pub fn acknowledge(&mut self, position: i64) -> Result<(), Finding> {
        let id = self.recording_id;
        if position > self.published {
            return Err(format!(
                "recording {id:?} is at {position}, beyond {}, the end of what was published",
                self.published
            ));
        }
        self.acknowledged = self.acknowledged.max(position);
        Ok(())
    }

    /// Registers a stop position that a client received. `was_full` tells whether the archive's disk was ever full.
    ///
    /// After a full disk, the archive continues a recording until its subscription ends (rule 12-10.3). The publication
    /// may be closed: its remaining bytes are recorded too. So the stop position is final only after the subscription
    /// has ended. Until then, it is the end of recorded data.
    ///
    /// # Errors
    /// The position contradicts the known state of the recording.
    pub fn reports_stop(&mut self, position: i64, was_full: bool) -> Result<(), Finding> {
        if self.stop.is_some() || !was_full || !self.may_be_subscribed {
            return self.stopped_at(position);
        }
        let id = self.recording_id;
        if position < self.acknowledged {
            return Err(format!(
                "recording {id:?} has stopped at {position}, below {}, which was acknowledged",
                self.acknowledged
            ));
        }
        self.is_interrupted = true;
        self.acknowledge(position)
    }

    /// Registers that no subscription of the recording is open.
    pub fn unsubscribed(&mut self) {
        self.may_be_subscribed = false;
        self.is_interrupted = false;
    }

    /// Registers the final stop position that a client received.
    ///
    /// # Errors
    /// The position contradicts the known state of the recording.
    pub fn stopped_at(&mut self, position: i64) -> Result<(), Finding> {
        let id = self.recording_id;
        if self.is_rotten {
            // A write was lost. After a kill, the recording ends before it.
            self.acknowledged = self.acknowledged.min(position);
        }
        if position < self.acknowledged {
            return Err(format!(
                "recording {id:?} has stopped at {position}, below {}, which was acknowledged",
                self.acknowledged
            ));
        }
        self.acknowledge(position)?;
        if self.stop.is_some_and(|stop| stop != position) {
            return Err(format!(
                "recording {id:?} has stopped at {position}, and before at {:?}",
                self.stop
            ));
        }
        self.stop = Some(position);
        self.messages.retain(|it| it.end <= position);
        self.published = position;
        Ok(())
    }

    /// Registers a truncation to a position. A truncation to the start also deletes detached segments.
    pub fn truncated_to(&mut self, position: i64) {
        if position == self.start {
            self.detached_from = None;
        }
        self.stop = Some(position);
        self.acknowledged = position;
        self.published = position;
        self.messages.retain(|it| it.end <= position);
        // The index loses the time of an entry that the truncation divides.
        self.observed.clear();
    }

    /// Registers a purge of the data before a position.
    pub fn purged_to(&mut self, start: i64) {
        self.start = start;
        self.messages.retain(|it| it.end > start);
    }

    /// Registers that the segments before a position are detached.
    pub fn detached_to(&mut self, start: i64) {
        self.detached_from = self.detached_from.or(Some(self.start));
        self.start = start;
    }

    /// Registers that the detached segments are attached.
    pub fn attached(&mut self) {
        self.start = self.detached_from.take().unwrap_or(self.start);
    }

    /// Registers that the recording is active again.
    pub fn extended(&mut self) {
        self.stop = None;
    }

    /// Returns the tape of the recording that a replication has created in another archive and that ends at `end`.
    pub fn copy(&self, archive: usize, recording_id: i64, end: i64) -> Self {
        let mut copy = self.clone();
        copy.archive = archive;
        copy.recording_id = Some(recording_id);
        copy.readers = 0;
        copy.observed.clear();
        copy.retention = None;
        copy.local_start = None;
        copy.detached_from = None;
        copy.may_have_removed_files = false;
        copy.has_left_segments = false;
        copy.may_be_extended = false;
        copy.may_be_subscribed = false;
        copy.is_interrupted = false;
        copy.count = 0;
        copy.truncated_to(end);
        copy
    }

    /// Whether the recording exists according to the known state.
    pub fn is_there(&self) -> bool {
        self.recording_id.is_some() && !self.is_deleted
    }

    /// Whether the files of the segment at `base` are known to be deleted.
    fn must_not_have(&self, base: i64) -> bool {
        let is_beyond = |stop| base > stop && self.doubt.is_none() && !self.may_be_extended;
        !self.may_have_removed_files && (self.is_deleted || self.stop.is_some_and(is_beyond))
    }

    /// Returns a short description of the known state.
    pub fn summary(&self) -> String {
        format!(
            "recording {:?} from {} to {:?}, acknowledged {}, published {}, doubt {:?}, deleted {}, {:?}",
            self.recording_id,
            self.start,
            self.stop,
            self.acknowledged,
            self.published,
            self.doubt,
            self.is_deleted,
            self.retention
        )
    }

    /// Whether the recording exists and no change has an unknown outcome.
    pub fn is_certain(&self) -> bool {
        self.is_there() && self.doubt.is_none()
    }

    /// Returns the end of one of the messages, but at most the known end of the recording. A `fraction` of 0 selects
    /// the first message; a `fraction` just below 1 selects the last.
    pub fn boundary(&self, fraction: f64) -> i64 {
        let first = self.messages.partition_point(|it| it.end <= self.start);
        let messages = &self.messages[first..];
        let at = (messages.len() as f64 * fraction) as usize;
        let end = messages.get(at).map_or(self.start, |it| it.end);
        end.min(self.stop.unwrap_or(self.acknowledged))
    }

    /// Returns the end of the last message that ends at or before a position. Without such a message, returns the start
    /// position.
    pub fn last_message_before(&self, position: i64) -> i64 {
        let at = self.messages.partition_point(|it| it.end <= position);
        at.checked_sub(1)
            .map_or(self.start, |at| self.messages[at].end)
    }

    /// Returns the base position of the segment that contains a position.
    pub fn segment_base(&self, position: i64) -> i64 {
        let first = self.start - self.start % self.term_length;
        position - (position - first) % self.segment_length
    }

    /// Registers that the archive has granted a commit that was requested at a time.
    pub fn committed(&mut self, position: i64, limits: ReaderLimits, requested_ms: i64) {
        let committed = self.retention.map_or(position, |it| it.committed);
        self.retention = Some(Retention {
            committed: committed.max(position),
            granted: position,
            limits,
            committed_ms: requested_ms,
            may_be_expired: false,
            max_bytes: self.retention.and_then(|it| it.max_bytes),
            may_delete: self.retention.is_some_and(|it| it.may_delete),
        });
    }

    /// Notes whether the reader may have expired by now. `running_since_ms` is the start of the archive: the time
    /// before it does not count.
    pub fn expire_reader(&mut self, running_since_ms: i64, now_ms: i64) {
        let published = self.published;
        if let Some(retention) = &mut self.retention {
            let ReaderLimits {
                max_age_ms,
                max_lag,
            } = retention.limits;
            let since_ms = retention.committed_ms.max(running_since_ms);
            let age_ms = now_ms.saturating_sub(since_ms);
            let is_too_old = max_age_ms.is_some_and(|max| age_ms > max);
            let is_too_far = max_lag.is_some_and(|max| published - retention.granted > max);
            retention.may_be_expired |= is_too_old || is_too_far;
        }
    }

    /// Whether retention may have deleted the whole recording, because the named reader may have expired or has
    /// committed the end of the recording.
    fn may_be_purged_by_retention(&self, doubt: Option<UncertainChange>) -> bool {
        let end = self.stop.unwrap_or(self.acknowledged);
        let end = match doubt {
            Some(UncertainChange::Truncated(position)) => end.min(position),
            _ => end,
        };
        self.retention
            .is_some_and(|it| it.may_delete && (it.may_be_expired || it.committed >= end))
    }

    /// Whether retention may have moved the start of the recording to a position.
    fn may_start_at(&self, start: i64) -> bool {
        let end = self.stop.unwrap_or(self.published);
        self.retention.is_some_and(|it| {
            let needed = match it.may_be_expired {
                true => end,
                false => it.committed.min(end),
            };
            it.may_delete
                && start > self.start
                && start == self.segment_base(start)
                && start <= self.segment_base(needed)
        })
    }

    /// Whether the files before a position may be deleted, because they have copies.
    fn may_be_copied_before(&self, start: i64) -> bool {
        let end = self.stop.unwrap_or(self.published);
        self.local_start
            .is_some_and(|local| start >= local && start == self.segment_base(start) && start < end)
    }

    /// Returns a finding if a file still exists that must be deleted, because its segment has a copy. `bases` are the
    /// positions of the existing files. The archive keeps the files of the last `kept` bytes.
    pub fn uncopied(&self, bases: &[i64], kept: i64) -> Option<Finding> {
        let (stop, _) = (self.stop?, self.local_start?);
        if !self.is_certain() || self.may_have_removed_files {
            return None;
        }
        let first_kept = self.segment_base((stop - kept.max(1)).max(self.start));
        let lowest = bases.iter().copied().min()?;
        let text = self.summary();
        (lowest < first_kept)
            .then(|| format!("the file at {lowest} still exists, but the kept files begin at {first_kept}: {text}"))
    }

    /// Checks a start position that an archive reports.
    ///
    /// # Errors
    /// The position contradicts the known state of the recording.
    pub fn starts_at(&mut self, start: i64) -> Result<(), Finding> {
        self.check_start(start, None)
    }

    /// Returns a finding if a segment of the recording still exists that retention must delete. `bases` are the
    /// positions of the existing segments.
    pub fn unretained(&self, bases: &[i64]) -> Option<Finding> {
        let (retention, stop) = (self.retention?, self.stop?);
        if !self.is_certain() || self.may_have_removed_files {
            return None;
        }
        let lowest = bases.iter().copied().min()?;
        if lowest < self.segment_base(self.start) {
            let text = self.summary();
            return Some(format!(
                "a segment at {lowest} is left by retention: {text}"
            ));
        }
        // A reader with a short maximum age expires, because it no longer commits.
        let limits = retention.limits;
        let is_short_age = |max_age_ms| max_age_ms < LONGEST_SCHEDULE_MS;
        let has_expired = limits.max_age_ms.is_some_and(is_short_age)
            || limits
                .max_lag
                .is_some_and(|max| stop - retention.committed > max);
        let needed = match has_expired {
            true => stop - 1,
            false => retention.committed.min(stop - 1),
        };
        let is_held = lowest >= self.segment_base(needed.max(self.start));
        let is_short = stop - lowest <= retention.max_bytes?;
        let text = self.summary();
        (!is_held && !is_short).then(|| format!("retention keeps bytes from {lowest} on: {text}"))
    }

    /// Checks the recording's descriptor in a listing. Resolves a change with unknown outcome.
    fn check(
        &mut self,
        id: i64,
        found: Option<&RecordingDescriptor>,
        was_full: bool,
    ) -> Result<(), Finding> {
        let doubt = self.doubt.take();
        let Some(found) = found else {
            if self.is_deleted
                || doubt == Some(UncertainChange::Deleted)
                || self.may_be_purged_by_retention(doubt)
            {
                self.may_have_removed_files |= !self.is_deleted;
                self.is_deleted = true;
                return Ok(());
            }
            return Err(format!("recording {id} is lost: {}", self.summary()));
        };
        if self.is_deleted {
            return Err(format!("recording {id} is there again after it was purged"));
        }
        let is_stream = found.stream_id == self.stream_id
            && i64::from(found.term_length) == self.term_length
            && found.initial_term_id == self.initial_term_id;
        if !is_stream {
            return Err(format!("recording {id} is of another stream: {found:?}"));
        }
        self.check_start(found.start_position, doubt)?;
        self.may_be_extended |= doubt == Some(UncertainChange::Extended);
        if self.may_be_extended {
            self.stop = None;
        }
        match (found.stop_position, doubt) {
            (-1, _) if self.stop.is_none() => Ok(()),
            (-1, _) => Err(format!(
                "recording {id} has stopped and has no stop position"
            )),
            (stop, Some(UncertainChange::Truncated(position))) if stop == position => {
                self.truncated_to(position);
                self.may_have_removed_files = true;
                Ok(())
            }
            (stop, _) => self.reports_stop(stop, was_full),
        }
    }

    fn check_start(&mut self, start: i64, doubt: Option<UncertainChange>) -> Result<(), Finding> {
        if start == self.start {
            return Ok(());
        }
        if self.may_be_copied_before(start) {
            self.local_start = Some(start);
            return Ok(());
        }
        if doubt == Some(UncertainChange::Purged(start)) {
            self.purged_to(start);
            return Ok(());
        }
        if doubt == Some(UncertainChange::Detached(start)) {
            self.detached_to(start);
            return Ok(());
        }
        if doubt == Some(UncertainChange::Attached) && self.detached_from == Some(start) {
            self.attached();
            return Ok(());
        }
        if self.may_start_at(start) {
            // The messages before the start are kept, because a replay may still deliver those that the archive has
            // already sent.
            self.start = start;
            return Ok(());
        }
        Err(format!(
            "recording {:?} begins at {start}, and began at {} before, {:?}",
            self.recording_id, self.start, self.retention
        ))
    }
}
