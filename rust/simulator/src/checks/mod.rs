//! Invariants that must be true in each schedule with any faults. The checks read only the drivers' counters and
//! datagrams.

mod counters;
mod datagrams;

pub use counters::CounterChecks;
pub use datagrams::DatagramChecks;
