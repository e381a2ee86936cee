//! Invariants that must be true in each schedule, with all kinds of faults. The checks read only the drivers' counters,
//! logs and datagrams.

mod counter_ids;
mod counters;
mod datagrams;

pub use counter_ids::CounterIdChecks;
pub use counters::{CounterChecks, check_timeouts};
pub use datagrams::DatagramChecks;
