//! Messages between a client and an archive: the control protocol of Aeron Archive, in Simple Binary Encoding.
//!
//! Each message is the payload of one Aeron message. It begins with a [`MessageHeader`], then a block of fields at
//! fixed offsets, then texts and byte strings, each with its length. Three sets of messages have separate streams:
//! [`ArchiveRequest`] from a client, [`ArchiveResponse`] to one client, [`RecordingEvent`] to all subscribers.
//!
//! * **Older messages** lack the fields that later versions of the schema added. Such a field gets a default value, and
//!   such a text is empty.
//! * **Newer messages** may have longer blocks. Texts are found through the block length in the header, and unknown
//!   fields are ignored.
//! * **Any bytes are possible.** Decoding never panics: an incomplete message or an undefined number is an
//!   [`ArchiveDecodeError`]. Texts are bytes, because nothing guarantees that a peer writes valid text. Java's archive
//!   and client write ASCII.
//!
//! [`extension`] has the messages that this project adds.
//!
//! ```
//! use aeron_protocol::archive::{ArchiveRequest, SourceLocation, StartRecordingRequest2};
//!
//! let request = ArchiveRequest::StartRecording2(StartRecordingRequest2 {
//!     control_session_id: 7,
//!     correlation_id: 31,
//!     stream_id: 1001,
//!     source_location: SourceLocation::Local,
//!     auto_stop: true,
//!     channel: b"aeron:ipc",
//! });
//! let mut message = [0; 64];
//! let length = request.encode(&mut message)?;
//!
//! assert_eq!(length, 8 + 28 + 4 + 9);
//! assert_eq!(ArchiveRequest::decode(&message[..length])?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod codes;
mod declare;
mod error;
pub mod extension;
mod header;
mod recording_event;
mod request;
mod response;
mod role;

pub use codes::{
    ArchiveErrorCode, ControlResponseCode, RecordingSignal, RetentionHolder, SourceLocation,
    TimeEdge,
};
pub use error::ArchiveDecodeError;
pub use header::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION};
pub use recording_event::*;
pub use request::*;
pub use response::*;
pub use role::Role;

/// Version of the archive's protocol that this crate implements, as a semantic version (1.12.0): major << 16 | minor <<
/// 8 | patch.
///
/// A client sends its version in the connect request, and an archive in each response. Both major versions must match.
pub const ARCHIVE_PROTOCOL_VERSION: i32 = 0x0001_0C00;

/// Value of an unset id, position, timestamp or token.
pub const NULL_VALUE: i64 = -1;

/// Value of an unset length.
pub const NULL_LENGTH: i32 = -1;

/// Value of an unset session id.
pub const NULL_SESSION_ID: i32 = -1;
