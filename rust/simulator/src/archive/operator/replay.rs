//! [`Replay`]: reads a replay and compares it with the recorded messages.

use aeron_archive::client::StartedReplay;
use aeron_client::FragmentAssembler;

use super::{PATIENCE_NS, Stage};
use crate::archive::ledger::TapeReading;
use crate::payload::Message;
use crate::schedule::{MS, SECOND};
use crate::truth::Finding;

/// Length of the longest frame in bytes.
const LONGEST_FRAME: i64 = 8_192;
/// Maximum interval between the arrival times of two frames that count as simultaneous.
const SPEED_TOLERANCE_NS: i64 = 2 * MS;
/// Maximum number of fragments read from a replay in one turn.
const FRAGMENTS_PER_TURN: usize = 16;

/// The recorded pace of a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaySpeed {
    pub millionths: i64,
    /// Time of the request.
    pub requested_ns: i64,
    /// Time by which the first frame was recorded. If it is not known, index entries may lack times, and the replay may
    /// end early.
    pub begun_ns: Option<i64>,
}

/// A replay in progress.
pub(super) struct Replay {
    pub started: StartedReplay,
    pub reading: TapeReading,
    /// Start position.
    pub begin: i64,
    /// End position; `None` while the replay follows the recording.
    pub end: Option<i64>,
    /// Whether the operator has requested to stop it early.
    pub is_stopped: bool,
    /// Time of the last arrival of data.
    since_ns: i64,
    /// Time between two reads, and the time of the next read.
    pause_ns: i64,
    reads_from_ns: i64,
    /// Maximum number of bytes per second that the operator has requested, and the time of the request.
    rate: Option<(i64, i64)>,
    speed: Option<ReplaySpeed>,
    /// For a replay over IPC: the archive's [`Stage::undisturbed`] at the start of the replay.
    undisturbed: Option<(u64, u64)>,
    /// Time at which the replay was first found to have ended.
    ended_ns: Option<i64>,
    image_position: i64,
    was_connected: bool,
    assembler: Box<FragmentAssembler>,
}

impl Replay {
    /// Creates the reader of a replay that has just begun.
    pub fn new(
        started: StartedReplay,
        tape: usize,
        begin: i64,
        end: Option<i64>,
        now_ns: i64,
    ) -> Self {
        Self {
            started,
            reading: TapeReading {
                tape,
                position: begin,
                published_ns: None,
            },
            begin,
            end,
            is_stopped: false,
            since_ns: now_ns,
            pause_ns: 0,
            reads_from_ns: now_ns,
            rate: None,
            speed: None,
            undisturbed: None,
            ended_ns: None,
            image_position: begin,
            was_connected: false,
            assembler: Box::default(),
        }
    }

    /// Makes the operator read slowly.
    pub fn with_pauses(mut self, pause_ns: i64) -> Self {
        self.pause_ns = pause_ns;
        self
    }

    /// Notes the requested rate in bytes per second, and the time of the request.
    pub fn with_rate(mut self, bytes_per_second: i64, requested_ns: i64) -> Self {
        self.rate = Some((bytes_per_second, requested_ns));
        self
    }

    /// Notes the requested speed.
    pub fn with_speed(mut self, speed: Option<ReplaySpeed>) -> Self {
        self.speed = speed;
        self
    }

    /// Notes that the replay does not use the network. So it must not end early while its archive runs without faults.
    pub fn over_ipc(mut self, undisturbed: Option<(u64, u64)>) -> Self {
        self.undisturbed = undisturbed;
        self
    }

    /// Whether the operator reads slowly. The operator never stops such a replay early. So the archive must keep the
    /// replay's data for a long time.
    pub fn is_slow(&self) -> bool {
        self.pause_ns > 0
    }

    /// Ends slow reading.
    pub fn hurry(&mut self) {
        (self.pause_ns, self.reads_from_ns) = (0, 0);
    }

    /// Reads the available data. Returns a work count.
    ///
    /// # Errors
    /// The data was not recorded, it is not the next message, or the replay is faster than requested.
    pub fn poll(&mut self, stage: &mut Stage<'_>) -> Result<usize, Finding> {
        let now_ns = stage.clock.now_ns();
        if now_ns < self.reads_from_ns {
            return Ok(0);
        }
        self.reads_from_ns = now_ns + self.pause_ns;
        let (reading, assembler, seed) = (&mut self.reading, &mut self.assembler, stage.seed);
        let ledger = &mut *stage.ledger;
        let mut found = Ok(());
        let polled = self.started.subscription.poll(
            |fragment| {
                assembler.on_fragment(fragment, |message| {
                    let bytes = message.to_vec();
                    let end = message.header().position();
                    if found.is_ok() {
                        found = ledger.on_replayed(reading, Message::recognise(&bytes, seed), end);
                    }
                });
            },
            FRAGMENTS_PER_TURN,
        );
        found?;
        if let Some(image) = self.started.subscription.image_at(0) {
            self.image_position = image.position();
            self.was_connected = true;
        }
        let count = polled.map_err(|error| format!("the poll of a replay failed: {error}"))?;
        if count > 0 {
            self.since_ns = now_ns;
        }
        self.check_rate(now_ns)?;
        self.check_speed(now_ns)?;
        Ok(count)
    }

    /// Checks that the replay is not faster than the recorded pace. An entry of the index has the frames of a
    /// millisecond.
    fn check_speed(&self, now_ns: i64) -> Result<(), Finding> {
        let Some(ReplaySpeed {
            millionths,
            requested_ns,
            begun_ns: Some(begun_ns),
        }) = self.speed
        else {
            return Ok(());
        };
        let Some(published_ns) = self.reading.published_ns else {
            return Ok(());
        };
        let recorded_ns = published_ns - begun_ns - SPEED_TOLERANCE_NS;
        let due_ns = requested_ns + (recorded_ns as f64 * 1e6 / millionths as f64) as i64;
        match now_ns >= due_ns {
            true => Ok(()),
            false => Err(format!(
                "a replay with a speed of {millionths} millionths is {} ns too early at {}",
                due_ns - now_ns,
                self.reading.position
            )),
        }
    }

    /// Checks that the replay is not faster than requested. A frame that begins within the allowed bytes may end after
    /// them.
    fn check_rate(&self, now_ns: i64) -> Result<(), Finding> {
        let Some((rate, requested_ns)) = self.rate else {
            return Ok(());
        };
        let sent = self.reading.position - self.begin;
        let allowed = (now_ns - requested_ns) * rate / SECOND + LONGEST_FRAME;
        match sent <= allowed {
            true => Ok(()),
            false => Err(format!(
                "a replay has sent {sent} bytes, and {allowed} are allowed with {rate} bytes per second"
            )),
        }
    }

    /// Whether the replay has ended.
    ///
    /// # Errors
    /// Data is missing, or the replay goes beyond its end.
    pub fn is_over(&mut self, stage: &Stage<'_>) -> Result<bool, Finding> {
        let tape = stage.ledger.tape(self.reading.tape);
        self.end = self.end.or(tape.stop);
        let is_whole = self.end.is_some_and(|end| {
            self.image_position >= end && self.reading.position >= tape.last_message_before(end)
        });
        if is_whole {
            return match self.end {
                Some(end) if self.image_position > end => Err(format!(
                    "a replay of recording {:?} is at {}, beyond {end}",
                    tape.recording_id, self.image_position
                )),
                _ => Ok(true),
            };
        }
        let image = self.started.subscription.image_at(0);
        let has_ended = self.was_connected && image.is_none_or(|image| image.is_end_of_stream());
        let is_late = stage.clock.now_ns() - self.since_ns > PATIENCE_NS
            && (self.end.is_some()
                || self.reading.position < tape.last_message_before(tape.acknowledged));
        if !has_ended && !is_late {
            return Ok(false);
        }
        // The replay of a stopped recording may end before the client receives the stop position.
        let now_ns = stage.clock.now_ns();
        let is_awaited = has_ended
            && self.end.is_none()
            && now_ns - *self.ended_ns.get_or_insert(now_ns) <= PATIENCE_NS;
        if is_awaited && !self.is_stopped && !tape.is_rotten {
            return Ok(false);
        }
        let is_undisturbed =
            self.undisturbed.is_some() && stage.undisturbed(tape.archive) == self.undisturbed;
        let is_excused = stage.is_excused(self.since_ns) && !(has_ended && is_undisturbed);
        let lacks_times = self.speed.is_some_and(|speed| speed.begun_ns.is_none());
        if is_excused || self.is_stopped || tape.is_rotten || lacks_times {
            return Ok(true);
        }
        Err(format!(
            "a replay of recording {:?} from {} to {:?} is at {} (message {}), and {}",
            tape.recording_id,
            self.begin,
            self.end,
            self.image_position,
            self.reading.position,
            if has_ended {
                "has ended"
            } else {
                "makes no progress"
            }
        ))
    }
}
