//! [`CompositeAgent`]: several agents in one duty cycle.

use std::borrow::Cow;

use crate::agent::{Agent, AgentError};

/// Runs a fixed list of agents one after the other, as one agent. The name of the composite consists of the names of
/// the agents, such as `[a,b]`, unless another name is set.
///
/// If an agent fails, its error ends the duty cycle. The next duty cycle continues **after** this agent. So an agent
/// that always fails cannot starve the later agents.
pub struct CompositeAgent {
    agents: Vec<Box<dyn Agent>>,
    /// Index of the agent with which the next duty cycle begins. After a failure, it is the index after the failed
    /// agent.
    next: usize,
    role_name: String,
}

/// The list of agents is empty: a composite needs at least one agent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a composite agent needs at least one agent")]
pub struct NoAgents;

/// The errors of all agents that failed to start or to close, in the order of the agents.
#[derive(Debug, thiserror::Error)]
#[error("{} of the agents failed: {}", .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct CompositeError(pub Vec<AgentError>);

impl CompositeAgent {
    /// Creates an agent that runs `agents` in this order.
    pub fn new(agents: Vec<Box<dyn Agent>>) -> Result<Self, NoAgents> {
        if agents.is_empty() {
            return Err(NoAgents);
        }
        let names: Vec<_> = agents.iter().map(|agent| agent.role_name()).collect();
        let role_name = format!("[{}]", names.join(","));
        Ok(Self {
            agents,
            next: 0,
            role_name,
        })
    }

    /// Replaces the name of the composite.
    #[must_use]
    pub fn named(mut self, role_name: impl Into<String>) -> Self {
        self.role_name = role_name.into();
        self
    }

    /// Calls `action` for all agents, even if it fails for one of them. Returns all errors as one error.
    fn each(
        &mut self,
        action: impl FnMut(&mut Box<dyn Agent>) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let errors: Vec<_> = self
            .agents
            .iter_mut()
            .map(action)
            .filter_map(Result::err)
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(AgentError::failed(CompositeError(errors)))
        }
    }
}

impl Agent for CompositeAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.each(|agent| agent.on_start())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        let mut work_count = 0;
        while let Some(agent) = self.agents.get_mut(self.next) {
            self.next += 1;
            work_count += agent.do_work()?;
        }
        self.next = 0;
        Ok(work_count)
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.each(|agent| agent.on_close())
    }

    fn role_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.role_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Journal, ScriptedAgent};

    fn composite(agents: impl IntoIterator<Item = ScriptedAgent>) -> CompositeAgent {
        CompositeAgent::new(agents.into_iter().map(ScriptedAgent::boxed).collect()).unwrap()
    }

    #[test]
    fn needs_an_agent() {
        assert_eq!(CompositeAgent::new(Vec::new()).err(), Some(NoAgents));
    }

    #[test]
    fn a_composite_agent_is_named_after_its_agents_03_119() {
        let journal = Journal::default();
        let agent = composite([
            ScriptedAgent::new("conductor", &journal),
            ScriptedAgent::new("sender", &journal),
        ]);
        assert_eq!(agent.role_name(), "[conductor,sender]");
        assert_eq!(agent.named("both").role_name(), "both");
    }

    #[test]
    fn the_work_count_is_the_sum_over_all_agents() {
        let journal = Journal::default();
        let agents = [("a", 2), ("b", 3)]
            .map(|(name, count)| ScriptedAgent::new(name, &journal).working([Ok(count)]));
        assert_eq!(composite(agents).do_work().unwrap(), 5);
        assert_eq!(journal.lines(), ["a work", "b work"]);
    }

    /// The duty cycle after a failure begins with the agent after the failed one.
    #[test]
    fn a_composite_agent_continues_after_the_agent_that_failed_03_119() {
        let journal = Journal::default();
        let mut agent = composite([
            ScriptedAgent::new("a", &journal),
            ScriptedAgent::new("b", &journal).working([Err(AgentError::failed("b is ill"))]),
            ScriptedAgent::new("c", &journal).working([Ok(7)]),
        ]);
        assert_eq!(agent.do_work().unwrap_err().to_string(), "b is ill");
        assert_eq!(journal.take(), ["a work", "b work"]);
        assert_eq!(agent.do_work().unwrap(), 7);
        assert_eq!(journal.take(), ["c work"]);
        agent.do_work().unwrap();
        assert_eq!(journal.take(), ["a work", "b work", "c work"]);
    }

    #[test]
    fn all_agents_are_started_and_closed_and_every_error_is_kept_03_119() {
        let journal = Journal::default();
        let mut agent = composite([
            ScriptedAgent::new("a", &journal)
                .failing_start(AgentError::failed("no start"))
                .failing_close(AgentError::failed("x")),
            ScriptedAgent::new("b", &journal),
            ScriptedAgent::new("c", &journal).failing_close(AgentError::failed("y")),
        ]);
        assert_eq!(
            agent.on_start().unwrap_err().to_string(),
            "1 of the agents failed: no start"
        );
        assert_eq!(
            agent.on_close().unwrap_err().to_string(),
            "2 of the agents failed: x; y"
        );
        assert_eq!(
            journal.lines(),
            [
                "a start", "b start", "c start", "a close", "b close", "c close"
            ]
        );
    }
}
