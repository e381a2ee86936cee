//! The archive's agents: conductor, recorder and replayer. They run in one agent loop or in three
//! agent loops.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aeron_agent::{Agent, AgentError, NanoClock};

use super::conductor::ArchiveConductor;
use super::context::InvokedDriver;
use super::control::ControlSessions;
use super::counters::{ArchiveCounters, CycleCounters};
use super::recording::Recorder;
use super::reload::ConductorNotes;
use super::replay::Replayer;
use crate::storage::Storage;

/// Runs the conductor. In the threading modes SHARED and INVOKER, it also runs the recorder and the
/// replayer.
pub(super) struct ConductorAgent<S: Storage + Clone> {
    conductor: ArchiveConductor<S>,
    sessions: ControlSessions,
    /// Notes of other threads; `None` in an archive without other threads.
    pub notes: ConductorNotes,
    /// `None` if the recorder has its own thread.
    pub recorder: Option<Recorder<S>>,
    /// `None` if the replayer has its own thread.
    pub replayer: Option<Replayer<S>>,
    /// Driver without threads that this agent runs.
    pub driver: Option<InvokedDriver>,
    /// Set when the agent ends.
    pub is_terminated: Arc<AtomicBool>,
}

impl<S> Agent for ConductorAgent<S>
where
    S: Storage + Clone + Send,
    S::File: Send,
{
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let aeron = self.conductor.aeron();
        if aeron.is_closed() {
            let cause = aeron.close_cause();
            return Err(AgentError::terminated(format!(
                "Aeron client closed: {cause:?}"
            )));
        }
        let mut work = self.conductor.do_work(&mut self.sessions);
        work += self.sessions.run(&mut self.conductor) + self.take_notes() + self.run_driver();
        if let Some(replayer) = &mut self.replayer {
            work += replayer.do_work(self.conductor.now_ns()) + self.run_driver();
        }
        if let Some(recorder) = &mut self.recorder {
            work += recorder.do_work() + self.run_driver();
        }
        Ok(work)
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        let is_abort = self.conductor.aeron().is_closed();
        if let Some(replayer) = &mut self.replayer {
            replayer.stop_all();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.stop_all();
        }
        self.take_notes();
        self.conductor.close(is_abort, &mut self.sessions);
        self.sessions.close_all();
        self.conductor.end_client();
        self.is_terminated.store(true, Ordering::Release);
        Ok(())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "archive-conductor".into()
    }
}

impl<S: Storage + Clone> ConductorAgent<S> {
    /// Creates an agent that runs only the conductor and its control sessions.
    pub fn new(conductor: ArchiveConductor<S>, sessions: ControlSessions) -> Self {
        Self {
            conductor,
            sessions,
            notes: None,
            recorder: None,
            replayer: None,
            driver: None,
            is_terminated: Arc::new(AtomicBool::new(false)),
        }
    }

    pub fn counters(&self) -> &ArchiveCounters {
        self.conductor.counters()
    }

    /// Executes the notes of other threads. Returns the work count.
    fn take_notes(&mut self) -> usize {
        let (conductor, sessions) = (&mut self.conductor, &mut self.sessions);
        let notes = self.notes.iter().flat_map(|notes| notes.try_iter());
        notes.map(|note| note.execute(conductor, sessions)).count()
    }

    /// Runs the driver. The agent does so after each of its parts, because each part may take long.
    fn run_driver(&self) -> usize {
        self.driver.as_ref().map_or(0, InvokedDriver::do_work)
    }
}

/// Runs the recorder on its own thread.
pub(super) struct RecorderAgent<S: Storage> {
    pub recorder: Recorder<S>,
    pub nano_clock: Arc<dyn NanoClock>,
    pub cycles: Option<CycleCounters>,
}

/// Runs the replayer on its own thread.
pub(super) struct ReplayerAgent<S: Storage> {
    pub replayer: Replayer<S>,
    pub nano_clock: Arc<dyn NanoClock>,
    pub cycles: Option<CycleCounters>,
}

impl<S> Agent for RecorderAgent<S>
where
    S: Storage + Send,
    S::File: Send,
{
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let now_ns = self.nano_clock.nano_time();
        if let Some(cycles) = &mut self.cycles {
            cycles.measure(now_ns);
        }
        Ok(self.recorder.do_work())
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.recorder.stop_all();
        Ok(())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "archive-recorder".into()
    }
}

impl<S> Agent for ReplayerAgent<S>
where
    S: Storage + Send,
    S::File: Send,
{
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let now_ns = self.nano_clock.nano_time();
        if let Some(cycles) = &mut self.cycles {
            cycles.measure(now_ns);
        }
        Ok(self.replayer.do_work(now_ns))
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.replayer.stop_all();
        Ok(())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "archive-replayer".into()
    }
}
