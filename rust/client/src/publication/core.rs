//! The state of publications that the conductor and the handles of the application share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender, LogBuffers};
use aeron_protocol::uri::{ChannelUri, ResponseCorrelation, key};
use spin::mutex::SpinMutex;

use crate::error::{CloseCause, Error, Result};
use crate::lifetime::Registration;
use crate::link::Link;
use crate::lock::lock;
use crate::publication::RefusedAttempts;
use crate::replaceable::Replaceable;
use crate::state::OpenState;
use crate::subscription::core::SubscriptionCore;

/// A publication in one driver: its properties as the driver announced them, and its log.
pub(crate) struct PublicationParts {
    pub(crate) link: Arc<Link>,
    pub(crate) session_id: i32,
    pub(crate) registration_id: i64,
    pub(crate) original_registration_id: i64,
    pub(crate) channel_status_id: i32,
    pub(crate) limit: AtomicCounter<SharedBuffer>,
    pub(crate) log: Arc<LogBuffers<SharedBuffer>>,
    /// Position of the log when this client got the publication.
    pub(crate) start_position: i64,
    /// Whether the client has lost the driver of this log.
    pub(crate) has_ended: AtomicBool,
}

/// Channel and stream of a publication, and whether it has one writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedStream {
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    pub(crate) is_exclusive: bool,
}

/// Fields that both kinds of publications have.
pub(crate) struct PublicationBase {
    pub(crate) stream: PublishedStream,
    pub(crate) registration: Arc<Registration>,
    pub(super) state: OpenState,
    refused: Refused,
    /// The publication in the newest driver. Calls that append have their own copy.
    current: Mutex<Arc<PublicationParts>>,
    /// Number of drivers that have had the publication before the current one.
    generation: AtomicU64,
    /// Manually added destinations, in the order in which they were added.
    destinations: Mutex<Vec<Destination>>,
    /// Owner of the publication's response channel; set at the first loss of a driver.
    response_source: OnceLock<ResponseSource>,
}

/// Owner of a response channel. The id in the channel is that of the first driver.
pub(crate) enum ResponseSource {
    /// The channel is no response channel.
    None,
    /// A publication that sends requests, with the subscription that gets the responses.
    Subscription(Arc<SubscriptionCore>),
    /// A publication that sends responses to the publisher of an image. The image ends with its driver.
    Image,
}

/// A manually added destination.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// Registration id that the application got.
    pub(crate) id: i64,
    /// Registration id in the current driver.
    driver_id: i64,
    pub(crate) channel: String,
}

/// Number of attempts that appended nothing although the publication is open, by reason.
#[derive(Debug, Default)]
struct Refused {
    not_connected: AtomicU64,
    back_pressured: AtomicU64,
    admin_action: AtomicU64,
}

impl Refused {
    /// Counts an attempt. Only the path of a refused attempt gets here, so a successful one does not pay for it.
    #[cold]
    fn count(&self, reason: AppendError) {
        let counter = match reason {
            AppendError::NotConnected => &self.not_connected,
            AppendError::BackPressured => &self.back_pressured,
            AppendError::AdminAction => &self.admin_action,
            // The caller has made an error, or the publication has ended: no count helps with these.
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl PublicationBase {
    fn new(
        stream: PublishedStream,
        registration: Arc<Registration>,
        parts: Arc<PublicationParts>,
    ) -> Self {
        Self {
            stream,
            registration,
            state: OpenState::default(),
            refused: Refused::default(),
            current: Mutex::new(parts),
            generation: AtomicU64::new(0),
            destinations: Mutex::default(),
            response_source: OnceLock::new(),
        }
    }

    /// Records what the response channel belongs to, before the ids change. `subscription` finds a subscription by its
    /// registration id in the first driver.
    pub(crate) fn keep_response_source(
        &self,
        subscription: impl FnOnce(i64) -> Option<Arc<SubscriptionCore>>,
    ) {
        self.response_source.get_or_init(|| {
            let uri = ChannelUri::parse(&self.stream.channel).ok();
            let id = match uri.map(|uri| uri.response_correlation()) {
                Some(Ok(Some(ResponseCorrelation::Id(id)))) => Some(id),
                _ => None,
            };
            match id.map(subscription) {
                None => ResponseSource::None,
                Some(Some(core)) => ResponseSource::Subscription(core),
                Some(None) => ResponseSource::Image,
            }
        });
    }

    /// Returns the channel for the next driver. Returns `None` until the driver has the subscription that gets the
    /// responses.
    ///
    /// # Errors
    /// The publication sends responses to the publisher of an image that has ended with its driver.
    pub(crate) fn next_channel(&self) -> Result<Option<String>> {
        let channel = &self.stream.channel;
        match self.response_source.get() {
            None | Some(ResponseSource::None) => Ok(Some(channel.clone())),
            Some(ResponseSource::Subscription(core)) if core.is_closed() => {
                Err(Error::InvalidArgument(format!(
                    "{channel}: the subscription that gets the responses is closed"
                )))
            }
            Some(ResponseSource::Subscription(core)) if !core.has_driver() => Ok(None),
            Some(ResponseSource::Subscription(core)) => {
                let invalid = |error| Error::InvalidArgument(format!("{channel}: {error}"));
                let mut uri = ChannelUri::parse(channel).map_err(invalid)?;
                let id = core.registration_id().to_string();
                uri.put(key::RESPONSE_CORRELATION_ID, &id)
                    .map_err(invalid)?;
                Ok(Some(uri.to_string()))
            }
            Some(ResponseSource::Image) => Err(Error::InvalidArgument(format!(
                "{channel}: the image of the request has ended with its driver: add a publication for the image of the \
                 next request"
            ))),
        }
    }

    /// Counts an attempt that was refused. Returns its result.
    #[inline(always)]
    pub(super) fn counted<T>(
        &self,
        result: std::result::Result<T, AppendError>,
    ) -> std::result::Result<T, AppendError> {
        result.inspect_err(|reason| self.refused.count(*reason))
    }

    pub(super) fn refused(&self) -> RefusedAttempts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RefusedAttempts {
            not_connected: read(&self.refused.not_connected),
            back_pressured: read(&self.refused.back_pressured),
            admin_action: read(&self.refused.admin_action),
        }
    }

    pub(crate) fn close(&self, cause: &CloseCause) {
        self.state.close(cause.clone());
    }

    /// Stops all appends until the publication exists in the next driver. Open claims are aborted when they end.
    ///
    /// Returns whether the publication was open.
    pub(crate) fn suspend(&self) -> bool {
        let was_open = self.state.suspend();
        self.parts().has_ended.store(true, Ordering::Release);
        was_open
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Shows the properties of the publication in the next driver, before the application can append.
    pub(crate) fn announce(&self, parts: &Arc<PublicationParts>) {
        *lock(&self.current) = Arc::clone(parts);
    }

    /// Lets the application append to the log of the next driver.
    fn resume(&self, parts: &Arc<PublicationParts>) {
        self.announce(parts);
        self.generation.fetch_add(1, Ordering::Relaxed);
        // Last, because then the application appends.
        self.state.resume();
    }

    /// Returns the publication in the newest driver.
    pub(crate) fn parts(&self) -> Arc<PublicationParts> {
        Arc::clone(&lock(&self.current))
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(crate) fn log(&self) -> Arc<LogBuffers<SharedBuffer>> {
        Arc::clone(&self.parts().log)
    }

    /// Refuses an attempt to append if the publication is closed or has no driver.
    #[inline(always)]
    pub(super) fn check_open(&self) -> std::result::Result<(), AppendError> {
        match self.state.is_open() {
            true => Ok(()),
            false => Err(self.not_open()),
        }
    }

    #[cold]
    fn not_open(&self) -> AppendError {
        match self.state.is_closed() {
            true => AppendError::Closed,
            false => {
                self.refused.count(AppendError::NotConnected);
                AppendError::NotConnected
            }
        }
    }

    /// Whether the publication is open and in a driver.
    pub(super) fn has_driver(&self) -> bool {
        self.state.is_open()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state.is_open() && self.parts().log.metadata().is_connected()
    }

    /// Returns the id that the driver uses for destinations: the original registration id, even for a shared
    /// publication.
    pub(super) fn open_id(&self) -> Result<i64> {
        if self.state.is_closed() {
            return Err(Error::ResourceClosed {
                resource: "Publication",
                cause: self.state.cause(),
            });
        }
        Ok(self.parts().original_registration_id)
    }

    /// Records that the driver has added a destination, which the next driver gets too. `id` is the registration id
    /// that the application got.
    pub(crate) fn on_destination(&self, id: i64, driver_id: i64, channel: &str) {
        let mut destinations = lock(&self.destinations);
        match destinations
            .iter_mut()
            .find(|destination| destination.id == id && destination.channel == channel)
        {
            Some(destination) => destination.driver_id = driver_id,
            None => destinations.push(Destination {
                id,
                driver_id,
                channel: channel.to_owned(),
            }),
        }
    }

    /// Forgets the first destination with this channel.
    pub(super) fn forget_destination(&self, channel: &str) {
        let mut destinations = lock(&self.destinations);
        let index = destinations
            .iter()
            .position(|destination| destination.channel == channel);
        index.map(|index| destinations.remove(index));
    }

    /// Forgets the destination with the id that the application got. Returns its id in the current driver.
    pub(super) fn forget_destination_id(&self, id: i64) -> i64 {
        let mut destinations = lock(&self.destinations);
        let index = destinations
            .iter()
            .rposition(|destination| destination.id == id);
        index.map_or(id, |index| destinations.remove(index).driver_id)
    }

    /// Returns the destinations, for the next driver.
    pub(crate) fn destinations(&self) -> Vec<Destination> {
        lock(&self.destinations).clone()
    }
}

/// Everything that a call needs to append.
pub(super) struct Writing<A> {
    pub(super) appender: A,
    pub(super) limit: AtomicCounter<SharedBuffer>,
    pub(super) parts: Arc<PublicationParts>,
}

/// A publication as the conductor sees it.
pub(crate) trait PublicationCore {
    fn base(&self) -> &PublicationBase;
    /// Continues the publication in the next driver. Returns `false` while the application has a writer: try again
    /// later.
    ///
    /// # Errors
    /// [`Error::CorruptLog`] for a log with impossible values.
    fn try_continue(&self, parts: &Arc<PublicationParts>) -> Result<bool>;
}

/// The state of a publication that the conductor and the handles share.
pub(crate) struct ConcurrentCore {
    pub(super) base: PublicationBase,
    writing: Replaceable<Writing<ConcurrentAppender<SharedBuffer>>>,
}

impl Writing<ConcurrentAppender<SharedBuffer>> {
    fn concurrent(parts: Arc<PublicationParts>) -> Self {
        Self {
            appender: ConcurrentAppender::new(parts.log.as_ref().clone()),
            limit: parts.limit.clone(),
            parts,
        }
    }
}

impl ConcurrentCore {
    pub(crate) fn new(
        stream: PublishedStream,
        registration: Arc<Registration>,
        parts: PublicationParts,
        can_be_replaced: bool,
    ) -> Self {
        let parts = Arc::new(parts);
        let writing = Writing::concurrent(Arc::clone(&parts));
        Self {
            base: PublicationBase::new(stream, registration, parts),
            writing: Replaceable::new(writing, can_be_replaced),
        }
    }

    /// Calls `append` with the position limit, unless the publication is closed or has no driver.
    #[inline(always)]
    pub(super) fn append<T>(
        &self,
        append: impl FnOnce(
            &Writing<ConcurrentAppender<SharedBuffer>>,
            i64,
        ) -> std::result::Result<T, AppendError>,
    ) -> std::result::Result<T, AppendError> {
        self.base.check_open()?;
        let appended = self
            .writing
            .try_with(|writing| append(writing, writing.limit.get()))
            .unwrap_or(Err(AppendError::NotConnected));
        self.base.counted(appended)
    }
}

impl PublicationCore for ConcurrentCore {
    fn base(&self) -> &PublicationBase {
        &self.base
    }

    fn try_continue(&self, parts: &Arc<PublicationParts>) -> Result<bool> {
        self.writing
            .replace(|_| Writing::concurrent(Arc::clone(parts)));
        self.base.resume(parts);
        Ok(true)
    }
}

/// The state of an exclusive publication that the conductor and the handles share.
pub(crate) struct ExclusiveCore {
    pub(super) base: PublicationBase,
    /// Callers only try the lock and never wait for it. Acquiring the lock is one atomic instruction, and releasing it
    /// is a plain store.
    pub(super) writing: SpinMutex<Writing<ExclusiveAppender<SharedBuffer>>>,
}

impl Writing<ExclusiveAppender<SharedBuffer>> {
    fn exclusive(parts: Arc<PublicationParts>) -> Result<Self> {
        let appender = ExclusiveAppender::new(parts.log.as_ref().clone()).map_err(|reason| {
            Error::CorruptLog {
                correlation_id: parts.original_registration_id,
                reason,
            }
        })?;
        Ok(Self {
            appender,
            limit: parts.limit.clone(),
            parts,
        })
    }
}

impl ExclusiveCore {
    pub(crate) fn new(
        stream: PublishedStream,
        registration: Arc<Registration>,
        parts: PublicationParts,
    ) -> Result<Self> {
        let parts = Arc::new(parts);
        Ok(Self {
            writing: SpinMutex::new(Writing::exclusive(Arc::clone(&parts))?),
            base: PublicationBase::new(stream, registration, parts),
        })
    }
}

impl PublicationCore for ExclusiveCore {
    fn base(&self) -> &PublicationBase {
        &self.base
    }

    fn try_continue(&self, parts: &Arc<PublicationParts>) -> Result<bool> {
        let next = Writing::exclusive(Arc::clone(parts))?;
        {
            let Some(mut writing) = self.writing.try_lock() else {
                return Ok(false);
            };
            *writing = next;
        }
        // After the release of the lock: a call that finds the lock taken by the conductor finds the publication
        // suspended, and is not told that another call uses it.
        self.base.resume(parts);
        Ok(true)
    }
}
