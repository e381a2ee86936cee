//! The conductor's publications and their consumers. They are plain state machines: the caller passes the time to them.

pub mod ipc;
pub mod network;
pub mod status;

mod published_log;

use aeron_protocol::uri::{ExistingPublication, InitialPosition};

pub use ipc::IpcPublication;
pub use network::{NetworkPublication, NetworkPublicationOptions};
pub use published_log::{FirstPages, PublisherCounters, PublisherPages};
pub use status::PublicationStatus;

use crate::stream::{IPC_SOURCE_IDENTITY, StreamIdentity, TetherTimeouts};

/// Parameters of a publication, apart from its memory.
#[derive(Clone, Debug)]
pub struct PublicationConfig {
    /// Correlation id of the command that created the publication.
    pub registration_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub is_exclusive: bool,
    /// Id of the image that this publication responds to, or of the subscription that receives the responses to this
    /// publication's requests, else -1.
    pub response_correlation_id: i64,
    /// The initial position: from the channel, or the beginning of a random term.
    pub initial_position: InitialPosition,
    /// Position of the first frame.
    pub start_position: i64,
    pub mtu_length: i32,
    pub term_length: i32,
    /// Maximum distance of publishers from the slowest consumer, in bytes.
    pub window_length: i64,
    /// Whether a page of the log is allocated only when publishers come close to it.
    pub is_sparse: bool,
    pub log_file_name: String,
    pub tether_timeouts: TetherTimeouts,
    pub unblock_timeout_ns: i64,
}

impl PublicationConfig {
    /// Returns the parameters that a request must match to share this publication.
    pub fn existing(&self) -> ExistingPublication {
        ExistingPublication {
            session_id: self.session_id,
            mtu_length: self.mtu_length,
            term_length: self.term_length,
            initial_position: self.initial_position,
        }
    }

    fn identity(&self) -> StreamIdentity<'_> {
        StreamIdentity {
            correlation_id: self.registration_id,
            session_id: self.session_id,
            stream_id: self.stream_id,
            log_file_name: &self.log_file_name,
            source_identity: IPC_SOURCE_IDENTITY,
        }
    }
}

/// The action that a timer tick of a publication requires from the conductor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// No action.
    Nothing,
    /// Announce the end of the stream to the subscribers of the stream.
    Unavailable { is_revoked: bool },
    /// The rejection is over: link the matching subscriptions again.
    Available,
    /// Count an unblocked claim: the unfinished frame of a dead publisher was padded.
    Unblocked,
    /// Request the release of the publication from the sender.
    Release,
    /// Delete the publication.
    EndOfLife,
}
