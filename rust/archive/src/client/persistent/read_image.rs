//! [`ReadImage`]: an image, and how far it was read, also when it was closed meanwhile.

use aeron_client::{Action, Fragment, Image, Result};

/// An image, and how far it was read.
///
/// An image that is closed while a handler runs keeps the position at which that poll began. A position taken from it would bring what
/// the poll delivered once more, so the end of the last frame that was taken is remembered here.
#[derive(Clone)]
pub(super) struct ReadImage {
    image: Image,
    /// End of the last frame that was taken.
    taken: i64,
}

impl ReadImage {
    pub(super) fn new(image: Image) -> Self {
        let taken = image.position();
        Self { image, taken }
    }

    /// Position up to which the image was read.
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
                // Before the call: what a handler that panics was given counts as taken.
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
