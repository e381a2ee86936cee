//! [`Image`]: one publisher's stream as one subscription sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::reader::{Block, Cursor};
use aeron_memory::log::{CorruptLog, LogBuffers};

use crate::client::Client;
use crate::error::{CloseCause, Error, Result, TryPollError};
use crate::fragment::{Action, Fragment};
use crate::operation::{CommandSteps, PendingOperation};
use crate::state::OpenState;

/// One publisher's stream as one subscription sees it. Clones are the same image.
///
/// It is polled through its subscription, or directly, by one thread at a time: a second poll meanwhile, also from inside
/// a handler, is refused with [`Error::InUse`]. Everything else may be called from any thread.
#[derive(Clone)]
pub struct Image {
    core: Arc<Core>,
}

/// What the driver said of an image.
pub(crate) struct ImageParts {
    pub(crate) client: Arc<Client>,
    pub(crate) correlation_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) subscription_registration_id: i64,
    pub(crate) is_spy: bool,
    pub(crate) source_identity: String,
    pub(crate) position: AtomicCounter<SharedBuffer>,
    pub(crate) log: Arc<LogBuffers<SharedBuffer>>,
}

struct Core {
    parts: ImageParts,
    join_position: i64,
    state: OpenState,
    /// What the image looked like when it was closed.
    last: LastSeen,
    polling: AtomicBool,
}

#[derive(Default)]
struct LastSeen {
    position: AtomicI64,
    end_of_stream_position: AtomicI64,
    is_end_of_stream: AtomicBool,
    is_revoked: AtomicBool,
}

impl Image {
    pub(crate) fn new(parts: ImageParts) -> Self {
        let join_position = parts.position.get();
        let core = Core {
            parts,
            join_position,
            state: OpenState::default(),
            last: LastSeen::default(),
            polling: AtomicBool::new(false),
        };
        Self {
            core: Arc::new(core),
        }
    }

    /// Remembers what the image looks like and closes it; it is never polled again.
    pub(crate) fn close(&self, cause: &CloseCause) {
        if self.is_closed() {
            return;
        }
        let (metadata, last) = (self.log().metadata(), &self.core.last);
        let position = match self.has_position_counter() {
            true => self.core.parts.position.get(),
            // Somebody else's value; what was consumed is not known any more.
            false => self.core.join_position,
        };
        let end = metadata.end_of_stream_position();
        last.position.store(position, Ordering::Relaxed);
        last.end_of_stream_position.store(end, Ordering::Relaxed);
        last.is_end_of_stream
            .store(position >= end, Ordering::Relaxed);
        last.is_revoked
            .store(metadata.is_publication_revoked(), Ordering::Relaxed);
        self.core.state.close(cause.clone());
    }

    pub(crate) fn log(&self) -> &Arc<LogBuffers<SharedBuffer>> {
        &self.core.parts.log
    }

    /// Whether the position counter is still the one of this image.
    ///
    /// A driver that has removed the subscription without being asked to by this client frees the counter, and gives it to the
    /// next who needs one. Its value and its registration id lie in one cache line.
    #[inline(always)]
    fn has_position_counter(&self) -> bool {
        let parts = &self.core.parts;
        parts.position.registration_id() == parts.subscription_registration_id
    }

    /// Id of the image: the publication's original registration id for IPC and spies, else chosen by the driver.
    pub fn correlation_id(&self) -> i64 {
        self.core.parts.correlation_id
    }

    /// Session id of the stream.
    pub fn session_id(&self) -> i32 {
        self.core.parts.session_id
    }

    /// Stream id.
    pub fn stream_id(&self) -> i32 {
        self.core.parts.stream_id
    }

    /// Registration id of the image's subscription.
    pub fn subscription_registration_id(&self) -> i64 {
        self.core.parts.subscription_registration_id
    }

    /// Where the stream comes from: `aeron:ipc`, or the sender's address and port.
    pub fn source_identity(&self) -> &str {
        &self.core.parts.source_identity
    }

    /// Counter id of the subscriber's position.
    pub fn subscriber_position_id(&self) -> i32 {
        self.core.parts.position.id()
    }

    /// Id of the stream's first term.
    pub fn initial_term_id(&self) -> i32 {
        self.log().positions().initial_term_id()
    }

    /// Length of a term, in bytes.
    pub fn term_buffer_length(&self) -> usize {
        self.log().term_length()
    }

    /// Base-two logarithm of the term length.
    pub fn position_bits_to_shift(&self) -> u32 {
        self.log().positions().bits_to_shift()
    }

    /// Largest frame of the stream, in bytes.
    pub fn mtu_length(&self) -> usize {
        self.log().framing().mtu_length()
    }

    /// Position at which the subscription joined the stream.
    pub fn join_position(&self) -> i64 {
        self.core.join_position
    }

    /// Position up to which the stream was consumed; the last one, once closed.
    pub fn position(&self) -> i64 {
        if self.is_closed() {
            return self.core.last.position.load(Ordering::Relaxed);
        }
        self.core.parts.position.get()
    }

    /// Whether the image is closed: the stream ended or was lost, or the subscription or client was closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.core.state.is_closed()
    }

    /// What closed the image.
    pub fn close_cause(&self) -> CloseCause {
        self.core.state.cause()
    }

    /// Whether everything that the publisher sent before it ended the stream was consumed; as it was, once closed.
    pub fn is_end_of_stream(&self) -> bool {
        if self.is_closed() {
            return self.core.last.is_end_of_stream.load(Ordering::Relaxed);
        }
        self.log()
            .metadata()
            .is_end_of_stream(self.core.parts.position.get())
    }

    /// Position at which the stream ended, 2^63 − 1 while it has not; as it was, once closed.
    pub fn end_of_stream_position(&self) -> i64 {
        if self.is_closed() {
            return self
                .core
                .last
                .end_of_stream_position
                .load(Ordering::Relaxed);
        }
        self.log().metadata().end_of_stream_position()
    }

    /// Transports that the stream is received from; 0 for IPC and once closed.
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            0
        } else {
            self.log().metadata().active_transport_count()
        }
    }

    /// Whether the publisher revoked the publication; as it was, once closed.
    pub fn is_publication_revoked(&self) -> bool {
        if self.is_closed() {
            return self.core.last.is_revoked.load(Ordering::Relaxed);
        }
        self.log().metadata().is_publication_revoked()
    }

    /// Asks the driver to reject the image, telling the publisher `reason` (at most 1023 bytes), and waits for its answer.
    /// The image then becomes unavailable.
    ///
    /// # Errors
    /// [`Error::SpyCannotReject`], [`Error::ResourceClosed`], the driver's refusal, no answer.
    pub fn reject(&self, reason: &str) -> Result<()> {
        self.core.parts.client.check_may_wait()?;
        self.async_reject(reason)?.wait()
    }

    /// As [`reject`](Self::reject), without waiting. The operation cannot be cancelled.
    ///
    /// # Errors
    /// [`Error::SpyCannotReject`], [`Error::ResourceClosed`], or the command could not be sent; the rest comes with the
    /// operation.
    pub fn async_reject(&self, reason: &str) -> Result<PendingOperation<()>> {
        if self.core.parts.is_spy {
            return Err(Error::SpyCannotReject);
        }
        if self.is_closed() {
            return Err(Error::ResourceClosed {
                resource: "Image",
                cause: self.close_cause(),
            });
        }
        let (image_id, position, reason) =
            (self.correlation_id(), self.position(), reason.to_owned());
        let steps = CommandSteps::send(
            &self.core.parts.client,
            move |conductor, client| {
                conductor.request_rejection(client, image_id, position, &reason)
            },
            |_, _, _| Some(()),
        )?;
        Ok(steps.irrevocable().into_operation())
    }
}

/// Polling.
impl Image {
    /// Hands at most `limit` fragments to `handler`; answers how many. One call does not cross the end of a term. If the
    /// handler panics, what it was given counts as consumed.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::CorruptLog`], which closes the image.
    #[inline]
    pub fn poll(&self, mut handler: impl FnMut(Fragment<'_>), limit: usize) -> Result<usize> {
        self.controlled_poll(
            |fragment| {
                handler(fragment);
                Action::Continue
            },
            limit,
        )
    }

    /// As [`poll`](Self::poll) with a handler that may fail: the failing fragment is consumed and ends the poll.
    ///
    /// # Errors
    /// The handler's error; those of [`poll`](Self::poll).
    pub fn try_poll<E>(
        &self,
        mut handler: impl FnMut(Fragment<'_>) -> std::result::Result<(), E>,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        self.try_controlled_poll(
            |fragment| handler(fragment).map(|()| Action::Continue),
            limit,
        )
    }

    /// As [`poll`](Self::poll), the handler deciding after each fragment how to go on.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[inline]
    pub fn controlled_poll(
        &self,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
        limit: usize,
    ) -> Result<usize> {
        self.exclusively(|| self.read(None, limit, &mut handler))
    }

    /// As [`controlled_poll`](Self::controlled_poll) with a handler that may fail: the failing fragment is consumed and
    /// ends the poll.
    ///
    /// # Errors
    /// The handler's error; those of [`poll`](Self::poll).
    pub fn try_controlled_poll<E>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> std::result::Result<Action, E>,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        let mut failure = None;
        let count = self.controlled_poll(catching(handler, &mut failure), limit)?;
        outcome(count, failure)
    }

    /// As [`poll`](Self::poll), only fragments that begin before `limit_position`.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn bounded_poll(
        &self,
        mut handler: impl FnMut(Fragment<'_>),
        limit_position: i64,
        limit: usize,
    ) -> Result<usize> {
        self.bounded_controlled_poll(
            |fragment| {
                handler(fragment);
                Action::Continue
            },
            limit_position,
            limit,
        )
    }

    /// As [`controlled_poll`](Self::controlled_poll), only fragments that begin before `limit_position`.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn bounded_controlled_poll(
        &self,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
        limit_position: i64,
        limit: usize,
    ) -> Result<usize> {
        self.exclusively(|| self.read(Some(limit_position), limit, &mut handler))
    }

    /// As [`bounded_controlled_poll`](Self::bounded_controlled_poll) with a handler that may fail.
    ///
    /// # Errors
    /// The handler's error; those of [`poll`](Self::poll).
    pub fn try_bounded_controlled_poll<E>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> std::result::Result<Action, E>,
        limit_position: i64,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        let mut failure = None;
        let count =
            self.bounded_controlled_poll(catching(handler, &mut failure), limit_position, limit)?;
        outcome(count, failure)
    }

    /// Hands a block of whole frames with their headers, at most `limit` bytes, to `handler`; answers its length. Padding
    /// is handed out alone and only its header counts. 0 when the next frame is longer than `limit`.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn block_poll(
        &self,
        handler: impl FnOnce(&Block<'_, SharedBuffer>),
        limit: usize,
    ) -> Result<usize> {
        self.exclusively(|| {
            let Some(mut reading) = self.begin(None)? else {
                return Ok(0);
            };
            let Some(block) = reading.next(|cursor| cursor.next_block(limit))? else {
                return Ok(0);
            };
            handler(&block);
            Ok(block.length())
        })
    }

    /// As [`block_poll`](Self::block_poll) with a handler that may fail: the block is then not consumed.
    ///
    /// # Errors
    /// The handler's error; those of [`poll`](Self::poll).
    pub fn try_block_poll<E>(
        &self,
        handler: impl FnOnce(&Block<'_, SharedBuffer>) -> std::result::Result<(), E>,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        let mut failure = None;
        let count = self.exclusively(|| {
            let Some(mut reading) = self.begin(None)? else {
                return Ok(0);
            };
            let Some(block) = reading.next(|cursor| cursor.next_block(limit))? else {
                return Ok(0);
            };
            if let Err(error) = handler(&block) {
                reading.cursor.return_to_block(&block);
                failure = Some(error);
            }
            Ok(block.length())
        })?;
        outcome(count, failure)
    }

    /// As [`block_poll`](Self::block_poll); `handler` is also given the block's offset in the log's file.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn raw_poll(
        &self,
        handler: impl FnOnce(u64, &Block<'_, SharedBuffer>),
        limit: usize,
    ) -> Result<usize> {
        let positions = self.log().positions();
        self.block_poll(
            |block| {
                let partition = positions.partition(block.begin_position());
                handler(
                    (partition * positions.term_length() + block.offset()) as u64,
                    block,
                );
            },
            limit,
        )
    }

    /// Whether a poll would find anything: a fragment, padding, or an error. Consumes nothing; from any thread.
    pub(crate) fn is_readable(&self) -> bool {
        let position = self.core.parts.position.get();
        if self.is_closed() {
            return false;
        }
        if !self.has_position_counter() {
            return true;
        }
        let Ok(mut cursor) = self.log().cursor(position) else {
            return true;
        };
        !matches!(cursor.next_fragment(), Ok(None)) || cursor.position() != position
    }

    /// Runs a poll unless one runs already. Loads and stores are enough to keep a handler from polling its own image; two
    /// threads that enter at the same instant would both read, which harms nothing but their own order.
    #[inline(always)]
    pub(crate) fn exclusively(&self, poll: impl FnOnce() -> Result<usize>) -> Result<usize> {
        let polling = &self.core.polling;
        if polling.load(Ordering::Relaxed) {
            return Err(Error::InUse("image"));
        }
        polling.store(true, Ordering::Relaxed);
        let _done = Reset(polling);
        poll()
    }

    #[inline(always)]
    fn read(
        &self,
        limit_position: Option<i64>,
        limit: usize,
        handler: &mut impl FnMut(Fragment<'_>) -> Action,
    ) -> Result<usize> {
        let Some(mut reading) = self.begin(limit_position)? else {
            return Ok(0);
        };
        let mut count = 0;
        while count < limit && !self.is_closed() {
            let Some(fragment) = reading.next(Cursor::next_fragment)? else {
                break;
            };
            match handler(Fragment::in_log(fragment, self)) {
                Action::Continue => count += 1,
                Action::Commit => {
                    count += 1;
                    reading.publish();
                }
                Action::Break => {
                    count += 1;
                    break;
                }
                Action::Abort => {
                    reading.cursor.return_to(&fragment);
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Begins to read at the subscriber's position; `None` when the image is closed or the limit is reached.
    #[inline(always)]
    pub(crate) fn begin(&self, limit_position: Option<i64>) -> Result<Option<Reading<'_>>> {
        if self.is_closed() {
            return Ok(None);
        }
        if !self.has_position_counter() {
            return Err(self.position_counter_closed());
        }
        let position = self.core.parts.position.get_relaxed();
        if limit_position.is_some_and(|limit| position >= limit) {
            return Ok(None);
        }
        let cursor = self
            .log()
            .cursor(position)
            .map_err(|reason| self.corrupt(reason))?;
        let cursor = match limit_position {
            Some(limit) => cursor.bounded(limit),
            None => cursor,
        };
        Ok(Some(Reading {
            image: self,
            cursor,
            published: position,
        }))
    }

    /// Closes the image because of what was found in its log.
    #[cold]
    fn corrupt(&self, reason: CorruptLog) -> Error {
        self.fail(Error::CorruptLog {
            correlation_id: self.correlation_id(),
            reason,
        })
    }

    /// Closes the image because its position counter is somebody else's.
    #[cold]
    fn position_counter_closed(&self) -> Error {
        self.fail(Error::PositionCounterClosed {
            correlation_id: self.correlation_id(),
            counter_id: self.subscriber_position_id(),
        })
    }

    fn fail(&self, error: Error) -> Error {
        self.close(&CloseCause::error(error.clone()));
        self.core.parts.client.dispatcher.report(error.clone());
        error
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.correlation_id())
            .field("session_id", &self.session_id())
            .field("source_identity", &self.source_identity())
            .field("position", &self.position())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A poll under way; what it has read is published when it ends, however it ends.
pub(crate) struct Reading<'a> {
    image: &'a Image,
    pub(crate) cursor: Cursor<'a, SharedBuffer>,
    published: i64,
}

impl<'a> Reading<'a> {
    #[inline(always)]
    pub(crate) fn next<T>(
        &mut self,
        advance: impl FnOnce(
            &mut Cursor<'a, SharedBuffer>,
        ) -> std::result::Result<Option<T>, CorruptLog>,
    ) -> Result<Option<T>> {
        advance(&mut self.cursor).map_err(|reason| {
            self.publish();
            self.image.corrupt(reason)
        })
    }

    /// Publishes the position of the cursor as the subscriber's, unless the image was closed meanwhile.
    #[inline(always)]
    fn publish(&mut self) {
        let position = self.cursor.position();
        // A handler may have closed the image, or forked: then the position is the parent's to publish.
        let is_ours = || !self.image.is_closed() && !self.image.core.parts.client.is_foreign();
        if position != self.published && is_ours() {
            self.image.core.parts.position.set(position);
            self.published = position;
        }
    }
}

impl Drop for Reading<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.publish();
    }
}

struct Reset<'a>(&'a AtomicBool);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A handler that keeps the error of one that may fail, and ends the poll with it; the failing fragment is consumed.
#[inline(always)]
fn catching<E>(
    mut handler: impl FnMut(Fragment<'_>) -> std::result::Result<Action, E>,
    failure: &mut Option<E>,
) -> impl FnMut(Fragment<'_>) -> Action {
    move |fragment| match handler(fragment) {
        Ok(action) => action,
        Err(error) => {
            *failure = Some(error);
            Action::Break
        }
    }
}

#[inline(always)]
fn outcome<E>(count: usize, failure: Option<E>) -> std::result::Result<usize, TryPollError<E>> {
    failure.map_or(Ok(count), |error| Err(TryPollError::Handler(error)))
}
