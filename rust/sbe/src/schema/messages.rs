//! Messages of a schema after its rules are checked.

use crate::number::SbeNumber;
use crate::schema::types::{SbeConstant, SbePresence, SbeType};
use crate::schema::wire::{SbeDataLayout, SbeDimension};

/// A message of the schema.
#[derive(Debug, Clone)]
pub struct SbeMessageType {
    /// Name of the message.
    pub name: String,
    /// Template id.
    pub id: u32,
    /// Version of the schema that added the message.
    pub since_version: u32,
    /// Version of the schema that deprecated the message.
    pub deprecated: Option<u32>,
    /// Semantic type: the message type in FIX.
    pub semantic_type: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Fields, groups and data.
    pub block: SbeBlockType,
}

/// Fields, groups and data of a message or of a group entry.
#[derive(Debug, Clone, Default)]
pub struct SbeBlockType {
    /// Length of the fields in bytes, with padding.
    pub block_length: usize,
    /// Fields in their order.
    pub fields: Vec<SbeFieldType>,
    /// Groups in their order.
    pub groups: Vec<SbeGroupType>,
    /// Variable data in their order.
    pub data: Vec<SbeDataType>,
}

/// A field of a block.
#[derive(Debug, Clone)]
pub struct SbeFieldType {
    /// Name of the field.
    pub name: String,
    /// Id of the field, unique in its block.
    pub id: u32,
    /// Offset in the block, in bytes.
    pub offset: usize,
    /// Type of the field.
    pub kind: SbeType,
    /// Presence, inherited from the type if the field states none.
    pub presence: SbePresence,
    /// The null value that the field states.
    pub null: Option<SbeNumber>,
    /// The least value on encoding that the field states, as in drafts of SBE 2.0.
    pub min: Option<SbeNumber>,
    /// The greatest value on encoding that the field states, as in drafts of SBE 2.0.
    pub max: Option<SbeNumber>,
    /// Value of a constant field.
    pub constant: Option<SbeConstant>,
    /// Version of the schema that added the field.
    pub since_version: u32,
    /// Version of the schema that deprecated the field.
    pub deprecated: Option<u32>,
    /// Semantic type of the field, or of its type.
    pub semantic_type: Option<String>,
    /// Unit of a time, from a draft's attribute of the field or of its type.
    pub time_unit: Option<String>,
    /// Epoch of a time, from a draft's attribute of the field or of its type.
    pub epoch: Option<String>,
    /// Field that has the exponent of this field's mantissa, from an attribute `exponent` of any namespace.
    pub exponent: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
}

impl SbeFieldType {
    /// Returns the length in bytes. It is 0 for constants.
    pub fn length(&self) -> usize {
        match self.presence {
            SbePresence::Constant => 0,
            _ => self.kind.length(),
        }
    }
}

/// A group of a block.
#[derive(Debug, Clone)]
pub struct SbeGroupType {
    /// Name of the group.
    pub name: String,
    /// Id of the group, unique in its block.
    pub id: u32,
    /// Version of the schema that added the group.
    pub since_version: u32,
    /// Version of the schema that deprecated the group.
    pub deprecated: Option<u32>,
    /// Layout of the bytes before the entries.
    pub dimension: SbeDimension,
    /// Description in the schema.
    pub description: Option<String>,
    /// Fields, groups and data of an entry.
    pub block: SbeBlockType,
}

/// Variable data of a block.
#[derive(Debug, Clone)]
pub struct SbeDataType {
    /// Name of the data.
    pub name: String,
    /// Id of the data, unique in its block.
    pub id: u32,
    /// Version of the schema that added the data.
    pub since_version: u32,
    /// Version of the schema that deprecated the data.
    pub deprecated: Option<u32>,
    /// Layout of the length before the bytes, and the character set.
    pub layout: SbeDataLayout,
    /// Semantic type.
    pub semantic_type: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
}
