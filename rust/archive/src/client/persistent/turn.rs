//! [`Turn`]: one poll of a persistent subscription, and the delivery of messages to a handler or a batch.

use aeron_client::{
    Action, Batch, BatchLimits, Error, Fragment, FragmentAssembler, MAX_BATCH_BYTES, Result,
};

use super::read_image::ReadImage;

/// Receives the messages of a poll.
pub(super) trait Receiver {
    fn take(&mut self, message: Fragment<'_>) -> Action;

    /// Whether [`take_unfragmented`](Self::take_unfragmented) can take messages.
    fn takes_unfragmented(&self) -> bool {
        false
    }

    /// Takes messages until a message has more than one fragment. Returns the number of taken messages.
    fn take_unfragmented(&mut self, _image: &mut ReadImage) -> Result<usize> {
        Ok(0)
    }

    /// Removes and returns the out-of-memory error, if the last message was aborted because there was no memory for it.
    fn take_out_of_memory(&mut self) -> Option<Error> {
        None
    }
}

impl<F: FnMut(Fragment<'_>) -> Action> Receiver for F {
    fn take(&mut self, message: Fragment<'_>) -> Action {
        self(message)
    }
}

/// Adds the messages of a poll to a batch.
pub(super) struct BatchReceiver<'a> {
    batch: &'a mut Batch,
    /// Limits of the whole batch, with the messages that it had before.
    limits: BatchLimits,
    out_of_memory: Option<Error>,
}

impl<'a> BatchReceiver<'a> {
    /// Creates a receiver that adds messages up to `limits`.
    pub(super) fn new(batch: &'a mut Batch, limits: BatchLimits) -> Self {
        let limits = BatchLimits {
            messages: batch.len().saturating_add(limits.messages),
            bytes: limits.bytes.min(MAX_BATCH_BYTES),
        };
        Self {
            batch,
            limits,
            out_of_memory: None,
        }
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= self.limits.messages || self.batch.data().len() >= self.limits.bytes
    }
}

impl Receiver for BatchReceiver<'_> {
    /// Adds a message. If there is no memory for it, a later poll delivers the message again.
    fn take(&mut self, message: Fragment<'_>) -> Action {
        if self.is_full() {
            return Action::Abort;
        }
        if let Err(error) = self.batch.push(&message) {
            self.out_of_memory = Some(error);
            return Action::Abort;
        }
        match self.is_full() {
            true => Action::Break,
            false => Action::Continue,
        }
    }

    fn takes_unfragmented(&self) -> bool {
        true
    }

    /// Much faster than a call of [`take`](Receiver::take) for each message.
    fn take_unfragmented(&mut self, image: &mut ReadImage) -> Result<usize> {
        let before = self.batch.len();
        debug_assert!(
            before <= self.limits.messages,
            "a batch must not have {before} messages, more than its limit of {}",
            self.limits.messages
        );
        let limits = BatchLimits {
            messages: self.limits.messages.saturating_sub(before),
            ..self.limits
        };
        let polled = image.poll_unfragmented(self.batch, limits);
        match (polled, self.batch.len() - before) {
            (Err(Error::OutOfMemory { .. }), count) if count > 0 => Ok(count),
            (polled, _) => polled,
        }
    }

    fn take_out_of_memory(&mut self) -> Option<Error> {
        self.out_of_memory.take()
    }
}

/// One poll.
pub(super) struct Turn<'a> {
    pub(super) now_ns: i64,
    /// Maximum number of fragments that this poll reads from one image.
    pub(super) fragment_limit: usize,
    pub(super) receiver: &'a mut (dyn Receiver + 'a),
    /// Used for replays and for the live stream, because a message may begin in a replay and end in
    /// the live stream.
    pub(super) assembler: &'a mut FragmentAssembler,
    /// Work count.
    pub(super) work: usize,
}

impl Turn<'_> {
    /// Delivers messages of an image. Returns the number of fragments.
    pub(super) fn deliver(&mut self, image: &mut ReadImage) -> Result<usize> {
        if !self.receiver.takes_unfragmented() {
            return self.deliver_fragments(image);
        }
        let end = image.term_end();
        let mut total = 0;
        while image.position() < end {
            match self.deliver_next(image) {
                Ok(0) => break,
                Ok(count) => total += count,
                Err(Error::OutOfMemory { .. }) if total > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    /// Delivers the messages before the next message of several fragments. If there are none, delivers this message.
    fn deliver_next(&mut self, image: &mut ReadImage) -> Result<usize> {
        let count = self.receiver.take_unfragmented(image)?;
        if count == 0 {
            return self.deliver_fragments(image);
        }
        self.work += count;
        Ok(count)
    }

    fn deliver_fragments(&mut self, image: &mut ReadImage) -> Result<usize> {
        let Self {
            assembler,
            receiver,
            ..
        } = self;
        let ends_after_message = receiver.takes_unfragmented();
        let polled = image.poll(
            |fragment| {
                assembler.on_controlled_fragment(fragment, |message| match receiver.take(message) {
                    Action::Continue if ends_after_message => Action::Break,
                    action => action,
                })
            },
            self.fragment_limit,
        );
        self.finish(polled)
    }

    /// Delivers messages of an image before the frame that ends at `end`. This frame is not
    /// delivered. Returns whether the frame was reached.
    pub(super) fn deliver_before(
        &mut self,
        image: &mut ReadImage,
        end: Option<i64>,
    ) -> Result<bool> {
        let Self {
            assembler,
            receiver,
            ..
        } = self;
        let mut is_reached = false;
        let polled = image.poll(
            |fragment| {
                if Some(fragment.header().position()) == end {
                    is_reached = true;
                    return Action::Abort;
                }
                assembler.on_controlled_fragment(fragment, |message| receiver.take(message))
            },
            self.fragment_limit,
        );
        self.finish(polled)?;
        Ok(is_reached)
    }

    /// Skips the frames of an image that end at or before `position`. Returns the end of the next frame.
    pub(super) fn skip_to(&mut self, image: &mut ReadImage, position: i64) -> Result<Option<i64>> {
        let mut next_end = None;
        self.work += image.poll(
            |fragment| {
                let end = fragment.header().position();
                if end <= position {
                    return Action::Continue;
                }
                next_end = Some(end);
                Action::Abort
            },
            self.fragment_limit,
        )?;
        Ok(next_end)
    }

    fn finish(&mut self, polled: Result<usize>) -> Result<usize> {
        let count = polled?;
        self.work += count;
        let missing = self.assembler.take_out_of_memory();
        match missing.or_else(|| self.receiver.take_out_of_memory()) {
            Some(error) if count == 0 => Err(error),
            _ => Ok(count),
        }
    }
}
