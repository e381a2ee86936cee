//! Publications to IPC: found or created, shared, given up.
//!
//! A log is made by the native resource agent. Until it has answered, the command waits and no other is taken.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, NewCounter, keys, types};
use aeron_memory::directory::publication_log;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, RemovePublication};
use aeron_protocol::uri::{
    ChannelUri, ExistingPublication, InitialPosition, PublicationDefaults, PublicationParams,
    ResponseCorrelation, SessionId, Transport, UntetheredTimeouts,
};

use super::clients::PublicationReference;
use super::commands::{bad_channel, refuse_network_channel};
use super::{Conductor, Outlets};
use crate::config::Context;
use crate::error::DriverError;
use crate::publication::{IpcPublication, IpcPublicationConfig, State, TetherTimeouts};
use crate::resources::ResourceCommand;
use crate::socket_buffers::SocketBufferLengths;

const NULL_ID: i64 = -1;

/// A command that waits for its log.
#[derive(Debug)]
pub(super) struct PendingPublication {
    client_id: i64,
    correlation_id: i64,
    stream_id: i32,
    is_exclusive: bool,
    channel: String,
    params: PublicationParams,
}

impl Conductor {
    pub(super) fn on_add_publication(
        &mut self,
        command: &AddPublication<'_>,
        is_exclusive: bool,
    ) -> Result<(), DriverError> {
        match Transport::of(command.channel) {
            Transport::Ipc => {}
            Transport::Network => return Err(refuse_network_channel(command.channel)),
            Transport::Spy => {
                let text = format!(
                    "spies are for subscriptions: channel={}",
                    String::from_utf8_lossy(command.channel)
                );
                return Err(DriverError::coded(ErrorCode::InvalidChannel, text));
            }
        }
        let defaults = ipc_defaults(&self.context);
        let params = ChannelUri::from_bytes(command.channel)
            .and_then(|uri| PublicationParams::parse(&uri, &defaults, |_| None))
            .map_err(|error| bad_channel(error, command.channel))?;
        if !is_exclusive && let Some(index) = self.find_shared(command.stream_id, &params) {
            params
                .check_agrees_with(&self.publications[index].existing())
                .map_err(|error| bad_channel(error, command.channel))?;
            return self.refer_to_publication(index, command.client_id, command.correlation_id);
        }
        self.check_session_clash(command, &params)?;
        self.request_log(command, is_exclusive, params)
    }

    pub(super) fn on_remove_publication(
        &mut self,
        command: &RemovePublication,
    ) -> Result<(), DriverError> {
        let reference = self
            .known_client(command.client_id)
            .and_then(|client| client.remove_publication(command.registration_id));
        let Some(reference) = reference else {
            return Err(DriverError::coded(
                ErrorCode::UnknownPublication,
                format_args!(
                    "unknown publication client_id={} registration_id={}",
                    command.client_id, command.registration_id
                ),
            ));
        };
        if command.revoke {
            self.publications_with_id(reference.publication_id)
                .for_each(|publication| publication.revoke());
        }
        self.remove_publication_reference(reference.publication_id);
        self.outlets
            .events
            .on_operation_success(command.correlation_id);
        Ok(())
    }

    pub(super) fn remove_publication_reference(&mut self, publication_id: i64) {
        self.publications_with_id(publication_id)
            .for_each(IpcPublication::remove_reference);
    }

    /// The log that the pending command waits for is there, or cannot be made.
    pub(super) fn on_log_created(
        &mut self,
        registration_id: i64,
        result: Result<SharedBuffer, DriverError>,
    ) {
        let Some(pending) = self
            .pending
            .take_if(|pending| pending.correlation_id == registration_id)
        else {
            return;
        };
        let memory = match result {
            Ok(memory) => memory,
            Err(error) => {
                return self
                    .outlets
                    .refuse(pending.correlation_id, &error.context(pending.describe()));
            }
        };
        if let Err(error) = self.add_publication(&pending, &memory) {
            self.resource_commands
                .send(ResourceCommand::RemoveLog { registration_id });
            self.outlets
                .refuse(pending.correlation_id, &error.context(pending.describe()));
        }
    }

    /// Pages that a publication needs were allocated, or there are none left.
    pub(super) fn on_log_allocated(
        &mut self,
        registration_id: i64,
        result: Result<usize, DriverError>,
    ) {
        let mut is_first_failure = false;
        for publication in self.publications_with_id(registration_id) {
            match result {
                Ok(length) => publication.on_pages_allocated(length),
                Err(_) => is_first_failure |= publication.on_pages_missing(),
            }
        }
        if let (true, Err(error)) = (is_first_failure, result) {
            self.outlets.errors.record(&error);
        }
    }

    /// Publishes positions and limits, and asks for the pages that the next limits need.
    pub(super) fn update_publications(&mut self) -> usize {
        let mut work_count = 0;
        for publication in &mut self.publications {
            work_count += usize::from(publication.update_limit());
            if let Some(request) = publication.page_request() {
                let registration_id = publication.config().registration_id;
                let (offset, length) = (request.offset, request.length);
                self.resource_commands.send(ResourceCommand::AllocateLog {
                    registration_id,
                    offset,
                    length,
                });
                work_count += 1;
            }
        }
        work_count
    }

    pub(super) fn delete_publication(&mut self, index: usize) {
        let mut publication = self.publications.swap_remove(index);
        for subscriber in publication.subscribers.remove_all() {
            subscriber
                .position_counter_id()
                .into_iter()
                .for_each(|id| self.outlets.free_counter(id));
        }
        for counter_id in publication.counter_ids() {
            self.outlets.free_counter(counter_id);
        }
        let registration_id = publication.config().registration_id;
        self.resource_commands
            .send(ResourceCommand::RemoveLog { registration_id });
    }

    fn publications_with_id(
        &mut self,
        publication_id: i64,
    ) -> impl Iterator<Item = &mut IpcPublication> {
        self.publications
            .iter_mut()
            .filter(move |publication| publication.config().registration_id == publication_id)
    }

    fn find_shared(&self, stream_id: i32, params: &PublicationParams) -> Option<usize> {
        let response_correlation_id = response_correlation_id(params);
        self.publications.iter().position(|publication| {
            let config = publication.config();
            publication.state() == State::Active
                && !config.is_exclusive
                && config.stream_id == stream_id
                && config.response_correlation_id == response_correlation_id
        })
    }

    fn check_session_clash(
        &self,
        command: &AddPublication<'_>,
        params: &PublicationParams,
    ) -> Result<(), DriverError> {
        match params.session_id {
            SessionId::Explicit(session_id)
                if is_session_in_use(&self.publications, command.stream_id, session_id) =>
            {
                Err(DriverError::coded(
                    ErrorCode::InvalidChannel,
                    format_args!(
                        "existing publication has clashing sessionId={session_id} for streamId={} channel={}",
                        command.stream_id,
                        String::from_utf8_lossy(command.channel)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    fn request_log(
        &mut self,
        command: &AddPublication<'_>,
        is_exclusive: bool,
        params: PublicationParams,
    ) -> Result<(), DriverError> {
        let log_length =
            publication_log_length(params.term_length as usize, self.context.file_page_size);
        let start_position = params
            .initial_position
            .map_or(0, |initial| initial.position(params.term_length));
        let lap_length = PARTITION_COUNT as i64 * i64::from(params.term_length);
        let start_offset = (start_position % lap_length) as usize;
        self.resource_commands.send(ResourceCommand::CreateLog {
            registration_id: command.correlation_id,
            length: log_length,
            sparse_start: params.is_sparse.then_some(start_offset),
        });
        self.pending = Some(PendingPublication {
            client_id: command.client_id,
            correlation_id: command.correlation_id,
            stream_id: command.stream_id,
            is_exclusive,
            channel: String::from_utf8_lossy(command.channel).into_owned(),
            params,
        });
        Ok(())
    }

    fn add_publication(
        &mut self,
        pending: &PendingPublication,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let session_id = match pending.params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => self.allocate_session_id(pending.stream_id),
        };
        let initial_position = pending.params.initial_position.unwrap_or_else(|| {
            let initial_term_id = self.random.i32(..);
            InitialPosition {
                initial_term_id,
                term_id: initial_term_id,
                term_offset: 0,
            }
        });
        let start_position = initial_position.position(pending.params.term_length);
        let description = pending.describe_log(
            session_id,
            &initial_position,
            &self.context,
            self.system_socket_buffers,
        );
        let log = LogBuffers::create(memory, &description, start_position).map_err(|error| {
            DriverError::invalid_argument(format_args!("failed to create log: {error}"))
        })?;
        let counters = self
            .outlets
            .allocate_publication_counters(pending, session_id)?;
        let config = self.publication_config(pending, session_id, initial_position, start_position);
        self.narrow_response_subscription(config.response_correlation_id, session_id);
        self.publications
            .push(IpcPublication::new(config, log, counters, self.now_ns));
        let index = self.publications.len() - 1;
        self.refer_to_publication(index, pending.client_id, pending.correlation_id)
            .inspect_err(|_| {
                let publication = self.publications.swap_remove(index);
                publication
                    .counter_ids()
                    .into_iter()
                    .for_each(|id| self.outlets.free_counter(id));
            })
    }

    /// Gives a client a reference to a publication, answers its command, and links subscriptions.
    fn refer_to_publication(
        &mut self,
        index: usize,
        client_id: i64,
        correlation_id: i64,
    ) -> Result<(), DriverError> {
        let publication_id = self.publications[index].config().registration_id;
        let reference = PublicationReference {
            registration_id: correlation_id,
            publication_id,
        };
        self.client(client_id)?.publications.push(reference);
        self.publications[index].add_reference();
        self.outlets
            .events
            .on_publication_ready(correlation_id, &self.publications[index]);
        self.link_publication(index);
        Ok(())
    }

    fn allocate_session_id(&mut self, stream_id: i32) -> i32 {
        let publications = &self.publications;
        self.session_ids
            .allocate(|session_id| is_session_in_use(publications, stream_id, session_id))
    }

    /// A publication that answers requests belongs to the one subscription that waits for the answers.
    fn narrow_response_subscription(&mut self, request_id: i64, session_id: i32) {
        let request = self
            .publications
            .iter()
            .find(|publication| publication.config().registration_id == request_id);
        let Some(response_subscription_id) =
            request.map(|request| request.config().response_correlation_id)
        else {
            return;
        };
        let mut subscriptions = self.subscriptions.iter_mut();
        if let Some(subscription) = subscriptions
            .find(|subscription| subscription.registration_id == response_subscription_id)
        {
            subscription.session_id = Some(session_id);
        }
    }

    fn publication_config(
        &self,
        pending: &PendingPublication,
        session_id: i32,
        initial_position: InitialPosition,
        start_position: i64,
    ) -> IpcPublicationConfig {
        let params = &pending.params;
        IpcPublicationConfig {
            registration_id: pending.correlation_id,
            session_id,
            stream_id: pending.stream_id,
            is_exclusive: pending.is_exclusive,
            response_correlation_id: response_correlation_id(params),
            initial_position,
            start_position,
            window_length: params.window_length.into(),
            is_sparse: params.is_sparse,
            log_file_name: publication_log(&self.context.dir, pending.correlation_id)
                .display()
                .to_string(),
            tether_timeouts: TetherTimeouts {
                window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
                linger_timeout_ns: params.untethered_linger_timeout_ns,
                resting_timeout_ns: params.untethered_resting_timeout_ns,
            },
            unblock_timeout_ns: self.context.publication_unblock_timeout_ns,
            image_liveness_timeout_ns: self.context.image_liveness_timeout_ns,
        }
    }
}

impl PendingPublication {
    fn describe(&self) -> String {
        format!("channel={} streamId={}", self.channel, self.stream_id)
    }

    fn describe_log(
        &self,
        session_id: i32,
        initial_position: &InitialPosition,
        context: &Context,
        system_socket_buffers: SocketBufferLengths,
    ) -> LogDescription {
        let params = &self.params;
        let log_type = match self.is_exclusive {
            true => LogType::ExclusivePublication,
            false => LogType::ConcurrentPublication,
        };
        LogDescription {
            correlation_id: self.correlation_id,
            mtu_length: params.mtu_length,
            term_length: params.term_length,
            page_size: context.file_page_size as i32,
            publication_window_length: params.window_length,
            os_default_socket_sndbuf_length: system_socket_buffers.send,
            os_default_socket_rcvbuf_length: system_socket_buffers.receive,
            max_resend: params.max_resend,
            entity_tag: params.entity_tag.unwrap_or(NULL_ID),
            response_correlation_id: response_correlation_id(params),
            linger_timeout_ns: params.linger_timeout_ns,
            untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
            sparse: params.is_sparse,
            signal_eos: params.signal_eos,
            spies_simulate_connection: params.spies_simulate_connection,
            ..LogDescription::new(
                log_type,
                session_id,
                self.stream_id,
                initial_position.initial_term_id,
            )
        }
    }
}

impl Outlets {
    fn allocate_publication_counters(
        &mut self,
        pending: &PendingPublication,
        session_id: i32,
    ) -> Result<(AtomicCounter<SharedBuffer>, AtomicCounter<SharedBuffer>), DriverError> {
        let position_name = if pending.is_exclusive {
            "pub-pos (exclusive)"
        } else {
            "pub-pos (concurrent)"
        };
        let position = self.allocate_stream_counter(
            types::PUBLISHER_POSITION,
            position_name,
            pending,
            session_id,
        )?;
        let limit = self
            .allocate_stream_counter(types::PUBLISHER_LIMIT, "pub-lmt", pending, session_id)
            .inspect_err(|_| self.free_counter(position.id()))?;
        Ok((position, limit))
    }

    fn allocate_stream_counter(
        &mut self,
        type_id: i32,
        name: &str,
        pending: &PendingPublication,
        session_id: i32,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let (registration_id, stream_id, channel) =
            (pending.correlation_id, pending.stream_id, &pending.channel);
        self.allocate_counter(&NewCounter {
            type_id,
            key: &keys::stream_key(registration_id, session_id, stream_id, channel),
            label: keys::stream_label(name, registration_id, session_id, stream_id, channel)
                .as_bytes(),
            registration_id,
            owner_id: pending.client_id,
            reference_id: 0,
            value: 0,
        })
    }
}

impl IpcPublication {
    fn existing(&self) -> ExistingPublication {
        let config = self.config();
        ExistingPublication {
            session_id: config.session_id,
            mtu_length: self.log().framing().mtu_length() as i32,
            term_length: self.log().term_length() as i32,
            initial_position: config.initial_position,
        }
    }
}

fn is_session_in_use(publications: &[IpcPublication], stream_id: i32, session_id: i32) -> bool {
    publications
        .iter()
        .filter(|publication| publication.is_live())
        .map(IpcPublication::config)
        .any(|config| config.stream_id == stream_id && config.session_id == session_id)
}

/// Both lengths are checked before.
fn publication_log_length(term_length: usize, page_size: usize) -> usize {
    log_length(term_length as i64, page_size as i64)
        .expect("term length and page size are validated")
}

fn response_correlation_id(params: &PublicationParams) -> i64 {
    match params.response_correlation {
        Some(ResponseCorrelation::Id(id)) => id,
        Some(ResponseCorrelation::Prototype) | None => NULL_ID,
    }
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

pub(super) fn untethered_timeouts(context: &Context) -> UntetheredTimeouts {
    UntetheredTimeouts {
        window_limit_timeout_ns: context.untethered_window_limit_timeout_ns,
        linger_timeout_ns: context.untethered_linger_timeout_ns,
        resting_timeout_ns: context.untethered_resting_timeout_ns,
    }
}
