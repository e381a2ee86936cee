//! [`RecordedPublisher`]: a publisher that keeps each message until an archive has recorded it.
//!
//! A recorded publisher is a state machine that its owner calls. Three parts make progress in each
//! step: the [`connection`] to driver and archive, the [`set_up`] of the recording, and the
//! [`stream`] that the archive records. The messages are in [`kept`].
//!
//! An exclusive publication appends the same messages at the same positions each time ([`geometry`]). So the position
//! of a message does not change when the message is sent again after a loss. If the recording ends between the
//! fragments of a message, the next publication begins with the frames of the missing fragments. The recording is
//! never truncated, and its readers see only whole messages.

mod connection;
mod context;
mod decision;
mod error;
mod geometry;
mod kept;
mod listener;
mod recorded_position;
mod set_up;
mod status;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aeron_agent::NanoClock;
use aeron_client::{Aeron, AppendError, Appended, MessageBatch, PendingOperation};

use self::connection::{Connection, ConnectionEvent};
use self::context::PublisherSettings;
use self::decision::{KnownRecording, Situation};
use self::geometry::MessagePlace;
use self::kept::{KeptMessages, MESSAGE_OVERHEAD};
use self::listener::NoPublisherListener;
use self::recorded_position::PositionNews;
use self::set_up::{RecordingSetUp, RecordingSetUpEnd, RecordingSetUpTurn};
use self::stream::ActiveStream;
use super::backoff::Backoff;
use super::error::Result;

pub use self::connection::ClientConnector;
pub use self::context::{
    DEFAULT_PUBLISHER_BUFFER_LENGTH, DEFAULT_TAKEOVER_TIMEOUT_NS, MIN_PUBLISHER_BUFFER_LENGTH,
    RecordedPublisherContext,
};
pub use self::error::{RecordedOfferError, RecordedPublisherError};
pub use self::listener::RecordedPublisherListener;
pub use self::status::{RecordedPublisherStatus, Unrecorded};

/// Interval of the steps that [`RecordedPublisher::offer`] takes, in nanoseconds. A step at each
/// call would cost more than the message.
const STEP_INTERVAL_NS: i64 = 1_000_000;

/// A publisher that keeps each message until an archive has recorded it.
///
/// After the loss of the archive, of the driver, or of the recording, the publisher connects again. It extends the
/// recording at its stop position with a new publication, and sends the messages after this position again. Each
/// message is in the recording once and in order, at the position that [`offer`](Self::offer) has returned.
///
/// The owner calls the publisher repeatedly. No call blocks, and the publisher has no thread. It
/// makes progress only in calls: call [`poll`](Self::poll) if there is nothing to offer. While the
/// buffer has room, messages are accepted, even while the archive or the driver is lost.
///
/// Live subscribers of the stream may receive messages again after a loss, in another image and at the same positions.
///
/// ```no_run
/// use aeron_archive::client::{ArchiveClientContext, RecordedPublisher, RecordedPublisherContext};
/// use aeron_client::Context;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let archive = ArchiveClientContext::new("aeron:ipc", "aeron:ipc");
/// let context = RecordedPublisherContext::new(archive, "aeron:ipc", 1001);
/// let mut publisher = RecordedPublisher::connect(Context::from_env, context)?;
/// while publisher.offer(b"hello").is_err() {
///     std::thread::yield_now();
/// }
/// while publisher.status().unrecorded().messages > 0 {
///     publisher.poll();
/// }
/// # Ok(())
/// # }
/// ```
pub struct RecordedPublisher {
    settings: PublisherSettings,
    connection: Connection,
    state: PublisherState,
    stream: Option<ActiveStream>,
    kept: KeptMessages,
    recording: Option<KnownRecording>,
    backoff: Backoff,
    takeover_deadline_ns: Option<i64>,
    last_step_ns: i64,
    /// Number of bytes of the buffer that the last refused message needs; 0 if no message was
    /// refused.
    needed_room: usize,
    status: RecordedPublisherStatus,
    listener: Box<dyn RecordedPublisherListener>,
    clock: Arc<dyn NanoClock>,
}

/// The state of the recording.
enum PublisherState {
    /// There is no session with the archive. The last publication may still be recorded.
    AwaitArchive,
    /// The next set-up begins at this time.
    Pause(i64),
    SetUp(RecordingSetUp),
    /// The archive records the stream.
    Recording,
    Failed,
}

/// Making and closing.
impl RecordedPublisher {
    /// Creates a publisher with an Aeron client of its own, which reconnects after the loss of its driver.
    /// `make_context` is called for each attempt to connect until the first one succeeds, and again if the client is
    /// closed for good. The first attempt is made at the first call of another method.
    ///
    /// # Errors
    /// [`ArchiveClientError::Configuration`](super::ArchiveClientError::Configuration),
    /// [`ArchiveClientError::InvalidChannel`](super::ArchiveClientError::InvalidChannel).
    pub fn connect(
        mut make_context: impl FnMut() -> aeron_client::Result<aeron_client::Context> + Send + 'static,
        context: RecordedPublisherContext,
    ) -> Result<Self> {
        let mut pending: Option<PendingOperation<Aeron>> = None;
        let connector = move || {
            let operation = match &mut pending {
                Some(operation) => operation,
                None => {
                    let mut context = make_context()?;
                    context.reconnect.get_or_insert_default();
                    if context.client_name.is_empty() {
                        "RecordedPublisher".clone_into(&mut context.client_name);
                    }
                    pending.insert(Aeron::async_connect(context)?)
                }
            };
            let outcome = operation.poll();
            if !matches!(outcome, Ok(None)) {
                pending = None;
            }
            outcome
        };
        Self::new(Box::new(connector), context)
    }

    /// Creates a publisher like [`connect`](Self::connect), with the clients that `connector`
    /// returns. The publisher closes these clients.
    ///
    /// # Errors
    /// The same errors as [`connect`](Self::connect).
    pub fn new(connector: ClientConnector, context: RecordedPublisherContext) -> Result<Self> {
        let settings = context.conclude()?;
        Ok(Self {
            connection: Connection::new(connector, settings.archive.clone()),
            clock: Arc::clone(&settings.archive.nano_clock),
            state: PublisherState::AwaitArchive,
            stream: None,
            kept: KeptMessages::new(context.buffer_length),
            recording: None,
            backoff: Backoff::new(),
            takeover_deadline_ns: None,
            last_step_ns: i64::MIN,
            needed_room: 0,
            status: RecordedPublisherStatus::new(),
            listener: context
                .listener
                .unwrap_or_else(|| Box::new(NoPublisherListener)),
            settings,
        })
    }

    /// Returns the status: the state, the positions and the metrics.
    #[must_use]
    pub fn status(&self) -> RecordedPublisherStatus {
        self.status.clone()
    }

    /// Returns copies of the messages that are not known to be recorded, in order. After a failure
    /// or after closing, the application can save these messages.
    #[must_use]
    pub fn unrecorded(&self) -> Vec<Vec<u8>> {
        self.kept.to_vec()
    }

    /// Closes the publication, the session with the archive and the client at once, and returns the
    /// number of messages and bytes that are not known to be recorded. If all messages must be
    /// recorded, first call [`poll`](Self::poll) until the status has no unrecorded messages.
    pub fn close(&mut self) -> Unrecorded {
        if !self.status.is_closed() {
            self.status.set_closed();
            self.drop_stream();
            self.connection.close();
        }
        self.status.unrecorded()
    }
}

/// Sending.
impl RecordedPublisher {
    /// Accepts one message, and sends it if possible. Returns the stream position after the message.
    ///
    /// # Errors
    /// [`RecordedOfferError::Append`] with the reason why the message was not accepted.
    /// [`RecordedOfferError::Failed`] if the publisher has failed.
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> std::result::Result<i64, RecordedOfferError> {
        self.step_if_due();
        self.check_open()?;
        let place = self.place(message.len())?;
        self.make_room(message.len())?;
        let is_sent = self.send_now(message, place.end)?;
        self.kept.push(message, place, is_sent);
        if !is_sent {
            self.send_kept();
        }
        self.status.show(&self.kept);
        Ok(place.end)
    }

    /// Accepts messages from index `first` on until the buffer is full, and sends as many as
    /// possible.
    ///
    /// Returns the number of accepted messages, and the stream position after them. For the other
    /// messages, call this function again with a higher `first`.
    ///
    /// # Errors
    /// The same errors as [`offer`](Self::offer). Then no message was accepted.
    pub fn offer_batch<M: MessageBatch + ?Sized>(
        &mut self,
        messages: &M,
        first: usize,
    ) -> std::result::Result<Appended, RecordedOfferError> {
        self.step_if_due();
        self.check_open()?;
        if first >= messages.count() {
            let position = self.kept.end_position();
            return Ok(Appended {
                messages: 0,
                position,
            });
        }
        let length = messages.message(first).len();
        self.place(length)?;
        self.make_room(length)?;
        let end = first + self.count_with_room(messages, first);
        let sent = self.send_batch_now(messages, first..end)?;
        debug_assert!(
            first + sent <= end,
            "{sent} messages were sent, but only messages {first} to {end} have room"
        );
        for index in first..end {
            let message = messages.message(index);
            // `count_with_room` has checked the places of all these messages.
            let place = self.place(message.len())?;
            self.kept.push(message, place, index < first + sent);
        }
        if first + sent < end {
            self.send_kept();
        }
        self.status.show(&self.kept);
        Ok(Appended {
            messages: end - first,
            position: self.kept.end_position(),
        })
    }

    /// Returns whether the recording is found or started, and the buffer has room for the last refused
    /// message. Also returns `true` if the publisher has failed or is closed, because the next offer
    /// then returns an error at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self.check_open() {
            Ok(()) => self.place(0).is_ok() && self.needed_room <= self.kept.room(),
            Err(_) => true,
        }
    }

    /// Takes one step: connects, sets up the recording, drops recorded messages, and sends kept
    /// messages. Returns a work count, which is 0 if there was nothing to do.
    pub fn poll(&mut self) -> usize {
        self.step()
    }

    fn check_open(&self) -> std::result::Result<(), RecordedOfferError> {
        if self.status.is_closed() {
            return Err(AppendError::Closed.into());
        }
        match self.status.failure() {
            Some(failure) => Err(Box::new(failure.clone()).into()),
            None => Ok(()),
        }
    }

    /// Returns the place of the next message.
    #[inline]
    fn place(&self, length: usize) -> std::result::Result<MessagePlace, RecordedOfferError> {
        let known = self.recording.as_ref().filter(|known| known.is_ours);
        let geometry = known.ok_or(AppendError::NotConnected)?.geometry;
        geometry
            .place(self.kept.end_position(), length)
            .ok_or_else(|| {
                let max = geometry.max_message_length();
                match length > max {
                    true => AppendError::TooLong { length, max }.into(),
                    false => AppendError::MaxPositionExceeded.into(),
                }
            })
    }

    /// Checks that the buffer has room for a message. If it has no room, takes a step, which may
    /// drop recorded messages.
    #[inline]
    fn make_room(&mut self, length: usize) -> std::result::Result<(), RecordedOfferError> {
        let needed = length + MESSAGE_OVERHEAD;
        if needed <= self.kept.room() {
            self.needed_room = 0;
            return Ok(());
        }
        let max = self.kept.max_message_length();
        if length > max {
            return Err(AppendError::TooLong { length, max }.into());
        }
        self.step();
        self.check_open()?;
        if needed <= self.kept.room() {
            self.needed_room = 0;
            return Ok(());
        }
        self.needed_room = needed;
        Err(AppendError::BackPressured.into())
    }

    /// Returns the number of messages from index `first` on that fit into the buffer and the
    /// stream.
    fn count_with_room<M: MessageBatch + ?Sized>(&self, messages: &M, first: usize) -> usize {
        let Some(known) = &self.recording else {
            return 0;
        };
        let mut room = self.kept.room();
        let mut position = self.kept.end_position();
        let mut fits = |index: &usize| {
            let length = messages.message(*index).len();
            let needed = length + MESSAGE_OVERHEAD;
            let Some(place) = known
                .geometry
                .place(position, length)
                .filter(|_| needed <= room)
            else {
                return false;
            };
            room -= needed;
            position = place.end;
            true
        };
        (first..messages.count()).take_while(&mut fits).count()
    }

    /// Sends a message directly if all earlier messages were sent. Returns whether the message was
    /// sent.
    #[inline]
    fn send_now(
        &mut self,
        message: &[u8],
        end: i64,
    ) -> std::result::Result<bool, RecordedOfferError> {
        let Some(stream) = self.stream.as_ref().filter(|_| self.kept.are_all_sent()) else {
            return Ok(false);
        };
        match stream.send(message, end) {
            Ok(is_sent) => Ok(is_sent),
            Err(error) => Err(self.fail_offer(error)),
        }
    }

    /// Sends messages directly if all earlier messages were sent. Returns the number of sent
    /// messages.
    fn send_batch_now<M: MessageBatch + ?Sized>(
        &mut self,
        messages: &M,
        range: std::ops::Range<usize>,
    ) -> std::result::Result<usize, RecordedOfferError> {
        let Some(stream) = self.stream.as_ref().filter(|_| self.kept.are_all_sent()) else {
            return Ok(0);
        };
        let batch = BatchPart {
            messages,
            end: range.end,
        };
        let Some((count, position)) = stream.send_batch(&batch, range.start) else {
            return Ok(0);
        };
        let mut expected = self.kept.end_position();
        for index in range.start..range.start + count {
            let length = messages.message(index).len();
            let known = self.recording.as_ref();
            let place = known.and_then(|known| known.geometry.place(expected, length));
            expected = place.map_or(expected, |place| place.end);
        }
        if position != expected {
            return Err(
                self.fail_offer(RecordedPublisherError::UnexpectedPosition { position, expected })
            );
        }
        Ok(count)
    }

    fn fail_offer(&mut self, error: RecordedPublisherError) -> RecordedOfferError {
        self.fail(error.clone());
        Box::new(error).into()
    }

    fn send_kept(&mut self) -> usize {
        let Some(stream) = &mut self.stream else {
            return 0;
        };
        match stream.send_kept(&mut self.kept, &self.status) {
            Ok(count) => count,
            Err(error) => {
                self.fail(error);
                0
            }
        }
    }
}

/// The steps.
impl RecordedPublisher {
    #[inline]
    fn step_if_due(&mut self) {
        let now_ns = self.clock.nano_time();
        if now_ns.wrapping_sub(self.last_step_ns) >= STEP_INTERVAL_NS
            || self.last_step_ns == i64::MIN
        {
            self.step();
        }
    }

    fn step(&mut self) -> usize {
        if self.status.is_closed() || matches!(self.state, PublisherState::Failed) {
            return 0;
        }
        let now_ns = self.clock.nano_time();
        self.last_step_ns = now_ns;
        let mut work = 0;
        if let Some(event) = self.connection.poll(now_ns, &mut work) {
            work += 1;
            self.on_connection_event(event);
        }
        work += self.set_up(now_ns);
        work += self.watch(now_ns);
        work += self.send_kept();
        if self.recording.as_ref().is_some_and(|known| known.is_ours) {
            self.status.show(&self.kept);
        }
        work
    }

    fn on_connection_event(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::ClientLost(error) => {
                self.drop_stream();
                self.state = PublisherState::AwaitArchive;
                self.listener.on_error(&error);
            }
            ConnectionEvent::SessionOpened => {
                self.state = PublisherState::SetUp(RecordingSetUp::Begin)
            }
            ConnectionEvent::SessionLost => {
                if let Some(stream) = &mut self.stream {
                    stream.recorded.forget_request();
                }
                self.state = PublisherState::AwaitArchive;
            }
            ConnectionEvent::AttemptFailed(error) => self.listener.on_error(&error),
            ConnectionEvent::Unusable(error) => self.fail(error),
        }
    }

    /// Runs one step of the set-up.
    fn set_up(&mut self, now_ns: i64) -> usize {
        let set_up = match &self.state {
            PublisherState::Pause(until_ns) if now_ns >= *until_ns => RecordingSetUp::Begin,
            PublisherState::SetUp(_) => {
                match std::mem::replace(&mut self.state, PublisherState::AwaitArchive) {
                    PublisherState::SetUp(set_up) => set_up,
                    _ => RecordingSetUp::Begin,
                }
            }
            _ => return 0,
        };
        let situation = self.situation();
        let Some(peers) = self.connection.peers() else {
            self.state = PublisherState::AwaitArchive;
            return 0;
        };
        let mut turn = RecordingSetUpTurn {
            aeron: &peers.aeron,
            archive: &mut peers.archive,
            settings: &self.settings,
            recording: &mut self.recording,
            situation,
            takeover_deadline_ns: &mut self.takeover_deadline_ns,
            now_ns,
        };
        let step = std::mem::discriminant(&set_up);
        match turn.step(set_up) {
            Ok(next) => {
                let work = usize::from(std::mem::discriminant(&next) != step);
                if matches!(next, RecordingSetUp::Add(..)) {
                    // The recording has stopped, so the archive no longer records the former publication.
                    self.drop_stream();
                }
                self.state = PublisherState::SetUp(next);
                work
            }
            Err(end) => {
                self.end_set_up(*end, now_ns);
                1
            }
        }
    }

    /// Returns the facts by which a set-up decides how to continue.
    fn situation(&self) -> Situation {
        let stream = self.stream.as_ref().filter(|stream| !stream.is_closed());
        Situation {
            active_session_id: stream.map(ActiveStream::session_id),
            dropped_position: self.kept.dropped_position(),
            highest_sent_position: self.kept.highest_sent_position(),
        }
    }

    fn end_set_up(&mut self, end: RecordingSetUpEnd, now_ns: i64) {
        match end {
            RecordingSetUpEnd::Recording(stream, position) => self.begin_stream(stream, position),
            RecordingSetUpEnd::StillRecording => {
                self.backoff = Backoff::new();
                self.state = PublisherState::Recording;
            }
            RecordingSetUpEnd::AwaitStop(error) => {
                self.drop_stream();
                self.retry(error, now_ns);
            }
            RecordingSetUpEnd::Retry(error) => self.retry(error, now_ns),
            RecordingSetUpEnd::SessionLost => self.state = PublisherState::AwaitArchive,
            RecordingSetUpEnd::Failed(error) => self.fail(error),
        }
    }

    /// Begins to send on a publication that the archive records from `position` on.
    fn begin_stream(&mut self, mut stream: ActiveStream, position: i64) {
        let Some(known) = &self.recording else {
            return;
        };
        self.backoff = Backoff::new();
        self.state = PublisherState::Recording;
        if self.status.recording_id().is_none() {
            self.status.set_recording_id(known.id);
            self.kept.begin_at(position);
            self.take_stream(stream);
            return;
        }
        let (recording_id, geometry) = (known.id, known.geometry);
        match self.kept.resume_at(recording_id, position, geometry) {
            Ok(torn) => {
                if let Some(torn) = torn {
                    stream.complete(&torn, position, geometry);
                }
                self.take_stream(stream);
                self.status.count_reconnect();
                self.listener.on_reconnect(recording_id, position);
            }
            Err(error) => self.fail(error),
        }
    }

    /// Reads the recorded position. If the recording has ended, begins a set-up.
    fn watch(&mut self, now_ns: i64) -> usize {
        let Some(peers) = self.connection.peers() else {
            return 0;
        };
        let Some(stream) = &mut self.stream else {
            return 0;
        };
        let is_awaited = !self.kept.is_empty();
        let news = stream
            .recorded
            .poll(&peers.aeron, &mut peers.archive, is_awaited, now_ns);
        match news {
            PositionNews::Nothing => 0,
            PositionNews::At(position) => {
                let before = self.kept.recorded_position();
                self.kept
                    .drop_recorded(position.min(self.kept.end_position()));
                usize::from(self.kept.recorded_position() != before)
            }
            PositionNews::Ended => {
                let refusal = peers.archive.late_refusal(stream.request_id);
                self.drop_stream();
                if matches!(self.state, PublisherState::Recording) {
                    self.pause(now_ns);
                }
                if let Some(source) = refusal {
                    self.listener
                        .on_error(&RecordedPublisherError::Refused { source });
                }
                1
            }
        }
    }

    fn retry(&mut self, error: Option<RecordedPublisherError>, now_ns: i64) {
        self.pause(now_ns);
        if let Some(error) = error {
            self.listener.on_error(&error);
        }
    }

    fn pause(&mut self, now_ns: i64) {
        self.state = PublisherState::Pause(self.backoff.next_attempt_ns(now_ns));
    }

    fn take_stream(&mut self, stream: ActiveStream) {
        debug_assert!(
            matches!(self.state, PublisherState::Recording),
            "messages must not be sent before the archive records them"
        );
        debug_assert!(
            self.recording.as_ref().is_some_and(|known| known.is_ours),
            "a stream must not be recorded in an unknown recording"
        );
        self.stream = Some(stream);
        self.status.set_is_recording(true);
    }

    fn drop_stream(&mut self) {
        self.stream = None;
        self.status.set_is_recording(false);
    }

    /// Ends the publisher because of an error. The messages are kept.
    fn fail(&mut self, error: RecordedPublisherError) {
        self.state = PublisherState::Failed;
        self.drop_stream();
        self.connection.close();
        self.status.set_failure(error.clone());
        self.listener.on_error(&error);
    }
}

impl Drop for RecordedPublisher {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for RecordedPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordedPublisher")
            .field("stream_id", &self.settings.stream_id)
            .field("recording_id", &self.status.recording_id())
            .field("position", &self.status.position())
            .field("recorded_position", &self.status.recorded_position())
            .finish_non_exhaustive()
    }
}

/// The messages of a batch before index `end`.
struct BatchPart<'a, M: ?Sized> {
    messages: &'a M,
    end: usize,
}

impl<M: MessageBatch + ?Sized> MessageBatch for BatchPart<'_, M> {
    fn count(&self) -> usize {
        self.end
    }

    fn message(&self, index: usize) -> &[u8] {
        self.messages.message(index)
    }

    fn uniform_length(&self) -> Option<usize> {
        self.messages.uniform_length()
    }
}
