//! [`ReadImage`]: an image and its read position, which stays correct if the image is closed during a poll.

use aeron_client::{Action, Fragment, Image, Result};

/// An image and its read position.
///
/// If an image is closed while a handler runs, its own position stays where that poll began. A replay from there would
/// deliver the messages of that poll twice. So the end of the last delivered frame is stored here.
#[derive(Clone)]
pub(super) struct ReadImage {
    image: Image,
    /// End of the last delivered frame.
    taken: i64,
}

impl ReadImage {
    pub(super) fn new(image: Image) -> Self {
        let taken = image.position();
        Self { image, taken }
    }

    /// Returns the position up to which the image was read.
    pub(super) fn position(&self) -> i64 {
        self.image.position().max(self.taken)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.image.is_closed()
    }

    /// Calls `handler` with up to `limit` fragments. Returns their number.
    pub(super) fn poll(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
        limit: usize,
    ) -> Result<usize> {
        let taken = &mut self.taken;
        self.image.poll(
            |fragment| {
                // Before the call: a frame counts as delivered even if the handler panics.
                let before = std::mem::replace(taken, fragment.header().position());
                let action = handler(fragment);
                if action == Action::Abort {
                    *taken = before;
                }
                action
            },
            limit,
        )
    }
}
