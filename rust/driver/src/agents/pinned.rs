//! [`Pinned`]: an agent on a thread that is bound to one CPU.

use std::borrow::Cow;

use aeron_agent::{Agent, AgentError, thread};

use crate::diagnostics::ErrorRecorder;

/// Binds the thread that starts the agent to a CPU, if one is set. The thread has the name of the agent, or another
/// name if one is set.
///
/// If that fails, records an error and runs the agent anyway.
pub struct Pinned {
    agent: Box<dyn Agent>,
    cpu: Option<usize>,
    thread_name: Option<&'static str>,
    errors: ErrorRecorder,
}

impl Pinned {
    /// Creates the agent. If the CPU is `None`, the thread may run on any CPU.
    pub fn new(
        agent: Box<dyn Agent>,
        cpu: Option<usize>,
        thread_name: Option<&'static str>,
        errors: ErrorRecorder,
    ) -> Self {
        Self {
            agent,
            cpu,
            thread_name,
            errors,
        }
    }
}

impl Agent for Pinned {
    fn on_start(&mut self) -> Result<(), AgentError> {
        if let Some(cpu) = self.cpu
            && let Err(error) = thread::set_cpu_affinity(cpu)
        {
            self.errors.note(&format!(
                "WARNING: unable to apply affinity for {} to CPU {cpu}: {error}\n",
                self.role_name()
            ));
        }
        self.agent.on_start()
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.agent.do_work()
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.agent.on_close()
    }

    fn role_name(&self) -> Cow<'_, str> {
        match self.thread_name {
            Some(name) => name.into(),
            None => self.agent.role_name(),
        }
    }
}
