//! The agents with their clocks: what runs on the driver's threads.

mod conductor;
mod cpus;
mod network;
mod pinned;

pub use conductor::ConductorAgent;
pub use cpus::AgentCpus;
pub use network::{NetworkAgent, NetworkCommand};
pub use pinned::Pinned;
