//! The sender on virtual time and a network in memory.

mod data;
mod rig;
mod setups;
