//! The bytes of a mark file's header: message header, fixed block and texts.

use aeron_layout::mark_file::MarkFileLayout;
use aeron_layout::sbe::MessageHeaderLayout;
use aeron_layout::{FromZeros, I32, I64, Layout as _, U16, offset};
use aeron_memory::cnc::SemanticVersion;

use super::{MARK_FILE_VERSION, MarkFileError};
use crate::Damage;
use crate::damage::{put_text, take_text};

/// Length of the header in bytes. The error log begins at this offset, even if the content of the
/// header is shorter.
pub const HEADER_LENGTH: usize = 8192;

/// The message header, which names the schema of the block.
const MESSAGE_HEADER: MessageHeaderLayout = MessageHeaderLayout {
    block_length: U16::new(MarkFileLayout::LENGTH as u16),
    template_id: U16::new(200),
    schema_id: U16::new(100),
    version: U16::new(2),
};

const MESSAGE_HEADER_LENGTH: usize = MessageHeaderLayout::LENGTH;

/// Offset of the version in the file.
pub(super) const VERSION_OFFSET: usize =
    MESSAGE_HEADER_LENGTH + offset!(MarkFileLayout, version: I32);
/// Offset of the activity timestamp in the file.
pub(super) const ACTIVITY_TIMESTAMP_OFFSET: usize =
    MESSAGE_HEADER_LENGTH + offset!(MarkFileLayout, activity_timestamp_ms: I64);

/// Archive id of a process without a server, to which no client can connect.
const NULL_ARCHIVE_ID: i64 = -1;

/// The owner of an archive directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: i64,
    /// Time at which the owner started, in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Archive id, which distinguishes the archives of one driver; -1 if the owner has none.
    pub archive_id: i64,
    /// Stream id of control requests over the network.
    pub control_stream_id: i32,
    /// Stream id of control requests on the same machine.
    pub local_control_stream_id: i32,
    /// Stream id of recording events.
    pub events_stream_id: i32,
    /// Channel of control requests over the network.
    pub control_channel: String,
    /// Channel of control requests on the same machine.
    pub local_control_channel: String,
    /// Channel of recording events.
    pub events_channel: String,
    /// Directory of the driver.
    pub aeron_directory: String,
}

/// Content of a mark file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFileState {
    /// Version of the layout; 0 until the owner is ready.
    pub version: SemanticVersion,
    /// Time of the last heartbeat, in milliseconds since the epoch; -1 after a regular end.
    pub activity_timestamp_ms: i64,
    /// Length of the error log in bytes; 0 without an error log.
    pub error_buffer_length: i32,
    /// The owner of the directory.
    pub owner: Owner,
}

impl Owner {
    /// Creates the owner for a process without a server, to which no client can connect.
    #[must_use]
    pub fn without_server(pid: i64, start_timestamp_ms: i64, aeron_directory: String) -> Self {
        Self {
            pid,
            start_timestamp_ms,
            archive_id: NULL_ARCHIVE_ID,
            control_stream_id: 0,
            local_control_stream_id: 0,
            events_stream_id: 0,
            control_channel: String::new(),
            local_control_channel: String::new(),
            events_channel: String::new(),
            aeron_directory,
        }
    }

    /// Returns the whole header, of version 0.
    pub(super) fn encode(
        &self,
        error_buffer_length: usize,
        activity_timestamp_ms: i64,
    ) -> Result<Vec<u8>, MarkFileError> {
        let mut block = MarkFileLayout::new_zeroed();
        block.activity_timestamp_ms = activity_timestamp_ms.into();
        block.start_timestamp_ms = self.start_timestamp_ms.into();
        block.pid = self.pid.into();
        block.control_stream_id = self.control_stream_id.into();
        block.local_control_stream_id = self.local_control_stream_id.into();
        block.events_stream_id = self.events_stream_id.into();
        block.header_length = (HEADER_LENGTH as i32).into();
        block.error_buffer_length = (error_buffer_length as i32).into();
        block.archive_id = self.archive_id.into();
        let mut header = MESSAGE_HEADER.to_bytes().to_vec();
        header.extend(block.to_bytes());
        for text in [
            &self.control_channel,
            &self.local_control_channel,
            &self.events_channel,
            &self.aeron_directory,
        ] {
            put_text(&mut header, text);
        }
        if header.len() > HEADER_LENGTH {
            let length = header.len();
            return Err(MarkFileError::HeaderTooLong { length });
        }
        header.resize(HEADER_LENGTH, 0);
        Ok(header)
    }
}

impl MarkFileState {
    /// Decodes a header. The bytes may have any content. If the file is shorter than the header,
    /// the missing bytes are zero.
    pub(super) fn decode(header: &[u8; HEADER_LENGTH]) -> Result<Self, MarkFileError> {
        let Layout {
            start,
            block_length,
            schema_version,
        } = Layout::of(header)?;
        let block = MarkFileLayout::first_in(&header[start..])
            .expect("the header is longer than message header and block");
        let version = SemanticVersion(block.version.get());
        if version.0 != 0 && version.major() != MARK_FILE_VERSION.major() {
            return Err(MarkFileError::IncompatibleVersion { file: version });
        }
        let mut offset = start + block_length;
        // Until the owner is ready, some of its texts may be missing in the file.
        let mut text = |field| match version.0 {
            0 => Ok(String::new()),
            _ => take_text(header, &mut offset, field).map(str::to_owned),
        };
        Ok(Self {
            version,
            activity_timestamp_ms: block.activity_timestamp_ms.get(),
            error_buffer_length: match schema_version {
                0 => 0,
                _ => block.error_buffer_length.get(),
            },
            owner: Owner {
                pid: block.pid.get(),
                start_timestamp_ms: block.start_timestamp_ms.get(),
                archive_id: match schema_version {
                    0 | 1 => NULL_ARCHIVE_ID,
                    _ => block.archive_id.get(),
                },
                control_stream_id: block.control_stream_id.get(),
                local_control_stream_id: block.local_control_stream_id.get(),
                events_stream_id: block.events_stream_id.get(),
                control_channel: text("controlChannel")?,
                local_control_channel: text("localControlChannel")?,
                events_channel: text("eventsChannel")?,
                aeron_directory: text("aeronDirectory")?,
            },
        })
    }
}

/// Offset, length and schema version of the block.
struct Layout {
    start: usize,
    block_length: usize,
    schema_version: u16,
}

impl Layout {
    /// Finds the block. Headers of old archives have no message header: there, the block is at
    /// offset 0.
    fn of(header: &[u8; HEADER_LENGTH]) -> Result<Self, Damage> {
        let message = MessageHeaderLayout::first_in(header)
            .expect("the header is longer than the message header");
        let schema = (message.template_id, message.schema_id);
        if schema != (MESSAGE_HEADER.template_id, MESSAGE_HEADER.schema_id) {
            return Ok(Self {
                start: 0,
                block_length: MarkFileLayout::LENGTH,
                schema_version: 0,
            });
        }
        let block_length = usize::from(message.block_length.get());
        if block_length < MarkFileLayout::LENGTH {
            return Err(Damage {
                field: "blockLength",
                offset: 0,
                value: block_length as i64,
                expected: "at least 128",
            });
        }
        Ok(Self {
            start: MESSAGE_HEADER_LENGTH,
            block_length,
            schema_version: message.version.get(),
        })
    }
}
