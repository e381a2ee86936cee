//! The header of every message between an archive and its clients.

use aeron_layout::Layout;
use aeron_layout::sbe::MessageHeaderLayout;

use super::ArchiveDecodeError;

/// Schema id of all messages of the protocol.
pub const SCHEMA_ID: u16 = 101;

/// Version of the schema in messages that this crate writes.
///
/// Messages of every version can be read. Older messages lack fields that were added later. The block of newer messages
/// may be longer.
pub const SCHEMA_VERSION: u16 = 13;

/// Header of a message of the archive's control protocol. The schema id is checked and not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Length of the block after the header, in bytes.
    pub block_length: u16,
    /// Template id: the kind of the message.
    pub template_id: u16,
    /// Version of the schema that the message uses.
    pub version: u16,
}

impl MessageHeader {
    /// Length of the header in bytes.
    pub const LENGTH: usize = MessageHeaderLayout::LENGTH;

    /// Reads the header of a message. Returns the header and the bytes after it.
    ///
    /// # Errors
    /// [`ArchiveDecodeError::TooShort`] for fewer bytes than a header has, [`ArchiveDecodeError::SchemaId`] for another
    /// schema.
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

/// Returns the header of a message with the block `B`.
pub(super) fn layout_of<B: Layout>(template_id: u16) -> MessageHeaderLayout {
    MessageHeaderLayout {
        block_length: (B::LENGTH as u16).into(),
        template_id: template_id.into(),
        schema_id: SCHEMA_ID.into(),
        version: SCHEMA_VERSION.into(),
    }
}
