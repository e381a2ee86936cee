//! Polls one image: the loop over its fragments, and the update of its position.

use std::sync::atomic::{AtomicBool, Ordering};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::CorruptLog;
use aeron_memory::log::reader::{Block, Cursor};

use super::Image;
use crate::action::{Action, HandlerOutcome};
use crate::error::{CloseCause, Error, Result};
use crate::fragment::Fragment;

impl Image {
    /// Calls `handler` for up to `limit` fragments. Returns the number of fragments.
    ///
    /// The handler returns `()`, an [`Action`], or a `Result` of either; an error consumes the fragment and ends the
    /// poll. One call does not cross the end of a term. If the handler panics, the fragments passed to the handler
    /// are consumed.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::CorruptLog`] or [`Error::PositionCounterClosed`], which close the image; the
    /// handler's error.
    #[inline]
    pub fn poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.read(None, limit, handler)
    }

    /// Same as [`poll`](Self::poll). Aeron uses this name if the handler returns an [`Action`].
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

    /// Like [`poll`](Self::poll), but delivers only fragments that begin before `limit_position`.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn bounded_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit_position: i64,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.read(Some(limit_position), limit, handler)
    }

    /// Same as [`bounded_poll`](Self::bounded_poll). Aeron uses this name if the handler returns an [`Action`].
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn bounded_controlled_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit_position: i64,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.bounded_poll(handler, limit_position, limit)
    }

    /// Calls `handler` with one block: whole frames with their headers, at most `limit` bytes. Returns the length of
    /// the block.
    ///
    /// A padding frame is a separate block, and may be longer than `limit`. If the next frame is not padding and is
    /// longer than `limit`, returns 0. After an error of the handler or [`Action::Abort`] the block is not consumed.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn block_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnOnce(&Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.exclusively(|| {
            let Some(mut reading) = self.begin(None)? else {
                return Ok(0);
            };
            let Some(block) = reading.next(|cursor| cursor.next_block(limit))? else {
                return Ok(0);
            };
            let action = handler(&block).into_action();
            if matches!(action, Ok(Action::Abort) | Err(_)) {
                reading.cursor.return_to_block(&block);
            }
            match action? {
                Action::Abort => Ok(0),
                Action::Break | Action::Commit | Action::Continue => Ok(block.length()),
            }
        })
    }

    /// Like [`block_poll`](Self::block_poll); `handler` also receives the block's offset in the log's file.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn raw_poll<O: HandlerOutcome>(
        &self,
        handler: impl FnOnce(u64, &Block<'_, SharedBuffer>) -> O,
        limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        let positions = self.log().positions();
        self.block_poll(
            |block| {
                let partition = positions.partition(block.begin_position());
                let file_offset = partition * positions.term_length() + block.offset();
                handler(file_offset as u64, block)
            },
            limit,
        )
    }

    /// Whether a poll would find anything: a fragment, padding, or an error. Consumes nothing. Usable from any thread.
    pub(crate) fn is_readable(&self) -> bool {
        let position = self.core.parts.position.get();
        if self.is_closed() {
            return false;
        }
        if !self.has_position_counter() && !self.is_of_closed_driver() {
            // The poll finds an error, or nothing if the client has lost the driver.
            return !self.is_orphaned();
        }
        let Ok(mut cursor) = self.log().cursor(position) else {
            return true;
        };
        !matches!(cursor.next_fragment(), Ok(None)) || cursor.position() != position
    }

    /// Runs a poll unless another poll runs. Plain loads and stores are enough to keep a handler from polling its own
    /// image. They do not stop two threads that enter at the same instant: both threads then read the same fragments.
    #[inline(always)]
    pub(crate) fn exclusively<E: From<Error>>(
        &self,
        poll: impl FnOnce() -> std::result::Result<usize, E>,
    ) -> std::result::Result<usize, E> {
        let polling = &self.core.polling;
        if polling.load(Ordering::Relaxed) {
            return Err(Error::InUse("image").into());
        }
        polling.store(true, Ordering::Relaxed);
        let _done = Reset(polling);
        poll()
    }

    /// Runs the loop of all polls that call a handler for each fragment.
    #[inline(always)]
    fn read<O: HandlerOutcome>(
        &self,
        limit_position: Option<i64>,
        limit: usize,
        mut handler: impl FnMut(Fragment<'_>) -> O,
    ) -> std::result::Result<usize, O::PollError> {
        self.exclusively(|| {
            let Some(mut reading) = self.begin(limit_position)? else {
                return Ok(0);
            };
            let mut count = 0;
            while count < limit && !self.is_closed() {
                let Some(fragment) = reading.next(Cursor::next_fragment)? else {
                    break;
                };
                match handler(Fragment::in_log(fragment, self)).into_action()? {
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
        })
    }

    /// Starts a read at the subscriber's position. Returns `None` if the image is closed or the limit is reached.
    #[inline(always)]
    pub(crate) fn begin(&self, limit_position: Option<i64>) -> Result<Option<Reading<'_>>> {
        if self.is_closed() {
            return Ok(None);
        }
        if !self.has_position_counter() && !self.is_of_closed_driver() {
            return self.without_position_counter();
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

    /// Closes the image because its log is corrupt.
    #[cold]
    fn corrupt(&self, reason: CorruptLog) -> Error {
        self.fail(Error::CorruptLog {
            correlation_id: self.correlation_id(),
            reason,
        })
    }

    /// The position counter of the image belongs to another client. Closes the image, unless the driver has timed out a
    /// client that reconnects: then there is nothing to read.
    #[cold]
    fn without_position_counter(&self) -> Result<Option<Reading<'_>>> {
        let parts = &self.core.parts;
        if self.is_orphaned() || parts.client.reconnects() && !parts.link.has_heartbeat_counter() {
            return Ok(None);
        }
        Err(self.fail(Error::PositionCounterClosed {
            correlation_id: self.correlation_id(),
            counter_id: self.subscriber_position_id(),
        }))
    }

    fn fail(&self, error: Error) -> Error {
        self.close(&CloseCause::error(error.clone()));
        self.core.parts.client.dispatcher.report(error.clone());
        error
    }
}

/// A poll in progress. At its end, even after a panic, the poll publishes the position up to which it has read.
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

    /// Publishes the cursor's position as the subscriber's position, unless the image was closed during the poll.
    #[inline(always)]
    fn publish(&mut self) {
        let position = self.cursor.position();
        debug_assert!(
            position >= self.published,
            "a subscriber position must not go back from {} to {position}: the driver may reuse the memory before it",
            self.published
        );
        let core = &self.image.core;
        // After a fork, only the parent may publish the position.
        if position == self.published || core.parts.client.is_foreign() {
            return;
        }
        // Known even after the driver has freed the counter, and even if the image was closed during the poll.
        core.last
            .consumed_position
            .store(position, Ordering::Relaxed);
        if !self.image.is_closed() {
            core.parts.position.set(position);
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
