//! What the commands about publications have in common: who refers to them, what they are made of.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, types};
use aeron_memory::directory::publication_log;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::frame::HEADER_LENGTH;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogDescription, LogType};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, RemovePublication};
use aeron_protocol::uri::{
    InitialPosition, PublicationParams, ResponseCorrelation, Transport, UntetheredTimeouts,
};

use super::Conductor;
use super::outlets::NULL_ID;
use super::outlets::Outlets;
use super::pending::AwaitedChannel;
use super::requests::PublicationRequest;
use crate::config::Context;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::ChannelRole;
use crate::publication::{PublicationConfig, PublisherCounters, PublisherPages};
use crate::resources::ResourceCommand;
use crate::stream::{PageRequest, TetherTimeouts};

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
            Transport::Ipc => self.on_add_ipc_publication(request, channel),
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
            self.revoke_publication(reference.publication_id);
        }
        self.remove_publication_reference(reference.publication_id);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    fn revoke_publication(&mut self, id: i64) {
        self.ipc_publications
            .iter()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(|publication| publication.revoke());
        self.network_publications
            .iter()
            .filter(|publication| publication.config().registration_id == id)
            .for_each(|publication| publication.revoke());
    }

    pub(super) fn remove_publication_reference(&mut self, id: i64) {
        let has_id = |config: &PublicationConfig| config.registration_id == id;
        let mut ipc = self.ipc_publications.iter_mut();
        if let Some(index) = ipc.position(|publication| has_id(publication.config())) {
            if self.ipc_publications[index].end_waiting() {
                self.link_ipc_publication(index);
            }
            self.ipc_publications[index].remove_reference();
        }
        let mut network = self.network_publications.iter_mut();
        if let Some(index) = network.position(|publication| has_id(publication.config())) {
            if self.network_publications[index].end_waiting() {
                self.link_network_publication(index);
            }
            self.network_publications[index].remove_reference(self.outlets.now_ns);
        }
    }

    /// Pages that a publication needs were allocated, or there are none left. Subscribers that waited for them are linked.
    pub(super) fn on_publication_pages(&mut self, id: i64, result: Result<usize, DriverError>) {
        let mut is_first_failure = false;
        let has_id = |config: &PublicationConfig| config.registration_id == id;
        let mut ipc = self.ipc_publications.iter_mut();
        if let Some(index) = ipc.position(|publication| has_id(publication.config())) {
            let publication = &mut self.ipc_publications[index];
            match result {
                Ok(length) => publication.on_pages_allocated(length),
                Err(_) => is_first_failure = publication.on_pages_missing(),
            }
            if publication.take_awaited() {
                self.link_ipc_publication(index);
            }
        }
        let mut network = self.network_publications.iter_mut();
        if let Some(index) = network.position(|publication| has_id(publication.config())) {
            let publication = &mut self.network_publications[index];
            match result {
                Ok(length) => publication.on_pages_allocated(length),
                Err(_) => is_first_failure = publication.on_pages_missing(),
            }
            if publication.take_awaited() {
                self.link_network_publication(index);
            }
        }
        if let (true, Err(error)) = (is_first_failure, result) {
            self.outlets.errors.record(&error);
        }
    }

    /// Publishes positions and limits, and asks for the pages that the next limits need.
    pub(super) fn update_publications(&mut self) -> usize {
        let mut work_count = 0;
        let commands = &mut self.outlets.resource_commands;
        let mut ask = |id: i64, request: Option<PublisherPages>| {
            let log = LogId::Publication(id);
            let allocate = |PublisherPages { pages, promise }| ResourceCommand::AllocateLog {
                log,
                pages,
                promise,
            };
            request
                .map(|request| commands.send(allocate(request)))
                .is_some()
        };
        for publication in &mut self.network_publications {
            work_count += usize::from(publication.update_limit());
            let pages = publication.page_request();
            work_count += usize::from(ask(publication.config().registration_id, pages));
        }
        for publication in &mut self.ipc_publications {
            work_count += usize::from(publication.update_limit());
            let pages = publication.page_request();
            work_count += usize::from(ask(publication.config().registration_id, pages));
        }
        work_count
    }

    pub(super) fn request_publication_log(&mut self, id: i64, params: &PublicationParams) {
        let lap_length = PARTITION_COUNT as i64 * i64::from(params.term_length);
        let start_position = params
            .initial_position
            .map_or(0, |initial| initial.position(params.term_length));
        let first_frame = PageRequest {
            offset: (start_position % lap_length) as usize,
            length: HEADER_LENGTH,
        };
        let page_size = self.context.file_page_size as i64;
        self.outlets
            .resource_commands
            .send(ResourceCommand::CreateLog {
                log: LogId::Publication(id),
                length: log_length(params.term_length.into(), page_size)
                    .expect("term length and page size are validated"),
                sparse: params.is_sparse.then_some(first_frame),
            });
    }

    /// Where the channel says, or at the beginning of a random term.
    pub(super) fn initial_position(&mut self, params: &PublicationParams) -> InitialPosition {
        params.initial_position.unwrap_or_else(|| {
            let initial_term_id = self.outlets.random.i32(..);
            InitialPosition {
                initial_term_id,
                term_id: initial_term_id,
                term_offset: 0,
            }
        })
    }

    pub(super) fn publication_config(
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

    /// What the log of a publication says about itself.
    pub(super) fn describe_publication_log(
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

impl Outlets {
    pub(super) fn allocate_publisher_counters(
        &mut self,
        request: &PublicationRequest,
        session_id: i32,
    ) -> Result<PublisherCounters, DriverError> {
        let owner = request.counter_owner(session_id);
        let names = [
            (types::PUBLISHER_POSITION, publisher_position_name(request)),
            (types::PUBLISHER_LIMIT, "pub-lmt"),
        ];
        let [position, limit]: [AtomicCounter<SharedBuffer>; 2] =
            self.allocate_stream_counters(&owner, names)?;
        Ok(PublisherCounters { position, limit })
    }
}

pub(super) fn publisher_position_name(request: &PublicationRequest) -> &'static str {
    match request.is_exclusive {
        true => "pub-pos (exclusive)",
        false => "pub-pos (concurrent)",
    }
}

/// What the channel names as the other half of an exchange, -1 if nothing.
pub(super) fn response_correlation_id(params: &PublicationParams) -> i64 {
    match params.response_correlation {
        Some(ResponseCorrelation::Id(id)) => id,
        Some(ResponseCorrelation::Prototype) | None => NULL_ID,
    }
}

pub(super) fn session_clash(request: &PublicationRequest, session_id: i32) -> DriverError {
    DriverError::coded(
        ErrorCode::InvalidChannel,
        format_args!(
            "existing publication has clashing sessionId={session_id} for streamId={} channel={}",
            request.stream_id, request.channel
        ),
    )
}

pub(super) fn untethered_timeouts(context: &Context) -> UntetheredTimeouts {
    UntetheredTimeouts {
        window_limit_timeout_ns: context.untethered_window_limit_timeout_ns,
        linger_timeout_ns: context.untethered_linger_timeout_ns,
        resting_timeout_ns: context.untethered_resting_timeout_ns,
    }
}
