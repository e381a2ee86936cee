//! [`Assembly`]: builds the parts of an archive and combines them into agent loops. The start of the archive calls it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use aeron_agent::{Agent, IdleStrategy, IdleStrategySpec};
use aeron_client::{Aeron, HandlerMode};

use super::agents::{ConductorAgent, RecorderAgent, ReplayerAgent};
use super::context::{ArchiveChoices, ArchiveContext, ArchiveThreadingMode, InvokedDriver};
use super::core::{ArchiveCore, ArchiveEnvironment, ArchiveStart};
use super::outlets::Clocks;
use super::reload::ConductorNote;
use super::reports::MarkFileReports;
use super::startup::{ArchiveDirectories, ArchiveStartError, OwnedArchiveDirectory};
use crate::objects::OpenObjects;
use crate::ownership::BootId;
use crate::storage::Directory;

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
        let environment = ArchiveEnvironment {
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
        let start = ArchiveStart::new(context.clone(), environment)?;
        let mut start = start.with_objects(objects);
        loop {
            if let Some(core) = start.poll()? {
                return Ok(Self::of(context, choices, clocks, core));
            }
            context.run_driver();
            std::thread::sleep(START_POLL_INTERVAL);
        }
    }

    fn of(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
        clocks: &Clocks,
        core: ArchiveCore<Directory>,
    ) -> Self {
        let ArchiveCore {
            conductor,
            sessions,
            recorder,
            replayer,
        } = core;
        let (notes, notes_to_conductor) = channel();
        let mut agent = ConductorAgent::new(conductor, sessions);
        agent.notes = Some(notes_to_conductor);
        agent.driver = context.driver_invoker.clone();
        let is_terminated = Arc::clone(&agent.is_terminated);
        let mut loops = Vec::new();
        if context.threading_mode == ArchiveThreadingMode::Dedicated {
            let counters = agent.counters();
            let recorder = RecorderAgent {
                recorder,
                nano_clock: Arc::clone(&clocks.nano),
                cycles: counters.recorder_cycles.clone(),
            };
            let replayer = ReplayerAgent {
                replayer,
                nano_clock: Arc::clone(&clocks.nano),
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

/// Returns a random number that cannot be guessed.
fn random() -> i64 {
    getrandom::u64().expect("the system gives random numbers") as i64
}
