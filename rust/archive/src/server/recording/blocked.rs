//! [`BlockedImages`]: images of recordings that have failed and may be continued.
//!
//! No agent reads a blocked image, so its publisher is blocked. If the recording has failed because there is no space,
//! the archive tries again each second to continue it at its stop position. Then no bytes of the stream are lost.

use aeron_client::Image;

/// Time between two attempts, in milliseconds.
const RETRY_INTERVAL_MS: i64 = 1_000;

/// An image that is to be recorded.
pub(super) struct ArrivedImage {
    /// Number of the subscription.
    pub number: u64,
    pub image: Image,
    /// Recording of the image that has failed. The image is to continue this recording.
    pub failed_id: Option<i64>,
    /// Whether the failure of the recording was already reported.
    pub is_reported: bool,
}

/// Images that no agent reads, because their recordings have failed.
#[derive(Default)]
pub(super) struct BlockedImages {
    images: Vec<BlockedImage>,
}

struct BlockedImage {
    arrived: ArrivedImage,
    /// Time of the last attempt, in milliseconds since the epoch; `None` if the archive does not try again.
    attempted_ms: Option<i64>,
}

impl BlockedImage {
    fn is_due(&self, now_ms: i64) -> bool {
        // A clock that was set back must not delay the next attempt.
        self.attempted_ms.is_some_and(|attempted_ms| {
            !(attempted_ms..attempted_ms + RETRY_INTERVAL_MS).contains(&now_ms)
        })
    }
}

impl BlockedImages {
    /// Adds an image. If `is_retried` is `false`, the image stays blocked until its subscription is stopped.
    pub fn add(&mut self, arrived: ArrivedImage, is_retried: bool, now_ms: i64) {
        let attempted_ms = is_retried.then_some(now_ms);
        self.images.push(BlockedImage {
            arrived,
            attempted_ms,
        });
    }

    /// Returns the number of blocked images.
    pub fn count(&self) -> usize {
        self.images.len()
    }

    /// Returns whether it is time for the next attempt to record an image.
    pub fn has_due(&self, now_ms: i64) -> bool {
        self.images.iter().any(|image| image.is_due(now_ms))
    }

    /// Removes and returns the images for which it is time for the next attempt.
    pub fn take_due(&mut self, now_ms: i64) -> Vec<ArrivedImage> {
        self.take(|image| image.is_due(now_ms))
    }

    /// Removes and returns the images that have ended.
    pub fn take_closed(&mut self) -> Vec<ArrivedImage> {
        self.take(|image| image.arrived.image.is_closed())
    }

    /// Removes and returns the images of a subscription.
    pub fn take_of(&mut self, number: u64) -> Vec<ArrivedImage> {
        self.take(|image| image.arrived.number == number)
    }

    /// Returns the number of the subscription whose image is to continue a recording.
    pub fn number_of(&self, recording_id: i64) -> Option<u64> {
        let mut images = self.images.iter().map(|image| &image.arrived);
        let found = images.find(|image| image.failed_id == Some(recording_id));
        found.map(|image| image.number)
    }

    fn take(&mut self, is_taken: impl Fn(&BlockedImage) -> bool) -> Vec<ArrivedImage> {
        let taken = self.images.extract_if(.., |image| is_taken(image));
        taken.map(|image| image.arrived).collect()
    }
}
