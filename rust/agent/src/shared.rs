//! [`SharedAgent`]: an agent whose duty cycles other threads can also run.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::{Agent, AgentError, Panicked};
use crate::idle::{IdleStrategy, park_ns};

/// Time in nanoseconds for which the loop parks while other threads run turns.
///
/// These threads spin. A loop that also spins would compete with them for the processor. The other agents on the loop's
/// thread do not run during this time.
const GIVE_WAY_NS: u64 = 100_000;

/// An agent whose duty cycles other threads may run in turns ([`AgentTurns`]). A thread that waits for the agent's
/// results then runs the agent, instead of waiting for the loop's thread.
///
/// Only one duty cycle runs at a time. No thread waits for the duty cycle of another thread, except the loop when it
/// closes the agent. The loop starts and closes the agent, and runs its duty cycles, so no thread is required to run a
/// turn. The loop also reports failures of turns.
pub struct SharedAgent(Arc<SharedAgentState>);

/// The right to run turns of a [`SharedAgent`], for any thread and without a time limit. Before the loop has started
/// the agent and after it has closed the agent, a turn does nothing.
#[derive(Clone)]
pub struct AgentTurns(Arc<SharedAgentState>);

struct SharedAgentState {
    role_name: String,
    duty: Mutex<SharedAgentDuty>,
    /// Work count of the turns since the loop last idled.
    helped: AtomicUsize,
}

struct SharedAgentDuty {
    /// `None` after the close, because closing drops the agent, even if `AgentTurns` still exist.
    agent: Option<Box<dyn Agent>>,
    is_running: bool,
    /// Failure of a turn, until the loop reports it.
    failure: Option<AgentError>,
}

impl SharedAgent {
    /// Creates a shared agent that runs `agent`.
    pub fn new(agent: Box<dyn Agent>) -> Self {
        Self(Arc::new(SharedAgentState {
            role_name: agent.role_name().into_owned(),
            duty: Mutex::new(SharedAgentDuty {
                agent: Some(agent),
                is_running: false,
                failure: None,
            }),
            helped: AtomicUsize::new(0),
        }))
    }

    /// Returns the right to run turns.
    pub fn turns(&self) -> AgentTurns {
        AgentTurns(Arc::clone(&self.0))
    }
}

impl Agent for SharedAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        let mut duty = self.0.wait();
        if let Some(agent) = &mut duty.agent {
            agent.on_start()?;
        }
        duty.is_running = true;
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        let Some(mut duty) = self.0.try_lock() else {
            return Ok(0);
        };
        if let Some(failure) = duty.failure.take() {
            return Err(failure);
        }
        duty.run()
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        let agent = {
            let mut duty = self.0.wait();
            duty.is_running = false;
            duty.agent.take()
        };
        agent.map_or(Ok(()), |mut agent| agent.on_close())
    }

    fn role_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0.role_name)
    }
}

impl AgentTurns {
    /// Runs one duty cycle on the calling thread, unless another thread runs one. Returns the work count.
    pub fn take(&self) -> usize {
        let Some(mut duty) = self.0.try_lock() else {
            return 0;
        };
        let work_count = duty.take_turn(&self.0.role_name);
        if work_count > 0 {
            self.0.helped.fetch_add(work_count, Ordering::Relaxed);
        }
        work_count
    }

    /// Returns an idle strategy for the loop. It idles like `strategy`, with one exception. If turns found work since
    /// the loop last idled, and the work count of loop and turns is at most `limit`, the loop parks for 100 µs. A
    /// parked loop leaves the processor to the threads that run the turns.
    pub fn giving_way(
        &self,
        strategy: Box<dyn IdleStrategy>,
        limit: usize,
    ) -> Box<dyn IdleStrategy> {
        Box::new(TurnYield {
            strategy,
            limit,
            shared: Arc::clone(&self.0),
        })
    }
}

impl SharedAgentState {
    /// Locks the agent if no duty cycle runs.
    ///
    /// Only a panic in the loop's own duty cycle poisons the lock, and that panic ends the loop.
    fn try_lock(&self) -> Option<MutexGuard<'_, SharedAgentDuty>> {
        self.duty.try_lock().ok()
    }

    fn wait(&self) -> MutexGuard<'_, SharedAgentDuty> {
        self.duty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedAgentDuty {
    /// Runs the agent's duty cycle. If the duty cycle ends the loop, no further duty cycle follows.
    fn run(&mut self) -> Result<usize, AgentError> {
        let Some(agent) = self.agent.as_mut().filter(|_| self.is_running) else {
            return Ok(0);
        };
        let outcome = agent.do_work();
        if let Err(AgentError::Terminated(_) | AgentError::Interrupted) = outcome {
            self.is_running = false;
        }
        outcome
    }

    /// Runs a duty cycle in a turn. A failure or panic is kept for the loop, not returned to the caller. No turn runs
    /// until the loop has reported the failure.
    fn take_turn(&mut self, role_name: &str) -> usize {
        if self.failure.is_some() {
            return 0;
        }
        match catch_unwind(AssertUnwindSafe(|| self.run())) {
            Ok(Ok(work_count)) => work_count,
            Ok(Err(error)) => {
                self.failure = Some(error);
                0
            }
            Err(panic) => {
                self.is_running = false;
                let panicked = Panicked::new(role_name, &*panic);
                self.failure = Some(AgentError::terminated(panicked));
                0
            }
        }
    }
}

/// See [`AgentTurns::giving_way`].
struct TurnYield {
    strategy: Box<dyn IdleStrategy>,
    limit: usize,
    shared: Arc<SharedAgentState>,
}

impl IdleStrategy for TurnYield {
    fn idle_once(&mut self) {
        self.strategy.idle_once();
    }

    fn reset(&mut self) {
        self.strategy.reset();
    }

    fn alias(&self) -> &'static str {
        self.strategy.alias()
    }

    fn idle(&mut self, work_count: usize) {
        let helped = self.shared.helped.swap(0, Ordering::Relaxed);
        let all = helped.saturating_add(work_count);
        if helped > 0 && all <= self.limit {
            self.strategy.reset();
            park_ns(GIVE_WAY_NS);
        } else {
            self.strategy.idle(all);
        }
    }
}

#[cfg(test)]
mod tests;
