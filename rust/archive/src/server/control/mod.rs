//! Control sessions: the requests of clients, and the responses to them.
//!
//! A control session converts requests to calls of the [conductor](super::conductor), and results
//! to messages. The conductor makes all decisions about recordings.

mod audit;
mod dispatch;
mod responses;
mod session;
mod streams;

pub(super) use audit::{AuditedRequest, log_policy_of_file};
pub(super) use dispatch::{connect_failure, text};
pub(super) use responses::{Response, ResponseStream, Sent};
pub(super) use session::{ControlSession, Opening, SessionEnd, SessionTurn};
pub(super) use streams::{ControlStreams, GoneImages};
