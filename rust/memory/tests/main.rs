//! The tests of this crate, in one program. It is built and linked once. Tests that need a process or a build of their
//! own have their own programs.

mod broadcast;
mod captures;
mod cnc;
mod counters;
mod error_log;
mod hostile;
mod log;
mod loss_report;
mod models;
mod ring;
