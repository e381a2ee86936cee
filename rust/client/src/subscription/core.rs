//! [`SubscriptionCore`]: the conductor's view of a subscription.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use aeron_protocol::uri::Transport;
use spin::mutex::SpinMutex;

use super::turns::PollState;
use crate::error::CloseCause;
use crate::idle_work::IdlePart;
use crate::image::{ConsumedLog, Image, ImageHandler, ImageParts};
use crate::lifetime::Registration;
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
    pub(crate) registration: Arc<Registration>,
    /// Registration id in the newest driver.
    registration_id: AtomicI64,
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
    /// Channels of manually added destinations, in the order in which they were added.
    destinations: Mutex<Vec<String>>,
    /// Logs of lost drivers. Only a driver that goes on announces one of them again.
    consumed: Mutex<Vec<ConsumedLog>>,
    /// Images of the next driver, until the images of the lost driver are consumed.
    waiting: Mutex<Vec<Image>>,
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
        registration: Arc<Registration>,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
        idle_part: Option<IdlePart>,
    ) -> Self {
        Self {
            registration_id: AtomicI64::new(registration.key()),
            registration,
            channel: channel.to_owned(),
            stream_id,
            channel_status_id: AtomicI32::new(NOT_READY),
            handlers: Mutex::new(handlers),
            state: OpenState::default(),
            images: Mutex::default(),
            version: AtomicU64::new(0),
            last_positions: OnceLock::new(),
            last_ended: Mutex::default(),
            destinations: Mutex::default(),
            consumed: Mutex::default(),
            waiting: Mutex::default(),
            idle_part,
            poll_state: SpinMutex::default(),
        }
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.registration_id.load(Ordering::Acquire)
    }

    /// Whether the subscription is in a driver.
    pub(crate) fn has_driver(&self) -> bool {
        self.state.is_open()
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(crate) fn stream_id(&self) -> i32 {
        self.stream_id
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.is_closed()
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

    /// Whether the current driver has announced the image.
    pub(crate) fn has_image(&self, correlation_id: i64) -> bool {
        let is_named = |image: &Image| image.is_announced_as(correlation_id);
        self.images().iter().any(is_named) || lock(&self.waiting).iter().any(is_named)
    }

    /// Adds an image, which can then be polled. Returns `false` if the subscription is closed, or if the image must
    /// wait for the consumption of images of a lost driver.
    pub(crate) fn add_image(&self, image: Image) -> bool {
        if self.state.is_closed() {
            return false;
        }
        if self.has_orphans() || !lock(&self.waiting).is_empty() {
            lock(&self.waiting).push(image);
            return false;
        }
        debug_assert!(
            !self.has_image(image.correlation_id()),
            "subscription {} must not have image {} twice",
            self.registration_id(),
            image.correlation_id()
        );
        self.change_images(|images| images.iter().cloned().chain([image]).collect());
        true
    }

    /// Removes an image of the current driver. Returns the image, unless it was still waiting.
    pub(crate) fn remove_image(&self, correlation_id: i64) -> Option<Image> {
        lock(&self.waiting).retain(|image| !image.is_announced_as(correlation_id));
        let mut removed = self.remove_images(|image| image.is_announced_as(correlation_id));
        debug_assert!(
            removed.len() <= 1,
            "only one of {} images with the id {correlation_id} would be closed",
            removed.len()
        );
        removed.pop()
    }

    fn remove_images(&self, is_removed: impl Fn(&Image) -> bool) -> Vec<Image> {
        let images = self.images();
        let (removed, kept): (Vec<_>, Vec<_>) = images.iter().cloned().partition(is_removed);
        if !removed.is_empty() {
            self.change_images(|_| kept.into());
        }
        removed
    }

    /// Stores the final state of an image that was removed and closed.
    pub(crate) fn note_ended(&self, image: &Image) {
        *lock(&self.last_ended) = Some(EndedImage::of(image));
    }

    /// Keeps the images of a driver that the client has lost, so that the application can consume them. Returns these
    /// images, with those that were still waiting.
    pub(crate) fn suspend(&self) -> Vec<Image> {
        self.state.suspend();
        self.set_ready(NOT_READY);
        let (images, waiting) = (self.images(), lock(&self.waiting));
        let lost = images.iter().chain(waiting.iter());
        let lost = lost.filter(|image| !image.is_orphaned());
        let lost: Vec<Image> = lost.inspect(|image| image.orphan()).cloned().collect();
        lock(&self.consumed).extend(lost.iter().map(Image::consumed));
        lost
    }

    /// Continues in the next driver.
    pub(crate) fn resume(&self, registration_id: i64, channel_status_id: i32) {
        self.registration_id
            .store(registration_id, Ordering::Release);
        self.set_ready(channel_status_id);
        self.state.resume();
    }

    /// Makes a new image skip what was consumed of the same log before. Forgets the logs of other drivers.
    pub(crate) fn skip_consumed(&self, image: &ImageParts) {
        let mut consumed = lock(&self.consumed);
        consumed.retain(|log| log.driver == image.link.driver);
        consumed.iter().for_each(|log| image.skip(log));
    }

    /// Whether the subscription has images of a lost driver.
    pub(crate) fn has_orphans(&self) -> bool {
        self.images().iter().any(Image::is_orphaned)
    }

    /// Returns the number of lost drivers with images that are not consumed.
    pub(crate) fn unread_drivers(&self) -> usize {
        let (images, waiting) = (self.images(), lock(&self.waiting));
        let orphans: Vec<&Image> = images
            .iter()
            .chain(waiting.iter())
            .filter(|image| image.is_orphaned())
            .collect();
        // In the order of the drivers.
        let is_same = |one: &&Image, next: &&Image| one.has_driver_of(next);
        orphans.chunk_by(is_same).count()
    }

    /// Removes the images of a lost driver for which `is_due` is true.
    pub(crate) fn take_orphans(&self, is_due: impl Fn(&Image) -> bool) -> Vec<Image> {
        self.remove_images(|image| image.is_orphaned() && is_due(image))
    }

    /// Forgets the images of a lost driver that still wait. The application has never seen them.
    pub(crate) fn forget_waiting_orphans(&self) {
        lock(&self.waiting).retain(|image| !image.is_orphaned());
    }

    /// Adds the images of the driver that was lost first, or of the current one, if no image of an earlier driver is
    /// left. Returns the added images.
    pub(crate) fn admit_waiting(&self) -> Vec<Image> {
        if self.has_orphans() || self.state.is_closed() {
            return Vec::new();
        }
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let Some(first) = waiting.first().cloned() else {
            return Vec::new();
        };
        let of_first = |image: &Image| image.has_driver_of(&first);
        let (admitted, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(of_first);
        *lock(&self.waiting) = later;
        let added = admitted.iter().cloned();
        self.change_images(|images| images.iter().cloned().chain(added).collect());
        admitted
    }

    /// Records that the driver has added a destination, which the next driver gets too.
    pub(crate) fn on_destination(&self, channel: &str) {
        lock(&self.destinations).push(channel.to_owned());
    }

    /// Forgets the first destination with this channel.
    pub(super) fn forget_destination(&self, channel: &str) {
        let mut destinations = lock(&self.destinations);
        let index = destinations.iter().position(|added| added == channel);
        index.map(|index| destinations.remove(index));
    }

    /// Returns the channels of the destinations, for the next driver.
    pub(crate) fn receive_destinations(&self) -> Vec<String> {
        lock(&self.destinations).clone()
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
            lock(&self.waiting).clear();
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
