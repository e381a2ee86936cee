//! [`Image`]: one publisher's stream as one subscription receives it.

mod polling;
mod rejection;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CLOSED_HEARTBEAT_MS, DriverIdentity};
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::LogBuffers;

use crate::client::Client;
use crate::error::CloseCause;
#[cfg(doc)]
use crate::error::Error;
use crate::link::Link;
use crate::state::OpenState;

pub(crate) use self::polling::Reading;

/// Called with an image that became available or was closed.
pub type ImageHandler = Arc<dyn Fn(&Image) + Send + Sync>;

/// One publisher's stream as one subscription receives it. Clones are the same image.
///
/// Poll an image through its subscription, or directly, from one thread at a time. While one poll runs, another poll
/// fails with [`Error::InUse`], even inside a handler. All other methods may be called from any thread.
#[derive(Clone)]
pub struct Image {
    core: Arc<Core>,
}

/// Properties of an image as the driver announced them.
pub(crate) struct ImageParts {
    pub(crate) client: Arc<Client>,
    pub(crate) link: Arc<Link>,
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
    /// Whether the client has lost the driver of the image.
    is_orphaned: AtomicBool,
    /// State of the image when it was closed. Outlives the image, as the position in a log that is announced again.
    last: Arc<LastSeen>,
    polling: AtomicBool,
}

/// The log of an image whose driver the client has lost. A driver that goes on may announce it again, by the same id.
#[derive(Clone)]
pub(crate) struct ConsumedLog {
    pub(crate) driver: DriverIdentity,
    correlation_id: i64,
    /// Read late: a poll that runs while the image ends still stores its position.
    last: Arc<LastSeen>,
}

impl ImageParts {
    /// Skips what was consumed of the same log before. A driver lets a new subscription join a living stream at the
    /// position of its slowest subscriber, or at a position before the newest messages that it has received.
    pub(crate) fn skip(&self, consumed: &ConsumedLog) {
        let position = consumed.last.consumed_position.load(Ordering::Relaxed);
        let is_same =
            (self.link.driver, self.correlation_id) == (consumed.driver, consumed.correlation_id);
        if is_same && position > self.position.get() {
            self.position.set(position);
        }
    }
}

#[derive(Default)]
struct LastSeen {
    /// Consumed position. Polls store it, even the one in which the image is closed.
    consumed_position: AtomicI64,
    /// Position before the close.
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
            is_orphaned: AtomicBool::new(false),
            last: Arc::new(LastSeen {
                consumed_position: AtomicI64::new(join_position),
                ..LastSeen::default()
            }),
            polling: AtomicBool::new(false),
        };
        Self {
            core: Arc::new(core),
        }
    }

    /// Saves the state of the image and closes it. It is never polled again.
    pub(crate) fn close(&self, cause: &CloseCause) {
        if self.is_closed() {
            return;
        }
        let (metadata, last) = (self.log().metadata(), &self.core.last);
        let position = match self.has_position_counter() || self.is_of_closed_driver() {
            true => self.core.parts.position.get(),
            // The counter belongs to another client.
            false => last.consumed_position.load(Ordering::Relaxed),
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

    /// Records that the client has lost the driver of the image. The log can still be consumed.
    pub(crate) fn orphan(&self) {
        self.core.is_orphaned.store(true, Ordering::Release);
    }

    pub(crate) fn is_orphaned(&self) -> bool {
        self.core.is_orphaned.load(Ordering::Acquire)
    }

    /// Whether the current driver has announced the image with this id. The next driver uses the same ids again.
    pub(crate) fn is_announced_as(&self, correlation_id: i64) -> bool {
        self.correlation_id() == correlation_id && !self.is_orphaned()
    }

    /// Returns the identity of the log, with the position up to which it is consumed.
    pub(crate) fn consumed(&self) -> ConsumedLog {
        ConsumedLog {
            driver: self.core.parts.link.driver,
            correlation_id: self.core.parts.correlation_id,
            last: Arc::clone(&self.core.last),
        }
    }

    /// Whether both images are of the same driver.
    pub(crate) fn has_driver_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core.parts.link, &other.core.parts.link)
    }

    /// Whether the position counter is missing only because the driver was closed. Such a driver has freed all
    /// counters, and no other client gets them.
    #[cold]
    fn is_of_closed_driver(&self) -> bool {
        let link = &self.core.parts.link;
        self.core.parts.client.reconnects()
            && link.proxy.driver_heartbeat_ms() == CLOSED_HEARTBEAT_MS
    }

    pub(crate) fn log(&self) -> &Arc<LogBuffers<SharedBuffer>> {
        &self.core.parts.log
    }

    /// Whether the position counter still belongs to this image.
    ///
    /// If the driver removed the subscription without a request of this client, the driver has freed the counter and
    /// may have reused it. This check is cheap: the counter's value and its registration id are in one cache line.
    #[inline(always)]
    fn has_position_counter(&self) -> bool {
        let parts = &self.core.parts;
        parts.position.registration_id() == parts.subscription_registration_id
    }

    /// Whether both are the same image. Ids of images begin again with each driver.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// Returns the id of the image: for IPC and spies the publication's original registration id, else an id that the
    /// driver chose.
    pub fn correlation_id(&self) -> i64 {
        self.core.parts.correlation_id
    }

    /// Returns the session id of the stream.
    pub fn session_id(&self) -> i32 {
        self.core.parts.session_id
    }

    /// Returns the stream id.
    pub fn stream_id(&self) -> i32 {
        self.core.parts.stream_id
    }

    /// Returns the registration id of the image's subscription.
    pub fn subscription_registration_id(&self) -> i64 {
        self.core.parts.subscription_registration_id
    }

    /// Returns the source of the stream: `aeron:ipc`, or the sender's address and port.
    pub fn source_identity(&self) -> &str {
        &self.core.parts.source_identity
    }

    /// Returns the counter id of the subscriber's position.
    pub fn subscriber_position_id(&self) -> i32 {
        self.core.parts.position.id()
    }

    /// Returns the id of the stream's first term.
    pub fn initial_term_id(&self) -> i32 {
        self.log().positions().initial_term_id()
    }

    /// Returns the length of a term, in bytes.
    pub fn term_buffer_length(&self) -> usize {
        self.log().term_length()
    }

    /// Returns the base-two logarithm of the term length.
    pub fn position_bits_to_shift(&self) -> u32 {
        self.log().positions().bits_to_shift()
    }

    /// Returns the maximum length of a frame of the stream, in bytes.
    pub fn mtu_length(&self) -> usize {
        self.log().framing().mtu_length()
    }

    /// Returns the position at which the subscription joined the stream.
    pub fn join_position(&self) -> i64 {
        self.core.join_position
    }

    /// Returns the position up to which the stream was consumed. After the close, returns the last position before the
    /// close.
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

    /// Returns the cause of the close.
    pub fn close_cause(&self) -> CloseCause {
        self.core.state.cause()
    }

    /// Whether the stream has ended and is consumed up to its end. After the close, returns the last value before the
    /// close.
    pub fn is_end_of_stream(&self) -> bool {
        if self.is_closed() {
            return self.core.last.is_end_of_stream.load(Ordering::Relaxed);
        }
        self.log()
            .metadata()
            .is_end_of_stream(self.core.parts.position.get())
    }

    /// Returns the position at which the stream ended; 2^63 − 1 if the stream has not ended. After the close, returns
    /// the last value before the close.
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

    /// Returns the number of transports from which the stream is received; 0 for IPC and after the close.
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            0
        } else {
            self.log().metadata().active_transport_count()
        }
    }

    /// Whether the publisher revoked the publication. After the close, returns the last value before the close.
    pub fn is_publication_revoked(&self) -> bool {
        if self.is_closed() {
            return self.core.last.is_revoked.load(Ordering::Relaxed);
        }
        self.log().metadata().is_publication_revoked()
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
