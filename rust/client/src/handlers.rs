//! Types of the handlers that an application sets. [`ImageHandler`](crate::ImageHandler) is in the module of the image.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersReader;

use crate::error::Error;

/// Called with the reader of all counters, the counter's registration id and its counter id.
pub type CounterHandler = Arc<dyn Fn(&CountersReader<SharedBuffer>, i64, i32) + Send + Sync>;
/// Called once when the client is closed.
pub type CloseHandler = Arc<dyn Fn() + Send + Sync>;
/// Called with errors that no call can return.
pub type ClientErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;
/// Called with an error that a receiver reported to a publication.
pub type PublicationErrorHandler = Arc<dyn Fn(&PublicationErrorFrame) + Send + Sync>;

/// An error that a receiver reported to a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicationErrorFrame {
    /// Original registration id of the publication.
    pub registration_id: i64,
    /// Registration id of the destination; −1 if the error belongs to no destination.
    pub destination_registration_id: i64,
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id of the publication.
    pub stream_id: i32,
    /// Id of the receiver, −1 for IPC.
    pub receiver_id: i64,
    /// Group tag of the receiver; −1 if the receiver has no group tag.
    pub group_tag: i64,
    /// Error code of the receiver, usually the number of an [`ErrorCode`](aeron_protocol::ErrorCode): 13 if the image
    /// was rejected.
    pub error_code: i32,
    /// Error text of the receiver.
    pub error_message: String,
    /// Address of the receiver, if known.
    pub source_address: Option<std::net::SocketAddr>,
}
