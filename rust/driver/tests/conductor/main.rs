//! The conductor on heap memory and in virtual time, with commands as clients send them.

mod clients;
mod commands;
mod counters;
mod endings;
mod harness;
mod hostile;
mod machine;
mod media;
mod publications;
mod storage;
mod subscriptions;
mod udp;
mod untethered;
mod vectors;

// The network in memory of the unit tests finds it here.
use aeron_driver::socket_buffers;
