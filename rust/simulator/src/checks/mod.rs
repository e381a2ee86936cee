//! Invariants that hold in every schedule with any faults. They are checked from outside, in the counters of the
//! drivers and in their datagrams.

mod counters;
mod datagrams;

pub use counters::CounterChecks;
pub use datagrams::DatagramChecks;
