//! An agent whose duty cycles its own loop shares with others.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::{Agent, AgentError, Panicked};
use crate::idle::{IdleStrategy, park_ns};

/// How long the loop parks while others take turns.
///
/// Who takes turns spins, and a loop that spins beside it would take the processor from it; what else the loop runs waits this long.
const GIVE_WAY_NS: u64 = 100_000;

/// An agent at which other threads may take turns ([`AgentTurns`]): who waits for what the agent brings runs it meanwhile, instead
/// of waiting for the loop's thread.
///
/// There is one duty cycle at a time, and nobody waits for another's to end. The loop starts and closes the agent, and goes on running
/// it: nobody has to take a turn. It is also the loop that is told what failed in a turn.
pub struct SharedAgent(Arc<Shared>);

/// The right to take turns at a [`SharedAgent`], for any thread and for as long as one likes: there are none before the loop
/// starts and after it closes.
#[derive(Clone)]
pub struct AgentTurns(Arc<Shared>);

struct Shared {
    role_name: String,
    duty: Mutex<Duty>,
    /// Work done in turns since the loop idled last.
    helped: AtomicUsize,
}

struct Duty {
    /// `None` once it is closed, so that it gives everything back though somebody still has the right to take turns.
    agent: Option<Box<dyn Agent>>,
    is_running: bool,
    /// What failed in a turn, until the loop hears of it.
    failure: Option<AgentError>,
}

impl SharedAgent {
    /// An agent that runs `agent`.
    pub fn new(agent: Box<dyn Agent>) -> Self {
        Self(Arc::new(Shared {
            role_name: agent.role_name().into_owned(),
            duty: Mutex::new(Duty {
                agent: Some(agent),
                is_running: false,
                failure: None,
            }),
            helped: AtomicUsize::new(0),
        }))
    }

    /// The right to take turns.
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
    /// One duty cycle on the calling thread, unless another thread is in one; answers how much was done.
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

    /// How the loop idles: as `strategy` says, except that it parks for a while and leaves the processor to those who take turns when
    /// they have found work, and all of it since it idled last is at most `limit`.
    pub fn giving_way(
        &self,
        strategy: Box<dyn IdleStrategy>,
        limit: usize,
    ) -> Box<dyn IdleStrategy> {
        Box::new(GivingWay {
            strategy,
            limit,
            shared: Arc::clone(&self.0),
        })
    }
}

impl Shared {
    /// Only a panic of the loop's own duty cycle poisons the lock, and its loop ends by it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Duty>> {
        self.duty.try_lock().ok()
    }

    fn wait(&self) -> MutexGuard<'_, Duty> {
        self.duty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Duty {
    /// The agent's duty cycle; one that ends the loop is the last.
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

    /// A duty cycle whose failure, a panic as well, is not the caller's but the loop's; there is none before the loop has heard of it.
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
struct GivingWay {
    strategy: Box<dyn IdleStrategy>,
    limit: usize,
    shared: Arc<Shared>,
}

impl IdleStrategy for GivingWay {
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
