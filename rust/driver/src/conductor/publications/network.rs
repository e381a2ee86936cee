//! Finds, creates, checks and deletes network publications.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::types;
use aeron_memory::log::{LogBuffers, LogDescription};
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{
    ExistingPublication, PublicationDefaults, PublicationParams, ResponseCorrelation, SessionId,
};

use super::{
    Publications, count_revoked, count_unblocked, initial_position, publisher_position_name,
    record_first_pages, response_correlation_id, session_clash,
};
use crate::closing::UnconsumedStream;
use crate::conductor::client_proxy::PublicationCounterIds;
use crate::conductor::clients::Clients;
use crate::conductor::endpoints::Endpoints;
use crate::conductor::outlets::{ConductorOutlets, NULL_ID, StreamOwner};
use crate::conductor::requests::{NetworkPlan, PublicationRequest};
use crate::conductor::subscriptions::Subscriptions;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::UdpChannel;
use crate::publication::network::{NetworkCounters, NetworkPublicationState};
use crate::publication::{
    NetworkPublication, NetworkPublicationOptions, PublicationConfig, PublicationStatus,
    PublisherCounters, Tick,
};
use crate::resources::CreatedLog;
use crate::retransmit::{RetransmitConfig, RetransmitHandler};
use crate::sender::{
    PublicationCounters, Response, SendEndpointId, SenderCommand, SenderPublication,
    SenderPublicationConfig,
};
use crate::stream::StreamSession;

impl Publications {
    /// Parses the parameters of a network channel, with the defaults for the network.
    pub fn parse_network(&self, channel: &UdpChannel) -> Result<PublicationParams, DriverError> {
        let tagged = |tag| {
            self.network
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
            // 0 stands for a channel without `max-resend`. The log's metadata contains only the value of the channel.
            // The driver's setting is applied when the sender's half is created.
            max_resend: 0,
            untethered: context.untethered_timeouts(),
        }
    }

    /// Returns the index of a publication that sends from `endpoint` and that the request of the plan can share.
    ///
    /// Returns `None` if a new publication is needed.
    ///
    /// # Errors
    /// The parameters of the plan differ from the publication's parameters, or the session id of a new publication is
    /// in use.
    pub fn find_network(
        &self,
        endpoint: SendEndpointId,
        plan: &NetworkPlan,
    ) -> Result<Option<usize>, DriverError> {
        let NetworkPlan {
            request,
            channel,
            params,
            ..
        } = plan;
        if !request.is_exclusive
            && let Some(index) = self.find_shared_network(endpoint, request, params)
        {
            self.check_agreement(index, params, channel)?;
            return Ok(Some(index));
        }
        if let SessionId::Explicit(session_id) = params.session_id {
            let session = StreamSession {
                stream_id: request.stream_id,
                session_id,
            };
            if is_session_in_use(&self.network, endpoint, session) {
                return Err(session_clash(request, session_id));
            }
        }
        Ok(None)
    }

    fn find_shared_network(
        &self,
        endpoint: SendEndpointId,
        request: &PublicationRequest,
        params: &PublicationParams,
    ) -> Option<usize> {
        let response_correlation_id = response_correlation_id(params);
        self.network.iter().position(|publication| {
            let config = publication.config();
            publication.state() == NetworkPublicationState::Active
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
        let publication = &self.network[index];
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

    /// Creates a publication without references, and passes the sender's half to the sender. If the client of the
    /// request is new, adds it to `clients`.
    ///
    /// Returns the index of the publication.
    pub fn create_network(
        &mut self,
        plan: &NetworkPlan,
        endpoint: SendEndpointId,
        created: &CreatedLog,
        clients: &mut Clients,
        outlets: &mut ConductorOutlets,
    ) -> Result<usize, DriverError> {
        let NetworkPlan {
            request,
            channel,
            params,
            ..
        } = plan;
        let session_id = match params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => self.session_ids.allocate(|session_id| {
                let session = StreamSession {
                    stream_id: request.stream_id,
                    session_id,
                };
                is_session_in_use(&self.network, endpoint, session)
            }),
        };
        debug_assert!(
            !is_session_in_use(
                &self.network,
                endpoint,
                StreamSession {
                    stream_id: request.stream_id,
                    session_id,
                }
            ),
            "session {session_id} of stream {} is in use at endpoint {endpoint}",
            request.stream_id
        );
        let initial_position = initial_position(params, outlets);
        let config = self.config(request, params, session_id, initial_position);
        let description = self.describe_network_log(plan, &config);
        let log = LogBuffers::create(&created.memory, &description, config.start_position)
            .map_err(|error| {
                DriverError::invalid_argument(format_args!("failed to create log: {error}"))
            })?;
        let counters = allocate_counters(plan, session_id, outlets)?;
        let client = clients.get_or_add(request.client_id, outlets);
        client
            .map(drop)
            .inspect_err(|_| outlets.free_counters(counters.ids()))?;
        let status = Arc::new(PublicationStatus::new(
            params.spies_simulate_connection,
            config.start_position,
        ));
        let sending = self.sending_half(plan, &config, log.clone(), &counters, &status);
        let sending = SenderPublication::new(sending, outlets.now_ns);
        let options = NetworkPublicationOptions {
            endpoint,
            entity_tag: params.entity_tag,
            linger_timeout_ns: params.linger_timeout_ns,
            spies_simulate_connection: params.spies_simulate_connection,
            is_response: channel.is_response(),
        };
        let mut publication =
            NetworkPublication::new(config, options, log, counters, status, outlets.now_ns);
        record_first_pages(created, outlets, |are_allocated| {
            publication.on_first_pages(are_allocated)
        });
        self.network.push(publication);
        outlets
            .sender_commands
            .send(SenderCommand::AddPublication(endpoint, Box::new(sending)));
        Ok(self.network.len() - 1)
    }

    fn sending_half(
        &self,
        plan: &NetworkPlan,
        config: &PublicationConfig,
        log: LogBuffers<SharedBuffer>,
        counters: &NetworkCounters,
        status: &Arc<PublicationStatus>,
    ) -> SenderPublicationConfig {
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
        SenderPublicationConfig {
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
            backs_off_setups: params.backs_off_setups,
            response: response_role(params, config.response_correlation_id),
            connection_timeout_ns: self.context.publication_connection_timeout_ns,
        }
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
            ..self.describe_log(config, &plan.params)
        }
    }

    /// Adds a reference to a publication, sends the response, and links spies.
    pub fn add_network_reference(
        &mut self,
        index: usize,
        correlation_id: i64,
        subscriptions: &Subscriptions,
        endpoints: &Endpoints,
        outlets: &mut ConductorOutlets,
    ) {
        let publication = &mut self.network[index];
        publication.add_reference();
        let channel_status = endpoints.send_status_counter_id(publication.options().endpoint);
        let counters = PublicationCounterIds {
            limit: publication.publisher_counters().limit.id(),
            channel_status: channel_status.unwrap_or(NO_COUNTER_ID),
        };
        outlets
            .events
            .on_publication_ready(correlation_id, publication.config(), counters);
        self.link_network(index, subscriptions, endpoints, outlets);
    }

    /// Returns the send endpoint of a network publication.
    pub fn endpoint_of(&self, id: i64) -> Option<SendEndpointId> {
        self.network
            .iter()
            .find(|publication| publication.config().registration_id == id)
            .map(|publication| publication.options().endpoint)
    }

    /// Handles the event that the sender has released a publication.
    pub fn on_released(&mut self, id: i64) {
        self.network
            .iter_mut()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(NetworkPublication::on_released_by_sender);
    }

    /// Runs the timer tick of all network publications.
    pub fn check_network(&mut self, endpoints: &mut Endpoints, outlets: &mut ConductorOutlets) {
        for index in (0..self.network.len()).rev() {
            let publication = &mut self.network[index];
            let mut tether_actions = Vec::new();
            let tick = publication.on_tick(outlets.now_ns, |action| tether_actions.push(action));
            outlets.on_tether_actions(publication, tether_actions);
            match tick {
                Tick::Nothing | Tick::Available => debug_assert_ne!(
                    tick,
                    Tick::Available,
                    "only IPC publications are available again after a rejection"
                ),
                Tick::Unavailable { is_revoked } => {
                    outlets.announce_unavailable(publication, None);
                    outlets.free_subscribers(publication);
                    count_revoked(is_revoked, outlets);
                }
                Tick::Unblocked => {
                    count_unblocked(publication.publisher_counters().position.id(), outlets);
                }
                Tick::Release => {
                    let id = publication.config().registration_id;
                    outlets
                        .sender_commands
                        .send(SenderCommand::RemovePublication(id));
                }
                Tick::EndOfLife => self.delete_network(index, endpoints, outlets),
            }
        }
    }

    fn delete_network(
        &mut self,
        index: usize,
        endpoints: &mut Endpoints,
        outlets: &mut ConductorOutlets,
    ) {
        let mut publication = self.network.swap_remove(index);
        debug_assert!(
            !publication.is_live(),
            "a publication is deleted that still has its session"
        );
        outlets.free_subscribers(&mut publication);
        outlets.free_counters(publication.counter_ids().iter().copied());
        let log = LogId::Publication(publication.config().registration_id);
        outlets.remove_log(log);
        endpoints.remove_publication(publication.options().endpoint, outlets);
    }

    /// Ends all network publications, because the driver is about to close.
    pub fn end_network(&mut self, now_ns: i64) {
        for publication in &mut self.network {
            publication.remove_all_references(now_ns);
        }
    }

    /// Returns the streams that receivers have not consumed completely.
    pub fn unconsumed(&self, endpoints: &Endpoints) -> Vec<UnconsumedStream> {
        self.network
            .iter()
            .filter_map(|publication| unconsumed(publication, endpoints))
            .collect()
    }
}

fn unconsumed(publication: &NetworkPublication, endpoints: &Endpoints) -> Option<UnconsumedStream> {
    let (unsent_bytes, unconsumed_bytes) = publication.unconsumed_bytes()?;
    let (config, options) = (publication.config(), publication.options());
    let channel = endpoints.sent_channel(options.endpoint);
    Some(UnconsumedStream {
        channel: channel.map_or_else(String::new, |channel| channel.text.to_string()),
        stream_id: config.stream_id,
        session_id: config.session_id,
        unsent_bytes,
        unconsumed_bytes,
        linger: Duration::from_nanos(options.linger_timeout_ns.unsigned_abs()),
    })
}

fn allocate_counters(
    plan: &NetworkPlan,
    session_id: i32,
    outlets: &mut ConductorOutlets,
) -> Result<NetworkCounters, DriverError> {
    let request = &plan.request;
    let owner = request.counter_owner(session_id);
    let flow_control_receivers = match plan.flow_control.group.is_some() {
        true => {
            let nobodys = StreamOwner {
                owner_id: NULL_ID,
                ..owner
            };
            let type_id = types::FLOW_CONTROL_RECEIVERS;
            Some(outlets.allocate_stream_counter(&nobodys, type_id, "fc-receivers")?)
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
    let allocated = outlets.allocate_stream_counters(&owner, names);
    let [position, limit, sender_position, sender_limit, bpe, naks] =
        allocated.inspect_err(|_| {
            outlets.free_counters(flow_control_receivers.as_ref().map(|counter| counter.id()));
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

fn is_session_in_use(
    publications: &[NetworkPublication],
    endpoint: SendEndpointId,
    session: StreamSession,
) -> bool {
    publications.iter().any(|publication| {
        let config = publication.config();
        publication.is_live()
            && publication.options().endpoint == endpoint
            && config.stream_id == session.stream_id
            && config.session_id == session.session_id
    })
}

/// Returns the publication's part in an exchange of requests and responses, for the sender.
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
