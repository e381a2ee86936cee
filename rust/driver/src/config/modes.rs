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

/// The names of the driver's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadNaming {
    /// The names of Aeron 1.52.
    #[default]
    Classic,
    /// The short names of Aeron 1.53, which a system shows completely.
    New,
}

impl ThreadNaming {
    /// Returns the name in settings.
    pub fn name(self) -> &'static str {
        match self {
            ThreadNaming::Classic => "classic",
            ThreadNaming::New => "new",
        }
    }

    /// Returns the naming with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [ThreadNaming::Classic, ThreadNaming::New]
            .into_iter()
            .find(|naming| naming.name() == name)
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
    /// Returns the name of the loop's thread with [`ThreadNaming::New`].
    pub(crate) fn new_thread_name(self) -> &'static str {
        match self {
            Self::Conductor => "aeron-md-cnd",
            Self::Sender => "aeron-md-snd",
            Self::Receiver => "aeron-md-rcv",
            Self::Resources => "aeron-md-nra",
            Self::Network => "aeron-md-net",
            Self::Shared => "aeron-md-shd",
        }
    }

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
            "deny"
            | "aeron_driver_termination_validator_default_deny"
            | "io.aeron.driver.DefaultDenyTerminationValidator" => TerminationValidator::Deny,
            "allow"
            | "aeron_driver_termination_validator_default_allow"
            | "io.aeron.driver.DefaultAllowTerminationValidator" => TerminationValidator::Allow,
            _ => TerminationValidator::Unknown(name),
        }
    }
}
