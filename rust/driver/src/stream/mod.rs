//! [`LinkedStream`]: the common part of all streams that subscribers read from a log. These streams are IPC
//! publications, network publications with their spies, and images.

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

/// Source identity of images of IPC publications and of images of spies. Both read the publisher's log directly.
pub const IPC_SOURCE_IDENTITY: &str = "aeron:ipc";

/// The identity of a stream in events for the subscribers of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamIdentity<'a> {
    /// Registration id of the publication, or correlation id of the image.
    pub correlation_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub log_file_name: &'a str,
    /// Source of the stream: `host:port`, or [`IPC_SOURCE_IDENTITY`].
    pub source_identity: &'a str,
}

impl StreamIdentity<'_> {
    /// Returns the session of the stream.
    pub fn session(&self) -> StreamSession {
        StreamSession {
            stream_id: self.stream_id,
            session_id: self.session_id,
        }
    }
}

/// A stream that subscriptions are linked to.
pub trait LinkedStream {
    fn identity(&self) -> StreamIdentity<'_>;

    fn subscribers(&self) -> &Subscribers;

    fn subscribers_mut(&mut self) -> &mut Subscribers;

    /// Returns whether a new subscriber may join.
    fn is_accepting_subscribers(&self) -> bool;

    /// Returns the position at which a new subscriber begins.
    fn join_position(&self) -> i64;

    /// Handles the addition of a subscriber.
    fn on_subscriber_added(&mut self) {}

    /// Handles the removal of a subscriber.
    fn on_subscriber_removed(&mut self) {}
}
