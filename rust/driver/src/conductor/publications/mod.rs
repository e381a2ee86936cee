//! [`Publications`]: finds, creates, updates and ends the publications of all clients. The conductor calls its methods
//! for commands and in every duty cycle.

mod ipc;
mod network;

use std::sync::Arc;

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::directory::publication_log;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::frame::HEADER_LENGTH;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogDescription, LogType};
use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{InitialPosition, PublicationParams, ResponseCorrelation};

use super::endpoints::Endpoints;
use super::outlets::{ConductorOutlets, NULL_ID};
use super::requests::PublicationRequest;
use super::subscriptions::{StreamOrigin, SubscriptionLink, Subscriptions};
use crate::config::Context;
use crate::diagnostics::TARGET;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::publication::{
    FirstPages, IpcPublication, NetworkPublication, PublicationConfig, PublisherPages,
};
use crate::resources::{CreatedLog, ResourceCommand};
use crate::session_ids::SessionIds;
use crate::socket_buffers::SocketBufferLengths;
use crate::stream::{LinkedStream, PageRequest, TetherTimeouts};

/// All publications.
pub struct Publications {
    context: Arc<Context>,
    system_socket_buffers: SocketBufferLengths,
    session_ids: SessionIds,
    ipc: Vec<IpcPublication>,
    network: Vec<NetworkPublication>,
}

impl Publications {
    /// Creates an empty collection of publications.
    pub fn new(
        context: Arc<Context>,
        system_socket_buffers: SocketBufferLengths,
        session_ids: SessionIds,
    ) -> Self {
        Self {
            context,
            system_socket_buffers,
            session_ids,
            ipc: Vec::new(),
            network: Vec::new(),
        }
    }

    pub fn ipc(&self) -> &[IpcPublication] {
        &self.ipc
    }

    pub fn ipc_mut(&mut self) -> &mut [IpcPublication] {
        &mut self.ipc
    }

    pub fn network(&self) -> &[NetworkPublication] {
        &self.network
    }

    pub fn network_mut(&mut self) -> &mut [NetworkPublication] {
        &mut self.network
    }

    /// Revokes a publication.
    pub fn revoke(&self, id: i64) {
        self.ipc
            .iter()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(|publication| publication.revoke());
        self.network
            .iter()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(|publication| publication.revoke());
    }

    /// Removes a reference to a publication.
    pub fn remove_reference(&mut self, id: i64, now_ns: i64) {
        let has_id = |config: &PublicationConfig| config.registration_id == id;
        let mut ipc = self.ipc.iter_mut();
        if let Some(publication) = ipc.find(|publication| has_id(publication.config())) {
            publication.remove_reference();
        }
        let mut network = self.network.iter_mut();
        if let Some(publication) = network.find(|publication| has_id(publication.config())) {
            publication.remove_reference(now_ns);
        }
    }

    /// Handles the result of allocating pages for a publication.
    pub fn on_pages(
        &mut self,
        id: i64,
        result: Result<usize, DriverError>,
        outlets: &ConductorOutlets,
    ) {
        let mut is_first_failure = false;
        let has_id = |config: &PublicationConfig| config.registration_id == id;
        let mut ipc = self.ipc.iter_mut();
        if let Some(publication) = ipc.find(|publication| has_id(publication.config())) {
            match result {
                Ok(length) => publication.on_pages_allocated(length),
                Err(_) => is_first_failure = publication.on_pages_missing(),
            }
        }
        let mut network = self.network.iter_mut();
        if let Some(publication) = network.find(|publication| has_id(publication.config())) {
            match result {
                Ok(length) => publication.on_pages_allocated(length),
                Err(_) => is_first_failure = publication.on_pages_missing(),
            }
        }
        if let (true, Err(error)) = (is_first_failure, result) {
            outlets.errors.record(&error);
        }
    }

    /// Returns whether a command that adds this subscription must wait for the pages of a publication. If so, the pages
    /// are requested.
    pub fn awaits_pages(&mut self, subscription: &SubscriptionLink, endpoints: &Endpoints) -> bool {
        let mut awaits_pages = false;
        for publication in &mut self.ipc {
            let session = publication.identity().session();
            if subscription.matches(session, StreamOrigin::Ipc) {
                awaits_pages |= publication.awaits_pages();
            }
        }
        for publication in &mut self.network {
            let session = publication.identity().session();
            let channel = endpoints.sent_channel(publication.options().endpoint);
            if channel.is_some_and(|it| subscription.matches(session, StreamOrigin::Sent(it))) {
                awaits_pages |= publication.awaits_pages();
            }
        }
        awaits_pages
    }

    /// Updates positions and limits, and requests the pages that the next limits need.
    ///
    /// Returns the number of limits that moved, plus the number of page requests.
    pub fn update(&mut self, outlets: &mut ConductorOutlets) -> usize {
        let mut work_count = 0;
        let commands = &mut outlets.resource_commands;
        let mut ask = |id: i64, request: Option<PublisherPages>| {
            let log = LogId::Publication(id);
            let allocate = |request: PublisherPages| ResourceCommand::AllocateLog {
                log,
                pages: request.pages,
                promise: request.promise,
                is_awaited: request.is_awaited,
            };
            request
                .map(|request| commands.send(allocate(request)))
                .is_some()
        };
        for publication in &mut self.network {
            work_count += usize::from(publication.update_limit());
            let pages = publication.page_request();
            work_count += usize::from(ask(publication.config().registration_id, pages));
        }
        for publication in &mut self.ipc {
            work_count += usize::from(publication.update_limit());
            let pages = publication.page_request();
            work_count += usize::from(ask(publication.config().registration_id, pages));
        }
        work_count
    }

    /// Requests the log of a publication.
    ///
    /// If `may_have_subscribers` is true, the first pages are allocated with the log. The image of a subscriber can
    /// then directly follow the response, and the first offer has room.
    pub fn request_log(
        &self,
        id: i64,
        params: &PublicationParams,
        may_have_subscribers: bool,
        outlets: &mut ConductorOutlets,
    ) {
        let lap_length = PARTITION_COUNT as i64 * i64::from(params.term_length);
        let start_position = params
            .initial_position
            .map_or(0, |initial| initial.position(params.term_length));
        let first_frame = PageRequest {
            offset: (start_position % lap_length) as usize,
            length: HEADER_LENGTH,
        };
        let page_size = self.context.file_page_size as i64;
        outlets.resource_commands.send(ResourceCommand::CreateLog {
            log: LogId::Publication(id),
            length: log_length(params.term_length.into(), page_size)
                .expect("term length and page size are validated"),
            sparse: params.is_sparse.then(|| vec![first_frame]),
            first_pages: (params.is_sparse && may_have_subscribers)
                .then(|| FirstPages::of(params, start_position)),
        });
    }

    /// Links an IPC publication to every matching subscription that has no link to the publication yet.
    fn link_ipc(
        &mut self,
        index: usize,
        subscriptions: &Subscriptions,
        outlets: &mut ConductorOutlets,
    ) {
        subscriptions.link_to(&mut self.ipc[index], StreamOrigin::Ipc, outlets);
    }

    /// Links a network publication to every matching spy that has no link to the publication yet.
    fn link_network(
        &mut self,
        index: usize,
        subscriptions: &Subscriptions,
        endpoints: &Endpoints,
        outlets: &mut ConductorOutlets,
    ) {
        let publication = &mut self.network[index];
        if let Some(channel) = endpoints.sent_channel(publication.options().endpoint) {
            subscriptions.link_to(publication, StreamOrigin::Sent(channel), outlets);
        }
    }

    /// Returns a session id that no publication with this stream id uses.
    pub fn next_available_session_id(&mut self, stream_id: i32) -> i32 {
        let ipc = self.ipc.iter().map(IpcPublication::config);
        let network = self.network.iter().map(NetworkPublication::config);
        let in_use: Vec<_> = ipc
            .chain(network)
            .filter(|config| config.stream_id == stream_id)
            .map(|config| config.session_id)
            .collect();
        self.session_ids
            .allocate(|session_id| in_use.contains(&session_id))
    }

    /// Drops all publications, because the conductor closes.
    pub fn clear(&mut self) {
        self.network.clear();
        self.ipc.clear();
    }

    fn config(
        &self,
        request: &PublicationRequest,
        params: &PublicationParams,
        session_id: i32,
        initial_position: InitialPosition,
    ) -> PublicationConfig {
        PublicationConfig {
            registration_id: request.correlation_id,
            session_id,
            stream_id: request.stream_id,
            is_exclusive: request.is_exclusive,
            response_correlation_id: response_correlation_id(params),
            initial_position,
            start_position: initial_position.position(params.term_length),
            mtu_length: params.mtu_length,
            term_length: params.term_length,
            window_length: params.window_length.into(),
            is_sparse: params.is_sparse,
            log_file_name: publication_log(&self.context.dir, request.correlation_id)
                .display()
                .to_string(),
            tether_timeouts: TetherTimeouts {
                window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
                linger_timeout_ns: params.untethered_linger_timeout_ns,
                resting_timeout_ns: params.untethered_resting_timeout_ns,
            },
            unblock_timeout_ns: self.context.publication_unblock_timeout_ns,
        }
    }

    /// Returns the metadata for the log of a publication.
    fn describe_log(
        &self,
        config: &PublicationConfig,
        params: &PublicationParams,
    ) -> LogDescription {
        let log_type = match config.is_exclusive {
            true => LogType::ExclusivePublication,
            false => LogType::ConcurrentPublication,
        };
        LogDescription {
            correlation_id: config.registration_id,
            mtu_length: params.mtu_length,
            term_length: params.term_length,
            page_size: self.context.file_page_size as i32,
            publication_window_length: params.window_length,
            os_default_socket_sndbuf_length: self.system_socket_buffers.send,
            os_default_socket_rcvbuf_length: self.system_socket_buffers.receive,
            max_resend: params.max_resend,
            entity_tag: params.entity_tag.unwrap_or(NULL_ID),
            response_correlation_id: config.response_correlation_id,
            linger_timeout_ns: params.linger_timeout_ns,
            untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
            sparse: params.is_sparse,
            signal_eos: params.signal_eos,
            spies_simulate_connection: params.spies_simulate_connection,
            ..LogDescription::new(
                log_type,
                config.session_id,
                config.stream_id,
                config.initial_position.initial_term_id,
            )
        }
    }
}

/// Returns the initial position of the channel, or else the beginning of a random term.
fn initial_position(params: &PublicationParams, outlets: &mut ConductorOutlets) -> InitialPosition {
    params.initial_position.unwrap_or_else(|| {
        let initial_term_id = outlets.random.i32(..);
        InitialPosition {
            initial_term_id,
            term_id: initial_term_id,
            term_offset: 0,
        }
    })
}

fn publisher_position_name(request: &PublicationRequest) -> &'static str {
    match request.is_exclusive {
        true => "pub-pos (exclusive)",
        false => "pub-pos (concurrent)",
    }
}

/// Returns the channel's `response-correlation-id`, or -1 if the channel has none.
fn response_correlation_id(params: &PublicationParams) -> i64 {
    match params.response_correlation {
        Some(ResponseCorrelation::Id(id)) => id,
        Some(ResponseCorrelation::Prototype) | None => NULL_ID,
    }
}

fn session_clash(request: &PublicationRequest, session_id: i32) -> DriverError {
    DriverError::coded(
        ErrorCode::InvalidChannel,
        format_args!(
            "existing publication has clashing sessionId={session_id} for streamId={} channel={}",
            request.stream_id, request.channel
        ),
    )
}

/// Passes to a new publication whether its first pages were allocated, and records the reason if they were not.
fn record_first_pages(
    created: &CreatedLog,
    outlets: &ConductorOutlets,
    on_first_pages: impl FnOnce(bool) -> bool,
) {
    let Some(result) = &created.first_pages else {
        return;
    };
    let are_missing = on_first_pages(result.is_ok());
    if let (true, Err(error)) = (are_missing, result) {
        outlets.errors.record(error);
    }
}

/// If the publication was revoked, increments the system counter of revoked publications.
fn count_revoked(is_revoked: bool, outlets: &ConductorOutlets) {
    if is_revoked {
        outlets
            .system_counter(SystemCounter::PublicationsRevoked)
            .add_release(1);
    }
}

/// Increments the system counter of unblocked publications, and logs which one it was. `position_counter_id` is the
/// counter of the publishers' position.
fn count_unblocked(position_counter_id: i32, outlets: &ConductorOutlets) {
    outlets
        .system_counter(SystemCounter::UnblockedPublications)
        .add_release(1);
    log::warn!(
        target: TARGET,
        "a publisher left a message unfinished, and the driver skipped it: {}",
        outlets.counters.reader().label(position_counter_id).unwrap_or_default()
    );
}
