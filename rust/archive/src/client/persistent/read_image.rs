//! [`ReadImage`]: an image and the position up to which it was read. The position stays correct if
//! the image is closed during a poll.

use aeron_client::{Action, Fragment, Image, Result};

/// An image and the position up to which it was read.
///
/// If an image is closed while a handler runs, the position of the image stays at the begin of that
/// poll. A replay from that position would deliver the messages of the poll twice. So the end of
/// the last delivered frame is stored here.
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
                // Set before the handler is called: a frame counts as delivered even if the handler panics.
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
