//! [`UnrecordedImages`]: images of recording subscriptions that no recording reads.

use aeron_client::Image;

/// Images that the archive reads without recording them. Each of them belongs to a subscription that stays open.
/// An unread image would block its publisher and all other subscribers of the stream.
#[derive(Default)]
pub(super) struct UnrecordedImages {
    images: Vec<Image>,
}

impl UnrecordedImages {
    /// Adds an image that is not recorded, or no longer recorded.
    pub fn add(&mut self, image: Image) {
        self.images.push(image);
    }

    /// Consumes at most one block of each image. Removes the images that have ended. Returns the number of bytes.
    pub fn consume(&mut self) -> usize {
        let mut bytes = 0;
        self.images.retain(|image| {
            // A corrupt frame closes the image.
            let consumed = image.block_poll(|_| (), image.term_buffer_length());
            bytes += consumed.unwrap_or(0);
            !image.is_closed() && !image.is_end_of_stream()
        });
        bytes
    }
}
