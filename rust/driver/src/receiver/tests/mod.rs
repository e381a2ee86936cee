//! The receiver on virtual time and a network in memory.

mod rig;
mod setups;
