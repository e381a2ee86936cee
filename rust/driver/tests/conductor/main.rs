//! The conductor on heap memory and in virtual time, with commands as clients send them.

mod clients;
mod commands;
mod counters;
mod endings;
mod harness;
mod hostile;
mod publications;
mod storage;
mod subscriptions;
mod untethered;
mod vectors;
