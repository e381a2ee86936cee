//! [`ReplaySession`]: reads a recording and publishes its frames.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_client::{AppendError, ExclusivePublication, OfferError};
use aeron_memory::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length};
use aeron_protocol::archive::ArchiveErrorCode;

use super::bounds::ReplayBounds;
use super::frame_run::{FrameRewrite, ReplayIds, RunFault};
use super::plan::ReplayPlan;
use super::publication::ReplayPublication;
use super::segment_reads::SegmentReads;
use crate::checksum::Checksum;
use crate::frame::FrameFault;
use crate::server::ArchiveError;
use crate::storage::Storage;
use crate::stream::RecordedStream;
use crate::window::Segment;

/// A replay whose publication the driver has added.
pub(in crate::server) struct NewReplay<P = ExclusivePublication> {
    /// Id of the replay.
    pub replay_session_id: i64,
    /// The recording.
    pub stream: RecordedStream,
    /// The part of the recording that is sent.
    pub plan: ReplayPlan,
    /// Bounds of that part, which may move.
    pub bounds: ReplayBounds,
    /// The publication, at the first position of the plan.
    pub publication: P,
    /// Shows how far the replay is.
    pub position: Arc<AtomicI64>,
    /// Checksum of the frames, if it is verified.
    pub checksum: Option<Checksum>,
    /// Time until which the first segment must exist and a subscriber be there.
    pub connect_deadline_ns: i64,
}

/// A recording on its way to subscribers.
pub(super) struct ReplaySession<S: Storage, P = ExclusivePublication> {
    replay_session_id: i64,
    stream: RecordedStream,
    publication: P,
    rewrite: FrameRewrite,
    bounds: ReplayBounds,
    /// Whether the bytes at the first position are the header of a frame that is there already.
    begins_within: bool,
    position: i64,
    shown_position: Arc<AtomicI64>,
    /// Bytes of a frame of padding that the publication has not taken yet.
    padding_left: usize,
    buffer_length: usize,
    segment: Option<Segment<S::File>>,
    state: State,
    connect_deadline_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for the first segment file.
    Opening,
    /// Waits for a subscriber.
    Connecting,
    Replaying,
}

/// The outcome of one duty cycle of a replay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplayProgress {
    /// The first frame is there: the client is told that the replay has started.
    Started,
    /// Bytes of stream that were sent, or 1 for another step.
    Worked(usize),
    /// The replay is over.
    Ended(ReplayEnd),
}

/// Why a replay is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum ReplayEnd {
    /// All was sent: the stream ends where it is.
    Complete,
    /// Somebody stopped the replay, or nobody receives it any more: the publication is revoked.
    Aborted,
    /// The recording cannot be replayed further: the publication is revoked, and the client told.
    Failed(ArchiveError),
}

impl<S: Storage, P: ReplayPublication> ReplaySession<S, P> {
    /// Begins a replay. Nothing is opened yet.
    pub fn new(new: NewReplay<P>) -> Self {
        let NewReplay {
            replay_session_id,
            stream,
            plan,
            bounds,
            publication,
            position,
            checksum,
            connect_deadline_ns,
        } = new;
        // Checksums, and sessions before the last extension, are in the field of the session id.
        let stream = stream.any_session();
        Self {
            replay_session_id,
            rewrite: FrameRewrite {
                rules: stream.rules(),
                checksum,
                ids: ReplayIds::new(publication.session_id(), publication.stream_id()),
            },
            publication,
            bounds,
            begins_within: plan.position > stream.start_position()
                && plan.position != plan.stop_position,
            position: plan.position,
            shown_position: position,
            padding_left: 0,
            buffer_length: plan.buffer_length,
            segment: None,
            state: State::Opening,
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

    /// Bytes of buffer that [`do_work`](Self::do_work) needs.
    pub fn buffer_length(&self) -> usize {
        self.buffer_length
    }

    /// One duty cycle: at most one read of a segment file, and all of its frames that the publication takes. Never waits.
    pub fn do_work(
        &mut self,
        reads: &mut SegmentReads<S>,
        buffer: &mut [u8],
        now_ns: i64,
    ) -> ReplayProgress {
        let outcome = match self.state {
            State::Opening => self.open(reads, now_ns),
            State::Connecting => self.connect(now_ns),
            State::Replaying => self.replay(reads, buffer),
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if now_ns < self.connect_deadline_ns {
                    return Ok(ReplayProgress::Worked(0));
                }
                return Err(self.failure("recording segment file not created"));
            }
            Err(error) => return Err(self.failure(&error.to_string())),
        }
        if self.begins_within {
            self.check_first_frame(reads)?;
        }
        self.state = State::Connecting;
        Ok(ReplayProgress::Started)
    }

    fn check_first_frame(&mut self, reads: &mut SegmentReads<S>) -> Result<(), ReplayEnd> {
        let mut header = [0; HEADER_LENGTH];
        self.read(reads, &mut header)?;
        match self.stream.rules().check(self.position, &header) {
            // Of a frame of data only the header was read.
            Ok(_) | Err(FrameFault::Incomplete { .. }) => Ok(()),
            Err(fault) => Err(self.failure_with_code(
                ArchiveErrorCode::InvalidPosition,
                &format!(
                    "replayPosition={} does not point to a valid frame, {fault}",
                    self.position
                ),
            )),
        }
    }

    fn connect(&mut self, now_ns: i64) -> Result<ReplayProgress, ReplayEnd> {
        if self.publication.is_connected() {
            self.state = State::Replaying;
            return Ok(ReplayProgress::Worked(1));
        }
        if now_ns < self.connect_deadline_ns {
            return Ok(ReplayProgress::Worked(0));
        }
        Err(self.failure(&format!(
            "no connection established for replayChannel={}, replayStreamId={}",
            self.publication.channel(),
            self.publication.stream_id()
        )))
    }

    fn replay(
        &mut self,
        reads: &mut SegmentReads<S>,
        buffer: &mut [u8],
    ) -> Result<ReplayProgress, ReplayEnd> {
        if !self.publication.is_connected() {
            return Err(ReplayEnd::Aborted);
        }
        self.bounds.update();
        let begin = self.position;
        if self.append_padding()? {
            self.check_complete()?;
            self.send_next(reads, buffer)?;
        }
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

    /// Reads the next bytes and sends their frames, if the publication takes any.
    fn send_next(
        &mut self,
        reads: &mut SegmentReads<S>,
        buffer: &mut [u8],
    ) -> Result<(), ReplayEnd> {
        let length = self.readable_length(buffer.len());
        let limit = self.publication.position_limit();
        if length == 0 || limit.map_err(|_| ReplayEnd::Aborted)? <= self.position {
            return Ok(());
        }
        let begin = self.position;
        let bytes = &mut buffer[..length];
        self.read(reads, bytes)?;
        match self.send(bytes)? {
            FramesSent::All if self.position == begin => self.check_incomplete(length),
            FramesSent::All | FramesSent::Part => Ok(()),
        }
    }

    /// Bytes that can be read at once: up to the stop position, and within the term.
    fn readable_length(&self, buffer_length: usize) -> usize {
        let positions = self.stream.positions();
        let in_term = positions.term_length() - positions.term_offset(self.position);
        let to_stop = self.bounds.stop_position().saturating_sub(self.position);
        let to_stop = usize::try_from(to_stop).unwrap_or(0);
        to_stop
            .min(in_term)
            .min(self.buffer_length)
            .min(buffer_length)
    }

    fn read(&mut self, reads: &mut SegmentReads<S>, bytes: &mut [u8]) -> Result<(), ReplayEnd> {
        let read = reads.read(&mut self.segment, &self.stream, self.position, bytes);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.failure("recording segment not found"),
            io::ErrorKind::UnexpectedEof => self.unexpected_end(),
            _ => self.failure(&error.to_string()),
        })
    }

    /// Sends the frames of `bytes`, which stand at the position.
    fn send(&mut self, mut bytes: &mut [u8]) -> Result<FramesSent, ReplayEnd> {
        let (rewrite, limit) = (self.rewrite, self.bounds.limit_position());
        loop {
            let run = rewrite
                .take_run(self.position, limit, bytes)
                .map_err(|fault| self.run_failure(fault))?;
            if run.is_empty() {
                return Ok(FramesSent::All);
            }
            let (block, rest) = bytes.split_at_mut(run.data_length);
            if !block.is_empty() {
                let offered = self.publication.offer_block(block);
                if !self.is_taken(offered)? {
                    return Ok(FramesSent::Part);
                }
                self.position += block.len() as i64;
            }
            self.set_padding(run.padding_length);
            if !self.append_padding()? {
                return Ok(FramesSent::Part);
            }
            let padding = aligned_length(run.padding_length).min(rest.len());
            bytes = &mut rest[padding..];
        }
    }

    /// Decides about a read that brought no complete frame.
    fn check_incomplete(&self, length: usize) -> Result<(), ReplayEnd> {
        let reaches_stop = self.position + length as i64 == self.bounds.stop_position();
        match reaches_stop && !self.bounds.is_at_recording_stop() {
            true if self.bounds.is_moving() => Ok(()),
            // A counter of the client ended within the frame.
            true => Err(ReplayEnd::Complete),
            false => Err(self.unexpected_end()),
        }
    }

    fn set_padding(&mut self, length: usize) {
        self.padding_left = match length > self.longest_padding() {
            // What is left after each part must have room for a header.
            true => aligned_length(length),
            false => length,
        };
    }

    /// Appends what is left of a frame of padding. Returns whether nothing is left.
    ///
    /// Padding that fills a gap of an unreliable stream can be longer than a publication appends at once; it becomes several frames.
    fn append_padding(&mut self) -> Result<bool, ReplayEnd> {
        while self.padding_left > 0 {
            let length = self.padding_left.min(self.longest_padding());
            let offered = self.publication.append_padding(length - HEADER_LENGTH);
            if !self.is_taken(offered)? {
                return Ok(false);
            }
            self.position += aligned_length(length) as i64;
            self.padding_left -= length;
        }
        Ok(true)
    }

    /// Longest frame of padding that the publication takes, a multiple of the alignment.
    fn longest_padding(&self) -> usize {
        HEADER_LENGTH + self.publication.max_message_length() / FRAME_ALIGNMENT * FRAME_ALIGNMENT
    }

    /// Whether the publication took what it was offered.
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
        self.failure_with_code(ArchiveErrorCode::Generic, text)
    }

    #[cold]
    fn failure_with_code(&self, code: ArchiveErrorCode, text: &str) -> ReplayEnd {
        let name = self
            .stream
            .segment_name(self.stream.segment_base(self.position));
        ReplayEnd::Failed(ArchiveError::new(
            code,
            format!(
                "{text}, recordingId={}, replaySessionId={}, segmentFile={name}",
                self.stream.recording_id(),
                self.replay_session_id
            ),
        ))
    }
}

/// How much of what was read was sent.
enum FramesSent {
    /// All frames that are complete.
    All,
    /// The publication takes no more now.
    Part,
}
