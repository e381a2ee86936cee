//! [`ReplaySession`]: reads a recording and publishes its frames. The replayer runs its duty cycles.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_client::{AppendError, ExclusivePublication, FillBlockError, FilledBlock, OfferError};
use aeron_memory::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length};
use aeron_protocol::archive::ArchiveErrorCode;

use super::bounds::ReplayBounds;
use super::frame_run::{FrameRewrite, FrameRun, RecordedBytes, RunFault};
use super::pacing::{ReplayPace, RequestedPace};
use super::plan::ReplayPlan;
use super::publication::ReplayPublication;
use super::recorded_pace::PaceFault;
use super::segment_reads::{OpenSegment, SegmentReads};
use crate::checksum::Checksum;
use crate::frame::FrameFault;
use crate::server::ArchiveError;
use crate::storage::Storage;
use crate::stream::RecordedStream;

/// A replay whose publication the driver has added.
pub(in crate::server) struct NewReplay<P = ExclusivePublication> {
    /// Id of the replay.
    pub replay_session_id: i64,
    /// The recorded stream.
    pub stream: RecordedStream,
    /// Start position of the recording in the catalog. Segments before it may be in object storage. The conductor
    /// writes it.
    pub local_start: Arc<AtomicI64>,
    /// The part of the recording that is sent.
    pub plan: ReplayPlan,
    /// The bounds of the replay, which may move.
    pub bounds: ReplayBounds,
    /// The pace of the replay.
    pub pace: RequestedPace,
    /// The publication. It begins at the first position of the plan.
    pub publication: P,
    /// Position of the replay. The session writes it, and the conductor reads it.
    pub position: Arc<AtomicI64>,
    /// Checksum of the frames; `None` if checksums are not verified.
    pub checksum: Option<Checksum>,
    /// Time by which the first segment file and a subscriber must exist.
    pub connect_deadline_ns: i64,
}

/// A replay in progress.
pub(super) struct ReplaySession<S: Storage, P = ExclusivePublication> {
    replay_session_id: i64,
    stream: RecordedStream,
    publication: P,
    rewrite: FrameRewrite,
    bounds: ReplayBounds,
    pace: ReplayPace<S>,
    /// Whether the first position is within the recording: neither its start position nor its stop
    /// position. Then the session checks that a frame begins there.
    begins_within: bool,
    position: i64,
    shown_position: Arc<AtomicI64>,
    /// Number of bytes of a padding frame that must still be appended.
    padding_left: usize,
    /// Longest read of a segment file, in bytes.
    read_length: usize,
    segment: OpenSegment<S::File>,
    state: ReplayState,
    connect_deadline_ns: i64,
    /// Time at which the fetch of the first segment began. The duration of the fetch does not count for the deadline.
    fetch_began_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayState {
    /// Waits for the first segment file.
    Opening,
    /// Waits for a subscriber.
    Connecting,
    Replaying,
}

/// The outcome of one duty cycle of a replay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplayProgress {
    /// The segment file of the first position is open. The conductor sends the client the response that the replay has
    /// started.
    Started,
    /// Number of bytes of the stream that were sent; 1 for a step that sends no bytes.
    Worked(usize),
    /// The replay has ended.
    Ended(ReplayEnd),
}

/// Why a replay has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum ReplayEnd {
    /// The whole range was sent: the stream ends at its current position.
    Complete,
    /// The replay was stopped, or it has no subscriber any more: the publication is revoked.
    Aborted,
    /// The recording cannot be replayed further, because of the recorded data or the disk: the publication is revoked,
    /// and the client receives the error.
    Failed(ArchiveError),
    /// The client's request cannot be served, for example because nobody subscribes to the replay: the publication is
    /// revoked, and the client receives the error.
    Refused(ArchiveError),
}

impl<S: Storage, P: ReplayPublication> ReplaySession<S, P> {
    /// Creates a session. No file is opened yet.
    pub fn new(new: NewReplay<P>) -> Self {
        let NewReplay {
            replay_session_id,
            stream,
            local_start,
            plan,
            bounds,
            pace,
            publication,
            position,
            checksum,
            connect_deadline_ns,
        } = new;
        // The session id field may contain a checksum, or the session id before the last extension.
        let stream = stream.any_session();
        Self {
            replay_session_id,
            rewrite: FrameRewrite::new(
                stream.rules(),
                checksum,
                publication.session_id(),
                publication.stream_id(),
            ),
            publication,
            bounds,
            pace: ReplayPace::new(pace, plan.position, plan.mtu_length),
            begins_within: plan.position > stream.start_position()
                && plan.position != plan.stop_position,
            position: plan.position,
            shown_position: position,
            padding_left: 0,
            read_length: plan.read_length,
            segment: OpenSegment::new(local_start),
            fetch_began_ns: None,
            state: ReplayState::Opening,
            connect_deadline_ns,
            stream,
        }
    }

    pub fn replay_session_id(&self) -> i64 {
        self.replay_session_id
    }

    pub fn recording_id(&self) -> i64 {
        self.stream.recording_id()
    }

    /// Runs one duty cycle: reads a segment file at most once, and sends as many frames as the
    /// publication accepts. Never waits.
    pub fn do_work(&mut self, reads: &mut SegmentReads<S>, now_ns: i64) -> ReplayProgress {
        let outcome = match self.state {
            ReplayState::Opening => self.open(reads, now_ns),
            ReplayState::Connecting => self.connect(now_ns),
            ReplayState::Replaying => self.replay(reads, now_ns),
        };
        outcome.unwrap_or_else(ReplayProgress::Ended)
    }

    fn open(
        &mut self,
        reads: &mut SegmentReads<S>,
        now_ns: i64,
    ) -> Result<ReplayProgress, ReplayEnd> {
        match reads.open(&mut self.segment, &self.stream, self.position) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.fetch_began_ns.get_or_insert(now_ns);
                return Ok(ReplayProgress::Worked(0));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match self.bounds.recording_stop() {
                    // Only the recorder of an active recording may still create the file.
                    None if now_ns < self.connect_deadline_ns => Ok(ReplayProgress::Worked(0)),
                    None => Err(self.failure("recording segment file not created")),
                    Some(stop) if stop == self.stream.start_position() => Err(self.empty()),
                    Some(_) => Err(self.failure("recording segment not found")),
                };
            }
            Err(error) => return Err(self.failure(&error.to_string())),
        }
        if let Some(began_ns) = self.fetch_began_ns.take() {
            let waited_ns = now_ns.saturating_sub(began_ns);
            self.connect_deadline_ns = self.connect_deadline_ns.saturating_add(waited_ns);
        }
        if self.begins_within {
            self.check_first_frame(reads)?;
        }
        self.pace
            .open(reads.storage(), &self.stream)
            .map_err(|fault| self.pace_failure(&fault))?;
        debug_assert_eq!(
            self.state,
            ReplayState::Opening,
            "replay {} must open its first segment only once",
            self.replay_session_id
        );
        self.state = ReplayState::Connecting;
        Ok(ReplayProgress::Started)
    }

    fn check_first_frame(&mut self, reads: &mut SegmentReads<S>) -> Result<(), ReplayEnd> {
        let mut header = [0; HEADER_LENGTH];
        reads
            .read(&mut self.segment, &self.stream, self.position, &mut header)
            .map_err(|error| self.read_failure(&error))?;
        match self.stream.rules().check(self.position, &header) {
            // Only the header was read, so the rest of a data frame is missing.
            Ok(_) | Err(FrameFault::Incomplete { .. }) => Ok(()),
            Err(fault) => Err(ReplayEnd::Refused(self.error(
                ArchiveErrorCode::InvalidPosition,
                &format!(
                    "replayPosition={} does not point to a valid frame, {fault}",
                    self.position
                ),
            ))),
        }
    }

    fn connect(&mut self, now_ns: i64) -> Result<ReplayProgress, ReplayEnd> {
        if self.publication.is_connected() {
            self.state = ReplayState::Replaying;
            return Ok(ReplayProgress::Worked(1));
        }
        if now_ns < self.connect_deadline_ns {
            return Ok(ReplayProgress::Worked(0));
        }
        Err(self.refusal(&format!(
            "no connection established for replayChannel={}, replayStreamId={}",
            self.publication.channel(),
            self.publication.stream_id()
        )))
    }

    fn replay(
        &mut self,
        reads: &mut SegmentReads<S>,
        now_ns: i64,
    ) -> Result<ReplayProgress, ReplayEnd> {
        if !self.publication.is_connected() {
            return Err(ReplayEnd::Aborted);
        }
        self.bounds.update();
        let places = (self.position, self.bounds.stop_position());
        self.pace
            .advance(reads.storage(), &self.stream, places, now_ns)
            .map_err(|fault| self.pace_failure(&fault))?;
        let begin = self.position;
        if self.append_padding()? {
            self.check_complete()?;
            self.send_next(reads)?;
        }
        debug_assert!(
            self.position >= begin,
            "replay {} must not go back from {begin} to {}: segments before {begin} may be deleted",
            self.replay_session_id,
            self.position
        );
        self.shown_position.store(self.position, Ordering::Release);
        if self.padding_left == 0 {
            self.check_complete()?;
        }
        Ok(ReplayProgress::Worked((self.position - begin) as usize))
    }

    fn check_complete(&self) -> Result<(), ReplayEnd> {
        match self.position < self.bounds.limit_position() {
            true => Ok(()),
            false => Err(ReplayEnd::Complete),
        }
    }

    /// Reads the next bytes into the publication's log and sends their frames, if the publication
    /// accepts frames.
    fn send_next(&mut self, reads: &mut SegmentReads<S>) -> Result<(), ReplayEnd> {
        debug_assert_eq!(
            self.padding_left, 0,
            "replay {} must send its padding before further data",
            self.replay_session_id
        );
        let length = self.pace.readable(self.position, self.readable_length());
        if length < HEADER_LENGTH {
            return match length {
                0 => Ok(()),
                _ => self.check_incomplete(length),
            };
        }
        let limit = self.bounds.limit_position().min(self.pace.position());
        let position = self.position;
        let (segment, stream, rewrite) = (&mut self.segment, &self.stream, &mut self.rewrite);
        let mut run = FrameRun::default();
        let filled = self.publication.fill_block(length, |space| {
            let (term, offset, length) = (space.term(), space.offset(), space.length());
            let target = (term, offset, length);
            let first_word = reads.read_into_term(segment, stream, position, target)?;
            let bytes = RecordedBytes {
                term,
                offset,
                length,
                first_word,
            };
            run = rewrite.take_run(position, limit, bytes)?;
            Ok(FilledBlock {
                length: run.data_length,
                first_word,
            })
        });
        match filled {
            Ok(_) if run.is_empty() => return self.check_incomplete(length),
            Ok(_) => self.position += run.data_length as i64,
            // The next segment is being fetched.
            Err(FillBlockError::Fill(FillFault::Read(error)))
                if error.kind() == io::ErrorKind::WouldBlock =>
            {
                return Ok(());
            }
            Err(FillBlockError::Fill(FillFault::Read(error))) => {
                return Err(self.read_failure(&error));
            }
            Err(FillBlockError::Fill(FillFault::Run(fault))) => return Err(self.run_failure(fault)),
            Err(FillBlockError::Append(error)) => return self.is_taken(Err(error)).map(drop),
        }
        self.set_padding(run.padding_length);
        self.append_padding().map(drop)
    }

    /// Returns the number of bytes that one read may return: all of them are before the stop
    /// position and within the term.
    fn readable_length(&self) -> usize {
        let positions = self.stream.positions();
        let in_term = positions.term_length() - positions.term_offset(self.position);
        let to_stop = self.bounds.stop_position().saturating_sub(self.position);
        let to_stop = usize::try_from(to_stop).unwrap_or(0);
        to_stop.min(in_term).min(self.read_length)
    }

    #[cold]
    fn read_failure(&self, error: &io::Error) -> ReplayEnd {
        match error.kind() {
            io::ErrorKind::NotFound => self.failure("recording segment not found"),
            io::ErrorKind::UnexpectedEof => self.unexpected_end(),
            _ => self.failure(&error.to_string()),
        }
    }

    /// Handles a read without a complete frame: ends the replay, or lets it wait.
    fn check_incomplete(&self, length: usize) -> Result<(), ReplayEnd> {
        let reaches_stop = self.position + length as i64 == self.bounds.stop_position();
        match reaches_stop && !self.bounds.is_at_recording_stop() {
            true if self.bounds.is_moving() => Ok(()),
            // The last value of the client's counter is within the frame.
            true => Err(ReplayEnd::Complete),
            false => Err(self.unexpected_end()),
        }
    }

    fn set_padding(&mut self, length: usize) {
        self.padding_left = match length > self.longest_padding() {
            // The padding is appended in several parts. With an aligned length, each part has room for a header.
            true => aligned_length(length),
            false => length,
        };
    }

    /// Appends the rest of a padding frame. Returns whether the whole padding frame was appended.
    ///
    /// Padding that fills a gap of an unreliable stream can be longer than the longest frame of the
    /// publication. Such padding is appended as several frames.
    fn append_padding(&mut self) -> Result<bool, ReplayEnd> {
        while self.padding_left > 0 {
            let length = self.padding_left.min(self.longest_padding());
            debug_assert!(
                length >= HEADER_LENGTH,
                "the last {length} bytes of a padding have no room for a header"
            );
            let offered = self.publication.append_padding(length - HEADER_LENGTH);
            if !self.is_taken(offered)? {
                return Ok(false);
            }
            self.position += aligned_length(length) as i64;
            self.padding_left -= length;
        }
        Ok(true)
    }

    /// Returns the length of the longest padding frame that the publication accepts. It is a
    /// multiple of the alignment.
    fn longest_padding(&self) -> usize {
        HEADER_LENGTH + self.publication.max_message_length() / FRAME_ALIGNMENT * FRAME_ALIGNMENT
    }

    /// Converts the result of an offer. Returns whether the publication has accepted the offer.
    fn is_taken(&self, offered: Result<i64, OfferError>) -> Result<bool, ReplayEnd> {
        match offered {
            Ok(_) => Ok(true),
            Err(OfferError::Append(AppendError::BackPressured | AppendError::AdminAction)) => {
                Ok(false)
            }
            Err(OfferError::Append(
                AppendError::NotConnected | AppendError::Closed | AppendError::MaxPositionExceeded,
            )) => Err(ReplayEnd::Aborted),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    #[cold]
    fn pace_failure(&self, fault: &PaceFault) -> ReplayEnd {
        self.failure(&fault.to_string())
    }

    #[cold]
    fn run_failure(&self, fault: RunFault) -> ReplayEnd {
        match fault {
            RunFault::Frame(FrameFault::Nothing) => self.unexpected_end(),
            RunFault::Frame(FrameFault::Length { length, .. }) if length < 0 => {
                self.unexpected_end()
            }
            RunFault::Frame(fault) => self.failure(&format!(
                "unexpected frame at position={}, {fault}",
                self.position
            )),
            RunFault::Checksum { position } => {
                self.failure(&format!("CRC checksum mismatch at position={position}"))
            }
        }
    }

    #[cold]
    fn unexpected_end(&self) -> ReplayEnd {
        self.failure(&format!(
            "unexpected end of recording at position={}",
            self.position
        ))
    }

    #[cold]
    fn failure(&self, text: &str) -> ReplayEnd {
        ReplayEnd::Failed(self.error(ArchiveErrorCode::Generic, text))
    }

    #[cold]
    fn empty(&self) -> ReplayEnd {
        let text = "the recording is empty";
        ReplayEnd::Refused(self.error(ArchiveErrorCode::EmptyRecording, text))
    }

    #[cold]
    fn refusal(&self, text: &str) -> ReplayEnd {
        ReplayEnd::Refused(self.error(ArchiveErrorCode::Generic, text))
    }

    #[cold]
    fn error(&self, code: ArchiveErrorCode, text: &str) -> ArchiveError {
        let name = self
            .stream
            .segment_name(self.stream.segment_base(self.position));
        ArchiveError::new(
            code,
            format!(
                "{text}, recordingId={}, replaySessionId={}, segmentFile={name}",
                self.stream.recording_id(),
                self.replay_session_id
            ),
        )
    }
}

/// Why no frames were written into the publication's log.
enum FillFault {
    /// The segment file cannot be read.
    Read(io::Error),
    /// The bytes are not frames of the recording.
    Run(RunFault),
}

impl From<io::Error> for FillFault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<RunFault> for FillFault {
    fn from(fault: RunFault) -> Self {
        Self::Run(fault)
    }
}
