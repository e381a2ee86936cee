//! Bounds of schemas and messages.

/// Longest text of a schema or of an included file, in bytes.
pub const MAX_SCHEMA_LENGTH: usize = 8 << 20;
/// Most XML nodes of one file.
pub const MAX_XML_NODES: u32 = 200_000;
/// Deepest nesting of XML elements, over all included files.
pub const MAX_XML_DEPTH: usize = 32;
/// Most files that a schema includes, directly or indirectly.
pub const MAX_INCLUDES: usize = 64;
/// Deepest nesting of included files.
pub const MAX_INCLUDE_DEPTH: usize = 8;
/// Deepest nesting of composites in composites.
pub const MAX_COMPOSITE_DEPTH: usize = 8;
/// Most members of a composite, with the members of its composites.
pub const MAX_COMPOSITE_MEMBERS: usize = 1024;
/// Longest block of a message or group entry, and longest type, in bytes.
pub const MAX_BLOCK_LENGTH: usize = 1 << 20;
/// Deepest nesting of groups.
pub const MAX_GROUP_DEPTH: usize = 8;
/// Most fields of a template, with the members of its composites.
pub const MAX_TEMPLATE_FIELDS: usize = 16_384;
/// Most messages of a schema, with the fields of all of them and the members of their composites.
pub const MAX_SCHEMA_FIELDS: usize = 131_072;
/// Most attributes of an XML element: the parser compares each with all others.
pub const MAX_XML_ATTRIBUTES: usize = 256;
/// Most declarations of XML namespaces in one file.
pub const MAX_XML_NAMESPACES: usize = 256;
/// Most group entries of a message that take no bytes. The bytes of a message bound the number of all other entries.
pub const MAX_EMPTY_ENTRIES: usize = 65_535;
/// Deepest nesting of groups that are skipped because the schema does not know them.
pub const MAX_SKIP_DEPTH: usize = 16;
/// Most values that a message is decoded to at once. Visitors and columns have no such limit.
pub const MAX_DECODED_VALUES: usize = 1 << 20;
