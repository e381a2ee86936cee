//! Subscriptions to the network: the endpoint that they share, and what must agree then.

use std::sync::Arc;

use aeron_protocol::uri::{SubscriptionParams, key};

use super::Conductor;
use super::endpoints::{BufferLengths, check_buffer_length, check_timestamp_offset, find_shared};
use super::links::{Source, Subscription};
use super::receive_endpoints::ReceiveEndpointRecord;
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
        let existing = find_shared(&self.receive_endpoints, &channel)?;
        if let Some(endpoint) = existing {
            check_receive_timestamps(&endpoint.channel, &channel)?;
        }
        self.check_receiver_window(&params, existing, &channel)?;
        if let Some(endpoint) = existing {
            self.check_buffer_lengths(&endpoint.channel, &channel)?;
            self.check_subscription_options(endpoint, &request, &params, &channel)?;
        }
        let endpoint = match existing {
            Some(endpoint) => endpoint.id,
            None => self.open_receive_endpoint(&channel, &params, request.registration_id)?,
        };
        self.begin_interest(endpoint, request.stream_id, &params);
        let status_counter_id = self
            .receive_endpoint(endpoint)
            .map_or(-1, ReceiveEndpointRecord::status_counter_id);
        self.finish_subscription(
            request,
            &params,
            Source::Network(endpoint),
            status_counter_id,
        )
    }

    fn check_receiver_window(
        &self,
        params: &SubscriptionParams,
        existing: Option<&ReceiveEndpointRecord>,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let (window, buffer) = (
            params.receiver_window_length,
            self.receive_buffer_length(channel),
        );
        if window <= buffer {
            return Ok(());
        }
        let existing =
            existing.map(|endpoint| format!("existingChannel={} ", endpoint.channel.text));
        Err(DriverError::invalid_argument(format_args!(
            "Initial window greater than SO_RCVBUF for channel: rcv-wnd={window} so-rcvbuf={buffer} {}channel={}",
            existing.unwrap_or_default(),
            channel.text
        )))
    }

    /// SO_RCVBUF as the channel or the settings say, else as the operating system has it.
    pub(super) fn receive_buffer_length(&self, channel: &UdpChannel) -> i64 {
        match BufferLengths::of(channel, &self.context).receive {
            0 => self.system_socket_buffers.receive.into(),
            length => length,
        }
    }

    /// Checks the lengths of socket buffers that the channel or the driver's settings state against those of the endpoint.
    fn check_buffer_lengths(
        &self,
        existing: &UdpChannel,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let (granted, requested) = (
            BufferLengths::of(existing, &self.context),
            BufferLengths::of(channel, &self.context),
        );
        let sndbuf = (granted.send, requested.send);
        check_buffer_length(key::SOCKET_SNDBUF, sndbuf, existing, channel)?;
        let rcvbuf = (granted.receive, requested.receive);
        check_buffer_length(key::SOCKET_RCVBUF, rcvbuf, existing, channel)
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

/// Checks that a subscription's channel writes times of receiving where the endpoint's channel does.
fn check_receive_timestamps(
    existing: &UdpChannel,
    channel: &UdpChannel,
) -> Result<(), DriverError> {
    let (theirs, ours) = (
        existing.params.timestamp_offsets,
        channel.params.timestamp_offsets,
    );
    let media = (theirs.media_receive, ours.media_receive);
    check_timestamp_offset(key::MEDIA_RCV_TIMESTAMP_OFFSET, media, existing, channel)?;
    let receive = (theirs.channel_receive, ours.channel_receive);
    check_timestamp_offset(
        key::CHANNEL_RCV_TIMESTAMP_OFFSET,
        receive,
        existing,
        channel,
    )
}
