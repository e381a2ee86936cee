//! Publications and who consumes them: plain state machines that are handed the time.

mod ipc;
mod pages;
mod subscribers;

pub use ipc::{IpcPublication, IpcPublicationConfig, State, Tick};
pub use subscribers::{LinkId, Subscriber, TetherAction, TetherTimeouts};
