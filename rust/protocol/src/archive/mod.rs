//! Messages between a client and an archive: the control protocol of Aeron Archive, in Simple Binary Encoding.
//!
//! Each message is the payload of one Aeron message. It begins with a [`MessageHeader`], then a block of fields at fixed places, then
//! texts and byte strings, each with its length. Three sets of messages travel on streams of their own: [`ArchiveRequest`] from a client,
//! [`ArchiveResponse`] to one client, [`RecordingEvent`] to everybody.
//!
//! * **Older messages** lack the fields that later versions of the schema added. Such a field has the value that stands for absence, and
//!   a text is empty.
//! * **Newer messages** may have longer blocks: texts are found by the block length in the header, and what is not known is ignored.
//! * **All bytes are hostile.** Decoding is total: a message that is not complete, or has a number without a meaning, is an
//!   [`ArchiveDecodeError`]. Texts are bytes, as nothing guarantees that a peer writes text. Java's archive and client write ASCII.
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
mod header;
mod recording_event;
mod request;
mod response;

pub use codes::{ArchiveErrorCode, ControlResponseCode, RecordingSignal, SourceLocation};
pub use error::ArchiveDecodeError;
pub use header::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION};
pub use recording_event::*;
pub use request::*;
pub use response::*;

/// Version of the archive's protocol spoken here, as a semantic version (1.12.0): major << 16 | minor << 8 | patch.
///
/// A client sends it in its connect request, an archive in each answer. Both have to have the same major version.
pub const ARCHIVE_PROTOCOL_VERSION: i32 = 0x0001_0C00;

/// An id, position, timestamp or token that is not set.
pub const NULL_VALUE: i64 = -1;

/// A length that is not set.
pub const NULL_LENGTH: i32 = -1;

/// A session id that is not set.
pub const NULL_SESSION_ID: i32 = -1;
