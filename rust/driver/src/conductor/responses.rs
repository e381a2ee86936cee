//! Response channels (docs/spec/04, section 15).
//!
//! Links the publication that sends responses with two objects: the image of the requests, and the subscription that
//! receives the responses.

use aeron_protocol::uri::{PublicationParams, ResponseCorrelation};

use super::Conductor;
use crate::error::DriverError;
use crate::receiver::ReceiverCommand;
use crate::stream::StreamSession;

impl Conductor {
    /// Checks that the `response-correlation-id` of a publication names an existing image, or an existing subscription.
    ///
    /// If the publication carries responses, the id must name an image that requested responses. If the publication
    /// carries requests, the id must name the subscription that receives the responses.
    pub(super) fn check_response_channel(
        &self,
        params: &PublicationParams,
    ) -> Result<(), DriverError> {
        let id = match params.response_correlation {
            Some(ResponseCorrelation::Id(id)) => id,
            Some(ResponseCorrelation::Prototype) | None => return Ok(()),
        };
        if params.is_response {
            return self.check_response_image(id);
        }
        let takes_responses = |id| self.subscriptions.network(id).is_some();
        if id < 0 || takes_responses(id) {
            return Ok(());
        }
        Err(DriverError::invalid_argument(format_args!(
            "unable to find response subscription for response-correlation-id={id}"
        )))
    }

    fn check_response_image(&self, id: i64) -> Result<(), DriverError> {
        if id < 0 {
            return Err(DriverError::invalid_argument(
                "control-mode=response was specified, but no response-correlation-id set",
            ));
        }
        let image = self.images.find(id);
        match image {
            None => Err(DriverError::invalid_argument(format_args!(
                "image.correlationId={id} not found"
            ))),
            Some(image) if !image.config().wants_response => Err(DriverError::invalid_argument(
                format_args!("image.correlationId={id} did not request a response channel"),
            )),
            Some(_) => Ok(()),
        }
    }

    /// Stores the session of a response publication in the image of the requests.
    pub(super) fn link_response_publication(&mut self, index: usize) {
        let publication = &self.publications.network()[index];
        let config = publication.config();
        if publication.options().is_response
            && let Some(image) = self.images.find(config.response_correlation_id)
        {
            image
                .status()
                .set_response_session_id(Some(config.session_id));
            image.status().request_status_message();
        }
    }

    /// Handles the announcement in which the other side names the session of its responses.
    ///
    /// Sets the session of the subscription that receives the responses. If the subscription already has this session,
    /// requests a SETUP for the session.
    pub(super) fn on_response_setup(&mut self, subscription_id: i64, session_id: i32) {
        let found = self.subscriptions.network_mut(subscription_id);
        let Some((subscription, endpoint)) = found else {
            return;
        };
        let session = StreamSession {
            stream_id: subscription.stream_id,
            session_id,
        };
        if subscription.is_response && subscription.session_id.is_none() {
            subscription.session_id = Some(session_id);
            subscription.is_response = false;
            self.endpoints
                .narrow_interest(endpoint, session, &mut self.outlets);
        } else if subscription.session_id == Some(session_id) {
            self.outlets
                .receiver_commands
                .send(ReceiverCommand::RequestSetup { endpoint, session });
        }
    }

    /// Stops an image from announcing the session of its response publication, because that publication has a receiver
    /// now.
    pub(super) fn on_response_connected(&mut self, image_id: i64) {
        if let Some(image) = self.images.find(image_id) {
            image.status().set_response_session_id(None);
        }
    }
}
