//! What all streams have that subscribers read from a log of the driver: IPC publications, network publications with their spies,
//! and images.

mod managed_log;
mod pages;
mod session;
mod subscribers;

pub use managed_log::ManagedLog;
pub use pages::{PageRequest, Pages};
pub use session::StreamSession;
pub use subscribers::{
    LinkId, Subscriber, SubscriberConfig, Subscribers, TetherAction, TetherPositions,
    TetherTimeouts,
};

/// Source of the images of publications that are read where they are written.
pub const IPC_SOURCE_IDENTITY: &str = "aeron:ipc";

/// What a subscriber is told of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamIdentity<'a> {
    /// Registration id of the publication, or id of the image.
    pub correlation_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub log_file_name: &'a str,
    /// Where the stream comes from: `host:port`, or [`IPC_SOURCE_IDENTITY`].
    pub source_identity: &'a str,
}

/// A stream that subscriptions are linked to.
pub trait Stream {
    fn identity(&self) -> StreamIdentity<'_>;

    fn subscribers(&self) -> &Subscribers;

    fn subscribers_mut(&mut self) -> &mut Subscribers;

    /// Whether a new subscriber may join.
    fn is_accepting_subscribers(&self) -> bool;

    /// Whether publishers have room when a new subscriber is told of the stream. If not, the subscriber is linked later.
    fn is_ready_for_subscribers(&self) -> bool {
        true
    }

    /// A subscriber waits for the stream to be ready.
    fn await_pages(&mut self) {}

    /// Where a new subscriber begins.
    fn join_position(&self) -> i64;

    /// A subscriber was added.
    fn on_subscriber_added(&mut self) {}

    /// A subscriber was removed.
    fn on_subscriber_removed(&mut self) {}
}
