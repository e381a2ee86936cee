//! [`Turns`]: decides which image is polled next.

use std::sync::Arc;

use crate::batch::PartialMessages;
use crate::image::Image;

/// State of the poll, protected by the poll lock.
#[derive(Default)]
pub(super) struct PollState {
    pub(super) turns: Turns,
    pub(super) version: u64,
    pub(super) partial: PartialMessages,
}

/// The images, and the index of the image to poll first.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) images: Arc<[Image]>,
    next: usize,
}

impl Turns {
    /// Polls one image after the other until the limit is used up. Each call starts with the next image.
    #[inline(always)]
    pub(super) fn take<E>(
        &mut self,
        limit: usize,
        mut poll: impl FnMut(&Image, usize) -> std::result::Result<usize, E>,
    ) -> std::result::Result<usize, E> {
        let (later, first) = self.images.split_at(self.next.min(self.images.len()));
        self.next = if first.len() > 1 { later.len() + 1 } else { 0 };
        let mut count = 0;
        for image in first.iter().chain(later) {
            if count >= limit {
                break;
            }
            count += poll(image, limit - count)?;
        }
        debug_assert!(
            count <= limit || limit == 0,
            "a poll must not deliver {count} fragments, more than its limit of {limit}"
        );
        Ok(count)
    }
}
