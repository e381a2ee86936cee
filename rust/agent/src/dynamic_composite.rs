//! Several agents in one duty cycle, joined and left while it runs.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::{Agent, AgentError};
use crate::composite::AgentList;

/// Runs a changing list of agents one after the other, as one agent.
///
/// Changes are asked for through [`DynamicAgents`], from any thread, and carried out at the start of the next duty cycle.
pub struct DynamicCompositeAgent {
    role_name: String,
    agents: AgentList,
    ids: Vec<AgentId>,
    shared: Arc<Shared>,
}

/// The way to add agents to and remove them from a running [`DynamicCompositeAgent`]. Any thread may use it.
#[derive(Clone)]
pub struct DynamicAgents {
    shared: Arc<Shared>,
}

/// Names an agent within its composite. The agents given at the beginning have the ids 0, 1, 2, ... in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentId(pub u64);

/// Where a composite is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AgentStatus {
    /// Not started yet.
    Init,
    /// Started: agents may come and go.
    Active,
    /// Closed for good.
    Closed,
}

/// The composite takes no changes: it has not started yet, or it is closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("agents can only be added or removed while the composite is active, but it is {0:?}")]
pub struct NotActive(pub AgentStatus);

/// Why an agent was not taken. It is handed back, where it can be tried again.
#[derive(thiserror::Error)]
pub enum TryAddError {
    /// The composite is not active.
    #[error(transparent)]
    NotActive(#[from] NotActive),
    /// Another agent still waits to be added: try again after the next duty cycle.
    #[error("another agent is waiting to be added, try again after the next duty cycle")]
    Occupied(Box<dyn Agent>),
}

impl std::fmt::Debug for TryAddError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[derive(Default)]
struct Pending {
    add: Option<(AgentId, Box<dyn Agent>)>,
    remove: Option<AgentId>,
}

struct Shared {
    status: AtomicU8,
    next_id: AtomicU64,
    /// How many changes wait in `pending`, so that a duty cycle without changes takes no lock.
    pending_count: AtomicU8,
    pending: Mutex<Pending>,
}

impl DynamicCompositeAgent {
    /// A composite that begins with `agents`, and the handle for changing it later.
    pub fn new(role_name: impl Into<String>, agents: Vec<Box<dyn Agent>>) -> (Self, DynamicAgents) {
        let count = agents.len() as u64;
        let shared = Arc::new(Shared {
            status: AtomicU8::new(AgentStatus::Init as u8),
            next_id: AtomicU64::new(count),
            pending_count: AtomicU8::new(0),
            pending: Mutex::default(),
        });
        let handle = DynamicAgents {
            shared: Arc::clone(&shared),
        };
        let ids = (0..count).map(AgentId).collect();
        (
            Self {
                role_name: role_name.into(),
                agents: AgentList::new(agents),
                ids,
                shared,
            },
            handle,
        )
    }

    fn apply_changes(&mut self) -> Result<(), AgentError> {
        if self.shared.pending_count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let added = self.shared.take(|pending| pending.add.take());
        let joined = added.map_or(Ok(()), |(id, agent)| self.join(id, agent));
        let removed = self.shared.take(|pending| pending.remove.take());
        joined.and(removed.map_or(Ok(()), |id| self.leave(id)))
    }

    fn join(&mut self, id: AgentId, mut agent: Box<dyn Agent>) -> Result<(), AgentError> {
        if let Err(error) = agent.on_start() {
            return Err(match agent.on_close() {
                Ok(()) => error,
                Err(close_error) => {
                    AgentError::failed(crate::composite::CompositeError(vec![error, close_error]))
                }
            });
        }
        self.agents.agents.push(agent);
        self.ids.push(id);
        Ok(())
    }

    fn leave(&mut self, id: AgentId) -> Result<(), AgentError> {
        let Some(index) = self.ids.iter().position(|present| *present == id) else {
            return Ok(());
        };
        self.ids.remove(index);
        self.agents.remove(index).on_close()
    }
}

impl Agent for DynamicCompositeAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.agents.each(|agent| agent.on_start())?;
        self.shared
            .status
            .store(AgentStatus::Active as u8, Ordering::Release);
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.apply_changes()?;
        self.agents.do_work()
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.shared
            .status
            .store(AgentStatus::Closed as u8, Ordering::Release);
        let result = self.agents.each(|agent| agent.on_close());
        self.agents = AgentList::new(Vec::new());
        self.ids.clear();
        result
    }

    fn role_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.role_name)
    }
}

impl DynamicAgents {
    /// Where the composite is in its life.
    pub fn status(&self) -> AgentStatus {
        self.shared.status()
    }

    /// Asks for `agent` to join; it is started and joins at the beginning of the next duty cycle.
    ///
    /// When its `on_start` fails it is closed again and the error comes out of that duty cycle.
    pub fn try_add(&self, agent: Box<dyn Agent>) -> Result<AgentId, TryAddError> {
        let mut pending = self.shared.pending_while_active()?;
        if pending.add.is_some() {
            return Err(TryAddError::Occupied(agent));
        }
        let id = AgentId(self.shared.next_id.fetch_add(1, Ordering::Relaxed));
        pending.add = Some((id, agent));
        self.shared.pending_count.fetch_add(1, Ordering::Release);
        Ok(id)
    }

    /// Asks for an agent to leave; it is closed at the beginning of the next duty cycle. False: another removal still waits.
    pub fn try_remove(&self, id: AgentId) -> Result<bool, NotActive> {
        let mut pending = self.shared.pending_while_active()?;
        if pending.remove.is_some() {
            return Ok(false);
        }
        pending.remove = Some(id);
        self.shared.pending_count.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// No agent waits to be added.
    pub fn has_add_agent_completed(&self) -> bool {
        self.shared.pending().add.is_none()
    }

    /// No agent waits to be removed.
    pub fn has_remove_agent_completed(&self) -> bool {
        self.shared.pending().remove.is_none()
    }
}

impl Shared {
    fn status(&self) -> AgentStatus {
        match self.status.load(Ordering::Acquire) {
            0 => AgentStatus::Init,
            1 => AgentStatus::Active,
            _ => AgentStatus::Closed,
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_while_active(&self) -> Result<MutexGuard<'_, Pending>, NotActive> {
        match self.status() {
            AgentStatus::Active => Ok(self.pending()),
            status => Err(NotActive(status)),
        }
    }

    fn take<T>(&self, slot: impl FnOnce(&mut Pending) -> Option<T>) -> Option<T> {
        let taken = slot(&mut self.pending());
        if taken.is_some() {
            self.pending_count.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Journal, ScriptedAgent};

    fn active(journal: &Journal) -> (DynamicCompositeAgent, DynamicAgents) {
        let (mut composite, agents) =
            DynamicCompositeAgent::new("group", vec![ScriptedAgent::new("first", journal).boxed()]);
        composite.on_start().unwrap();
        journal.take();
        (composite, agents)
    }

    #[test]
    fn takes_changes_only_while_active_03_120() {
        let journal = Journal::default();
        let (mut composite, agents) = DynamicCompositeAgent::new("group", Vec::new());
        assert_eq!(
            (agents.status(), composite.role_name().as_ref()),
            (AgentStatus::Init, "group")
        );
        assert_eq!(
            agents.try_remove(AgentId(0)),
            Err(NotActive(AgentStatus::Init))
        );
        composite.on_start().unwrap();
        assert_eq!(agents.status(), AgentStatus::Active);
        assert!(
            agents
                .try_add(ScriptedAgent::new("a", &journal).boxed())
                .is_ok()
        );
        composite.on_close().unwrap();
        assert_eq!(agents.status(), AgentStatus::Closed);
        let refused = agents.try_add(ScriptedAgent::new("b", &journal).boxed());
        assert!(matches!(
            refused,
            Err(TryAddError::NotActive(NotActive(AgentStatus::Closed)))
        ));
    }

    #[test]
    fn has_one_slot_for_adding_and_one_for_removing_03_120() {
        let journal = Journal::default();
        let (mut composite, agents) = active(&journal);
        agents
            .try_add(ScriptedAgent::new("second", &journal).boxed())
            .unwrap();
        let refused = agents.try_add(ScriptedAgent::new("third", &journal).boxed());
        assert!(
            matches!(refused, Err(TryAddError::Occupied(agent)) if agent.role_name() == "third")
        );
        assert_eq!(agents.try_remove(AgentId(0)), Ok(true));
        assert_eq!(agents.try_remove(AgentId(1)), Ok(false));
        assert!(!agents.has_add_agent_completed() && !agents.has_remove_agent_completed());
        composite.do_work().unwrap();
        assert!(agents.has_add_agent_completed() && agents.has_remove_agent_completed());
        assert_eq!(
            journal.take(),
            ["second start", "first close", "second work"]
        );
        assert_eq!(agents.try_remove(AgentId(1)), Ok(true));
    }

    /// 03-120
    #[test]
    fn an_agent_that_does_not_start_is_closed_and_its_error_comes_out_of_the_duty_cycle() {
        let journal = Journal::default();
        let (mut composite, agents) = active(&journal);
        agents
            .try_add(
                ScriptedAgent::new("ill", &journal)
                    .failing_start(AgentError::failed("too ill"))
                    .boxed(),
            )
            .unwrap();
        assert_eq!(composite.do_work().unwrap_err().to_string(), "too ill");
        assert_eq!(journal.take(), ["ill start", "ill close"]);
        composite.do_work().unwrap();
        assert_eq!(journal.take(), ["first work"]);
    }

    #[test]
    fn removing_an_unknown_agent_changes_nothing() {
        let journal = Journal::default();
        let (mut composite, agents) = active(&journal);
        agents.try_remove(AgentId(99)).unwrap();
        composite.do_work().unwrap();
        assert_eq!(journal.take(), ["first work"]);
    }

    #[test]
    fn closing_closes_all_members_once() {
        let journal = Journal::default();
        let (mut composite, agents) = active(&journal);
        agents
            .try_add(
                ScriptedAgent::new("second", &journal)
                    .failing_close(AgentError::failed("stuck"))
                    .boxed(),
            )
            .unwrap();
        composite.do_work().unwrap();
        journal.take();
        assert!(composite.on_close().is_err());
        assert_eq!(journal.take(), ["first close", "second close"]);
        composite.on_close().unwrap();
        assert!(journal.take().is_empty());
    }

    #[test]
    fn removal_in_the_middle_of_a_failed_cycle_loses_no_turn() {
        let journal = Journal::default();
        let members = ["a", "b", "c"].map(|name| {
            let script = if name == "b" {
                vec![Err(AgentError::failed("once"))]
            } else {
                Vec::new()
            };
            ScriptedAgent::new(name, &journal).working(script).boxed()
        });
        let (mut composite, agents) = DynamicCompositeAgent::new("group", members.into());
        composite.on_start().unwrap();
        composite.do_work().unwrap_err();
        agents.try_remove(AgentId(0)).unwrap();
        journal.take();
        composite.do_work().unwrap();
        assert_eq!(journal.take(), ["a close", "c work"]);
    }
}
