//! Control sessions: the requests of clients, and the responses to them.
//!
//! A control session only translates: messages of its client to requests of the [conductor](super::conductor), and
//! replies to messages. The conductor makes all decisions about recordings.

mod audit;
mod dispatch;
mod responses;
mod session;
mod sessions;
mod streams;
mod translate;

pub(super) use audit::log_policy_of_file;
pub(super) use sessions::{ControlSessions, SessionSettings};
pub(super) use streams::{ControlStreams, GoneImages};
