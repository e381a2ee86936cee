//! Publications to the network: found or created, shared.
//!
//! The channel's names are resolved first, then its log is made; both take the native resource agent some time.

use std::convert::Infallible;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::types;
use aeron_memory::log::{LogBuffers, LogDescription};
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{
    ExistingPublication, PublicationDefaults, PublicationParams, ResponseCorrelation, SessionId,
};

use super::Conductor;
use super::client_proxy::PublicationCounterIds;
use super::clients::PublicationReference;
use super::outlets::NULL_ID;
use super::outlets::Outlets;
use super::outlets::StreamOwner;
use super::pending::AwaitedLog;
use super::publications::{
    publisher_position_name, response_correlation_id, session_clash, untethered_timeouts,
};
use super::requests::{NetworkPlan, PublicationRequest};
use crate::error::DriverError;
use crate::flow_control::FlowControlSpec;
use crate::log_storage::LogId;
use crate::media::UdpChannel;
use crate::publication::network::{NetworkCounters, State};
use crate::publication::{
    NetworkPublication, NetworkPublicationOptions, PublicationConfig, PublicationStatus,
    PublisherCounters,
};
use crate::retransmit::{RetransmitConfig, RetransmitHandler};
use crate::sender::{
    EndpointId, PublicationCounters, Response, SenderCommand, SenderPublication,
    SenderPublicationConfig,
};

impl Conductor {
    pub(super) fn on_publication_channel(
        &mut self,
        request: PublicationRequest,
        channel: Arc<UdpChannel>,
    ) -> Result<(), DriverError> {
        let params = self.network_publication_params(&channel)?;
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
        if self.join_network_publication(&plan)? {
            return Ok(());
        }
        self.request_publication_log(plan.request.correlation_id, &plan.params);
        self.pending.await_log(AwaitedLog::Network(Box::new(plan)));
        Ok(())
    }

    /// Gives the client a reference to the shared publication, if there is one; returns whether there is.
    fn join_network_publication(&mut self, plan: &NetworkPlan) -> Result<bool, DriverError> {
        let NetworkPlan {
            request,
            channel,
            params,
            ..
        } = plan;
        let Some(endpoint) = self.endpoints.find_send(channel, params.mtu_length)? else {
            return Ok(false);
        };
        if !request.is_exclusive
            && let Some(index) = self.find_shared_network(endpoint, request, params)
        {
            self.check_agreement(index, params, channel)?;
            self.refer_to_network(index, request)?;
            self.link_response_publication(index);
            return Ok(true);
        }
        if let SessionId::Explicit(session_id) = params.session_id
            && self.is_network_session_in_use(endpoint, request.stream_id, session_id)
        {
            return Err(session_clash(request, session_id));
        }
        Ok(false)
    }

    fn network_publication_params(
        &self,
        channel: &UdpChannel,
    ) -> Result<PublicationParams, DriverError> {
        let tagged = |tag| {
            self.network_publications
                .iter()
                .find(|publication| publication.options().entity_tag == Some(tag))
                .map(|publication| publication.config().existing())
        };
        PublicationParams::parse(&channel.uri, &self.network_defaults(), tagged)
            .map_err(|error| DriverError::bad_channel(error, channel.text.as_bytes()))
    }

    fn network_defaults(&self) -> PublicationDefaults {
        let context = &self.context;
        PublicationDefaults {
            term_length: context.term_buffer_length as i32,
            mtu_length: context.mtu_length as i32,
            window_length: context.publication_window_length as i32,
            linger_timeout_ns: context.publication_linger_timeout_ns,
            is_sparse: context.term_buffer_sparse_file,
            spies_simulate_connection: context.spies_simulate_connection,
            // The log says what the channel says; the setting is applied where it counts.
            max_resend: 0,
            untethered: untethered_timeouts(context),
        }
    }

    fn find_shared_network(
        &self,
        endpoint: EndpointId,
        request: &PublicationRequest,
        params: &PublicationParams,
    ) -> Option<usize> {
        let response_correlation_id = response_correlation_id(params);
        self.network_publications.iter().position(|publication| {
            let config = publication.config();
            publication.state() == State::Active
                && publication.options().endpoint == endpoint
                && !config.is_exclusive
                && config.stream_id == request.stream_id
                && config.response_correlation_id == response_correlation_id
        })
    }

    fn check_agreement(
        &self,
        index: usize,
        params: &PublicationParams,
        channel: &UdpChannel,
    ) -> Result<(), DriverError> {
        let publication = &self.network_publications[index];
        let existing: ExistingPublication = publication.config().existing();
        params
            .check_agrees_with(&existing)
            .map_err(|error| DriverError::bad_channel(error, channel.text.as_bytes()))?;
        let requested = params.spies_simulate_connection;
        if requested == publication.options().spies_simulate_connection {
            return Ok(());
        }
        Err(DriverError::invalid_argument(format_args!(
            "existing publication has different spies simulate connection: requested={requested}"
        )))
    }

    fn is_network_session_in_use(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: i32,
    ) -> bool {
        is_session_in_use(
            &self.network_publications,
            endpoint,
            (stream_id, session_id),
        )
    }

    /// The log of a publication is there. Returns whether the publication uses the log.
    pub(super) fn join_or_add_network_publication(
        &mut self,
        plan: &NetworkPlan,
        memory: &SharedBuffer,
    ) -> Result<bool, DriverError> {
        if self.join_network_publication(plan)? {
            return Ok(false);
        }
        self.add_network_publication(plan, memory)?;
        Ok(true)
    }

    fn add_network_publication(
        &mut self,
        plan: &NetworkPlan,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let NetworkPlan {
            request,
            channel,
            params,
            ..
        } = plan;
        self.check_response_channel(params)?;
        let endpoint = match self.endpoints.find_send(channel, params.mtu_length)? {
            Some(endpoint) => endpoint,
            None => {
                let id = request.correlation_id;
                self.endpoints.open_send(channel, id, &mut self.outlets)?
            }
        };
        let added = self.create_network_publication(plan, endpoint, memory);
        self.endpoints
            .close_unused_send(endpoint, &mut self.outlets);
        let index = added?;
        self.refer_to_network(index, request)?;
        self.link_response_publication(index);
        Ok(())
    }

    fn create_network_publication(
        &mut self,
        plan: &NetworkPlan,
        endpoint: EndpointId,
        memory: &SharedBuffer,
    ) -> Result<usize, DriverError> {
        let NetworkPlan {
            request, params, ..
        } = plan;
        let session_id = match params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => {
                let publications = &self.network_publications;
                self.session_ids.allocate(|session_id| {
                    is_session_in_use(publications, endpoint, (request.stream_id, session_id))
                })
            }
        };
        let initial_position = self.initial_position(params);
        let config = self.publication_config(request, params, session_id, initial_position);
        let description = self.describe_network_log(plan, &config);
        let log =
            LogBuffers::create(memory, &description, config.start_position).map_err(|error| {
                DriverError::invalid_argument(format_args!("failed to create log: {error}"))
            })?;
        let is_counting = plan.flow_control.group.is_some();
        let counters = self
            .outlets
            .allocate_network_counters(request, session_id, is_counting)?;
        let client = self
            .clients
            .get_or_add(request.client_id, &mut self.outlets);
        client
            .map(drop)
            .inspect_err(|_| self.outlets.free_counters(counters.ids()))?;
        self.start_network_publication(plan, config, (endpoint, log), counters);
        Ok(self.network_publications.len() - 1)
    }

    /// Puts a publication together, and gives the sender its half.
    fn start_network_publication(
        &mut self,
        plan: &NetworkPlan,
        config: PublicationConfig,
        (endpoint, log): (EndpointId, LogBuffers<SharedBuffer>),
        counters: NetworkCounters,
    ) {
        let (params, channel) = (&plan.params, &plan.channel);
        let status = Arc::new(PublicationStatus::new(
            params.spies_simulate_connection,
            config.start_position,
        ));
        let sending = self.sending_half(plan, &config, log.clone(), &counters, &status);
        let options = NetworkPublicationOptions {
            endpoint,
            entity_tag: params.entity_tag,
            linger_timeout_ns: params.linger_timeout_ns,
            spies_simulate_connection: params.spies_simulate_connection,
            is_response: channel.is_response(),
        };
        self.network_publications.push(NetworkPublication::new(
            (config, options),
            log,
            counters,
            status,
            self.outlets.now_ns,
        ));
        self.endpoints.add_publication(endpoint);
        self.outlets
            .sender_commands
            .send(SenderCommand::AddPublication(endpoint, Box::new(sending)));
    }

    fn sending_half(
        &self,
        plan: &NetworkPlan,
        config: &PublicationConfig,
        log: LogBuffers<SharedBuffer>,
        counters: &NetworkCounters,
        status: &Arc<PublicationStatus>,
    ) -> SenderPublication {
        let (params, channel) = (&plan.params, &plan.channel);
        let has_group_semantics = channel.has_group_semantics();
        let flow_control: Result<_, Infallible> = plan.flow_control.build(|| {
            let receivers = counters.flow_control_receivers.clone();
            Ok(receivers.expect("a strategy for a group has its counter"))
        });
        let Ok(flow_control) = flow_control;
        let max_resend = match params.max_resend {
            0 => self.context.max_resend,
            stated => stated,
        };
        let retransmits = RetransmitConfig {
            positions: log.positions(),
            start_position: config.start_position,
            max_resend: has_group_semantics.then_some(max_resend as usize),
            window_multiple: plan.flow_control.retransmit_window_multiple,
            delay_ns: self.context.retransmit_unicast_delay_ns,
            linger_ns: self.context.retransmit_unicast_linger_ns,
        };
        let sending = SenderPublicationConfig {
            registration_id: config.registration_id,
            session_id: config.session_id,
            stream_id: config.stream_id,
            log,
            start_position: config.start_position,
            counters: PublicationCounters {
                sender_position: counters.sender_position.clone(),
                sender_limit: counters.sender_limit.clone(),
                back_pressure_events: counters.back_pressure_events.clone(),
                naks_received: counters.naks_received.clone(),
            },
            flow_control,
            retransmits: RetransmitHandler::new(retransmits),
            status: Arc::clone(status),
            ttl: channel
                .params
                .ttl
                .filter(|_| channel.is_multicast)
                .unwrap_or(0),
            has_group_semantics,
            signal_eos: params.signal_eos,
            response: response_role(params, config.response_correlation_id),
            connection_timeout_ns: self.context.publication_connection_timeout_ns,
        };
        SenderPublication::new(sending, self.outlets.now_ns)
    }

    fn describe_network_log(
        &self,
        plan: &NetworkPlan,
        config: &PublicationConfig,
    ) -> LogDescription {
        let channel = &plan.channel;
        let stated = |length: Option<i64>| length.unwrap_or(0) as i32;
        LogDescription {
            socket_sndbuf_length: stated(channel.params.socket_sndbuf_length),
            socket_rcvbuf_length: stated(channel.params.socket_rcvbuf_length),
            group: channel.has_group_semantics(),
            is_response: channel.is_response(),
            ..self.describe_publication_log(config, &plan.params)
        }
    }

    /// Gives a client a reference to a publication, answers its command, and links spies.
    fn refer_to_network(
        &mut self,
        index: usize,
        request: &PublicationRequest,
    ) -> Result<(), DriverError> {
        let publication_id = self.network_publications[index].config().registration_id;
        let reference = PublicationReference {
            registration_id: request.correlation_id,
            publication_id,
        };
        self.clients
            .refer(request.client_id, reference, &mut self.outlets)?;
        let publication = &mut self.network_publications[index];
        publication.add_reference();
        let channel_status = self
            .endpoints
            .send_status_counter_id(publication.options().endpoint);
        let counters = PublicationCounterIds {
            limit: publication.publisher_counters().limit.id(),
            channel_status: channel_status.unwrap_or(NO_COUNTER_ID),
        };
        self.outlets.events.on_publication_ready(
            request.correlation_id,
            publication.config(),
            counters,
        );
        self.link_network_publication(index);
        Ok(())
    }

    /// The sender let go of a publication.
    pub(super) fn on_publication_released(&mut self, id: i64) {
        self.network_publications
            .iter_mut()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(NetworkPublication::on_released_by_sender);
    }

    pub(super) fn delete_network_publication(&mut self, index: usize) {
        let mut publication = self.network_publications.swap_remove(index);
        self.outlets.free_subscribers(&mut publication);
        self.outlets
            .free_counters(publication.counter_ids().iter().copied());
        let log = LogId::Publication(publication.config().registration_id);
        self.outlets.remove_log(log);
        self.endpoints
            .remove_publication(publication.options().endpoint, &mut self.outlets);
    }
}

impl Outlets {
    fn allocate_network_counters(
        &mut self,
        request: &PublicationRequest,
        session_id: i32,
        is_counting_receivers: bool,
    ) -> Result<NetworkCounters, DriverError> {
        let owner = request.counter_owner(session_id);
        let flow_control_receivers = match is_counting_receivers {
            true => {
                let nobodys = StreamOwner {
                    owner_id: NULL_ID,
                    ..owner
                };
                let type_id = types::FLOW_CONTROL_RECEIVERS;
                Some(self.allocate_stream_counter(&nobodys, type_id, "fc-receivers")?)
            }
            false => None,
        };
        let names = [
            (types::PUBLISHER_POSITION, publisher_position_name(request)),
            (types::PUBLISHER_LIMIT, "pub-lmt"),
            (types::SENDER_POSITION, "snd-pos"),
            (types::SENDER_LIMIT, "snd-lmt"),
            (types::SENDER_BACK_PRESSURE, "snd-bpe"),
            (types::SENDER_NAKS_RECEIVED, "snd-naks-received"),
        ];
        let allocated = self.allocate_stream_counters(&owner, names);
        let [position, limit, sender_position, sender_limit, bpe, naks] =
            allocated.inspect_err(|_| {
                self.free_counters(flow_control_receivers.as_ref().map(|counter| counter.id()));
            })?;
        Ok(NetworkCounters {
            flow_control_receivers,
            publisher: PublisherCounters { position, limit },
            sender_position,
            sender_limit,
            back_pressure_events: bpe,
            naks_received: naks,
        })
    }
}

fn is_session_in_use(
    publications: &[NetworkPublication],
    endpoint: EndpointId,
    (stream_id, session_id): (i32, i32),
) -> bool {
    publications.iter().any(|publication| {
        let config = publication.config();
        publication.is_live()
            && publication.options().endpoint == endpoint
            && config.stream_id == stream_id
            && config.session_id == session_id
    })
}

/// What the publication has to do with responses, for the sender.
fn response_role(params: &PublicationParams, response_correlation_id: i64) -> Response {
    match params.response_correlation {
        _ if params.is_response => Response::Given {
            response_correlation_id,
        },
        Some(ResponseCorrelation::Id(id)) if id >= 0 => Response::Requested {
            response_correlation_id: id,
        },
        _ => Response::None,
    }
}
