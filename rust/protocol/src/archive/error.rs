//! [`ArchiveDecodeError`]: the reason why a message is refused.

/// Reason why a message of the archive's control protocol is invalid. No part of such a message is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveDecodeError {
    /// The message is shorter than a header.
    #[error("archive message of {length} bytes is shorter than its header of 8 bytes: drop it")]
    TooShort {
        /// Length of the message in bytes.
        length: usize,
    },
    /// The message does not belong to the archive's control protocol.
    #[error(
        "schema id {schema_id} is not 101: drop the message, and look for another protocol on the stream"
    )]
    SchemaId {
        /// Schema id of the message.
        schema_id: u16,
    },
    /// No message of this stream has the template id. Aeron ignores such a message.
    #[error(
        "template id {template_id} is unknown or belongs on another stream: ignore the message"
    )]
    UnknownTemplateId {
        /// Template id of the message.
        template_id: u16,
    },
    /// The block lacks fields that its version of the schema has.
    #[error(
        "template id {template_id}: block of {block_length} bytes is shorter than the {required} bytes of version {version}: drop the message"
    )]
    BlockTooShort {
        /// Template id of the message.
        template_id: u16,
        /// Version of the schema in the header.
        version: u16,
        /// Block length in the header, in bytes.
        block_length: u16,
        /// Block length of this version in bytes.
        required: usize,
    },
    /// The block exceeds the message.
    #[error(
        "template id {template_id}: block of {block_length} bytes exceeds the {available} bytes after the header: drop the message"
    )]
    BlockBeyondEnd {
        /// Template id of the message.
        template_id: u16,
        /// Block length in the header, in bytes.
        block_length: u16,
        /// Number of bytes after the header.
        available: usize,
    },
    /// The message ends before the length of a text or byte string.
    #[error(
        "template id {template_id}: the length of {field} takes 4 bytes and {available} are left: drop the message"
    )]
    DataMissing {
        /// Template id of the message.
        template_id: u16,
        /// Name of the text or byte string.
        field: &'static str,
        /// Number of remaining bytes.
        available: usize,
    },
    /// A text or byte string exceeds the message.
    #[error(
        "template id {template_id}: {field} of {declared} bytes exceeds the {available} bytes that are left: drop the message"
    )]
    DataBeyondEnd {
        /// Template id of the message.
        template_id: u16,
        /// Name of the text or byte string.
        field: &'static str,
        /// Declared length in bytes.
        declared: u32,
        /// Number of remaining bytes after the length.
        available: usize,
    },
    /// A field has a number that its enumeration does not define. The null value of an enumeration is such a number.
    #[error("template id {template_id}: {field}={value} is not defined: drop the message")]
    UndefinedValue {
        /// Template id of the message.
        template_id: u16,
        /// Name of the field.
        field: &'static str,
        /// Number in the field.
        value: i32,
    },
}
