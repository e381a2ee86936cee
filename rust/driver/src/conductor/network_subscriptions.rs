//! Subscriptions to the network: the endpoint that they share, and what must agree then.

use std::sync::Arc;

use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{SubscriptionParams, key};

use super::Conductor;
use super::endpoints::{Interest, ReceiveEndpointRecord};
use super::links::{Source, Subscription};
use super::requests::SubscriptionRequest;
use crate::error::DriverError;
use crate::media::UdpChannel;

impl Conductor {
    /// The channel of a subscription is resolved.
    pub(super) fn on_subscription_channel(
        &mut self,
        request: SubscriptionRequest,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let params = self.subscription_params(&channel)?;
        let existing = self.endpoints.find_receive(&channel, &params)?;
        if let Some(endpoint) = existing {
            self.check_subscription_options(endpoint, &request, &params, &channel)?;
        }
        let endpoint = match existing {
            Some(endpoint) => endpoint.id,
            None => {
                let id = request.registration_id;
                let outlets = &mut self.outlets;
                self.endpoints
                    .open_receive(&channel, &params, id, outlets)?
            }
        };
        let interest = Interest::of(request.stream_id, params.session_id, params.is_response);
        self.endpoints
            .begin_interest(endpoint, interest, &mut self.outlets);
        let status_counter_id = self
            .endpoints
            .receive_endpoint(endpoint)
            .map_or(NO_COUNTER_ID, ReceiveEndpointRecord::status_counter_id);
        self.finish_subscription(
            request,
            &params,
            Source::Network(endpoint),
            status_counter_id,
        )
    }

    /// Subscriptions of one stream and session at one endpoint get the same image, so they must want the same of it.
    fn check_subscription_options(
        &self,
        endpoint: &ReceiveEndpointRecord,
        request: &SubscriptionRequest,
        params: &SubscriptionParams,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        if channel.tag().is_none() && endpoint.channel.tag().is_some() {
            return Ok(());
        }
        let is_comparable = |other: &&Subscription| {
            matches!(other.source, Source::Network(id) if id == endpoint.id)
                && other.stream_id == request.stream_id
                && other.session_id == params.session_id
        };
        for other in self.subscriptions.iter().filter(is_comparable) {
            for (key, existing, requested) in [
                (key::RELIABLE, other.is_reliable, params.is_reliable),
                (key::REJOIN, other.rejoins, params.is_rejoin),
                ("isResponse", other.is_response, params.is_response),
            ] {
                if existing != requested {
                    return Err(DriverError::invalid_argument(format_args!(
                        "option conflicts with existing subscription: {key}={requested} existingChannel={} channel={}",
                        other.channel, channel.text
                    )));
                }
            }
        }
        Ok(())
    }
}
