//! The types of settings that are chosen by name.

/// The distribution of the agents over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadingMode {
    /// The conductor, the native resource agent, the receiver and the sender have a thread each.
    #[default]
    Dedicated,
    /// The sender and the receiver share a thread; the conductor and the native resource agent have their own.
    SharedNetwork,
    /// All four agents share one thread.
    Shared,
    /// All four agents run on the thread that calls [`MediaDriver::do_work`](crate::MediaDriver::do_work).
    Invoker,
}

impl ThreadingMode {
    /// Returns the name in settings and counter labels.
    pub fn name(self) -> &'static str {
        match self {
            ThreadingMode::Dedicated => "DEDICATED",
            ThreadingMode::SharedNetwork => "SHARED_NETWORK",
            ThreadingMode::Shared => "SHARED",
            ThreadingMode::Invoker => "INVOKER",
        }
    }

    /// Returns the mode with this name, which must be in upper case.
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

/// The kind of a loop of agents; each kind has its own idle strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    Conductor,
    Sender,
    Receiver,
    Resources,
    /// The sender and the receiver.
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

/// The clients that may terminate the driver by command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TerminationValidator {
    /// No client.
    #[default]
    Deny,
    /// Every client.
    Allow,
    /// An unknown name: the driver refuses to start.
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
