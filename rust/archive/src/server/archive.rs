//! [`Archive`]: a running archive, its directory, its client and its agents.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use aeron_agent::{
    AgentError, AgentInvoker, AgentRunner, ErrorHandler, IdleStrategy, SystemEpochClock,
    SystemNanoClock, console,
};

use super::assembly::{Assembly, Foundation, Loop};
use super::context::{ArchiveContext, ArchiveThreadingMode};
use super::outlets::Clocks;
use super::reload::{ArchiveReloads, ConductorNote};
use super::startup::{self, ArchiveDirectories, ArchiveStartError, OwnedArchiveDirectory};
use crate::objects::OpenObjects;

/// An archive of a media driver. Dropping the value closes the archive.
///
/// The agents run on threads of their own, with one exception. In mode
/// [`ArchiveThreadingMode::Invoker`], and after
/// [`launch_with_main_loop`](Self::launch_with_main_loop), the caller runs the conductor's loop. In
/// modes other than `Dedicated`, this loop also runs the recorder and the replayer.
pub struct Archive {
    archive_id: i64,
    main_loop: Option<MainLoop>,
    runners: Vec<AgentRunner>,
    is_terminated: Arc<AtomicBool>,
    reloads: ArchiveReloads,
    is_closed: bool,
}

/// The agent that the caller runs.
struct MainLoop {
    invoker: AgentInvoker,
    idle_strategy: Box<dyn IdleStrategy>,
}

impl Archive {
    /// Starts an archive with its agents on their own threads. Waits for the driver. If the settings name object
    /// storage, `open_objects` opens it.
    ///
    /// # Errors
    /// The configuration is not valid. Another archive is active in the directory, or has the same
    /// id. The catalog or a recording is damaged. The driver does not serve the archive.
    pub fn launch(
        context: ArchiveContext,
        open_objects: OpenObjects,
    ) -> Result<Self, ArchiveStartError> {
        Self::start(context, open_objects, false)
    }

    /// Starts an archive. The caller runs its conductor by calling [`do_work`](Self::do_work)
    /// repeatedly, with [`idle`](Self::idle) in between.
    ///
    /// # Errors
    /// The same errors as [`launch`](Self::launch).
    pub fn launch_with_main_loop(
        context: ArchiveContext,
        open_objects: OpenObjects,
    ) -> Result<Self, ArchiveStartError> {
        Self::start(context, open_objects, true)
    }

    /// Returns the id of the archive, unique among the archives of its driver.
    pub fn archive_id(&self) -> i64 {
        self.archive_id
    }

    /// Runs one duty cycle of the agent that the caller runs. Returns the work count; 0 if the
    /// caller runs no agent.
    pub fn do_work(&mut self) -> usize {
        self.main_loop
            .as_mut()
            .map_or(0, |main_loop| main_loop.invoker.invoke())
    }

    /// Idles after a duty cycle of the agent that the caller runs, by the agent's idle strategy.
    pub fn idle(&mut self, work_count: usize) {
        if let Some(main_loop) = &mut self.main_loop {
            main_loop.idle_strategy.idle(work_count);
        }
    }

    /// Returns whether each agent with a thread of the archive has completed a duty cycle since this function last
    /// returned true. An agent that is stuck or has ended does not.
    ///
    /// The watchdog of a program calls it.
    pub fn take_progress(&self) -> bool {
        AgentRunner::take_progress(&self.runners)
    }

    /// Returns a value that reloads the files of the archive from another thread.
    pub fn reloads(&self) -> ArchiveReloads {
        self.reloads.clone()
    }

    /// Returns whether the archive has ended, because its driver no longer runs or because it was closed.
    pub fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::Acquire)
    }

    /// Ends all recordings, writes their stop positions to the catalog, and releases the directory.
    /// If the archive is closed already, does nothing.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        // The conductor is closed last, because it stores the stop positions that the recorder reports.
        self.runners.iter().for_each(AgentRunner::close);
        if let Some(main_loop) = &mut self.main_loop {
            main_loop.invoker.close();
        }
    }

    fn start(
        context: ArchiveContext,
        open_objects: OpenObjects,
        has_main_loop: bool,
    ) -> Result<Self, ArchiveStartError> {
        let choices = context.conclude()?;
        let clocks = Clocks {
            epoch: Arc::new(SystemEpochClock),
            nano: Arc::new(SystemNanoClock),
        };
        let directories = ArchiveDirectories::make(&context)?;
        let archive_id = startup::archive_id(&context)?;
        let now_ms = clocks.epoch.time_ms();
        let directory = OwnedArchiveDirectory::take(&context, &directories, archive_id, now_ms)?;
        let parts = Foundation {
            context: &context,
            choices: &choices,
            archive_id,
            directories: &directories,
            clocks: &clocks,
            open_objects,
        };
        let assembly = Assembly::new(&parts, directory)?;
        let mut archive = Self {
            archive_id,
            main_loop: None,
            runners: Vec::new(),
            is_terminated: assembly.is_terminated,
            reloads: ArchiveReloads::new(&context, assembly.notes.clone()),
            is_closed: false,
        };
        let is_invoker = context.threading_mode == ArchiveThreadingMode::Invoker;
        archive.run(assembly.loops, assembly.notes, has_main_loop || is_invoker)?;
        Ok(archive)
    }

    /// Starts the agent loops. The last loop has the conductor. If `has_main_loop`, the caller runs
    /// this loop.
    fn run(
        &mut self,
        mut loops: Vec<Loop>,
        notes: Sender<ConductorNote>,
        has_main_loop: bool,
    ) -> Result<(), ArchiveStartError> {
        let error_handler: Arc<dyn ErrorHandler> =
            Arc::new(move |error: &AgentError| match error.panicked() {
                // The conductor has the error log. If it has panicked itself, it reads the note when it closes.
                Some(panicked) => _ = notes.send(ConductorNote::panicked(panicked)),
                None => console::warn(format_args!("aeron archive: {error}")),
            });
        let main_loop = loops.pop_if(|_| has_main_loop);
        for Loop {
            agent,
            idle_strategy,
        } in loops
        {
            let runner = AgentRunner::new(agent, idle_strategy, Arc::clone(&error_handler), None);
            self.runners.push(runner);
        }
        for runner in &self.runners {
            runner
                .start_on_thread()
                .map_err(|source| ArchiveStartError::Thread { source })?;
        }
        self.main_loop = main_loop.map(
            |Loop {
                 agent,
                 idle_strategy,
             }| {
                let mut invoker = AgentInvoker::new(agent, error_handler, None);
                invoker.start();
                MainLoop {
                    invoker,
                    idle_strategy,
                }
            },
        );
        Ok(())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Archive")
            .field("archive_id", &self.archive_id)
            .finish_non_exhaustive()
    }
}
