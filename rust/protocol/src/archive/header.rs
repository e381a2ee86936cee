//! The header with which every message begins.

use aeron_layout::Layout;
use aeron_layout::sbe::MessageHeaderLayout;

use super::ArchiveDecodeError;

/// Schema of all messages here.
pub const SCHEMA_ID: u16 = 101;

/// Version of the schema that is written.
///
/// Messages of every version are read: fields that were added later are absent from older ones, and the block of newer ones may be longer.
pub const SCHEMA_VERSION: u16 = 13;

/// Beginning of a message of the archive's control protocol; the schema id is checked and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Bytes of the block after the header.
    pub block_length: u16,
    /// Kind of the message.
    pub template_id: u16,
    /// Version of the schema by which the message was written.
    pub version: u16,
}

impl MessageHeader {
    /// Bytes of the header.
    pub const LENGTH: usize = MessageHeaderLayout::LENGTH;

    /// Reads the header of a message. Returns the header and the bytes after it.
    ///
    /// # Errors
    /// [`ArchiveDecodeError::TooShort`] for fewer bytes than a header has, [`ArchiveDecodeError::SchemaId`] for another schema.
    pub fn decode(message: &[u8]) -> Result<(Self, &[u8]), ArchiveDecodeError> {
        let length = message.len();
        let (header, body) = message
            .split_first_chunk()
            .ok_or(ArchiveDecodeError::TooShort { length })?;
        let header = MessageHeaderLayout::of(header);
        let schema_id = header.schema_id.get();
        if schema_id != SCHEMA_ID {
            return Err(ArchiveDecodeError::SchemaId { schema_id });
        }
        let header = Self {
            block_length: header.block_length.get(),
            template_id: header.template_id.get(),
            version: header.version.get(),
        };
        Ok((header, body))
    }
}

/// The header of a message that has the block `B`.
pub(super) fn layout_of<B: Layout>(template_id: u16) -> MessageHeaderLayout {
    MessageHeaderLayout {
        block_length: (B::LENGTH as u16).into(),
        template_id: template_id.into(),
        schema_id: SCHEMA_ID.into(),
        version: SCHEMA_VERSION.into(),
    }
}
