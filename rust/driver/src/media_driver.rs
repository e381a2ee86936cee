//! [`MediaDriver`]: a running driver with its directory, its shared memory, and its agents on threads.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use aeron_agent::{
    Agent, AgentError, AgentInvoker, AgentRunner, AgentTurns, EpochClock, ErrorHandler,
    IdleStrategy, SystemEpochClock, console, thread,
};
use aeron_memory::cnc::{CLOSED_HEARTBEAT_MS, CncFile};
use aeron_memory::counters::CountersManager;

use crate::agents::AgentCpus;
use crate::assembly::{Assembly, Loop, create_cnc, create_loss_report};
use crate::closing::{Closing, Drain, UnconsumedStream};
use crate::config::{ConfigurationError, Context, ThreadNaming, ThreadingMode};
use crate::diagnostics::ErrorRecorder;
use crate::directory::DriverDirectory;
use crate::media::interfaces::SystemInterfaces;
use crate::media::udp::{Offload, UdpNetwork};
use crate::names::open_gossip_socket;
use crate::socket_buffers::SocketBufferProbe;
use crate::start_error::StartError;

/// A media driver. Dropping the value closes the driver.
///
/// The threading mode decides which agents share a thread. After
/// [`launch_with_main_loop`](Self::launch_with_main_loop), the caller runs the agents of the conductor's thread, and
/// the driver does not create this thread.
pub struct MediaDriver {
    context: Arc<Context>,
    cnc: CncFile,
    main_loop: Option<MainLoop>,
    runners: Vec<AgentRunner>,
    directory: DriverDirectory,
    network_turns: Option<AgentTurns>,
    is_terminated: Arc<AtomicBool>,
    closing: Arc<Closing>,
    errors: ErrorRecorder,
    is_closed: bool,
}

/// The agent or group that the caller runs.
struct MainLoop {
    invoker: AgentInvoker,
    idle_strategy: Box<dyn IdleStrategy>,
}

impl MediaDriver {
    /// Starts a driver that runs all agents on its own threads.
    ///
    /// # Errors
    /// The configuration is invalid, another driver is active in the directory, or files or threads cannot be created.
    /// [`ThreadingMode::Invoker`] is invalid for this function, because the mode has no thread.
    pub fn launch(context: Context) -> Result<Self, StartError> {
        if context.threading_mode == ThreadingMode::Invoker {
            let reason = "INVOKER threading mode needs a main loop of the caller";
            return Err(ConfigurationError(reason.into()).into());
        }
        Self::start(context, false)
    }

    /// Starts a driver without a thread for the conductor. The caller runs the conductor.
    ///
    /// In the modes [`ThreadingMode::Shared`] and [`ThreadingMode::Invoker`], the caller runs all agents. The caller
    /// must call [`do_work`](Self::do_work) often, and [`idle`](Self::idle) in between.
    ///
    /// # Errors
    /// The same errors as [`launch`](Self::launch), but [`ThreadingMode::Invoker`] is valid.
    pub fn launch_with_main_loop(context: Context) -> Result<Self, StartError> {
        Self::start(context, true)
    }

    fn start(mut context: Context, has_main_loop: bool) -> Result<Self, StartError> {
        let dir = std::path::absolute(&context.dir).map_err(|error| {
            StartError::io(&error, "failed to find the absolute path of", &context.dir)
        })?;
        // Removes a slash at the end, because names of files beside the directory are made from the path.
        context.dir = dir.components().collect();
        context.validate()?;
        check_socket_buffers(&context)?;
        let cpus = AgentCpus::choose(
            &context,
            &aeron_agent::thread::allowed_cpus().unwrap_or_default(),
        )?;
        let directory = DriverDirectory::take(&context)?;
        let context = Arc::new(context);
        let gossip_socket = open_gossip_socket(
            &context,
            &mut UdpNetwork::new(Offload::NONE, context.mtu_length),
            &mut SystemInterfaces,
        )?;
        let cnc = create_cnc(&context)?;
        let loss_report = create_loss_report(&context)?;
        let assembly = Assembly::new(&context, &cnc, loss_report, gossip_socket, cpus)?;
        // Takes the first id, so that no client gets it.
        cnc.to_driver().next_correlation_id();
        cnc.to_driver()
            .set_consumer_heartbeat_ms(SystemEpochClock.time_ms());
        cnc.publish();
        if context.print_configuration {
            console::print_line(context.to_print().trim_end());
        }
        let mut driver = MediaDriver {
            context,
            cnc,
            main_loop: None,
            runners: Vec::new(),
            directory,
            network_turns: assembly.network_turns,
            is_terminated: assembly.is_terminated,
            closing: assembly.closing,
            errors: assembly.errors,
            is_closed: false,
        };
        driver.run_loops(assembly.loops, has_main_loop)?;
        Ok(driver)
    }

    /// Returns the configuration, with the directory as an absolute path.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Runs one duty cycle of the caller's agent. Returns the amount of work done, 0 if the caller has no agent to run.
    pub fn do_work(&mut self) -> usize {
        self.main_loop
            .as_mut()
            .map_or(0, |main_loop| main_loop.invoker.invoke())
    }

    /// Idles after a duty cycle of the caller's agent, by the agent's idle strategy.
    pub fn idle(&mut self, work_count: usize) {
        if let Some(main_loop) = &mut self.main_loop {
            main_loop.idle_strategy.idle(work_count);
        }
    }

    /// Returns whether each agent with a thread of the driver has completed a duty cycle since this function last
    /// returned true. An agent that is stuck or has ended does not.
    ///
    /// The watchdog of a program calls it.
    pub fn take_progress(&self) -> bool {
        AgentRunner::take_progress(&self.runners)
    }

    /// Returns the receiver of the failures of this driver, for its program.
    pub(crate) fn errors(&self) -> &ErrorRecorder {
        &self.errors
    }

    /// Returns the turns with which a waiting thread can run the sender and the receiver.
    ///
    /// `Some` if the sender and the receiver share a thread, that is in the modes [`ThreadingMode::Shared`] and
    /// [`ThreadingMode::SharedNetwork`].
    pub fn network_turns(&self) -> Option<&AgentTurns> {
        self.network_turns.as_ref()
    }

    /// Returns whether a client has terminated the driver with a command that the validator allowed.
    ///
    /// The driver runs until it is closed.
    pub fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::Acquire)
    }

    /// Begins an orderly shutdown: publications take no more messages, their streams end, and published messages are
    /// sent.
    ///
    /// Applies to network publications. Call [`is_drained`](Self::is_drained) until it returns `true`, then
    /// [`close`](Self::close).
    pub fn begin_drain(&self) -> Drain {
        Drain::new(&self.closing, Instant::now())
    }

    /// Returns whether the drain is over.
    ///
    /// The drain is over once all messages are sent and each live receiver has reported the end of its stream. It is
    /// also over if the linger time of the publications has passed since the last byte was sent.
    ///
    /// Each call runs the caller's agent, if there is one. If the sender and the receiver share a thread, the call also
    /// runs both for a turn, because their thread may be asleep.
    pub fn is_drained(&mut self, drain: &mut Drain) -> bool {
        self.do_work();
        if let Some(turns) = &self.network_turns {
            turns.take();
        }
        drain.is_over(&self.closing, Instant::now())
    }

    /// Returns the streams of the drain that live receivers have not consumed, by the conductor's last report.
    pub fn unconsumed(&self, drain: &Drain) -> Vec<UnconsumedStream> {
        drain.rest(&self.closing)
    }

    /// Ends the agents, frees all resources and notifies the clients. A second call does nothing.
    ///
    /// # Errors
    /// The configuration asks for the removal of the directory, and the removal fails.
    pub fn close(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        if let Some(main_loop) = &mut self.main_loop {
            main_loop.invoker.close();
        }
        self.runners.iter().for_each(AgentRunner::close);
        self.cnc
            .to_driver()
            .set_consumer_heartbeat_ms(CLOSED_HEARTBEAT_MS);
        self.free_counters();
        self.directory.close()
    }

    /// Frees all counters, including the counters of clients: the clients know by now that the driver has ended.
    fn free_counters(&self) {
        let (metadata, values) = (self.cnc.counters_metadata(), self.cnc.counters_values());
        let mut counters = CountersManager::new(metadata.clone(), values.clone(), 0)
            .expect("the CnC file that this driver created has valid sections");
        let now_ms = SystemEpochClock.time_ms();
        for id in self.cnc.counters().ids() {
            // The state of a counter may be invalid, because any process can write to the CnC file.
            let _ = counters.free(id, now_ms);
        }
    }

    /// With [`ThreadNaming::New`], gives the calling thread the name of the main loop.
    pub(crate) fn name_thread(&self) {
        if let (ThreadNaming::New, Some(main_loop)) = (self.context.thread_naming, &self.main_loop)
            && let Err(error) = thread::set_name(&main_loop.invoker.agent().role_name())
        {
            console::warn(format_args!("WARNING: unable to name the thread: {error}"));
        }
    }

    fn run_loops(&mut self, mut loops: Vec<Loop>, has_main_loop: bool) -> Result<(), StartError> {
        let recorder = self.errors.clone();
        let error_handler: Arc<dyn ErrorHandler> =
            Arc::new(move |error: &AgentError| recorder.note_agent_error(error));
        let main_loop = has_main_loop.then(|| loops.remove(0));
        // The loops close in this order; they start in the reverse order.
        for Loop {
            agent,
            idle_strategy,
        } in loops
        {
            self.runners.push(AgentRunner::new(
                agent,
                idle_strategy,
                Arc::clone(&error_handler),
                None,
            ));
        }
        for runner in self.runners.iter().rev() {
            runner
                .start_on_thread()
                .map_err(|error| StartError::thread(&error, runner.role_name()))?;
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

/// Warns of socket buffers that are shorter than configured. Returns an error if a buffer is too short for the driver.
fn check_socket_buffers(context: &Context) -> Result<(), StartError> {
    let probe = SocketBufferProbe::new(context).map_err(|error| StartError::socket(&error))?;
    for short_buffer in probe.short_buffers(context) {
        console::warn(short_buffer);
    }
    Ok(probe.check(context)?)
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            console::warn(format_args!(
                "failed to remove {}: {error}",
                self.context.dir.display()
            ));
        }
    }
}

impl fmt::Debug for MediaDriver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MediaDriver")
            .field("dir", &self.context.dir)
            .finish_non_exhaustive()
    }
}
