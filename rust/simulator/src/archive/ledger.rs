//! [`Ledger`]: what was recorded, what somebody was told of it, and whether what an archive says and replays can be true.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_memory::log::Positions;

use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_protocol::frame::DataHeader;
use fastrand::Rng;

use crate::payload::Message;
use crate::truth::Finding;

/// Messages of this length fit into one frame of each stream.
const LONGEST_UNFRAGMENTED: usize = 200;

/// A recording as the clients of its archive know it.
#[derive(Clone, Debug)]
pub struct Tape {
    /// Its archive.
    pub archive: usize,
    /// Its id, once it is known.
    pub recording_id: Option<i64>,
    /// Its stream, which no other tape has.
    pub stream_id: i32,
    /// Length of its terms.
    pub term_length: i64,
    /// Length of its segment files.
    pub segment_length: i64,
    /// Id of its stream's first term.
    pub initial_term_id: i32,
    /// Position of its first byte.
    pub start: i64,
    /// Its end, once it has stopped and somebody was told of that.
    pub stop: Option<i64>,
    /// Messages that were published on it and are not known to be lost.
    messages: Vec<Published>,
    /// Messages that were ever published on it.
    count: u32,
    /// End of what was published on it, with the padding.
    pub published: i64,
    /// Highest position that somebody was told of.
    pub acknowledged: i64,
    /// Whether somebody was told that it is deleted.
    pub is_deleted: bool,
    /// A change that was asked for and whose outcome nobody was told.
    pub doubt: Option<Doubt>,
    /// Whether a truncation was interrupted: the same request again deletes the files that are left.
    pub is_half_truncated: bool,
    /// Whether an extension was asked for whose outcome nobody was told: it may begin late, when its image comes.
    pub may_be_extended: bool,
    /// Copies of it that are being made: until they are whole it does not change.
    pub readers: usize,
    /// Whether bits of its files have turned: a replay may end early, but brings nothing wrong.
    pub is_rotten: bool,
}

/// A message of a tape.
#[derive(Clone, Copy, Debug)]
struct Published {
    end: i64,
    message: Message,
}

/// A change of a tape whose outcome nobody was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It may end here.
    Truncated(i64),
    /// It may begin here.
    Purged(i64),
    /// It may be gone.
    Deleted,
    /// It may be recorded again, or have been.
    Extended,
}

/// How far a reader of a tape is.
#[derive(Clone, Copy, Debug)]
pub struct TapeReading {
    /// The tape.
    pub tape: usize,
    /// End of the last message that it got, or where it began.
    pub position: i64,
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

    /// All tapes.
    pub fn tapes(&self) -> &[Tape] {
        &self.tapes
    }

    /// A tape.
    pub fn tape(&self, number: usize) -> &Tape {
        &self.tapes[number]
    }

    /// A tape that changes.
    pub fn tape_mut(&mut self, number: usize) -> &mut Tape {
        &mut self.tapes[number]
    }

    /// Messages published on all tapes.
    pub fn published(&self) -> u64 {
        self.tapes.iter().map(|tape| u64::from(tape.count)).sum()
    }

    /// Messages that replays have brought.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next message of a tape.
    pub fn next_message(&self, tape: usize, length: usize) -> Message {
        Message {
            publication: tape as u32,
            number: self.tapes[tape].count,
            length,
        }
    }

    /// A replay brought bytes that end at a position.
    ///
    /// # Errors
    /// They are not what was recorded there, or not the next.
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
        // A replicated tape has the messages of its source.
        if expected.is_none_or(|it| it.end != end || it.message != message) {
            return Err(format!(
                "replay of recording {id:?}: {message:?} came at {end}, expected {expected:?} after {}",
                reading.position
            ));
        }
        reading.position = end;
        self.received += 1;
        Ok(())
    }

    /// A byte of a recorded message, for bits to turn: its tape, and its position. Checksums cover what follows the header of a frame.
    pub fn any_byte(&self, archive: usize, random: &mut Rng) -> Option<(usize, i64)> {
        let is_candidate = |tape: &Tape| {
            tape.archive == archive && tape.is_certain() && tape.stop.is_some() && tape.readers == 0
        };
        let tapes: Vec<_> = (0..self.tapes.len())
            .filter(|tape| is_candidate(&self.tapes[*tape]))
            .collect();
        let tape = *tapes.get(random.usize(..tapes.len().max(1)))?;
        let messages = &self.tapes[tape].messages;
        let Published { end, message } = messages.get(random.usize(..messages.len().max(1)))?;
        if message.length > LONGEST_UNFRAGMENTED {
            return None;
        }
        let frame_length = (DataHeader::LENGTH + message.length).next_multiple_of(FRAME_ALIGNMENT);
        let begin = end - frame_length as i64 + DataHeader::LENGTH as i64;
        Some((tape, begin + random.i64(..message.length as i64)))
    }

    /// Checks what an archive says of some tapes; it was asked for all of its recordings.
    ///
    /// # Errors
    /// It cannot be true.
    pub fn check_listing(
        &mut self,
        tapes: &[usize],
        listing: &[RecordingDescriptor],
    ) -> Result<(), Finding> {
        if !listing.is_sorted_by(|a, b| a.recording_id < b.recording_id) {
            return Err("a listing has a recording twice".to_owned());
        }
        for tape in tapes {
            let tape = &mut self.tapes[*tape];
            if let Some(id) = tape.recording_id {
                let found = listing.iter().find(|it| it.recording_id == id);
                tape.check(id, found)?;
            }
        }
        Ok(())
    }
}

impl Tape {
    /// A tape on which nothing was published.
    pub fn new(archive: usize, stream_id: i32, positions: &Positions, start: i64) -> Self {
        Self {
            archive,
            recording_id: None,
            stream_id,
            term_length: positions.term_length() as i64,
            segment_length: positions.term_length() as i64,
            initial_term_id: positions.initial_term_id(),
            start,
            stop: None,
            messages: Vec::new(),
            count: 0,
            published: start,
            acknowledged: start,
            is_deleted: false,
            doubt: None,
            is_half_truncated: false,
            may_be_extended: false,
            readers: 0,
            is_rotten: false,
        }
    }

    /// A message was taken by its publication, and ends there.
    pub fn on_published(&mut self, message: Message, end: i64) {
        self.messages.push(Published { end, message });
        self.count += 1;
    }

    /// Somebody was told that it is recorded up to a position.
    ///
    /// # Errors
    /// Nobody published that much, or more was told before.
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

    /// Somebody was told where it has stopped.
    ///
    /// # Errors
    /// That cannot be.
    pub fn stopped_at(&mut self, position: i64) -> Result<(), Finding> {
        let id = self.recording_id;
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

    /// It was truncated.
    pub fn truncated_to(&mut self, position: i64) {
        self.stop = Some(position);
        self.acknowledged = position;
        self.published = position;
        self.messages.retain(|it| it.end <= position);
    }

    /// Its beginning was purged.
    pub fn purged_to(&mut self, start: i64) {
        self.start = start;
        self.messages.retain(|it| it.end > start);
    }

    /// It is recorded again.
    pub fn extended(&mut self) {
        self.stop = None;
    }

    /// A copy of it in another archive.
    pub fn copy(&self, archive: usize, recording_id: i64, end: i64) -> Self {
        let mut copy = self.clone();
        copy.archive = archive;
        copy.recording_id = Some(recording_id);
        copy.readers = 0;
        copy.count = 0;
        copy.truncated_to(end);
        copy
    }

    /// Whether it exists as far as anybody knows.
    pub fn is_there(&self) -> bool {
        self.recording_id.is_some() && !self.is_deleted
    }

    /// What is known of it, in short.
    pub fn summary(&self) -> String {
        format!(
            "recording {:?} from {} to {:?}, acknowledged {}, published {}, doubt {:?}, deleted {}",
            self.recording_id,
            self.start,
            self.stop,
            self.acknowledged,
            self.published,
            self.doubt,
            self.is_deleted
        )
    }

    /// Whether it exists as far as anybody knows, and nothing about it is in doubt.
    pub fn is_certain(&self) -> bool {
        self.is_there() && self.doubt.is_none()
    }

    /// A position between two of its messages, of which the nearest to a fraction of them all.
    pub fn boundary(&self, fraction: f64) -> i64 {
        let at = (self.messages.len() as f64 * fraction) as usize;
        let end = self.messages.get(at).map_or(self.start, |it| it.end);
        end.min(self.stop.unwrap_or(self.acknowledged))
    }

    /// The end of the last of its messages that ends at or before a position, or its start.
    pub fn last_message_before(&self, position: i64) -> i64 {
        let at = self.messages.partition_point(|it| it.end <= position);
        at.checked_sub(1)
            .map_or(self.start, |at| self.messages[at].end)
    }

    /// The beginning of the segment file that has a position.
    pub fn segment_base(&self, position: i64) -> i64 {
        let first = self.start - self.start % self.term_length;
        position - (position - first) % self.segment_length
    }

    /// Checks what a listing has of it, and takes over what it says about doubts.
    fn check(&mut self, id: i64, found: Option<&RecordingDescriptor>) -> Result<(), Finding> {
        let doubt = self.doubt.take();
        let Some(found) = found else {
            if self.is_deleted || doubt == Some(Doubt::Deleted) {
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
        self.may_be_extended |= doubt == Some(Doubt::Extended);
        if self.may_be_extended {
            self.stop = None;
        }
        match (found.stop_position, doubt) {
            (-1, _) if self.stop.is_none() => Ok(()),
            (-1, _) => Err(format!(
                "recording {id} has stopped and has no stop position"
            )),
            (stop, Some(Doubt::Truncated(position))) if stop == position => {
                self.truncated_to(position);
                self.is_half_truncated = true;
                Ok(())
            }
            (stop, _) => self.stopped_at(stop),
        }
    }

    fn check_start(&mut self, start: i64, doubt: Option<Doubt>) -> Result<(), Finding> {
        if start == self.start {
            return Ok(());
        }
        if doubt == Some(Doubt::Purged(start)) {
            self.purged_to(start);
            return Ok(());
        }
        Err(format!(
            "recording {:?} begins at {start}, and began at {} before",
            self.recording_id, self.start
        ))
    }
}
