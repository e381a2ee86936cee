//! Why the bytes of a message are refused.

/// What is wrong with a message of the archive's control protocol. Nothing of the message was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveDecodeError {
    /// The message ends before its header does.
    #[error("archive message of {length} bytes is shorter than its header of 8 bytes: drop it")]
    TooShort {
        /// Bytes of the message.
        length: usize,
    },
    /// The message is none of the archive's control protocol.
    #[error(
        "schema id {schema_id} is not 101: drop the message, and look for another protocol on the stream"
    )]
    SchemaId {
        /// Schema of the message.
        schema_id: u16,
    },
    /// No message of this stream has the template id. Aeron ignores such a message.
    #[error(
        "template id {template_id} is unknown or belongs on another stream: ignore the message"
    )]
    UnknownTemplateId {
        /// Template of the message.
        template_id: u16,
    },
    /// The block lacks fields that its version of the schema has.
    #[error(
        "template id {template_id}: block of {block_length} bytes is shorter than the {required} bytes of version {version}: drop the message"
    )]
    BlockTooShort {
        /// Template of the message.
        template_id: u16,
        /// Version of the schema, as the header has it.
        version: u16,
        /// Bytes of the block, as the header has them.
        block_length: u16,
        /// Bytes that the block of this version has.
        required: usize,
    },
    /// The block goes beyond the end of the message.
    #[error(
        "template id {template_id}: block of {block_length} bytes exceeds the {available} bytes after the header: drop the message"
    )]
    BlockBeyondEnd {
        /// Template of the message.
        template_id: u16,
        /// Bytes of the block, as the header has them.
        block_length: u16,
        /// Bytes after the header.
        available: usize,
    },
    /// The message ends where the length of a text or byte string is expected.
    #[error(
        "template id {template_id}: the length of {field} takes 4 bytes and {available} are left: drop the message"
    )]
    DataMissing {
        /// Template of the message.
        template_id: u16,
        /// The text or byte string.
        field: &'static str,
        /// Bytes that are left.
        available: usize,
    },
    /// A text or byte string goes beyond the end of the message.
    #[error(
        "template id {template_id}: {field} of {declared} bytes exceeds the {available} bytes that are left: drop the message"
    )]
    DataBeyondEnd {
        /// Template of the message.
        template_id: u16,
        /// The text or byte string.
        field: &'static str,
        /// Length that it is said to have.
        declared: u32,
        /// Bytes that are left after the length.
        available: usize,
    },
    /// A field has a number that its enumeration does not define; the null value of an enumeration is one.
    #[error("template id {template_id}: {field}={value} is not defined: drop the message")]
    UndefinedValue {
        /// Template of the message.
        template_id: u16,
        /// The field.
        field: &'static str,
        /// Number in the field.
        value: i32,
    },
}
