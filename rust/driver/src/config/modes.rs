//! The settings that choose between named alternatives.

/// Which threads the agents run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadingMode {
    /// Conductor, native resource agent, receiver and sender on a thread each.
    #[default]
    Dedicated,
    /// Sender and receiver share a thread; conductor and native resource agent have their own.
    SharedNetwork,
    /// All four agents on one thread.
    Shared,
    /// All four agents on the thread of whoever calls [`MediaDriver::do_work`](crate::MediaDriver::do_work).
    Invoker,
}

impl ThreadingMode {
    /// The name used in settings and counter labels.
    pub fn name(self) -> &'static str {
        match self {
            ThreadingMode::Dedicated => "DEDICATED",
            ThreadingMode::SharedNetwork => "SHARED_NETWORK",
            ThreadingMode::Shared => "SHARED",
            ThreadingMode::Invoker => "INVOKER",
        }
    }

    /// The mode with exactly this (upper case) name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            ThreadingMode::Dedicated,
            ThreadingMode::SharedNetwork,
            ThreadingMode::Shared,
            ThreadingMode::Invoker,
        ]
        .into_iter()
        .find(|mode| mode.name() == name)
    }
}

/// A loop of agents; each kind has an idle strategy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    Conductor,
    Sender,
    Receiver,
    Resources,
    /// Sender and receiver.
    Network,
    /// All agents.
    Shared,
}

impl LoopKind {
    pub(super) const ALL: [Self; 6] = [
        Self::Conductor,
        Self::Sender,
        Self::Receiver,
        Self::Resources,
        Self::Network,
        Self::Shared,
    ];
}

/// Who may end the driver with a terminate command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TerminationValidator {
    /// Nobody.
    #[default]
    Deny,
    /// Every client.
    Allow,
    /// A name that is neither: the driver refuses to start.
    Unknown(String),
}

impl TerminationValidator {
    pub(super) fn name(&self) -> &str {
        match self {
            TerminationValidator::Deny => "deny",
            TerminationValidator::Allow => "allow",
            TerminationValidator::Unknown(name) => name,
        }
    }

    pub(super) fn from_name(name: String) -> Self {
        match name.as_str() {
            "deny" | "aeron_driver_termination_validator_default_deny" => {
                TerminationValidator::Deny
            }
            "allow" | "aeron_driver_termination_validator_default_allow" => {
                TerminationValidator::Allow
            }
            _ => TerminationValidator::Unknown(name),
        }
    }
}
