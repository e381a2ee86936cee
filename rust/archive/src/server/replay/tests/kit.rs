//! A recording in memory, and a publication that receives its replay.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aeron_agent::EpochClock;
use aeron_client::{BlockSpace, FillBlockError, FilledBlock, OfferError, SharedBuffer};
use aeron_memory::counters::{CountersManager, NewCounter};
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length, flags, frame_type};
use aeron_memory::log::position::Positions;
use aeron_memory::log::{ExclusiveAppender, LogBuffers, LogDescription, LogType};
use aeron_memory::words::Words;

use crate::SessionField;
use crate::catalog::{NULL_VALUE, RecordingDescriptor};
use crate::checksum::Checksum;
use crate::index::{ArrivalClock, IndexForm, IndexRecorder, SegmentIndex};
use crate::memory_storage::MemoryStorage;
use crate::objects::SegmentFetcher;
use crate::recorder::RecorderSession;
use crate::server::replay::bounds::{LimitCounter, ReplayBounds};
use crate::server::replay::pacing::RequestedPace;
use crate::server::replay::plan::{ReplayPlan, ReplayRange};
use crate::server::replay::publication::ReplayPublication;
use crate::server::replay::segment_reads::SegmentReads;
use crate::server::replay::session::{NewReplay, ReplayEnd, ReplayProgress, ReplaySession};
use crate::storage::SyncLevel;
use crate::stream::{RecordedStream, StreamDescription};

pub const RECORDING_ID: i64 = 3;
pub const TERM_LENGTH: i64 = 64 * 1024;
pub const SEGMENT_LENGTH: i64 = 2 * TERM_LENGTH;
pub const MTU_LENGTH: i32 = 1408;
pub const FILE_IO_MAX_LENGTH: i32 = 64 * 1024;
pub const INITIAL_TERM_ID: i32 = -5;
pub const STREAM_ID: i32 = 12;
pub const REPLAY_SESSION_ID: i64 = (1 << 32) | 77;
pub const CONNECT_DEADLINE_NS: i64 = 5_000_000_000;
const SESSION_ID: i32 = 11;
const PUBLICATION_SESSION_ID: i32 = 77;
const PUBLICATION_STREAM_ID: i32 = 88;

/// Returns the descriptor of a recording. With a stop position of −1, the recording is active.
pub fn descriptor(start_position: i64, stop_position: i64) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: RECORDING_ID,
        start_timestamp_ms: 1,
        stop_timestamp_ms: NULL_VALUE,
        start_position,
        stop_position,
        initial_term_id: INITIAL_TERM_ID,
        segment_length: SEGMENT_LENGTH as i32,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU_LENGTH,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc".into(),
        source_identity: "aeron:ipc".into(),
    }
}

/// A recording that is being written.
pub struct Recording {
    pub storage: MemoryStorage,
    start_position: i64,
    checksum: Option<Checksum>,
    recorder: RecorderSession<MemoryStorage>,
    /// The recorded bytes in the form in which a replay sends them. A padding frame consists of its
    /// header and zeros.
    replayed: Vec<u8>,
    messages: u8,
}

impl Recording {
    pub fn new(start_position: i64) -> Self {
        Self::with_checksum(start_position, None)
    }

    pub fn with_checksum(start_position: i64, checksum: Option<Checksum>) -> Self {
        let storage = MemoryStorage::new();
        let description = StreamDescription::from(&descriptor(start_position, NULL_VALUE));
        // The frames may have any session id: an extension changes the session id, and checksums replace it.
        let stream = RecordedStream::new(&description).unwrap().any_session();
        let recorder = RecorderSession::create(storage.clone(), stream, SyncLevel::None).unwrap();
        let recorder = recorder.with_checksum(checksum);
        Self {
            storage,
            start_position,
            recorder,
            checksum,
            replayed: Vec::new(),
            messages: 0,
        }
    }

    /// Creates a recording with an index.
    pub fn indexed(start_position: i64, clock: Arc<dyn EpochClock>) -> Self {
        let mut recording = Self::new(start_position);
        let index = SegmentIndex::create(
            recording.storage.clone(),
            *recording.recorder.stream(),
            IndexForm::Sparse,
            IndexRecorder {
                session_id: SESSION_ID,
                control_session_id: 0,
                correlation_id: 0,
                begin_position: start_position,
                boot_id: None,
                sync_level: SyncLevel::None,
                session_field: SessionField::SessionId,
            },
            ArrivalClock::new(clock),
        );
        recording.recorder = recording.recorder.with_index(Some(index.unwrap()));
        recording
    }

    /// Writes the last entry of the index.
    pub fn finish_index(&mut self) {
        self.recorder.finish_index().unwrap();
    }

    pub fn position(&self) -> i64 {
        self.recorder.recorded_position()
    }

    /// Records a data frame. If the frame does not fit into the term, padding fills the term first.
    pub fn message(&mut self, length: usize) {
        self.messages = self.messages.wrapping_add(1);
        let room = TERM_LENGTH - self.position() % TERM_LENGTH;
        if aligned_length(HEADER_LENGTH + length) as i64 > room {
            self.padding(room as usize);
        }
        let session_id = SESSION_ID + i32::from(self.messages);
        let payload = vec![self.messages; length];
        self.record(
            frame_type::DATA,
            HEADER_LENGTH + length,
            session_id,
            &payload,
        );
    }

    /// Records a padding frame.
    pub fn padding(&mut self, frame_length: usize) {
        self.record(frame_type::PADDING, frame_length, SESSION_ID, &[]);
    }

    /// Records messages until the position is reached.
    pub fn fill_to(&mut self, position: i64, length: usize) {
        while self.position() < position {
            self.message(length);
        }
    }

    fn record(&mut self, frame_type: u16, frame_length: usize, session_id: i32, payload: &[u8]) {
        let position = self.position();
        let mut frame = frame(position, frame_type, frame_length, session_id, STREAM_ID);
        frame.extend(payload);
        frame.resize(frame.len().next_multiple_of(HEADER_LENGTH), 0);
        self.recorder.append(&frame, |_| {}).unwrap();
        self.recorder.publish().unwrap();
        let (session_id, stream_id) = (PUBLICATION_SESSION_ID, PUBLICATION_STREAM_ID);
        let header = self::frame(position, frame_type, frame_length, session_id, stream_id);
        frame[..HEADER_LENGTH].copy_from_slice(&header);
        frame.resize(aligned_length(frame_length), 0);
        self.replayed.extend(frame);
    }

    /// Returns the bytes that a replay of the range must send.
    pub fn replayed(&self, from: i64, to: i64) -> &[u8] {
        let at = |position: i64| (position - self.start_position) as usize;
        &self.replayed[at(from)..at(to)]
    }

    /// Returns a replay of the recording as if it had stopped at its current position.
    pub fn replay_stopped(&self, range: ReplayRange) -> Replay {
        let stop_position = self.position();
        self.replay(range, Some(stop_position), Vec::new())
    }

    /// Returns a replay bounded by counters.
    pub fn replay(
        &self,
        range: ReplayRange,
        stop_position: Option<i64>,
        counters: Vec<LimitCounter>,
    ) -> Replay {
        self.replay_at(RequestedPace::default(), range, stop_position, counters)
    }

    /// Returns a replay bounded by counters, with a pace.
    pub fn replay_at(
        &self,
        pace: RequestedPace,
        range: ReplayRange,
        stop_position: Option<i64>,
        counters: Vec<LimitCounter>,
    ) -> Replay {
        let bound = counters.iter().map(LimitCounter::get).min();
        let descriptor = descriptor(self.start_position, stop_position.unwrap_or(NULL_VALUE));
        let plan = ReplayPlan::new(&range, &descriptor, bound, FILE_IO_MAX_LENGTH).unwrap();
        let bounds = ReplayBounds::new(&plan, stop_position, counters);
        Replay::new(self, &descriptor, plan, bounds, pace)
    }
}

/// Returns the header of a frame.
fn frame(
    position: i64,
    frame_type: u16,
    frame_length: usize,
    session_id: i32,
    stream_id: i32,
) -> Vec<u8> {
    let positions = Positions::new(TERM_LENGTH as usize, INITIAL_TERM_ID).unwrap();
    let mut frame = Vec::with_capacity(HEADER_LENGTH);
    frame.extend((frame_length as i32).to_le_bytes());
    frame.extend([0, flags::UNFRAGMENTED]);
    frame.extend(frame_type.to_le_bytes());
    frame.extend((positions.term_offset(position) as i32).to_le_bytes());
    frame.extend(session_id.to_le_bytes());
    frame.extend(stream_id.to_le_bytes());
    frame.extend(positions.term_id(position).to_le_bytes());
    // The publication does not set the reserved value of a padding frame, so it is 0.
    let reserved_value = if frame_type == frame_type::DATA {
        position
    } else {
        0
    };
    frame.extend(reserved_value.to_le_bytes());
    frame
}

/// A replay, its publication, and the reader of its segment files.
pub struct Replay {
    pub publication: TestPublication,
    pub now_ns: i64,
    pub position: Arc<AtomicI64>,
    session: ReplaySession<MemoryStorage, TestPublication>,
    local_start: Arc<AtomicI64>,
    reads: SegmentReads<MemoryStorage>,
}

impl Replay {
    fn new(
        recording: &Recording,
        descriptor: &RecordingDescriptor,
        plan: ReplayPlan,
        bounds: ReplayBounds,
        pace: RequestedPace,
    ) -> Self {
        let publication = TestPublication::new(plan.position);
        let position = Arc::new(AtomicI64::new(plan.position));
        let local_start = Arc::new(AtomicI64::new(descriptor.start_position));
        let session = ReplaySession::new(NewReplay {
            replay_session_id: REPLAY_SESSION_ID,
            stream: RecordedStream::new(&StreamDescription::from(descriptor)).unwrap(),
            local_start: Arc::clone(&local_start),
            plan,
            bounds,
            pace,
            publication: publication.clone(),
            position: Arc::clone(&position),
            checksum: recording.checksum,
            connect_deadline_ns: CONNECT_DEADLINE_NS,
        });
        Self {
            publication,
            now_ns: 0,
            position,
            session,
            local_start,
            reads: SegmentReads::new(recording.storage.clone()),
        }
    }

    pub fn do_work(&mut self) -> ReplayProgress {
        self.session.do_work(&mut self.reads, self.now_ns)
    }

    /// Makes the replay fetch the segments before `local_start` that have no file.
    pub fn fetch_by(&mut self, local_start: i64, fetcher: impl SegmentFetcher + 'static) {
        self.move_local_start(local_start);
        self.reads.fetch_by(Box::new(fetcher));
    }

    /// Tells the replay that the segments before `local_start` may be without files.
    pub fn move_local_start(&self, local_start: i64) {
        self.local_start.store(local_start, Ordering::Release);
    }

    /// Starts the replay.
    pub fn start(&mut self) {
        assert_eq!(self.do_work(), ReplayProgress::Started);
        assert_eq!(self.do_work(), ReplayProgress::Worked(1));
    }

    /// Runs duty cycles until the replay makes no more progress. Returns the end, if the replay has
    /// ended.
    pub fn run(&mut self) -> Option<ReplayEnd> {
        loop {
            let before = self.publication.position();
            match self.do_work() {
                ReplayProgress::Ended(end) => return Some(end),
                ReplayProgress::Worked(0) if before == self.publication.position() => {
                    return None;
                }
                ReplayProgress::Worked(_) | ReplayProgress::Started => {}
            }
        }
    }

    /// Returns the position that the session writes for the conductor.
    pub fn shown_position(&self) -> i64 {
        self.position.load(Ordering::Acquire)
    }
}

/// A publication in heap memory. The test sets its position limit. Clones share one publication.
#[derive(Clone)]
pub struct TestPublication(Rc<RefCell<TestStream>>);

struct TestStream {
    appender: ExclusiveAppender<SharedBuffer>,
    limit: i64,
    is_connected: bool,
    received: Vec<u8>,
    blocks: usize,
}

impl TestPublication {
    fn new(position: i64) -> Self {
        let description = LogDescription::new(
            LogType::ExclusivePublication,
            PUBLICATION_SESSION_ID,
            PUBLICATION_STREAM_ID,
            INITIAL_TERM_ID,
        );
        let length = log_length(TERM_LENGTH, description.page_size.into()).unwrap();
        let log = LogBuffers::create(&SharedBuffer::heap(length), &description, position).unwrap();
        let publication = Self(Rc::new(RefCell::new(TestStream {
            appender: ExclusiveAppender::new(log).unwrap(),
            limit: i64::MAX,
            is_connected: false,
            received: Vec::new(),
            blocks: 0,
        })));
        publication.set_connected(true);
        publication
    }

    pub fn set_connected(&self, is_connected: bool) {
        let mut stream = self.0.borrow_mut();
        stream.is_connected = is_connected;
        stream
            .appender
            .log()
            .metadata()
            .set_is_connected(is_connected);
    }

    pub fn set_limit(&self, limit: i64) {
        self.0.borrow_mut().limit = limit;
    }

    pub fn position(&self) -> i64 {
        self.0.borrow().appender.position()
    }

    pub fn received(&self) -> Vec<u8> {
        self.0.borrow().received.clone()
    }

    pub fn blocks(&self) -> usize {
        self.0.borrow().blocks
    }
}

impl TestStream {
    /// Adds the last `length` appended bytes to the received bytes. Copies the first `copied` of
    /// these bytes and adds zeros for the others. Cleans the term like a driver.
    fn receive(&mut self, length: usize, copied: usize, end: i64) {
        let begin = end - length as i64;
        let log = self.appender.log();
        let mut bytes = vec![0; copied];
        let offset = log.positions().term_offset(begin);
        log.term_at(begin).copy_out(offset, &mut bytes);
        log.term_at(begin).fill_zero(offset, length);
        bytes.resize(length, 0);
        self.received.extend(bytes);
    }
}

impl ReplayPublication for TestPublication {
    fn channel(&self) -> &str {
        "aeron:ipc"
    }

    fn session_id(&self) -> i32 {
        PUBLICATION_SESSION_ID
    }

    fn stream_id(&self) -> i32 {
        PUBLICATION_STREAM_ID
    }

    fn max_message_length(&self) -> usize {
        let stream = self.0.borrow();
        stream.appender.log().framing().max_message_length()
    }

    fn is_connected(&self) -> bool {
        self.0.borrow().is_connected
    }

    fn fill_block<E>(
        &mut self,
        max_length: usize,
        fill: impl FnOnce(&BlockSpace<'_, SharedBuffer>) -> Result<FilledBlock, E>,
    ) -> Result<i64, FillBlockError<OfferError, E>> {
        let stream = &mut *self.0.borrow_mut();
        let begin = stream.appender.position();
        let end = stream
            .appender
            .fill_block(stream.limit, max_length, fill)
            .map_err(FillBlockError::map_append)?;
        if end > begin {
            let length = (end - begin) as usize;
            stream.blocks += 1;
            stream.receive(length, length, end);
        }
        Ok(end)
    }

    fn append_padding(&mut self, length: usize) -> Result<i64, OfferError> {
        let stream = &mut *self.0.borrow_mut();
        let end = stream.appender.append_padding(stream.limit, length)?;
        stream.receive(aligned_length(HEADER_LENGTH + length), HEADER_LENGTH, end);
        Ok(end)
    }
}

/// Counters without a driver.
pub struct Counters {
    manager: CountersManager<SharedBuffer>,
    registrations: i64,
}

impl Counters {
    pub fn new() -> Self {
        let (metadata, values) = (SharedBuffer::heap(4 * 4096), SharedBuffer::heap(4096));
        Self {
            manager: CountersManager::new(metadata, values, 1000).unwrap(),
            registrations: 0,
        }
    }

    /// Adds a counter with this value. Returns its id.
    pub fn add(&mut self, value: i64, now_ms: i64) -> i32 {
        self.registrations += 1;
        let new = NewCounter {
            type_id: 100,
            key: &[],
            label: &[],
            registration_id: self.registrations,
            owner_id: -1,
            reference_id: 0,
            value,
        };
        self.manager.allocate(&new, now_ms).unwrap().id()
    }

    pub fn set(&self, id: i32, value: i64) {
        self.manager.reader().counter(id).unwrap().set(value);
    }

    pub fn free(&mut self, id: i32, now_ms: i64) {
        self.manager.free(id, now_ms).unwrap();
    }

    pub fn find(&self, id: i32) -> Option<LimitCounter> {
        LimitCounter::find(self.manager.reader(), id)
    }
}
