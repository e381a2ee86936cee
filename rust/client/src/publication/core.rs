//! The state of publications that the conductor and the handles of the application share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender, LogBuffers};
use spin::mutex::SpinMutex;

use crate::error::{CloseCause, Error, Result};
use crate::publication::RefusedAttempts;
use crate::state::OpenState;

/// Properties of a publication as the driver announced them.
pub(crate) struct PublicationParts {
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) registration_id: i64,
    pub(crate) original_registration_id: i64,
    pub(crate) channel_status_id: i32,
    pub(crate) limit: AtomicCounter<SharedBuffer>,
    pub(crate) log: Arc<LogBuffers<SharedBuffer>>,
}

/// Fields that both kinds of publications have.
pub(crate) struct PublicationBase {
    pub(super) parts: PublicationParts,
    pub(super) state: OpenState,
    refused: Refused,
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
    fn new(parts: PublicationParts) -> Self {
        Self {
            parts,
            state: OpenState::default(),
            refused: Refused::default(),
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

    pub(crate) fn log(&self) -> &Arc<LogBuffers<SharedBuffer>> {
        &self.parts.log
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.parts.registration_id
    }

    pub(crate) fn original_registration_id(&self) -> i64 {
        self.parts.original_registration_id
    }

    pub(crate) fn channel_status_id(&self) -> i32 {
        self.parts.channel_status_id
    }

    /// Returns the position limit of an open publication.
    #[inline(always)]
    pub(super) fn limit(&self) -> std::result::Result<i64, AppendError> {
        if self.state.is_closed() {
            return Err(AppendError::Closed);
        }
        Ok(self.parts.limit.get())
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.state.is_closed() && self.parts.log.metadata().is_connected()
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
        Ok(self.original_registration_id())
    }
}

/// The state of a publication that the conductor and the handles share.
pub(crate) struct ConcurrentCore {
    pub(super) base: PublicationBase,
    pub(super) appender: ConcurrentAppender<SharedBuffer>,
}

impl ConcurrentCore {
    pub(crate) fn new(parts: PublicationParts) -> Self {
        let appender = ConcurrentAppender::new(parts.log.as_ref().clone());
        Self {
            base: PublicationBase::new(parts),
            appender,
        }
    }

    pub(crate) fn base(&self) -> &PublicationBase {
        &self.base
    }
}

/// The state of an exclusive publication that the conductor and the handles share.
pub(crate) struct ExclusiveCore {
    pub(super) base: PublicationBase,
    /// Callers only try the lock and never wait for it. Acquiring the lock is one atomic instruction, and releasing it
    /// is a plain store.
    pub(super) appender: SpinMutex<ExclusiveAppender<SharedBuffer>>,
}

impl ExclusiveCore {
    pub(crate) fn new(parts: PublicationParts) -> Result<Self> {
        let appender = ExclusiveAppender::new(parts.log.as_ref().clone()).map_err(|reason| {
            Error::CorruptLog {
                correlation_id: parts.original_registration_id,
                reason,
            }
        })?;
        Ok(Self {
            base: PublicationBase::new(parts),
            appender: SpinMutex::new(appender),
        })
    }

    pub(crate) fn base(&self) -> &PublicationBase {
        &self.base
    }
}
