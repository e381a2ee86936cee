//! Reasons why a message is malformed.

/// Reason why bytes are not a sound message of their template.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SbeMalformed {
    /// The bytes end inside the header.
    #[error("message of {length} bytes is shorter than its header of {header}")]
    Header {
        /// Length of the bytes.
        length: usize,
        /// Length of the header.
        header: usize,
    },
    /// The root block ends after the message.
    #[error("block length {block} is more than the {left} bytes after the header")]
    Block {
        /// Acting length of the block.
        block: u64,
        /// Bytes after the header.
        left: usize,
    },
    /// A message has become shorter since its elements were found.
    #[error(
        "the message has {length} bytes now, and an element ends at {end}: its buffer has changed"
    )]
    Changed {
        /// Length of the message with its header.
        length: usize,
        /// Offset after the element.
        end: usize,
    },
    /// A block lacks a field that its version has.
    #[error(
        "{element}: block length {block} is less than {least}, the length in version {version}"
    )]
    ShortBlock {
        /// The message or group.
        element: String,
        /// Acting length of the block.
        block: u64,
        /// Least length of the block in this version.
        least: usize,
        /// Version of the message.
        version: u64,
    },
    /// The message ends inside the dimension of a group.
    #[error("group '{group}': {left} bytes are left for a dimension of {dimension}")]
    Dimension {
        /// Name of the group.
        group: String,
        /// Bytes that are left.
        left: usize,
        /// Length of the dimension.
        dimension: usize,
    },
    /// The entries of a group need more bytes than are left.
    #[error(
        "group '{group}': {count} entries of at least {entry} bytes are more than the {left} bytes left"
    )]
    Entries {
        /// Name of the group.
        group: String,
        /// Number of entries.
        count: u64,
        /// Least length of an entry with its groups and data.
        entry: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// Group entries without bytes are more than their limit.
    #[error(
        "group '{group}': {count} entries without bytes are more than the limit {limit} of a message"
    )]
    EmptyEntries {
        /// Name of the group.
        group: String,
        /// Number of entries without bytes, in the message so far.
        count: u64,
        /// Most entries of this kind.
        limit: usize,
    },
    /// The message ends inside the length of variable data.
    #[error("data '{data}': {left} bytes are left for a length of {prefix}")]
    DataLength {
        /// Name of the data.
        data: String,
        /// Bytes that are left.
        left: usize,
        /// Number of bytes before the data.
        prefix: usize,
    },
    /// The length of variable data is its null value.
    #[error("data '{data}': the length {length} is the null value of its type")]
    NullLength {
        /// Name of the data.
        data: String,
        /// The length.
        length: u64,
    },
    /// Variable data end after the message.
    #[error("data '{data}': length {length} is more than the {left} bytes left")]
    Data {
        /// Name of the data.
        data: String,
        /// The length.
        length: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// A message states fewer groups or data than its version has.
    #[error("{element}: {what} {count} is less than {known}, the number in version {version}")]
    Counts {
        /// The message or group.
        element: String,
        /// `numGroups` or `numVarDataFields`.
        what: &'static str,
        /// The count in the message.
        count: u64,
        /// Number of groups or data in this version.
        known: usize,
        /// Version of the message.
        version: u64,
    },
    /// A group or data that the schema does not know cannot be skipped.
    #[error("{element}: an unknown {what} cannot be skipped: the schema has no layout for it")]
    Unknown {
        /// The message or group.
        element: String,
        /// `group` or `data`.
        what: &'static str,
    },
    /// Groups that the schema does not know are nested too deeply.
    #[error("{element}: unknown groups are nested deeper than the limit {limit}")]
    Depth {
        /// The message or group.
        element: String,
        /// Deepest nesting.
        limit: usize,
    },
    /// A message has more values than may be decoded at once.
    #[error("more than {limit} values: read this message by columns")]
    Values {
        /// Most values.
        limit: usize,
    },
    /// A text is not in its character set.
    #[error("'{field}': byte {byte:#04x} at {offset} is not valid in its character set")]
    Text {
        /// Name of the field or data.
        field: String,
        /// The first byte that is not valid.
        byte: u8,
        /// Offset of the byte in the text.
        offset: usize,
    },
    /// A value does not fit the type of the result.
    #[error("'{field}': value {value} {reason}")]
    Value {
        /// Name of the field.
        field: String,
        /// The value.
        value: String,
        /// The limit that it breaks.
        reason: &'static str,
    },
}
