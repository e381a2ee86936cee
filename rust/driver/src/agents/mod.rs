//! Adapters that run the agents on the driver's threads, with the clocks and CPUs of this machine.

mod conductor;
mod cpus;
mod pinned;
mod receiver;
mod sender;

pub use conductor::ConductorAgent;
pub use cpus::AgentCpus;
pub use pinned::Pinned;
pub use receiver::ReceiverAgent;
pub use sender::SenderAgent;
