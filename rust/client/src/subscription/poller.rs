//! [`Poller`]: the loop over a subscription's images.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::reader::Block;
use spin::mutex::SpinMutexGuard;

use super::SubscriptionCore;
use crate::batch::{Batch, BatchLimits, PartialMessages};
use crate::error::{Result, TryPollError};
use crate::fragment::{Action, Fragment};
use crate::handlers::lock;
use crate::image::Image;

/// The exclusive right to poll a subscription, until it is dropped.
pub struct Poller<'a> {
    pub(super) core: &'a SubscriptionCore,
    pub(super) state: SpinMutexGuard<'a, PollState>,
}

/// What belongs to whoever polls.
#[derive(Default)]
pub(super) struct PollState {
    turns: Turns,
    version: u64,
    partial: PartialMessages,
}

/// The images, and which of them is next.
#[derive(Default)]
struct Turns {
    images: Arc<[Image]>,
    next: usize,
}

impl Poller<'_> {
    /// See [`Subscription::poll`](super::Subscription::poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    #[inline]
    pub fn poll(&mut self, mut handler: impl FnMut(Fragment<'_>), limit: usize) -> Result<usize> {
        self.controlled_poll(
            |fragment| {
                handler(fragment);
                Action::Continue
            },
            limit,
        )
    }

    /// See [`Subscription::try_poll`](super::Subscription::try_poll).
    ///
    /// # Errors
    /// See [`Subscription::try_poll`](super::Subscription::try_poll).
    #[inline]
    pub fn try_poll<E>(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> std::result::Result<(), E>,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        self.try_controlled_poll(
            |fragment| handler(fragment).map(|()| Action::Continue),
            limit,
        )
    }

    /// See [`Subscription::controlled_poll`](super::Subscription::controlled_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    #[inline]
    pub fn controlled_poll(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
        limit: usize,
    ) -> Result<usize> {
        let polled = self.look(|state| {
            state.turns.take(limit, |image, left| {
                image
                    .controlled_poll(&mut handler, left)
                    .map_err(TryPollError::<Infallible>::Poll)
            })
        });
        polled.map_err(TryPollError::without_handler_error)
    }

    /// See [`Subscription::try_controlled_poll`](super::Subscription::try_controlled_poll).
    ///
    /// # Errors
    /// See [`Subscription::try_poll`](super::Subscription::try_poll).
    #[inline]
    pub fn try_controlled_poll<E>(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> std::result::Result<Action, E>,
        limit: usize,
    ) -> std::result::Result<usize, TryPollError<E>> {
        self.look(|state| {
            state.turns.take(limit, |image, left| {
                image.try_controlled_poll(&mut handler, left)
            })
        })
    }

    /// See [`Subscription::block_poll`](super::Subscription::block_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn block_poll(
        &mut self,
        mut handler: impl FnMut(&Block<'_, SharedBuffer>),
        limit: usize,
    ) -> Result<usize> {
        self.look(|state| {
            let mut bytes = 0;
            for image in state.turns.images.iter() {
                bytes += image.block_poll(&mut handler, limit)?;
            }
            Ok(bytes)
        })
    }

    /// See [`Subscription::raw_poll`](super::Subscription::raw_poll).
    ///
    /// # Errors
    /// See [`Subscription::poll`](super::Subscription::poll).
    pub fn raw_poll(
        &mut self,
        mut handler: impl FnMut(&Image, u64, &Block<'_, SharedBuffer>),
        limit: usize,
    ) -> Result<usize> {
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
        let polled = self.look(|PollState { turns, partial, .. }| {
            turns.take(limits.messages, |image, left| {
                let limits = BatchLimits {
                    messages: left,
                    ..limits
                };
                batch
                    .poll_image(image, partial, limits)
                    .map_err(TryPollError::<Infallible>::Poll)
            })
        });
        polled.map_err(TryPollError::without_handler_error)
    }

    /// Polls the images as they are after idle work of the client, if it was time for that.
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

    /// Takes over the list of images when it has changed.
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

impl Turns {
    /// Polls one image after the other until the limit is used up, beginning one further than the time before.
    #[inline(always)]
    fn take<E>(
        &mut self,
        limit: usize,
        mut poll: impl FnMut(&Image, usize) -> std::result::Result<usize, TryPollError<E>>,
    ) -> std::result::Result<usize, TryPollError<E>> {
        let (later, first) = self.images.split_at(self.next.min(self.images.len()));
        self.next = if first.len() > 1 { later.len() + 1 } else { 0 };
        let mut count = 0;
        for image in first.iter().chain(later) {
            if count >= limit {
                break;
            }
            count += poll(image, limit - count)?;
        }
        Ok(count)
    }
}
