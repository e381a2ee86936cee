//! [`Subscription`]: the receiving side of a stream.

pub(crate) mod core;
mod poller;
mod turns;

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::types;
use aeron_memory::log::reader::Block;

use crate::action::HandlerOutcome;
use crate::batch::{Batch, BatchLimits};
use crate::channel_status;
use crate::client::Client;
use crate::command::CommandSteps;
use crate::error::{CloseCause, Error, Result};
use crate::fragment::Fragment;
use crate::image::Image;
use crate::lifetime::Lifetime;
use crate::lock::lock;
use crate::operation::{PendingOperation, Waiter};
use crate::proxy::DestinationCommand;

pub use self::core::{EndedImage, LastPosition, SubscriptionHandlers};
pub use self::poller::SubscriptionPoller;

use self::core::SubscriptionCore;

/// A subscription to a channel and stream, with an image for each publisher. All clones share one subscription. The
/// subscription is closed by [`close`](Self::close), or when the last clone is dropped.
///
/// One thread at a time may poll a subscription. While one poll runs, another poll fails with [`Error::InUse`], even
/// inside a handler. A loop that polls often should use a [`poller`](Self::poller), to save this check. All other
/// methods may be called from any thread. A closed subscription has no images, and polling it returns 0;
/// [`close_cause`](Self::close_cause) returns the reason.
#[derive(Clone)]
pub struct Subscription {
    core: Arc<SubscriptionCore>,
    lifetime: Arc<Lifetime>,
}

impl Subscription {
    pub(crate) fn new(core: Arc<SubscriptionCore>, lifetime: Arc<Lifetime>) -> Self {
        Self { core, lifetime }
    }

    /// Returns the channel URI as the application gave it.
    pub fn channel(&self) -> &str {
        &self.core.channel
    }

    /// Returns the stream id.
    pub fn stream_id(&self) -> i32 {
        self.core.stream_id
    }

    /// Returns the id that identifies this subscription to the driver.
    pub fn registration_id(&self) -> i64 {
        self.core.registration_id()
    }

    /// Whether the subscription, or its client, is closed.
    pub fn is_closed(&self) -> bool {
        self.core.state.is_closed()
    }

    /// Returns the cause of the close. A poll loop must check the cause when [`is_closed`](Self::is_closed) is true:
    /// polling a closed subscription returns 0, even if the driver or the client has died.
    pub fn close_cause(&self) -> CloseCause {
        self.core.state.cause()
    }

    /// Returns the position in each image at the close. Empty if the subscription is open or the application closed it.
    pub fn last_positions(&self) -> &[LastPosition] {
        match self.close_cause().0 {
            Some(_) => self.core.last_positions.get().map_or(&[], Vec::as_slice),
            None => &[],
        }
    }

    /// Returns the final state of the image that went away last. A program that polls rarely can see here that an image
    /// existed between two polls.
    pub fn last_ended_image(&self) -> Option<EndedImage> {
        *lock(&self.core.last_ended)
    }

    /// Closes the subscription and its images without waiting for the driver. Does nothing if it is already closed. May
    /// be called from any thread and from handlers.
    pub fn close(&self) {
        self.lifetime.close();
    }

    /// Whether any image is open.
    pub fn is_connected(&self) -> bool {
        self.core.images().iter().any(|image| !image.is_closed())
    }

    /// Whether there are no images.
    pub fn has_no_images(&self) -> bool {
        self.image_count() == 0
    }

    /// Returns the number of images.
    pub fn image_count(&self) -> usize {
        self.core.images().len()
    }

    /// Returns the current images.
    pub fn images(&self) -> Arc<[Image]> {
        self.core.images()
    }

    /// Returns the image with this index in the list.
    pub fn image_at(&self, index: usize) -> Option<Image> {
        self.core.images().get(index).cloned()
    }

    /// Returns the first image of this session.
    pub fn image_by_session_id(&self, session_id: i32) -> Option<Image> {
        self.core
            .images()
            .iter()
            .find(|image| image.session_id() == session_id)
            .cloned()
    }

    /// Whether a poll would find data. Consumes nothing, so an event loop can check first.
    pub fn is_readable(&self) -> bool {
        if let Some(part) = &self.core.idle_part {
            part.before_poll();
        }
        let is_readable = self.core.images().iter().any(Image::is_readable);
        if let (false, Some(part)) = (is_readable, &self.core.idle_part) {
            part.after_poll(0);
        }
        is_readable
    }

    /// Returns the counter id of the channel's status; −1 if the channel has no status counter (IPC and spies).
    pub fn channel_status_id(&self) -> i32 {
        self.core.channel_status_id()
    }

    /// Returns the status of the channel: 1 active, 0 initialising, −1 errored or closed, 2 closing. An open
    /// subscription to IPC, or of a spy, is always active.
    pub fn channel_status(&self) -> i64 {
        if !self.core.has_driver() && !self.is_closed() {
            return types::CHANNEL_INITIALIZING;
        }
        channel_status::status(
            &self.client().link().counters,
            self.channel_status_id(),
            self.is_closed(),
        )
    }

    /// Returns the addresses on which the channel receives, while the channel is active; empty for IPC and spies.
    pub fn local_socket_addresses(&self) -> Vec<String> {
        channel_status::local_addresses(
            &self.client().link().counters,
            self.channel_status_id(),
            self.is_closed(),
        )
    }

    /// Returns the first address on which the channel receives.
    pub fn resolved_endpoint(&self) -> Option<String> {
        self.local_socket_addresses().into_iter().next()
    }

    /// Replaces an endpoint with port 0 by the bound address; `None` while the address is unknown. A channel without
    /// port 0, or with `control-mode=manual`, is returned unchanged.
    pub fn try_resolve_channel_endpoint_port(&self) -> Option<String> {
        channel_status::resolve_endpoint_port(self.channel(), || self.resolved_endpoint())
    }

    /// Adds a destination to a channel with `control-mode=manual` and waits for the driver.
    ///
    /// # Errors
    /// [`Error::ResourceClosed`], the driver's refusal, or no response within the driver timeout.
    pub fn add_destination(&self, channel: &str) -> Result<()> {
        self.client().check_may_wait()?;
        self.async_add_destination(channel)?.wait()
    }

    /// Like [`add_destination`](Self::add_destination), but does not wait for the driver.
    ///
    /// # Errors
    /// [`Error::ResourceClosed`], or the command could not be sent. The operation returns all other errors.
    pub fn async_add_destination(&self, channel: &str) -> Result<PendingOperation<()>> {
        let steps = self.send_destination(DestinationCommand::AddReceive, channel)?;
        Ok(steps.into_operation())
    }

    /// Removes a destination and waits for the driver.
    ///
    /// # Errors
    /// The same errors as [`add_destination`](Self::add_destination).
    pub fn remove_destination(&self, channel: &str) -> Result<()> {
        self.client().check_may_wait()?;
        self.async_remove_destination(channel)?.wait()
    }

    /// Like [`remove_destination`](Self::remove_destination), but does not wait for the driver.
    ///
    /// # Errors
    /// The same errors as [`async_add_destination`](Self::async_add_destination).
    pub fn async_remove_destination(&self, channel: &str) -> Result<PendingOperation<()>> {
        let steps = self.send_destination(DestinationCommand::RemoveReceive, channel)?;
        Ok(steps.irrevocable().into_operation())
    }

    fn send_destination(
        &self,
        command: DestinationCommand,
        channel: &str,
    ) -> Result<CommandSteps<()>> {
        if self.is_closed() {
            return Err(Error::ResourceClosed {
                resource: "Subscription",
                cause: self.close_cause(),
            });
        }
        let (core, channel) = (Arc::clone(&self.core), channel.to_owned());
        CommandSteps::send(
            self.client(),
            move |conductor, client| {
                if !conductor.is_up() {
                    return Ok(None);
                }
                if command == DestinationCommand::RemoveReceive {
                    core.forget_destination(&channel);
                }
                conductor
                    .request_destination(client, command, core.registration_id(), &channel)
                    .map(Some)
            },
            |_, _, _, _| Some(()),
        )
    }

    fn client(&self) -> &Arc<Client> {
        self.lifetime.client()
    }
}

/// Polling.
impl Subscription {
    /// Acquires the right to poll.
    ///
    /// # Errors
    /// [`Error::InUse`] while another poller exists.
    #[inline]
    pub fn poller(&self) -> Result<SubscriptionPoller<'_>> {
        match self.core.poll_state.try_lock() {
            Some(state) => Ok(SubscriptionPoller {
                core: &self.core,
                state,
            }),
            None => Err(Error::InUse("subscription")),
        }
    }

    /// Calls `handler` for up to `limit` fragments of all images. Each call starts with another image. Returns the
    /// number of fragments.
    ///
    /// The handler returns `()`, an [`Action`](crate::Action), or a `Result` of either; an error consumes the fragment
    /// and ends the poll. If the handler panics, the fragments passed to the handler are consumed.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::CorruptLog`] or [`Error::PositionCounterClosed`], which close the image concerned;
    /// the handler's error.
    #[inline]
    pub fn poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poller()?.poll(handler, limit)
    }

    /// Same as [`poll`](Self::poll). Aeron uses this name if the handler returns an [`Action`](crate::Action). The
    /// action applies to the image of the fragment.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    #[inline]
    pub fn controlled_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poll(handler, limit)
    }

    /// Calls `handler` with one block of at most `limit` bytes of each image, see [`Image::block_poll`]. Returns the
    /// number of bytes.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn block_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(&Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poller()?.block_poll(handler, limit)
    }

    /// Like [`block_poll`](Self::block_poll); `handler` also receives the image, and the block's offset in the log's
    /// file.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn raw_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(&Image, u64, &Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poller()?.raw_poll(handler, limit)
    }

    /// Like [`poll`](Self::poll), but only for `image`, which must be an image of this subscription.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_image<O: HandlerOutcome>(
        &self,
        image: &Image,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poller()?.poll_image(image, handler, limit)
    }

    /// Like [`poll_batch`](Self::poll_batch), but only for `image`, which must be an image of this subscription.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_image_batch(
        &self,
        image: &Image,
        batch: &mut Batch,
        limits: BatchLimits,
    ) -> Result<usize> {
        self.poller()?.poll_image_batch(image, batch, limits)
    }

    /// Copies whole messages, with their fragments joined, to the end of `batch`. Returns the number of messages.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_batch(&self, batch: &mut Batch, limits: BatchLimits) -> Result<usize> {
        self.poller()?.poll_batch(batch, limits)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("channel", &self.channel())
            .field("stream_id", &self.stream_id())
            .field("registration_id", &self.registration_id())
            .field("image_count", &self.image_count())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
