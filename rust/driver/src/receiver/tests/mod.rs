//! Tests of the receiver, in virtual time and with a network in memory.

mod endings;
mod floods;
mod frames;
mod hostile;
mod inserting;
mod malformed;
mod rig;
mod setups;
mod telling;
