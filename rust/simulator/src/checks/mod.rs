//! Invariants that must be true in each schedule, with all kinds of faults. The checks read only the drivers' counters,
//! logs and datagrams.

mod counters;
mod datagrams;

pub use counters::CounterChecks;
pub use datagrams::DatagramChecks;
