//! [`SubscriptionCore`]: the conductor's view of a subscription.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use aeron_protocol::uri::Transport;
use spin::mutex::SpinMutex;

use super::turns::PollState;
use crate::error::CloseCause;
use crate::idle_work::IdlePart;
use crate::image::{Image, ImageHandler};
use crate::lock::lock;
use crate::state::OpenState;

/// Handlers of one subscription.
#[derive(Clone, Default)]
pub struct SubscriptionHandlers {
    /// Called with each new image, once it can be polled.
    pub available_image: Option<ImageHandler>,
    /// Called with each image that went away, after the image was closed.
    pub unavailable_image: Option<ImageHandler>,
}

/// The conductor's view of a subscription.
pub(crate) struct SubscriptionCore {
    pub(super) registration_id: i64,
    pub(super) channel: String,
    pub(super) stream_id: i32,
    channel_status_id: AtomicI32,
    /// Dropped when the subscription closes. Handlers may own objects that own the subscription, and such a cycle would
    /// never be freed.
    handlers: Mutex<SubscriptionHandlers>,
    pub(super) state: OpenState,
    /// Changed by the conductor, which then increments `version`. Pollers read only the version while it is unchanged.
    pub(super) images: Mutex<Arc<[Image]>>,
    pub(super) version: AtomicU64,
    /// Set before the state changes, if the close does not come from the application.
    pub(super) last_positions: OnceLock<Vec<LastPosition>>,
    pub(super) last_ended: Mutex<Option<EndedImage>>,
    pub(super) idle_part: Option<IdlePart>,
    /// Callers only try the lock and never wait for it. Acquiring the lock is one atomic instruction, and releasing it
    /// is a plain store.
    pub(super) poll_state: SpinMutex<PollState>,
}

/// Position of a subscription in an image that was open when an error closed the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPosition {
    /// Session id of the image.
    pub session_id: i32,
    /// Position up to which the stream was consumed, in bytes.
    pub position: i64,
}

impl LastPosition {
    fn of(image: &Image) -> Self {
        Self {
            session_id: image.session_id(),
            position: image.position(),
        }
    }
}

/// Final state of the image that went away last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedImage {
    /// Session id of the image.
    pub session_id: i32,
    /// Position up to which the stream was consumed, in bytes.
    pub position: i64,
    /// Whether the program has consumed everything that the publisher sent before it ended the stream.
    pub is_end_of_stream: bool,
    /// Whether the publisher revoked the publication. If so, the end of the stream may be missing.
    pub is_publication_revoked: bool,
}

impl EndedImage {
    fn of(image: &Image) -> Self {
        Self {
            session_id: image.session_id(),
            position: image.position(),
            is_end_of_stream: image.is_end_of_stream(),
            is_publication_revoked: image.is_publication_revoked(),
        }
    }
}

/// Channel status id before the driver has responded.
const NOT_READY: i32 = 0;

impl SubscriptionCore {
    pub(crate) fn new(
        registration_id: i64,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
        idle_part: Option<IdlePart>,
    ) -> Self {
        Self {
            registration_id,
            channel: channel.to_owned(),
            stream_id,
            channel_status_id: AtomicI32::new(NOT_READY),
            handlers: Mutex::new(handlers),
            state: OpenState::default(),
            images: Mutex::default(),
            version: AtomicU64::new(0),
            last_positions: OnceLock::new(),
            last_ended: Mutex::default(),
            idle_part,
            poll_state: SpinMutex::default(),
        }
    }

    pub(crate) fn set_ready(&self, channel_status_id: i32) {
        self.channel_status_id
            .store(channel_status_id, Ordering::Release);
    }

    pub(crate) fn channel_status_id(&self) -> i32 {
        self.channel_status_id.load(Ordering::Acquire)
    }

    pub(crate) fn is_spy(&self) -> bool {
        Transport::of(self.channel.as_bytes()) == Transport::Spy
    }

    pub(crate) fn available_handler(&self) -> Option<ImageHandler> {
        lock(&self.handlers).available_image.clone()
    }

    pub(crate) fn unavailable_handler(&self) -> Option<ImageHandler> {
        lock(&self.handlers).unavailable_image.clone()
    }

    /// Removes and returns the handlers. Drop them in a task of the dispatcher, after the last call of a handler.
    pub(crate) fn release_handlers(&self) -> SubscriptionHandlers {
        std::mem::take(&mut *lock(&self.handlers))
    }

    pub(crate) fn has_image(&self, correlation_id: i64) -> bool {
        self.images()
            .iter()
            .any(|image| image.correlation_id() == correlation_id)
    }

    /// Adds an image, which can then be polled. Does nothing if the subscription is closed.
    pub(crate) fn add_image(&self, image: Image) -> bool {
        if self.state.is_closed() {
            return false;
        }
        debug_assert!(
            !self.has_image(image.correlation_id()),
            "subscription {} must not have image {} twice",
            self.registration_id,
            image.correlation_id()
        );
        self.change_images(|images| images.iter().cloned().chain([image]).collect());
        true
    }

    /// Removes an image.
    pub(crate) fn remove_image(&self, correlation_id: i64) -> Option<Image> {
        let removed = self
            .images()
            .iter()
            .find(|image| image.correlation_id() == correlation_id)
            .cloned()?;
        self.change_images(|images| {
            images
                .iter()
                .filter(|image| image.correlation_id() != correlation_id)
                .cloned()
                .collect()
        });
        Some(removed)
    }

    /// Stores the final state of an image that was removed and closed.
    pub(crate) fn note_ended(&self, image: &Image) {
        *lock(&self.last_ended) = Some(EndedImage::of(image));
    }

    /// Closes the subscription. Returns its images.
    pub(crate) fn close(&self, cause: &CloseCause) -> Arc<[Image]> {
        let images = self.images();
        if cause.0.is_some() {
            // If the subscription is already closed, its first positions are kept.
            let _ = self
                .last_positions
                .set(images.iter().map(LastPosition::of).collect());
        }
        if self.state.close(cause.clone()) {
            self.change_images(|_| Arc::default());
        }
        images
    }

    pub(super) fn images(&self) -> Arc<[Image]> {
        Arc::clone(&lock(&self.images))
    }

    fn change_images(&self, change: impl FnOnce(&[Image]) -> Arc<[Image]>) {
        let mut images = lock(&self.images);
        *images = change(&images);
        self.version.fetch_add(1, Ordering::Release);
    }
}
