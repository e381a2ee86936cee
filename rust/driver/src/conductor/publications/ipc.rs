//! Finds, creates, checks and deletes IPC publications.

use std::net::{Ipv4Addr, SocketAddr};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_memory::log::LogBuffers;
use aeron_protocol::ErrorCode;
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{ChannelUri, PublicationDefaults, PublicationParams, SessionId};

use super::{
    Publications, count_revoked, count_unblocked, initial_position, publisher_position_name,
    record_first_pages, response_correlation_id, session_clash,
};
use crate::conductor::client_proxy::PublicationCounterIds;
use crate::conductor::clients::Clients;
use crate::conductor::outlets::{ConductorOutlets, NULL_ID};
use crate::conductor::requests::{IpcPlan, PublicationRequest};
use crate::conductor::subscriptions::Subscriptions;
use crate::config::Context;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::publication::ipc::IpcPublicationState;
use crate::publication::{IpcPublication, PublisherCounters, Tick};
use crate::resources::CreatedLog;
use crate::sender::PublicationErrorReport;
use crate::stream::IPC_SOURCE_IDENTITY;

impl Publications {
    /// Parses the parameters of an IPC channel, with the defaults for IPC.
    pub fn parse_ipc(&self, channel: &[u8]) -> Result<PublicationParams, DriverError> {
        let defaults = ipc_defaults(&self.context);
        ChannelUri::from_bytes(channel)
            .and_then(|uri| PublicationParams::parse(&uri, &defaults, |_| None))
            .map_err(|error| DriverError::bad_channel(error, channel))
    }

    /// Returns the index of the publication that a request shares; `None` if a new publication is needed.
    ///
    /// # Errors
    /// The parameters of the request differ from the publication's parameters, or the session id of a new publication
    /// is in use.
    pub fn find_ipc(&self, plan: &IpcPlan) -> Result<Option<usize>, DriverError> {
        let IpcPlan { request, params } = plan;
        if !request.is_exclusive
            && let Some(index) = self.find_shared_ipc(request.stream_id, params)
        {
            params
                .check_agrees_with(&self.ipc[index].config().existing())
                .map_err(|error| DriverError::bad_channel(error, request.channel.as_bytes()))?;
            return Ok(Some(index));
        }
        if let SessionId::Explicit(session_id) = params.session_id
            && is_session_in_use(&self.ipc, request.stream_id, session_id)
        {
            return Err(session_clash(request, session_id));
        }
        Ok(None)
    }

    fn find_shared_ipc(&self, stream_id: i32, params: &PublicationParams) -> Option<usize> {
        let response_correlation_id = response_correlation_id(params);
        self.ipc.iter().position(|publication| {
            let config = publication.config();
            publication.state() == IpcPublicationState::Active
                && !config.is_exclusive
                && config.stream_id == stream_id
                && config.response_correlation_id == response_correlation_id
        })
    }

    /// Creates a publication without references. If the client of the request is new, adds it to `clients`.
    ///
    /// Returns the index of the publication.
    pub fn create_ipc(
        &mut self,
        plan: &IpcPlan,
        created: &CreatedLog,
        clients: &mut Clients,
        outlets: &mut ConductorOutlets,
    ) -> Result<usize, DriverError> {
        let IpcPlan { request, params } = plan;
        let session_id = match params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => self
                .session_ids
                .allocate(|session_id| is_session_in_use(&self.ipc, request.stream_id, session_id)),
        };
        debug_assert!(
            !is_session_in_use(&self.ipc, request.stream_id, session_id),
            "session {session_id} of stream {} is in use",
            request.stream_id
        );
        let initial_position = initial_position(params, outlets);
        let config = self.config(request, params, session_id, initial_position);
        let description = self.describe_log(&config, params);
        let log = LogBuffers::create(&created.memory, &description, config.start_position)
            .map_err(|error| {
                DriverError::invalid_argument(format_args!("failed to create log: {error}"))
            })?;
        let counters = allocate_publisher_counters(request, session_id, outlets)?;
        let client = clients.get_or_add(request.client_id, outlets);
        client
            .map(drop)
            .inspect_err(|_| outlets.free_counters(counters.ids()))?;
        let mut publication = IpcPublication::new(
            config,
            self.context.image_liveness_timeout_ns,
            log,
            counters,
            outlets.now_ns,
        );
        record_first_pages(created, outlets, |are_allocated| {
            publication.on_first_pages(are_allocated)
        });
        self.ipc.push(publication);
        Ok(self.ipc.len() - 1)
    }

    /// Adds a reference to a publication, sends the response, and links subscriptions.
    pub fn add_ipc_reference(
        &mut self,
        index: usize,
        correlation_id: i64,
        subscriptions: &Subscriptions,
        outlets: &mut ConductorOutlets,
    ) {
        let publication = &mut self.ipc[index];
        publication.add_reference();
        let counters = PublicationCounterIds {
            limit: publication.counters().limit.id(),
            channel_status: NO_COUNTER_ID,
        };
        outlets
            .events
            .on_publication_ready(correlation_id, publication.config(), counters);
        self.link_ipc(index, subscriptions, outlets);
    }

    /// Returns the id of the subscription that waits for the responses to the requests of the publication `request_id`.
    pub fn response_subscription_of(&self, request_id: i64) -> Option<i64> {
        let requests = &mut self.ipc.iter().map(IpcPublication::config);
        let request = requests.find(|config| config.registration_id == request_id)?;
        Some(request.response_correlation_id)
    }

    /// Rejects an IPC publication: unlinks its subscribers until the image liveness timeout has passed, and announces
    /// the reason to the publisher.
    pub fn reject_ipc(
        &mut self,
        image_id: i64,
        reason: &[u8],
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let publication = self
            .ipc
            .iter_mut()
            .find(|publication| publication.config().registration_id == image_id)
            .ok_or_else(|| {
                let text = format!("Unable to resolve image for correlationId={image_id}");
                DriverError::coded(ErrorCode::GenericError, text)
            })?;
        let config = publication.config();
        outlets.announce_publication_error(&PublicationErrorReport {
            registration_id: config.registration_id,
            destination_registration_id: NULL_ID,
            session_id: config.session_id,
            stream_id: config.stream_id,
            receiver_id: NULL_ID,
            group_tag: NULL_ID,
            source: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            error_code: ErrorCode::ImageRejected.value(),
            message: reason.into(),
        });
        if publication.reject(outlets.now_ns) {
            outlets.announce_unavailable(publication, None);
            outlets.free_subscribers(publication);
        }
        Ok(())
    }

    /// Runs the timer tick of all IPC publications.
    pub fn check_ipc(&mut self, subscriptions: &Subscriptions, outlets: &mut ConductorOutlets) {
        for index in (0..self.ipc.len()).rev() {
            let publication = &mut self.ipc[index];
            let mut tether_actions = Vec::new();
            let tick = publication.on_tick(outlets.now_ns, |action| tether_actions.push(action));
            outlets.on_tether_actions(publication, tether_actions);
            match tick {
                Tick::Nothing | Tick::Release => debug_assert_ne!(
                    tick,
                    Tick::Release,
                    "the sender has no half of an IPC publication that it could release"
                ),
                Tick::Unavailable { is_revoked } => {
                    outlets.announce_unavailable(publication, Some(IPC_SOURCE_IDENTITY));
                    count_revoked(is_revoked, outlets);
                }
                Tick::Available => self.link_ipc(index, subscriptions, outlets),
                Tick::Unblocked => count_unblocked(publication.counters().position.id(), outlets),
                Tick::EndOfLife => self.delete_ipc(index, outlets),
            }
        }
    }

    fn delete_ipc(&mut self, index: usize, outlets: &mut ConductorOutlets) {
        let mut publication = self.ipc.swap_remove(index);
        debug_assert!(
            !publication.is_live(),
            "a publication is deleted that still has its session"
        );
        outlets.free_subscribers(&mut publication);
        outlets.free_counters(publication.counters().ids());
        let log = LogId::Publication(publication.config().registration_id);
        outlets.remove_log(log);
    }
}

fn allocate_publisher_counters(
    request: &PublicationRequest,
    session_id: i32,
    outlets: &mut ConductorOutlets,
) -> Result<PublisherCounters, DriverError> {
    let owner = request.counter_owner(session_id);
    let names = [
        (types::PUBLISHER_POSITION, publisher_position_name(request)),
        (types::PUBLISHER_LIMIT, "pub-lmt"),
    ];
    let [position, limit]: [AtomicCounter<SharedBuffer>; 2] =
        outlets.allocate_stream_counters(&owner, names)?;
    Ok(PublisherCounters { position, limit })
}

fn is_session_in_use(publications: &[IpcPublication], stream_id: i32, session_id: i32) -> bool {
    publications
        .iter()
        .filter(|publication| publication.is_live())
        .map(IpcPublication::config)
        .any(|config| config.stream_id == stream_id && config.session_id == session_id)
}

fn ipc_defaults(context: &Context) -> PublicationDefaults {
    PublicationDefaults {
        term_length: context.ipc_term_buffer_length as i32,
        mtu_length: context.ipc_mtu_length as i32,
        window_length: context.ipc_publication_window_length as i32,
        linger_timeout_ns: context.publication_linger_timeout_ns,
        is_sparse: context.term_buffer_sparse_file,
        spies_simulate_connection: context.spies_simulate_connection,
        // IPC has no retransmits. A value that the channel sets is only written into the log's metadata.
        max_resend: 0,
        untethered: context.untethered_timeouts(),
    }
}
