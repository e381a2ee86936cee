//! Control sessions: what clients send to the archive, and the responses.
//!
//! A session translates: requests become calls of the [conductor](super::conductor), results become messages. It decides nothing about
//! recordings.

mod dispatch;
mod responses;
mod session;
mod streams;

pub(super) use responses::{Response, ResponseStream, Sent};
pub(super) use session::{ControlSession, Opening, SessionEnd, SessionTurn};
pub(super) use streams::{ControlStreams, GoneImages};
