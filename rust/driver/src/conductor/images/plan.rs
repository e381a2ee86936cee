//! [`ImagePlan`]: the parameters of an image that is to be created.

use std::sync::Arc;

use aeron_protocol::uri::ReceiverGroup;

use super::requests::session_of;
use crate::conductor::endpoints::Endpoints;
use crate::conductor::subscriptions::{StreamOrigin, Subscriptions};
use crate::media::UdpChannel;
use crate::receiver::ImageRequest;
use crate::stream::TetherTimeouts;

/// The parameters of an image, from its endpoint and from the subscriptions that match it.
pub struct ImagePlan {
    /// Client of the first subscription that matches.
    pub(super) client_id: i64,
    pub(super) channel: String,
    pub(super) is_reliable: bool,
    /// Setting of the oldest subscription that matches.
    pub(super) is_sparse: bool,
    /// Whether the stream may have several receivers.
    pub(super) is_group: bool,
    pub(super) tether: bool,
    pub(super) rejoin: bool,
    pub(super) window_length: i64,
    /// SO_RCVBUF of the endpoint.
    pub(super) receive_buffer_length: i64,
    pub(super) endpoint_channel: Arc<UdpChannel>,
    pub(super) tether_timeouts: TetherTimeouts,
}

impl ImagePlan {
    /// Returns the plan for a requested image; `None` if no subscription matches.
    pub fn of(
        request: &ImageRequest,
        endpoints: &Endpoints,
        subscriptions: &Subscriptions,
    ) -> Option<Self> {
        let endpoint = endpoints
            .receive_endpoint(request.endpoint)
            .filter(|endpoint| endpoint.is_active())?;
        let origin = StreamOrigin::Received(request.endpoint);
        let matching = || subscriptions.matching(session_of(request), origin);
        let subscription = matching().next()?;
        let oldest = matching().min_by_key(|subscription| subscription.registration_id)?;
        let params = &endpoint.params;
        let is_group = match subscription.group {
            ReceiverGroup::Yes => true,
            ReceiverGroup::No => false,
            ReceiverGroup::Infer => {
                endpoint.channel.is_multicast || request.setup.has_group_semantics
            }
        };
        Some(Self {
            client_id: subscription.client_id,
            channel: subscription.channel.to_string(),
            is_reliable: subscription.is_reliable,
            is_sparse: oldest.is_sparse,
            is_group,
            tether: params.is_tether,
            rejoin: params.is_rejoin,
            window_length: params.receiver_window_length,
            receive_buffer_length: endpoints.receive_buffer_length(&endpoint.channel),
            endpoint_channel: Arc::clone(&endpoint.channel),
            tether_timeouts: TetherTimeouts {
                window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
                linger_timeout_ns: params.untethered_linger_timeout_ns,
                resting_timeout_ns: params.untethered_resting_timeout_ns,
            },
        })
    }
}
