//! [`SubscriptionPoller`]: the loop over a subscription's images.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::reader::Block;
use spin::mutex::SpinMutexGuard;

use super::core::SubscriptionCore;
use super::turns::PollState;
use crate::action::HandlerOutcome;
use crate::batch::{Batch, BatchLimits};
use crate::error::Result;
use crate::fragment::Fragment;
use crate::image::Image;
use crate::lock::lock;

/// The exclusive right to poll a subscription. The right ends when this value is dropped.
pub struct SubscriptionPoller<'a> {
    pub(super) core: &'a SubscriptionCore,
    pub(super) state: SpinMutexGuard<'a, PollState>,
}

impl SubscriptionPoller<'_> {
    /// See [`Subscription::poll`](super::Subscription::poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    #[inline]
    pub fn poll<O: HandlerOutcome>(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.look(|state| {
            state
                .turns
                .take(limit, |image, left| image.poll(&mut handler, left))
        })
    }

    /// See [`Subscription::controlled_poll`](super::Subscription::controlled_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    #[inline]
    pub fn controlled_poll<O: HandlerOutcome>(
        &mut self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poll(handler, limit)
    }

    /// See [`Subscription::block_poll`](super::Subscription::block_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn block_poll<O: HandlerOutcome>(
        &mut self,
        mut handler: impl FnMut(&Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.raw_poll(|_, _, block| handler(block), limit)
    }

    /// See [`Subscription::raw_poll`](super::Subscription::raw_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn raw_poll<O: HandlerOutcome>(
        &mut self,
        mut handler: impl FnMut(&Image, u64, &Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.look(|state| {
            let mut bytes = 0;
            for image in state.turns.images.iter() {
                bytes += image.raw_poll(
                    |file_offset, block| handler(image, file_offset, block),
                    limit,
                )?;
            }
            Ok(bytes)
        })
    }

    /// See [`Subscription::poll_batch`](super::Subscription::poll_batch).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn poll_batch(&mut self, batch: &mut Batch, limits: BatchLimits) -> Result<usize> {
        self.look(|PollState { turns, partial, .. }| {
            turns.take(limits.messages, |image, left| {
                let limits = BatchLimits {
                    messages: left,
                    ..limits
                };
                batch.poll_image(image, partial, limits)
            })
        })
    }

    /// See [`Subscription::poll_image`](super::Subscription::poll_image).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn poll_image<O: HandlerOutcome>(
        &mut self,
        image: &Image,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.look(|_| image.poll(handler, limit))
    }

    /// See [`Subscription::poll_image_batch`](super::Subscription::poll_image_batch).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn poll_image_batch(
        &mut self,
        image: &Image,
        batch: &mut Batch,
        limits: BatchLimits,
    ) -> Result<usize> {
        self.look(|state| batch.poll_image(image, &mut state.partial, limits))
    }

    /// Does the client's idle work if it is due, updates the list of images, then calls `poll`.
    #[inline(always)]
    fn look<E>(
        &mut self,
        poll: impl FnOnce(&mut PollState) -> std::result::Result<usize, E>,
    ) -> std::result::Result<usize, E> {
        if let Some(part) = &self.core.idle_part {
            part.before_poll();
        }
        self.refresh();
        let found = poll(&mut self.state)?;
        if let Some(part) = &self.core.idle_part {
            part.after_poll(found);
        }
        Ok(found)
    }

    /// Updates the list of images if it has changed.
    #[inline(always)]
    fn refresh(&mut self) {
        if self.core.version.load(Ordering::Acquire) != self.state.version {
            self.take_over_images();
        }
    }

    #[cold]
    fn take_over_images(&mut self) {
        let images = lock(&self.core.images);
        self.state.version = self.core.version.load(Ordering::Acquire);
        self.state.turns.images = Arc::clone(&images);
        self.state
            .partial
            .retain(|session_id| images.iter().any(|image| image.session_id() == session_id));
    }
}
