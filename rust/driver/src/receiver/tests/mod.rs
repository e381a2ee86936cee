//! The receiver on virtual time and a network in memory.

mod endings;
mod floods;
mod frames;
mod hostile;
mod inserting;
mod malformed;
mod rig;
mod setups;
mod telling;
