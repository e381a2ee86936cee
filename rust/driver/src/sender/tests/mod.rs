//! Tests of the sender, in virtual time and with a network in memory.

mod batching;
mod bounds;
mod closing;
mod control_frames;
mod data;
mod destinations;
mod flow_control;
mod gso_batches;
mod hostile;
mod padding;
mod retransmits;
mod rig;
mod setups;
mod validation;
mod vectors;
