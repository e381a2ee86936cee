//! Publications and who consumes them: plain state machines that are handed the time.

pub mod ipc;
pub mod network;
pub mod status;

mod published_log;

use aeron_protocol::uri::{ExistingPublication, InitialPosition};

pub use ipc::IpcPublication;
pub use network::{NetworkPublication, NetworkPublicationOptions};
pub use published_log::{PublisherCounters, PublisherPages};
pub use status::PublicationStatus;

use crate::stream::TetherTimeouts;

/// What makes a publication, apart from its memory.
#[derive(Clone, Debug)]
pub struct PublicationConfig {
    /// Correlation id of the command that created it.
    pub registration_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub is_exclusive: bool,
    /// The publication that this one answers, or the subscription that its answers go to; -1 if none.
    pub response_correlation_id: i64,
    /// Where the stream was told to start.
    pub initial_position: InitialPosition,
    /// Where the first frame goes.
    pub start_position: i64,
    pub mtu_length: i32,
    pub term_length: i32,
    /// How far publishers may run ahead of the slowest consumer, in bytes.
    pub window_length: i64,
    /// The log's pages are allocated as publishers get to them.
    pub is_sparse: bool,
    pub log_file_name: String,
    pub tether_timeouts: TetherTimeouts,
    pub unblock_timeout_ns: i64,
}

impl PublicationConfig {
    /// What another publication must agree with to share this one.
    pub fn existing(&self) -> ExistingPublication {
        ExistingPublication {
            session_id: self.session_id,
            mtu_length: self.mtu_length,
            term_length: self.term_length,
            initial_position: self.initial_position,
        }
    }
}

/// What a timer tick of a publication asks the conductor to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Nothing.
    Nothing,
    /// The stream ended: its subscribers are told.
    Unavailable { is_revoked: bool },
    /// The rejection is over: matching subscriptions are linked again.
    Available,
    /// A frame that a dead publisher left unfinished was padded.
    Unblocked,
    /// The sender is to let go of it.
    Release,
    /// Delete it.
    EndOfLife,
}
