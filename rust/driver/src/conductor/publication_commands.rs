//! Executes the commands that add and remove publications.
//!
//! For a network channel, the native resource agent first resolves the names and then creates the log. The command
//! waits for both steps.

use std::sync::Arc;

use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, RemovePublication};
use aeron_protocol::uri::{SessionId, Transport};

use super::Conductor;
use super::clients::PublicationReference;
use super::pending::{AwaitedChannel, AwaitedLog};
use super::requests::{IpcPlan, NetworkPlan, PublicationRequest};
use super::subscriptions::SubscriptionSource;
use crate::error::DriverError;
use crate::flow_control::FlowControlSpec;
use crate::media::{ChannelRole, UdpChannel};
use crate::resources::CreatedLog;
use crate::sender::SendEndpointId;

impl Conductor {
    pub(super) fn on_add_publication(
        &mut self,
        command: &AddPublication<'_>,
        is_exclusive: bool,
    ) -> Result<(), DriverError> {
        let request = PublicationRequest {
            client_id: command.client_id,
            correlation_id: command.correlation_id,
            stream_id: command.stream_id,
            is_exclusive,
            channel: String::from_utf8_lossy(command.channel).into(),
        };
        let channel = command.channel;
        match Transport::of(channel) {
            Transport::Ipc => self.add_ipc_publication(request, channel),
            Transport::Network => {
                let command = AwaitedChannel::Publication(request);
                self.resolve_channel(channel, ChannelRole::Publication, command);
                Ok(())
            }
            Transport::Spy => {
                let text = format!(
                    "invalid URI scheme or transport: {}, spies are for subscriptions",
                    request.channel
                );
                Err(DriverError::coded(ErrorCode::InvalidChannel, text))
            }
        }
    }

    fn add_ipc_publication(
        &mut self,
        request: PublicationRequest,
        channel: &[u8],
    ) -> Result<(), DriverError> {
        let params = self.publications.parse_ipc(channel)?;
        let plan = IpcPlan { request, params };
        if self.join_ipc_publication(&plan)? {
            return Ok(());
        }
        let PublicationRequest {
            correlation_id: id,
            stream_id,
            ..
        } = plan.request;
        let may_have_subscribers = self.subscriptions.iter().any(|subscription| {
            let wanted = subscription.session_id.map(SessionId::Explicit);
            subscription.stream_id == stream_id
                && matches!(subscription.source, SubscriptionSource::Ipc)
                && wanted.is_none_or(|wanted| wanted == plan.params.session_id)
        });
        self.publications
            .request_log(id, &plan.params, may_have_subscribers, &mut self.outlets);
        self.pending.await_log(AwaitedLog::Ipc(Box::new(plan)));
        Ok(())
    }

    /// Adds the IPC publication for which the log was created, or joins a publication that another command has added.
    ///
    /// Returns whether the new log is used.
    pub(super) fn join_or_add_ipc_publication(
        &mut self,
        plan: &IpcPlan,
        created: &CreatedLog,
    ) -> Result<bool, DriverError> {
        if self.join_ipc_publication(plan)? {
            return Ok(false);
        }
        let (clients, outlets) = (&mut self.clients, &mut self.outlets);
        let index = self
            .publications
            .create_ipc(plan, created, clients, outlets)?;
        self.narrow_response_subscription(index);
        self.refer_to_ipc(index, &plan.request)?;
        Ok(true)
    }

    /// Adds a reference to an existing shared publication. Returns whether there is such a publication.
    fn join_ipc_publication(&mut self, plan: &IpcPlan) -> Result<bool, DriverError> {
        match self.publications.find_ipc(plan)? {
            Some(index) => self.refer_to_ipc(index, &plan.request).map(|()| true),
            None => Ok(false),
        }
    }

    /// Adds a client's reference to a publication, sends the response, and links subscriptions.
    fn refer_to_ipc(
        &mut self,
        index: usize,
        request: &PublicationRequest,
    ) -> Result<(), DriverError> {
        let id = self.publications.ipc()[index].config().registration_id;
        self.clients.refer(request, id, &mut self.outlets)?;
        self.publications.add_ipc_reference(
            index,
            request.correlation_id,
            &self.subscriptions,
            &mut self.outlets,
        );
        Ok(())
    }

    /// If an IPC publication carries responses, sets the publication's session in the subscription that
    /// waits for the responses.
    fn narrow_response_subscription(&mut self, index: usize) {
        let config = self.publications.ipc()[index].config();
        let request_id = config.response_correlation_id;
        if let Some(subscription_id) = self.publications.response_subscription_of(request_id) {
            self.subscriptions
                .narrow_ipc(subscription_id, config.session_id);
        }
    }

    /// Joins or creates a publication after its channel was resolved.
    pub(super) fn on_publication_channel(
        &mut self,
        request: PublicationRequest,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let params = self.publications.parse_network(&channel)?;
        let flow_control =
            FlowControlSpec::of_channel(&channel.uri, channel.has_group_semantics(), &self.context)
                .map_err(|error| DriverError::bad_channel(error, channel.text.as_bytes()))?;
        self.check_response_channel(&params)?;
        let plan = NetworkPlan {
            request,
            channel,
            params,
            flow_control,
        };
        let endpoint = self.endpoints.find_send(&plan.channel, params.mtu_length)?;
        if self.join_network_publication(endpoint, &plan)? {
            return Ok(());
        }
        let PublicationRequest {
            correlation_id: id,
            stream_id,
            ..
        } = plan.request;
        let may_have_subscribers = plan.params.spies_simulate_connection
            && self.subscriptions.iter().any(|subscription| {
                subscription.stream_id == stream_id
                    && matches!(subscription.source, SubscriptionSource::Spy(_))
            });
        self.publications
            .request_log(id, &plan.params, may_have_subscribers, &mut self.outlets);
        self.pending.await_log(AwaitedLog::Network(Box::new(plan)));
        Ok(())
    }

    /// Adds the network publication for which the log was created, or joins a publication that another command has
    /// added.
    ///
    /// Returns whether the new log is used.
    pub(super) fn join_or_add_network_publication(
        &mut self,
        plan: &NetworkPlan,
        created: &CreatedLog,
    ) -> Result<bool, DriverError> {
        let existing = self
            .endpoints
            .find_send(&plan.channel, plan.params.mtu_length)?;
        if self.join_network_publication(existing, plan)? {
            return Ok(false);
        }
        self.check_response_channel(&plan.params)?;
        let outlets = &mut self.outlets;
        let endpoint = match existing {
            Some(endpoint) => endpoint,
            None => {
                let registration_id = plan.request.correlation_id;
                self.endpoints
                    .open_send(&plan.channel, registration_id, outlets)?
            }
        };
        let clients = &mut self.clients;
        let index = self
            .publications
            .create_network(plan, endpoint, created, clients, outlets);
        if index.is_ok() {
            self.endpoints.add_publication(endpoint);
        }
        self.endpoints.close_unused_send(endpoint, outlets);
        self.refer_to_network(index?, &plan.request)?;
        Ok(true)
    }

    /// Adds a reference to the existing shared publication of an endpoint. Returns whether there is such a publication.
    fn join_network_publication(
        &mut self,
        endpoint: Option<SendEndpointId>,
        plan: &NetworkPlan,
    ) -> Result<bool, DriverError> {
        let Some(endpoint) = endpoint else {
            return Ok(false);
        };
        match self.publications.find_network(endpoint, plan)? {
            Some(index) => self.refer_to_network(index, &plan.request).map(|()| true),
            None => Ok(false),
        }
    }

    /// Adds a client's reference to a publication, sends the response, and links spies.
    ///
    /// If the publication carries the responses to an image, stores the publication's session in the image.
    fn refer_to_network(
        &mut self,
        index: usize,
        request: &PublicationRequest,
    ) -> Result<(), DriverError> {
        let id = self.publications.network()[index].config().registration_id;
        self.clients.refer(request, id, &mut self.outlets)?;
        self.publications.add_network_reference(
            index,
            request.correlation_id,
            &self.subscriptions,
            &self.endpoints,
            &mut self.outlets,
        );
        self.link_response_publication(index);
        Ok(())
    }

    pub(super) fn on_remove_publication(
        &mut self,
        command: &RemovePublication,
    ) -> Result<(), DriverError> {
        let reference = self
            .clients
            .known(command.client_id)
            .and_then(|client| client.remove_publication(command.registration_id));
        let Some(reference) = reference else {
            let id = command.registration_id;
            if self.pending.forget_command(id, &mut self.outlets) {
                self.outlets
                    .events
                    .on_operation_success(command.correlation_id);
                return Ok(());
            }
            return Err(DriverError::coded(
                ErrorCode::UnknownPublication,
                format_args!(
                    "unknown publication client_id={} registration_id={}",
                    command.client_id, command.registration_id
                ),
            ));
        };
        if command.revoke {
            self.publications.revoke(reference.publication_id);
        }
        self.remove_publication_reference(reference);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    /// Removes a client's reference to a publication.
    pub(super) fn remove_publication_reference(&mut self, reference: PublicationReference) {
        self.publications
            .remove_reference(reference.publication_id, self.outlets.now_ns);
    }
}
