//! [`Assembly`]: the parts of an archive, put together into loops.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use aeron_agent::{Agent, IdleStrategy, IdleStrategySpec};
use aeron_client::{Aeron, HandlerMode};
use aeron_protocol::uri::{ChannelUri, key};

use super::agents::{ConductorAgent, RecorderAgent, ReplayerAgent};
use super::conductor::{ArchiveConductor, Clocks};
use super::context::{
    ArchiveChoices, ArchiveContext, ArchiveThreadingMode, AuthenticatorKind, AuthorisationKind,
};
use super::control::{ControlStreams, GoneImages};
use super::counters::{
    ArchiveCounters, CounterLabels, TransferCounters, TransferMeter, is_archive_there,
};
use super::maintenance::Deletions;
use super::outbox::Outbox;
use super::recording::{Recorder, RecordingEvents, RecordingSettings, Recordings};
use super::replay::{ReplaySettings, Replayer, Replays};
use super::replaying::HeldReplays;
use super::replication::{ReplicationSettings, Replications};
use super::reports::MarkFileReports;
use super::sessions::{ControlSessions, SessionSettings};
use super::startup::{ArchiveDirectories, ArchiveStartError, TakenDirectory};
use super::users::{RoleService, Users, UsersAuthenticator};
use super::{AcceptAll, AllowAll, ArchiveError, Authenticator, AuthorisationService, DenyAll};
use crate::channel::ControlStreamDefaults;
use crate::storage::Directory;
use crate::store::{ArchiveStore, StoreOptions};

/// How long a step of a replication may take, in nanoseconds: Aeron's message timeout.
const REPLICATION_MESSAGE_TIMEOUT_NS: i64 = 10_000_000_000;
/// Sleep between looks at the driver's replies while the archive starts.
const START_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The parts that exist before an archive is assembled.
pub(super) struct Foundation<'a> {
    pub context: &'a ArchiveContext,
    pub choices: &'a ArchiveChoices,
    pub archive_id: i64,
    pub directories: &'a ArchiveDirectories,
    pub clocks: &'a Clocks,
}

/// The loops of an archive that is ready.
pub(super) struct Assembly {
    /// In the order in which they end; the conductor's is the last.
    pub loops: Vec<Loop>,
    /// Set when the conductor has ended.
    pub is_terminated: Arc<AtomicBool>,
}

/// An agent, and what it does when it has nothing to do.
pub(super) struct Loop {
    pub agent: Box<dyn Agent>,
    pub idle_strategy: Box<dyn IdleStrategy>,
}

impl Assembly {
    /// Connects to the driver, opens the store, and subscribes to the control streams. Waits for the driver.
    ///
    /// # Errors
    /// The driver does not serve the archive, serves one with the same id, or the store cannot be opened.
    pub fn new(
        foundation: &Foundation<'_>,
        directory: TakenDirectory,
    ) -> Result<Self, ArchiveStartError> {
        let &Foundation {
            context,
            choices,
            archive_id,
            directories,
            clocks,
        } = foundation;
        let aeron = connect(context, archive_id)?;
        await_archive_id(&aeron, archive_id, clocks)?;
        let (now_ms, now_ns) = (clocks.epoch.time_ms(), clocks.nano.nano_time());
        let counters = ArchiveCounters::add(&aeron, &labels(context, archive_id), now_ns)?;
        let storage = Directory::new(directories.archive.clone());
        let (store, _) =
            ArchiveStore::open(storage.clone(), store_options(context, choices), now_ms)?;
        let events = recording_events(&aeron, context)?;
        let streams = subscribe(&aeron, context)?;
        let (recorder_commands, commands_to_recorder) = channel();
        let (recorder_events, events_of_recorder) = channel();
        let meter = |counters: &TransferCounters| {
            TransferMeter::new(counters.clone(), Arc::clone(&clocks.nano))
        };
        let recorder = Recorder::new(
            commands_to_recorder,
            recorder_events,
            events,
            meter(&counters.writes),
        );
        let (replays, replayer) = replays(context, choices, storage);
        let reads = counters.reads.clone();
        let replayer = replayer.measure_reads(Arc::clone(&clocks.nano), move |bytes, ns| {
            reads.note(bytes, ns)
        });
        let recording_settings = RecordingSettings {
            archive_id,
            max_concurrent_recordings: context.max_concurrent_recordings as usize,
            block_limit: context.file_io_max_length,
        };
        let sessions = sessions(context, archive_id, Security::of(choices)?);
        let reports = MarkFileReports::new(directory.ready(now_ms)?, counters.errors.clone());
        let conductor = ArchiveConductor {
            archive_id,
            recordings: Recordings::new(recording_settings, recorder_commands, events_of_recorder),
            replays,
            held_replays: HeldReplays::default(),
            replications: Replications::new(replication_settings(context, archive_id)),
            deletions: Deletions::default(),
            sessions,
            outbox: Outbox::default(),
            reports: Box::new(reports),
            clocks: clocks.clone(),
            aeron,
            store,
            streams,
            counters,
            now_ns,
            now_ms,
        };
        Ok(Self::of(context, choices, conductor, recorder, replayer))
    }

    fn of(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
        conductor: ArchiveConductor<Directory>,
        recorder: Recorder<Directory>,
        replayer: Replayer<Directory>,
    ) -> Self {
        let is_terminated = Arc::new(AtomicBool::new(false));
        let mut agent = ConductorAgent {
            conductor,
            recorder: None,
            replayer: None,
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

fn connect(context: &ArchiveContext, archive_id: i64) -> Result<Aeron, ArchiveStartError> {
    let client = aeron_client::Context {
        aeron_dir: context.aeron_dir.clone(),
        client_name: format!("archive archiveId={archive_id}"),
        driver_timeout_ms: context.driver_timeout_ms as u64,
        use_conductor_agent_invoker: true,
        handler_mode: HandlerMode::Inline,
        ..aeron_client::Context::default()
    };
    Ok(Aeron::connect(client)?)
}

/// Waits until the driver has freed the counters of an archive with this id that was killed: for up to the client liveness timeout.
///
/// # Errors
/// The archive with this id lives.
fn await_archive_id(
    aeron: &Aeron,
    archive_id: i64,
    clocks: &Clocks,
) -> Result<(), ArchiveStartError> {
    let deadline_ns = clocks.nano.nano_time() + aeron.inter_service_timeout().as_nanos() as i64;
    while is_archive_there(aeron.counters_reader(), archive_id) {
        if clocks.nano.nano_time() >= deadline_ns {
            return Err(ArchiveStartError::ArchiveIdInUse { archive_id });
        }
        aeron.do_work();
        std::thread::sleep(START_POLL_INTERVAL);
    }
    Ok(())
}

fn labels(context: &ArchiveContext, archive_id: i64) -> CounterLabels<'_> {
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

/// Subscribes to the control streams. Waits for the driver.
fn subscribe(aeron: &Aeron, context: &ArchiveContext) -> Result<ControlStreams, ArchiveStartError> {
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
    let mut streams = ControlStreams::new(subscriptions, gone);
    while !streams.poll_ready()? {
        std::thread::sleep(START_POLL_INTERVAL);
    }
    Ok(streams)
}

/// The control channel with the archive's setting of `sparse`.
fn control_channel(context: &ArchiveContext) -> Result<String, ArchiveError> {
    let mut channel = ChannelUri::parse(&context.control_channel)?;
    let is_sparse = context.control_term_buffer_sparse;
    channel.put(key::SPARSE, &is_sparse.to_string())?;
    Ok(channel.to_string())
}

/// The stream of recording events, if it is enabled. Waits for the driver.
fn recording_events(
    aeron: &Aeron,
    context: &ArchiveContext,
) -> Result<RecordingEvents, ArchiveStartError> {
    if !context.recording_events_enabled {
        return Ok(RecordingEvents::default());
    }
    let (channel, stream_id) = (
        &context.recording_events_channel,
        context.recording_events_stream_id,
    );
    let publication = aeron.add_exclusive_publication(channel, stream_id)?;
    Ok(RecordingEvents::new(Some(publication)))
}

fn replays(
    context: &ArchiveContext,
    choices: &ArchiveChoices,
    storage: Directory,
) -> (Replays, Replayer<Directory>) {
    let settings = ReplaySettings {
        max_concurrent_replays: context.max_concurrent_replays as usize,
        connect_timeout_ns: context.connect_timeout_ns,
        linger_timeout_ns: context.replay_linger_timeout_ns,
        file_io_max_length: context.file_io_max_length as i32,
        checksum: choices.replay_checksum,
    };
    let (commands, commands_to_replayer): (Sender<_>, Receiver<_>) = channel();
    let (replayer_events, events) = channel();
    let replays = Replays::new(settings, commands, events, Box::new(random));
    (
        replays,
        Replayer::new(storage, commands_to_replayer, replayer_events),
    )
}

fn replication_settings(context: &ArchiveContext, archive_id: i64) -> ReplicationSettings {
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

/// A port that the driver chooses, on the host of the control channel.
fn replication_response_channel(context: &ArchiveContext) -> String {
    let control = ChannelUri::parse(&context.control_channel).ok();
    let endpoint = control
        .as_ref()
        .and_then(|channel| channel.get(key::ENDPOINT));
    let host = endpoint.and_then(|endpoint| endpoint.rsplit_once(':'));
    let host = host.map_or("localhost", |(host, _)| host);
    format!("aeron:udp?endpoint={host}:0")
}

fn store_options(context: &ArchiveContext, choices: &ArchiveChoices) -> StoreOptions {
    StoreOptions {
        catalog_capacity: context.catalog_capacity,
        segment_length: context.segment_file_length as i32,
        file_sync_level: context.file_sync_level,
        catalog_sync_level: context.catalog_file_sync_level,
        record_checksum: choices.record_checksum,
        on_torn_fragment: context.on_torn_fragment,
        low_storage_space_threshold: context.low_storage_space_threshold,
    }
}

fn sessions(context: &ArchiveContext, archive_id: i64, security: Security) -> ControlSessions {
    let settings = SessionSettings {
        archive_id,
        connect_timeout_ns: context.connect_timeout_ns,
        liveness_check_interval_ns: context.session_liveness_check_interval_ns,
        response_defaults: ControlStreamDefaults {
            mtu_length: context.control_mtu_length as i32,
            term_length: context.control_term_buffer_length as i32,
            is_sparse: context.control_term_buffer_sparse,
        },
    };
    ControlSessions::new(
        settings,
        first_session_id(),
        security.authenticator,
        security.authorisation,
    )
}

/// Who may connect, and what clients may ask for.
struct Security {
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn AuthorisationService>,
}

impl Security {
    /// Reads the users file, if there is one.
    fn of(choices: &ArchiveChoices) -> Result<Self, ArchiveStartError> {
        let users = match &choices.authenticator {
            AuthenticatorKind::AcceptAll => None,
            AuthenticatorKind::UsersFile(path) => Some(Arc::new(Users::load(path)?)),
        };
        let authorisation: Box<dyn AuthorisationService> = match (choices.authorisation, &users) {
            (AuthorisationKind::AllowAll, _) => Box::new(AllowAll),
            (AuthorisationKind::Roles, Some(users)) => {
                Box::new(RoleService::new(Arc::clone(users)))
            }
            // Without users nobody has a role.
            (AuthorisationKind::DenyAll, _) | (AuthorisationKind::Roles, None) => Box::new(DenyAll),
        };
        let authenticator: Box<dyn Authenticator> = match users {
            None => Box::new(AcceptAll),
            Some(users) => Box::new(
                UsersAuthenticator::start(users)
                    .map_err(|source| ArchiveStartError::Thread { source })?,
            ),
        };
        Ok(Self {
            authenticator,
            authorisation,
        })
    }
}

/// A random non-negative 32-bit number: the ids of an archive that is started again differ from those before.
fn first_session_id() -> i64 {
    random() & i64::from(i32::MAX)
}

/// A number that nobody can guess.
fn random() -> i64 {
    getrandom::u64().expect("the system gives random numbers") as i64
}
