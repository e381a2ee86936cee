//! The bytes of a mark file's header: message header, fixed block, texts.

use aeron_memory::cnc::SemanticVersion;

use super::{ERROR_BUFFER_LENGTH, MARK_FILE_VERSION, MarkFileError};
use crate::Damage;
use crate::bytes::{get_i32, get_i64, put_i32, put_i64};
use crate::damage::{put_text, take_text};

/// Bytes of the header: whatever stands in it, the error log begins here.
pub const HEADER_LENGTH: usize = 8192;

/// What says of which schema the block is: block length, template, schema, version, 16 bits each.
const MESSAGE_HEADER: [u8; MESSAGE_HEADER_LENGTH] = [128, 0, 200, 0, 100, 0, 2, 0];
const MESSAGE_HEADER_LENGTH: usize = 8;
/// Where template and schema stand in it.
const SCHEMA: std::ops::Range<usize> = 2..6;
const SCHEMA_VERSION_OFFSET: usize = 6;

/// Bytes of the block, which follows the message header; the texts follow the block.
const BLOCK_LENGTH: usize = 128;
const VERSION: usize = 0;
const ACTIVITY_TIMESTAMP: usize = 8;
const START_TIMESTAMP: usize = 16;
const PID: usize = 24;
const CONTROL_STREAM_ID: usize = 32;
const LOCAL_CONTROL_STREAM_ID: usize = 36;
const EVENTS_STREAM_ID: usize = 40;
/// Since version 1 of the schema, as the length of the error log.
const LENGTH_OF_HEADER: usize = 44;
const LENGTH_OF_ERROR_BUFFER: usize = 48;
/// Since version 2 of the schema.
const ARCHIVE_ID: usize = 56;

/// Where the version stands in the file.
pub(super) const VERSION_OFFSET: usize = MESSAGE_HEADER_LENGTH + VERSION;
/// Where the last sign of life stands in the file.
pub(super) const ACTIVITY_TIMESTAMP_OFFSET: usize = MESSAGE_HEADER_LENGTH + ACTIVITY_TIMESTAMP;

/// An archive that nobody can connect to has no id.
const NULL_ARCHIVE_ID: i64 = -1;

/// Whose an archive directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its process.
    pub pid: i64,
    /// When it started, in epoch milliseconds.
    pub start_timestamp_ms: i64,
    /// Id among the archives of a driver; -1 without one.
    pub archive_id: i64,
    /// Stream of control requests over the network.
    pub control_stream_id: i32,
    /// Stream of control requests on the same machine.
    pub local_control_stream_id: i32,
    /// Stream of recording events.
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

/// What a mark file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFileState {
    /// Version of the layout; 0 before the owner is ready.
    pub version: SemanticVersion,
    /// Last sign of life, in epoch milliseconds; -1 after an end in good order.
    pub activity_timestamp_ms: i64,
    /// Bytes of the error log; 0 when there is none.
    pub error_buffer_length: i32,
    /// Whose the directory is.
    pub owner: Owner,
}

impl Owner {
    /// A process without a server: nobody connects to it.
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

    /// The whole header, of version 0.
    pub(super) fn encode(&self, activity_timestamp_ms: i64) -> Result<Vec<u8>, MarkFileError> {
        let mut header = MESSAGE_HEADER.to_vec();
        header.resize(MESSAGE_HEADER_LENGTH + BLOCK_LENGTH, 0);
        let block = &mut header[MESSAGE_HEADER_LENGTH..];
        put_i64(block, ACTIVITY_TIMESTAMP, activity_timestamp_ms);
        put_i64(block, START_TIMESTAMP, self.start_timestamp_ms);
        put_i64(block, PID, self.pid);
        put_i32(block, CONTROL_STREAM_ID, self.control_stream_id);
        put_i32(block, LOCAL_CONTROL_STREAM_ID, self.local_control_stream_id);
        put_i32(block, EVENTS_STREAM_ID, self.events_stream_id);
        put_i32(block, LENGTH_OF_HEADER, HEADER_LENGTH as i32);
        put_i32(block, LENGTH_OF_ERROR_BUFFER, ERROR_BUFFER_LENGTH as i32);
        put_i64(block, ARCHIVE_ID, self.archive_id);
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
    /// Reads a header of any content; what a shorter file lacks is zero.
    pub(super) fn decode(header: &[u8; HEADER_LENGTH]) -> Result<Self, MarkFileError> {
        let Layout {
            start,
            block_length,
            schema_version,
        } = Layout::of(header)?;
        let block = &header[start..];
        let version = SemanticVersion(get_i32(block, VERSION));
        if version.0 != 0 && version.major() != MARK_FILE_VERSION.major() {
            return Err(MarkFileError::IncompatibleVersion { file: version });
        }
        let mut offset = start + block_length;
        // Before the owner is ready, its texts may be half written.
        let mut text = |field| match version.0 {
            0 => Ok(String::new()),
            _ => take_text(header, &mut offset, field),
        };
        Ok(Self {
            version,
            activity_timestamp_ms: get_i64(block, ACTIVITY_TIMESTAMP),
            error_buffer_length: match schema_version {
                0 => 0,
                _ => get_i32(block, LENGTH_OF_ERROR_BUFFER),
            },
            owner: Owner {
                pid: get_i64(block, PID),
                start_timestamp_ms: get_i64(block, START_TIMESTAMP),
                archive_id: match schema_version {
                    0 | 1 => NULL_ARCHIVE_ID,
                    _ => get_i64(block, ARCHIVE_ID),
                },
                control_stream_id: get_i32(block, CONTROL_STREAM_ID),
                local_control_stream_id: get_i32(block, LOCAL_CONTROL_STREAM_ID),
                events_stream_id: get_i32(block, EVENTS_STREAM_ID),
                control_channel: text("controlChannel")?,
                local_control_channel: text("localControlChannel")?,
                events_channel: text("eventsChannel")?,
                aeron_directory: text("aeronDirectory")?,
            },
        })
    }
}

/// Where the block is, and what it has.
struct Layout {
    start: usize,
    block_length: usize,
    schema_version: u16,
}

impl Layout {
    /// A header without a message header is of an archive before there was one, and begins with the block.
    fn of(header: &[u8; HEADER_LENGTH]) -> Result<Self, Damage> {
        let u16_at = |offset| u16::from_le_bytes([header[offset], header[offset + 1]]);
        if header[SCHEMA] != MESSAGE_HEADER[SCHEMA] {
            return Ok(Self {
                start: 0,
                block_length: BLOCK_LENGTH,
                schema_version: 0,
            });
        }
        let block_length = usize::from(u16_at(0));
        if block_length < BLOCK_LENGTH {
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
            schema_version: u16_at(SCHEMA_VERSION_OFFSET),
        })
    }
}
