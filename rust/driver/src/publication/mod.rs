//! Publications and who consumes them: plain state machines that are handed the time.

mod ipc;
mod pages;
mod status;
mod subscribers;

pub use ipc::{IpcPublication, IpcPublicationConfig, State, Tick};
pub use status::PublicationStatus;
pub use subscribers::{LinkId, Subscriber, TetherAction, TetherTimeouts};
