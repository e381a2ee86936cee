//! Publications to IPC: found or created, shared.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_protocol::event::NO_COUNTER_ID;
use aeron_protocol::uri::{ChannelUri, PublicationDefaults, PublicationParams, SessionId};

use super::Conductor;
use super::client_proxy::PublicationCounterIds;
use super::clients::PublicationReference;
use super::links::Source;
use super::pending::AwaitedLog;
use super::publications::{response_correlation_id, session_clash, untethered_timeouts};
use super::requests::{IpcPlan, PublicationRequest};
use crate::config::Context;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::publication::IpcPublication;
use crate::publication::ipc::State;

impl Conductor {
    pub(super) fn on_add_ipc_publication(
        &mut self,
        request: PublicationRequest,
        channel: &[u8],
    ) -> Result<(), DriverError> {
        let defaults = ipc_defaults(&self.context);
        let params = ChannelUri::from_bytes(channel)
            .and_then(|uri| PublicationParams::parse(&uri, &defaults, |_| None))
            .map_err(|error| DriverError::bad_channel(error, channel))?;
        if self.join_ipc_publication(&request, &params)? {
            return Ok(());
        }
        self.request_publication_log(request.correlation_id, &params);
        let plan = IpcPlan { request, params };
        self.pending.await_log(AwaitedLog::Ipc(Box::new(plan)));
        Ok(())
    }

    /// Gives the client a reference to the shared publication, if there is one; returns whether there is.
    fn join_ipc_publication(
        &mut self,
        request: &PublicationRequest,
        params: &PublicationParams,
    ) -> Result<bool, DriverError> {
        if !request.is_exclusive
            && let Some(index) = self.find_shared_ipc(request.stream_id, params)
        {
            params
                .check_agrees_with(&self.ipc_publications[index].config().existing())
                .map_err(|error| DriverError::bad_channel(error, request.channel.as_bytes()))?;
            self.refer_to_ipc(index, request)?;
            return Ok(true);
        }
        if let SessionId::Explicit(session_id) = params.session_id
            && is_session_in_use(&self.ipc_publications, request.stream_id, session_id)
        {
            return Err(session_clash(request, session_id));
        }
        Ok(false)
    }

    fn find_shared_ipc(&self, stream_id: i32, params: &PublicationParams) -> Option<usize> {
        let response_correlation_id = response_correlation_id(params);
        self.ipc_publications.iter().position(|publication| {
            let config = publication.config();
            publication.state() == State::Active
                && !config.is_exclusive
                && config.stream_id == stream_id
                && config.response_correlation_id == response_correlation_id
        })
    }

    /// The log of a publication is there. Returns whether the publication uses the log.
    pub(super) fn join_or_add_ipc_publication(
        &mut self,
        plan: &IpcPlan,
        memory: &SharedBuffer,
    ) -> Result<bool, DriverError> {
        if self.join_ipc_publication(&plan.request, &plan.params)? {
            return Ok(false);
        }
        self.add_ipc_publication(plan, memory)?;
        Ok(true)
    }

    fn add_ipc_publication(
        &mut self,
        plan: &IpcPlan,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let IpcPlan { request, params } = plan;
        let session_id = match params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => {
                let publications = &self.ipc_publications;
                self.session_ids.allocate(|session_id| {
                    is_session_in_use(publications, request.stream_id, session_id)
                })
            }
        };
        let initial_position = self.initial_position(params);
        let config = self.publication_config(request, params, session_id, initial_position);
        let description = self.describe_publication_log(&config, params);
        let log =
            LogBuffers::create(memory, &description, config.start_position).map_err(|error| {
                DriverError::invalid_argument(format_args!("failed to create log: {error}"))
            })?;
        let counters = self
            .outlets
            .allocate_publisher_counters(request, session_id)?;
        self.narrow_response_subscription(config.response_correlation_id, session_id);
        let image_liveness_timeout_ns = self.context.image_liveness_timeout_ns;
        self.ipc_publications.push(IpcPublication::new(
            config,
            image_liveness_timeout_ns,
            log,
            counters,
            self.outlets.now_ns,
        ));
        let index = self.ipc_publications.len() - 1;
        self.refer_to_ipc(index, request).inspect_err(|_| {
            let publication = self.ipc_publications.swap_remove(index);
            self.outlets.free_counters(publication.counters().ids());
        })
    }

    /// Gives a client a reference to a publication, answers its command, and links subscriptions.
    fn refer_to_ipc(
        &mut self,
        index: usize,
        request: &PublicationRequest,
    ) -> Result<(), DriverError> {
        let publication_id = self.ipc_publications[index].config().registration_id;
        let reference = PublicationReference {
            registration_id: request.correlation_id,
            publication_id,
        };
        self.clients
            .refer(request.client_id, reference, &mut self.outlets)?;
        let publication = &mut self.ipc_publications[index];
        publication.add_reference();
        let counters = PublicationCounterIds {
            limit: publication.counters().limit.id(),
            channel_status: NO_COUNTER_ID,
        };
        self.outlets.events.on_publication_ready(
            request.correlation_id,
            publication.config(),
            counters,
        );
        self.link_ipc_publication(index);
        Ok(())
    }

    /// A publication that answers requests belongs to the one subscription that waits for the answers.
    fn narrow_response_subscription(&mut self, request_id: i64, session_id: i32) {
        let request = self
            .ipc_publications
            .iter()
            .find(|publication| publication.config().registration_id == request_id);
        let Some(response_subscription_id) =
            request.map(|request| request.config().response_correlation_id)
        else {
            return;
        };
        let mut subscriptions = self.subscriptions.iter_mut();
        if let Some(subscription) = subscriptions.find(|subscription| {
            subscription.registration_id == response_subscription_id
                && matches!(subscription.source, Source::Ipc)
        }) {
            subscription.session_id = Some(session_id);
        }
    }

    pub(super) fn delete_ipc_publication(&mut self, index: usize) {
        let mut publication = self.ipc_publications.swap_remove(index);
        self.outlets.free_subscribers(&mut publication);
        self.outlets.free_counters(publication.counters().ids());
        let log = LogId::Publication(publication.config().registration_id);
        self.outlets.remove_log(log);
    }
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
        // Nothing is sent again over IPC; the log says what the channel says.
        max_resend: 0,
        untethered: untethered_timeouts(context),
    }
}
