//! The sender on virtual time and a network in memory.

mod batching;
mod bounds;
mod closing;
mod data;
mod destinations;
mod feedback;
mod flow_control;
mod hostile;
mod padding;
mod retransmits;
mod rig;
mod runs;
mod setups;
mod vectors;
