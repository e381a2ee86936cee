//! [`AgentInvoker`]: runs an agent's duty cycles on the caller's thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::agent::{Agent, AgentError, Panicked};
use crate::crash::panic_if_requested;
use crate::error_handler::{ErrorCounter, ErrorHandler};

/// Starts, invokes and closes an agent on the calling thread. Use it from one thread at a time.
pub struct AgentInvoker<A: Agent = Box<dyn Agent>> {
    agent: A,
    error_handler: Arc<dyn ErrorHandler>,
    error_counter: Option<Arc<dyn ErrorCounter>>,
    is_started: bool,
    is_running: bool,
    is_closed: bool,
}

impl<A: Agent> AgentInvoker<A> {
    /// Creates an invoker of `agent`. Failed duty cycles are counted in `error_counter` and reported to
    /// `error_handler`.
    pub fn new(
        agent: A,
        error_handler: Arc<dyn ErrorHandler>,
        error_counter: Option<Arc<dyn ErrorCounter>>,
    ) -> Self {
        Self {
            agent,
            error_handler,
            error_counter,
            is_started: false,
            is_running: false,
            is_closed: false,
        }
    }

    /// Starts the agent, unless this method was called before or the agent is closed. If the start fails, reports the
    /// error and closes the agent.
    pub fn start(&mut self) {
        if self.is_started || self.is_closed {
            return;
        }
        self.is_started = true;
        match self.agent.on_start() {
            Ok(()) => self.is_running = true,
            Err(error) => {
                self.error_handler.on_error(&error);
                self.close();
            }
        }
    }

    /// Runs one duty cycle. Returns the work count; 0 if the agent is not running or failed.
    ///
    /// # Panics
    /// If the agent panics. First the panic is reported, then the same panic continues here. The agent runs no more.
    pub fn invoke(&mut self) -> usize {
        if !self.is_running {
            return 0;
        }
        let worked = catch_unwind(AssertUnwindSafe(|| {
            panic_if_requested(&self.agent.role_name());
            self.agent.do_work()
        }));
        let worked = worked.unwrap_or_else(|panic| {
            self.is_running = false;
            let panicked = Panicked::new(&self.agent.role_name(), &*panic);
            self.error_handler.on_error(&AgentError::failed(panicked));
            resume_unwind(panic)
        });
        match worked {
            Ok(work_count) => work_count,
            Err(error) => {
                if report_failed_work(&error, &*self.error_handler, self.error_counter.as_deref()) {
                    self.close();
                }
                0
            }
        }
    }

    /// Closes the agent, unless it is already closed.
    pub fn close(&mut self) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        self.is_running = false;
        if let Err(error) = self.agent.on_close() {
            self.error_handler.on_error(&error);
        }
    }

    /// Whether [`start`](AgentInvoker::start) was called.
    pub fn is_started(&self) -> bool {
        self.is_started
    }

    /// Whether the agent has started, was not closed and has not ended itself.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether the agent is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }
}

/// Reports the error of a duty cycle, unless the thread was interrupted. Counts the error if the loop continues.
/// Returns whether the loop must end.
pub(crate) fn report_failed_work(
    error: &AgentError,
    error_handler: &dyn ErrorHandler,
    error_counter: Option<&dyn ErrorCounter>,
) -> bool {
    match error {
        AgentError::Interrupted => true,
        AgentError::Terminated(_) => {
            error_handler.on_error(error);
            true
        }
        AgentError::Failed(_) => {
            if let Some(counter) = error_counter {
                counter.increment();
            }
            error_handler.on_error(error);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Journal, ScriptedAgent};

    fn invoker(agent: ScriptedAgent, journal: &Journal) -> AgentInvoker<ScriptedAgent> {
        let (handled, counted) = (journal.clone(), journal.clone());
        AgentInvoker::new(
            agent,
            Arc::new(move |error: &AgentError| handled.note(error)),
            Some(Arc::new(move || counted.note("counted"))),
        )
    }

    #[test]
    fn an_invoker_does_nothing_before_it_is_started_03_118() {
        let journal = Journal::default();
        let mut invoker = invoker(ScriptedAgent::new("a", &journal).working([Ok(3)]), &journal);
        assert_eq!(
            (invoker.invoke(), invoker.is_started(), invoker.is_running()),
            (0, false, false)
        );
        assert!(journal.take().is_empty());
        invoker.start();
        invoker.start();
        assert_eq!(
            (invoker.invoke(), invoker.is_started(), invoker.is_running()),
            (3, true, true)
        );
        assert_eq!(journal.take(), ["a start", "a work"]);
    }

    #[test]
    fn an_agent_that_does_not_start_is_closed_03_118() {
        let journal = Journal::default();
        let mut invoker = invoker(
            ScriptedAgent::new("a", &journal).failing_start(AgentError::failed("no")),
            &journal,
        );
        invoker.start();
        assert!(invoker.is_started() && !invoker.is_running() && invoker.is_closed());
        assert_eq!(
            (invoker.invoke(), journal.take()),
            (0, vec!["a start".into(), "no".into(), "a close".into()])
        );
    }

    #[test]
    fn a_failed_duty_cycle_is_counted_and_the_agent_continues() {
        let journal = Journal::default();
        let script = [Err(AgentError::failed("bad")), Ok(1)];
        let mut invoker = invoker(ScriptedAgent::new("a", &journal).working(script), &journal);
        invoker.start();
        assert_eq!([invoker.invoke(), invoker.invoke()], [0, 1]);
        assert_eq!(
            journal.take(),
            ["a start", "a work", "counted", "bad", "a work"]
        );
    }

    #[test]
    fn termination_and_interruption_close_the_agent_and_only_termination_is_reported() {
        for (error, expected) in [
            (
                AgentError::terminated("enough"),
                vec!["a start", "a work", "agent terminated: enough", "a close"],
            ),
            (
                AgentError::Interrupted,
                vec!["a start", "a work", "a close"],
            ),
        ] {
            let journal = Journal::default();
            let mut invoker = invoker(
                ScriptedAgent::new("a", &journal).working([Err(error)]),
                &journal,
            );
            invoker.start();
            assert_eq!((invoker.invoke(), invoker.is_closed()), (0, true));
            assert_eq!(journal.take(), expected);
        }
    }

    #[test]
    fn the_agent_is_closed_once_and_a_failing_close_is_reported() {
        let journal = Journal::default();
        let mut invoker = invoker(
            ScriptedAgent::new("a", &journal).failing_close(AgentError::failed("stuck")),
            &journal,
        );
        invoker.close();
        invoker.close();
        invoker.start();
        assert_eq!(journal.take(), ["a close", "stuck"]);
        assert_eq!(invoker.agent().role_name(), "a");
    }
}
