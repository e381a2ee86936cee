//! [`UnrecordedImages`]: images of recording subscriptions that no recording reads.

use aeron_client::Image;

/// Images that the archive reads without recording them. Each of them belongs to a subscription that stays open.
/// An unread image would block its publisher and all other subscribers of the stream.
#[derive(Default)]
pub(super) struct UnrecordedImages {
    images: Vec<UnrecordedImage>,
    lost_bytes: u64,
}

struct UnrecordedImage {
    image: Image,
    /// Whether the recording of the image has failed, so that its bytes are lost.
    is_lost: bool,
}

impl UnrecordedImages {
    /// Adds an image that is not recorded, or no longer recorded.
    pub fn add(&mut self, image: Image) {
        self.images.push(UnrecordedImage {
            image,
            is_lost: false,
        });
    }

    /// Adds an image that should be recorded. Its recording has failed, so its bytes are counted as lost.
    pub fn add_lost(&mut self, image: Image) {
        self.images.push(UnrecordedImage {
            image,
            is_lost: true,
        });
    }

    /// Returns the number of bytes of the images added by [`add_lost`](Self::add_lost) that were consumed.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Consumes at most one block of each image. Removes the images that have ended. Returns the number of bytes.
    pub fn consume(&mut self) -> usize {
        let mut bytes = 0;
        let lost_bytes = &mut self.lost_bytes;
        self.images.retain(|UnrecordedImage { image, is_lost }| {
            // A corrupt frame closes the image.
            let consumed = image.block_poll(|_| (), image.term_buffer_length());
            let consumed = consumed.unwrap_or(0);
            bytes += consumed;
            if *is_lost {
                *lost_bytes += consumed as u64;
            }
            !image.is_closed() && !image.is_end_of_stream()
        });
        bytes
    }
}
