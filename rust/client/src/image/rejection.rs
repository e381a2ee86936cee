//! Rejects an image through the conductor and the driver.

use super::Image;
use crate::command::CommandSteps;
use crate::error::{Error, Result};
use crate::operation::{PendingOperation, Waiter};

impl Image {
    fn closed_error(&self) -> Error {
        Error::ResourceClosed {
            resource: "Image",
            cause: self.close_cause(),
        }
    }

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
        if self.is_closed() || self.is_orphaned() {
            return Err(self.closed_error());
        }
        let (image, reason) = (self.clone(), reason.to_owned());
        let steps = CommandSteps::send(
            &self.core.parts.client,
            move |conductor, client| {
                // The next driver does not have the image.
                if image.is_closed() || image.is_orphaned() {
                    return Err(image.closed_error());
                }
                let (id, position) = (image.correlation_id(), image.position());
                conductor
                    .request_rejection(client, id, position, &reason)
                    .map(Some)
            },
            |_, _, _, _| Some(()),
        )?;
        Ok(steps.irrevocable().into_operation())
    }
}
