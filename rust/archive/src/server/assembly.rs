//! [`Assembly`]: builds the parts of an archive and combines them into agent loops. The start of the archive calls it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use aeron_agent::{Agent, IdleStrategy, IdleStrategySpec};
use aeron_client::{Aeron, ExclusivePublication, HandlerMode, PendingOperation};
use aeron_protocol::uri::{ChannelUri, key};

use super::agents::{ConductorAgent, RecorderAgent, ReplayerAgent};
use super::conductor::Clocks;
use super::context::{
    ArchiveChoices, ArchiveContext, ArchiveThreadingMode, AuthenticatorKind, AuthorisationKind,
    InvokedDriver,
};
use super::control::{ControlStreams, GoneImages};
use super::core::{ArchiveCore, ArchiveEnvironment, ArchiveStart};
use super::counters::CounterLabels;
use super::reload::ConductorNote;
use super::replication::ReplicationSettings;
use super::reports::MarkFileReports;
use super::sessions::SessionSettings;
use super::startup::{ArchiveDirectories, ArchiveStartError, OwnedArchiveDirectory};
use super::users::{FunctionAuthenticator, RoleService, Users, UsersAuthenticator};
use super::{AcceptAll, AllowAll, ArchiveError, Authenticator, AuthorisationService, DenyAll};
use crate::channel::ControlStreamDefaults;
use crate::index::IndexForm;
use crate::objects::OpenObjects;
use crate::ownership::BootId;
use crate::storage::Directory;
use crate::store::{DetachedSegments, StoreOptions};

/// Time limit for a step of a replication, in nanoseconds. It is Aeron's default message timeout.
const REPLICATION_MESSAGE_TIMEOUT_NS: i64 = 10_000_000_000;
/// Interval at which the start polls for the driver's replies.
const START_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The parts that exist before the rest of the archive is built.
pub(super) struct Foundation<'a> {
    pub context: &'a ArchiveContext,
    pub choices: &'a ArchiveChoices,
    pub archive_id: i64,
    pub directories: &'a ArchiveDirectories,
    pub clocks: &'a Clocks,
    pub open_objects: OpenObjects,
}

/// The agent loops of an archive that is ready.
pub(super) struct Assembly {
    /// The loops in the order in which they are closed. The conductor's loop is the last.
    pub loops: Vec<Loop>,
    /// Set when the conductor has ended.
    pub is_terminated: Arc<AtomicBool>,
    /// Channel from other threads to the conductor.
    pub notes: Sender<ConductorNote>,
}

/// An agent and its idle strategy.
pub(super) struct Loop {
    pub agent: Box<dyn Agent>,
    pub idle_strategy: Box<dyn IdleStrategy>,
}

impl Assembly {
    /// Connects to the driver and starts the archive. Waits for the driver.
    ///
    /// # Errors
    /// The driver does not serve the archive, or serves another archive with the same id. The store
    /// or the object storage cannot be opened.
    pub fn new(
        foundation: &Foundation<'_>,
        directory: OwnedArchiveDirectory,
    ) -> Result<Self, ArchiveStartError> {
        let &Foundation {
            context,
            choices,
            archive_id,
            directories,
            clocks,
            open_objects,
        } = foundation;
        let surroundings = ArchiveEnvironment {
            storage: storage(context, directories),
            aeron: connect(context, archive_id)?,
            archive_id,
            epoch_clock: Arc::clone(&clocks.epoch),
            nano_clock: Arc::clone(&clocks.nano),
            random: Box::new(random),
            boot_id: BootId::current(),
            reports: Box::new(|now_ms, errors| {
                let directory = directory.ready(now_ms)?;
                Ok(Box::new(MarkFileReports::new(directory, errors)))
            }),
        };
        let objects = match context.objects_url.is_empty() {
            true => None,
            false => {
                // Passes the canonical path: the directory in the context may be relative.
                let context = ArchiveContext {
                    archive_dir: directories.archive.clone(),
                    ..context.clone()
                };
                let opened = open_objects(&context);
                Some(opened.map_err(|reason| ArchiveStartError::Objects { reason })?)
            }
        };
        let start = ArchiveStart::new(context.clone(), surroundings)?;
        let mut start = start.with_objects(objects);
        loop {
            if let Some(core) = start.poll()? {
                return Ok(Self::of(context, choices, core));
            }
            context.run_driver();
            std::thread::sleep(START_POLL_INTERVAL);
        }
    }

    fn of(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
        core: ArchiveCore<Directory>,
    ) -> Self {
        let ArchiveCore {
            mut conductor,
            recorder,
            replayer,
        } = core;
        let (notes, notes_to_conductor) = channel();
        conductor.notes = Some(notes_to_conductor);
        let is_terminated = Arc::new(AtomicBool::new(false));
        let mut agent = ConductorAgent {
            conductor,
            recorder: None,
            replayer: None,
            driver: context.driver_invoker.clone(),
            is_terminated: Arc::clone(&is_terminated),
        };
        let mut loops = Vec::new();
        if context.threading_mode == ArchiveThreadingMode::Dedicated {
            let nano_clock = &agent.conductor.clocks.nano;
            let counters = &agent.conductor.counters;
            let recorder = RecorderAgent {
                recorder,
                nano_clock: Arc::clone(nano_clock),
                cycles: counters.recorder_cycles.clone(),
            };
            let replayer = ReplayerAgent {
                replayer,
                nano_clock: Arc::clone(nano_clock),
                cycles: counters.replayer_cycles.clone(),
            };
            loops.push(Loop::new(recorder, choices.recorder_idle_strategy));
            loops.push(Loop::new(replayer, choices.replayer_idle_strategy));
        } else {
            agent.recorder = Some(recorder);
            agent.replayer = Some(replayer);
        }
        loops.push(Loop::new(agent, choices.conductor_idle_strategy));
        Self {
            loops,
            is_terminated,
            notes,
        }
    }
}

impl Loop {
    fn new(agent: impl Agent + 'static, idle_strategy: IdleStrategySpec) -> Self {
        Self {
            agent: Box::new(agent),
            idle_strategy: idle_strategy.build(),
        }
    }
}

/// Returns the archive's directory. In mode [`ArchiveThreadingMode::Invoker`], the archive starts no thread.
fn storage(context: &ArchiveContext, directories: &ArchiveDirectories) -> Directory {
    let directory = Directory::new(directories.archive.clone());
    match context.threading_mode {
        ArchiveThreadingMode::Invoker => directory,
        _ => directory.freeing_on_a_thread(),
    }
}

fn connect(context: &ArchiveContext, archive_id: i64) -> Result<Aeron, ArchiveStartError> {
    let client = aeron_client::Context {
        aeron_dir: context.aeron_dir.clone(),
        client_name: format!("archive archiveId={archive_id}"),
        driver_timeout_ms: context.driver_timeout_ms as u64,
        use_conductor_agent_invoker: true,
        driver_invoker: context.driver_invoker.as_ref().map(InvokedDriver::invoker),
        handler_mode: HandlerMode::Inline,
        ..aeron_client::Context::default()
    };
    Ok(Aeron::connect(client)?)
}

pub(super) fn labels(context: &ArchiveContext, archive_id: i64) -> CounterLabels<'_> {
    CounterLabels {
        archive_id,
        threading_mode: context.threading_mode.name(),
        is_dedicated: context.threading_mode == ArchiveThreadingMode::Dedicated,
        cycle_thresholds_ns: [
            context.conductor_cycle_threshold_ns,
            context.recorder_cycle_threshold_ns,
            context.replayer_cycle_threshold_ns,
        ],
    }
}

/// Asks the driver to add the subscriptions to the control streams.
pub(super) fn control_streams(
    aeron: &Aeron,
    context: &ArchiveContext,
) -> Result<ControlStreams, ArchiveStartError> {
    let gone = GoneImages::new();
    let add = |channel: &str, stream_id| {
        aeron.async_add_subscription_with(channel, stream_id, gone.handlers())
    };
    let mut subscriptions = Vec::new();
    if context.control_channel_enabled {
        subscriptions.push(add(&control_channel(context)?, context.control_stream_id)?);
    }
    subscriptions.push(add(
        &context.local_control_channel,
        context.local_control_stream_id,
    )?);
    Ok(ControlStreams::new(subscriptions, gone))
}

/// Returns the control channel, with the archive's setting for the parameter `sparse`.
fn control_channel(context: &ArchiveContext) -> Result<String, ArchiveError> {
    let mut channel = ChannelUri::parse(&context.control_channel)?;
    let is_sparse = context.control_term_buffer_sparse;
    channel.put(key::SPARSE, &is_sparse.to_string())?;
    Ok(channel.to_string())
}

/// Asks the driver to add the publication of recording events, if they are enabled.
pub(super) fn recording_events(
    aeron: &Aeron,
    context: &ArchiveContext,
) -> Result<Option<PendingOperation<ExclusivePublication>>, ArchiveStartError> {
    if !context.recording_events_enabled {
        return Ok(None);
    }
    let (channel, stream_id) = (
        &context.recording_events_channel,
        context.recording_events_stream_id,
    );
    let adding = aeron.async_add_exclusive_publication(channel, stream_id)?;
    Ok(Some(adding))
}

pub(super) fn replication_settings(
    context: &ArchiveContext,
    archive_id: i64,
) -> ReplicationSettings {
    ReplicationSettings {
        archive_id,
        replication_channel: context.replication_channel.clone(),
        response_channel: replication_response_channel(context),
        message_timeout_ns: REPLICATION_MESSAGE_TIMEOUT_NS,
        control_term_length: context.control_term_buffer_length as u32,
        is_control_term_sparse: context.control_term_buffer_sparse,
        control_mtu_length: context.control_mtu_length as u32,
    }
}

/// Returns the channel for responses of replication sources. It has the host of the control channel
/// and a port that the driver chooses.
fn replication_response_channel(context: &ArchiveContext) -> String {
    let control = ChannelUri::parse(&context.control_channel).ok();
    let endpoint = control
        .as_ref()
        .and_then(|channel| channel.get(key::ENDPOINT));
    let host = endpoint.and_then(|endpoint| endpoint.rsplit_once(':'));
    let host = host.map_or("localhost", |(host, _)| host);
    format!("aeron:udp?endpoint={host}:0")
}

pub(super) fn store_options(
    context: &ArchiveContext,
    choices: &ArchiveChoices,
    boot_id: Option<BootId>,
) -> StoreOptions {
    StoreOptions {
        catalog_capacity: context.catalog_capacity,
        segment_length: context.segment_file_length as i32,
        file_sync_level: context.file_sync_level,
        catalog_sync_level: context.catalog_file_sync_level,
        record_checksum: choices.record_checksum,
        on_torn_fragment: context.on_torn_fragment,
        index: context.index.then_some(IndexForm::Sparse),
        detached_segments: DetachedSegments::Kept,
        boot_id,
        low_storage_space_threshold: context.low_storage_space_threshold,
        extensions_length: context.step_sizes.extensions_length,
    }
}

pub(super) fn session_settings(context: &ArchiveContext, archive_id: i64) -> SessionSettings {
    SessionSettings {
        archive_id,
        connect_timeout_ns: context.connect_timeout_ns,
        liveness_check_interval_ns: context.session_liveness_check_interval_ns,
        response_defaults: ControlStreamDefaults {
            mtu_length: context.control_mtu_length as i32,
            term_length: context.control_term_buffer_length as i32,
            is_sparse: context.control_term_buffer_sparse,
        },
    }
}

/// The authenticator and the authorisation service.
pub(super) struct Security {
    pub authenticator: Box<dyn Authenticator>,
    pub authorisation: Box<dyn AuthorisationService>,
}

impl Security {
    /// Creates the authenticator and the authorisation service from the settings. Reads the users file, if the settings
    /// name one.
    pub fn of(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
    ) -> Result<Self, ArchiveStartError> {
        let users = context.users_file.as_ref().map(|path| Users::load(path));
        let users = users.transpose()?.map(Arc::new);
        let authorisation: Box<dyn AuthorisationService> = match (choices.authorisation, &users) {
            (AuthorisationKind::AllowAll, _) => Box::new(AllowAll),
            (AuthorisationKind::Roles, Some(users)) => {
                Box::new(RoleService::new(Arc::clone(users)))
            }
            // Without a users file, no client has a role.
            (AuthorisationKind::DenyAll, _) | (AuthorisationKind::Roles, None) => Box::new(DenyAll),
        };
        let thread = |source| ArchiveStartError::Thread { source };
        let authenticator: Box<dyn Authenticator> = match (&choices.authenticator, users) {
            (AuthenticatorKind::Function(function), _) => {
                let timeout = Duration::from_nanos(context.connect_timeout_ns.max(0) as u64);
                let started = FunctionAuthenticator::start(function.clone(), timeout);
                Box::new(started.map_err(thread)?)
            }
            (AuthenticatorKind::UsersFile(path), users) => {
                let users = match users {
                    Some(users) => users,
                    None => Arc::new(Users::load(path)?),
                };
                Box::new(UsersAuthenticator::start(users).map_err(thread)?)
            }
            (AuthenticatorKind::AcceptAll, _) => Box::new(AcceptAll),
        };
        Ok(Self {
            authenticator,
            authorisation,
        })
    }
}

/// Returns a random number that cannot be guessed.
fn random() -> i64 {
    getrandom::u64().expect("the system gives random numbers") as i64
}
