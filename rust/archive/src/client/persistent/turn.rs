//! [`Turn`]: one poll of a persistent subscription, and the delivery of messages.

use aeron_client::{Action, Fragment, ImageFragmentAssembler};

use super::read_image::ReadImage;

/// Called with each message.
pub(super) type OnMessage<'a> = dyn FnMut(Fragment<'_>) -> Action + 'a;

/// One poll.
pub(super) struct Turn<'a> {
    pub(super) now_ns: i64,
    /// Maximum number of fragments that this poll reads from one image.
    pub(super) fragment_limit: usize,
    pub(super) on_message: &'a mut OnMessage<'a>,
    /// Used for replays and for the live stream, because a message may begin in a replay and end in
    /// the live stream.
    pub(super) assembler: &'a mut ImageFragmentAssembler,
    /// Work count.
    pub(super) work: usize,
}

impl Turn<'_> {
    /// Delivers messages of an image. Returns the number of fragments.
    pub(super) fn deliver(&mut self, image: &mut ReadImage) -> aeron_client::Result<usize> {
        let Self {
            assembler,
            on_message,
            ..
        } = self;
        let polled = image.poll(
            |fragment| assembler.on_controlled_fragment(fragment, &mut **on_message),
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
    ) -> aeron_client::Result<bool> {
        let Self {
            assembler,
            on_message,
            ..
        } = self;
        let mut is_reached = false;
        let polled = image.poll(
            |fragment| {
                if Some(fragment.header().position()) == end {
                    is_reached = true;
                    return Action::Abort;
                }
                assembler.on_controlled_fragment(fragment, &mut **on_message)
            },
            self.fragment_limit,
        );
        self.finish(polled)?;
        Ok(is_reached)
    }

    /// Skips the frames of an image that end at or before `position`. Returns the end of the next frame.
    pub(super) fn skip_to(
        &mut self,
        image: &mut ReadImage,
        position: i64,
    ) -> aeron_client::Result<Option<i64>> {
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

    fn finish(&mut self, polled: aeron_client::Result<usize>) -> aeron_client::Result<usize> {
        let count = polled?;
        self.work += count;
        match self.assembler.take_out_of_memory() {
            Some(error) if count == 0 => Err(error),
            _ => Ok(count),
        }
    }
}
