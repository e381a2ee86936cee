//! [`AgentCpus`]: assigns the agents to CPUs.

use crate::config::{ConfigurationError, Context};

/// The CPU of each agent; `None` if the agent may run on any CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCpus {
    pub conductor: Option<usize>,
    pub sender: Option<usize>,
    pub receiver: Option<usize>,
    pub resources: Option<usize>,
}

impl AgentCpus {
    /// Returns the CPU of each agent according to the configuration.
    ///
    /// If `cpuset_affinity` is set, each agent without a configured CPU gets one of `allowed`, the CPUs that the
    /// process may use.
    ///
    /// # Errors
    /// There are fewer CPUs than agents, and `cpuset_warnings_as_errors` is set. Without that setting, agents share
    /// CPUs.
    pub fn choose(context: &Context, allowed: &[usize]) -> Result<Self, ConfigurationError> {
        let configured = [
            context.conductor_cpu_affinity,
            context.sender_cpu_affinity,
            context.receiver_cpu_affinity,
            context.native_resource_agent_cpu_affinity,
        ];
        let mut cpus = configured.map(|cpu| usize::try_from(cpu).ok());
        if context.cpuset_affinity && !allowed.is_empty() {
            if allowed.len() < cpus.len() && context.cpuset_warnings_as_errors {
                return Err(ConfigurationError(format!(
                    "the cpuset of the process has {} CPUs for {} agents",
                    allowed.len(),
                    cpus.len()
                )));
            }
            for (cpu, next) in cpus.iter_mut().zip(allowed.iter().cycle()) {
                cpu.get_or_insert(*next);
            }
        }
        let [conductor, sender, receiver, resources] = cpus;
        Ok(Self {
            conductor,
            sender,
            receiver,
            resources,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        allowed: &[usize],
        change: impl FnOnce(&mut Context),
    ) -> Result<AgentCpus, ConfigurationError> {
        let mut context = Context::default();
        change(&mut context);
        AgentCpus::choose(&context, allowed)
    }

    #[test]
    fn an_agent_without_a_configured_cpu_runs_on_any_cpu() {
        assert_eq!(choose(&[0, 1], |_| {}), Ok(AgentCpus::default()));
        let cpus = choose(&[0, 1], |context| context.sender_cpu_affinity = 7).unwrap();
        assert_eq!((cpus.sender, cpus.conductor), (Some(7), None));
    }

    #[test]
    fn agents_without_a_configured_cpu_get_the_cpus_of_the_cpuset_in_turn() {
        let cpus = choose(&[2, 4], |context| {
            context.cpuset_affinity = true;
            context.receiver_cpu_affinity = 7;
        });
        let expected = AgentCpus {
            conductor: Some(2),
            sender: Some(4),
            receiver: Some(7),
            resources: Some(4),
        };
        assert_eq!(cpus, Ok(expected));
    }

    #[test]
    fn too_few_cpus_are_an_error_if_cpuset_warnings_are_errors() {
        let refused = choose(&[0, 1], |context| {
            context.cpuset_affinity = true;
            context.cpuset_warnings_as_errors = true;
        });
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("the cpuset of the process has 2 CPUs for 4 agents"),
            "{text}"
        );
    }
}
