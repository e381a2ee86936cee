//! Rejects an image through the conductor and the driver.

use super::Image;
use crate::error::{Error, Result};
use crate::operation::{CommandSteps, PendingOperation};

impl Image {
    /// Asks the driver to reject the image, with `reason` (at most 1023 bytes) for the publisher, and waits for the
    /// response. The image then becomes unavailable.
    ///
    /// # Errors
    /// [`Error::SpyCannotReject`], [`Error::ResourceClosed`], the driver's refusal, or no response.
    pub fn reject(&self, reason: &str) -> Result<()> {
        self.core.parts.client.check_may_wait()?;
        self.async_reject(reason)?.wait()
    }

    /// Like [`reject`](Self::reject), but does not wait for the driver. The operation cannot be cancelled.
    ///
    /// # Errors
    /// [`Error::SpyCannotReject`], [`Error::ResourceClosed`], or the command could not be sent. The operation returns
    /// all other errors.
    pub fn async_reject(&self, reason: &str) -> Result<PendingOperation<()>> {
        if self.core.parts.is_spy {
            return Err(Error::SpyCannotReject);
        }
        if self.is_closed() {
            return Err(Error::ResourceClosed {
                resource: "Image",
                cause: self.close_cause(),
            });
        }
        let (image_id, position, reason) =
            (self.correlation_id(), self.position(), reason.to_owned());
        let steps = CommandSteps::send(
            &self.core.parts.client,
            move |conductor, client| {
                conductor.request_rejection(client, image_id, position, &reason)
            },
            |_, _, _, _| Some(()),
        )?;
        Ok(steps.irrevocable().into_operation())
    }
}
