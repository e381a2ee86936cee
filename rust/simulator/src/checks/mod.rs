//! What must hold in every schedule, whatever its faults: looked at from outside, in the counters of the drivers and in the datagrams
//! that they send.

mod counters;
mod datagrams;

pub use counters::CounterChecks;
pub use datagrams::DatagramChecks;
