//! Creates images for the requests of the receiver, one request in each duty cycle.

use aeron_memory::buffer::SharedBuffer;

use super::Conductor;
use super::images::{ImagePlan, NewImage, refuse};
use super::subscriptions::StreamOrigin;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::receiver::ImageRequest;
use crate::stream::LinkedStream;

impl Conductor {
    /// Starts the creation of at most one image, or drops one request that is too old.
    ///
    /// Returns the number of requests handled.
    pub(super) fn take_image_request(&mut self) -> usize {
        if self.images.drop_expired_request(&mut self.outlets) {
            return 1;
        }
        let Some(request) = self.images.next_request(&self.outlets) else {
            return 0;
        };
        if let Err(error) = self.request_image(request.clone()) {
            refuse(&request, Some(&error), &mut self.outlets);
        }
        1
    }

    /// Requests the log of an image, if a subscription matches it.
    fn request_image(&mut self, request: Box<ImageRequest>) -> Result<(), DriverError> {
        let Some(plan) = ImagePlan::of(&request, &self.endpoints, &self.subscriptions) else {
            refuse(&request, None, &mut self.outlets);
            return Ok(());
        };
        self.images.check_request(&request, &plan, &self.outlets)?;
        let correlation_id = self.commands.next_correlation_id();
        self.images
            .request_log(correlation_id, request, &plan, &mut self.outlets)
    }

    /// Continues the creation of the image that waits for this log. `result` is an error if the log cannot be created.
    pub(super) fn on_image_log(&mut self, id: i64, result: Result<SharedBuffer, DriverError>) {
        let Some(pending) = self.images.take_pending(id) else {
            return;
        };
        let memory = match result {
            Ok(memory) => memory,
            Err(error) => return refuse(&pending.request, Some(&error), &mut self.outlets),
        };
        let plan = ImagePlan::of(&pending.request, &self.endpoints, &self.subscriptions);
        let outlets = &mut self.outlets;
        let created = plan.ok_or(None).and_then(|plan| {
            self.images
                .create(&pending, &plan, &memory, outlets)
                .map_err(Some)
        });
        match created {
            Ok(new) => self.start_image(new),
            Err(error) => {
                outlets.remove_log(LogId::Image(id));
                refuse(&pending.request, error.as_ref(), outlets);
            }
        }
    }

    /// Links a new image to every subscription that matches it.
    fn start_image(&mut self, mut new: NewImage) {
        let endpoint = new.image.config().endpoint;
        debug_assert!(
            self.endpoints
                .receive_endpoint(endpoint)
                .is_some_and(|record| record.has_interest()),
            "an image starts at endpoint {endpoint}, which counts none of its subscriptions and may close"
        );
        if let Some(endpoint) = self.endpoints.receive_endpoint_mut(endpoint) {
            endpoint.add_image();
        }
        let session = new.image.identity().session();
        let origin = StreamOrigin::Received(endpoint);
        for subscription in self.subscriptions.matching(session, origin) {
            if let Err(error) = self.outlets.link(&mut new.image, subscription) {
                self.outlets.errors.record(&error);
            }
        }
        self.images.add(new, &mut self.outlets);
    }
}
