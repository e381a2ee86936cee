//! The plan of a schema: fields, groups and data of each template, with offsets, encodings and meanings.
//!
//! A plan is immutable. Fields of messages and members of composites have the same type, [`SbeField`].

mod build;
mod field;
mod kinds;
mod options;
mod scalar;

use std::collections::HashMap;
use std::sync::Arc;

pub use build::SbePlanError;
pub use field::{
    SbeDecimal, SbeExponent, SbeField, SbeKind, SbeStruct, SbeTime, SbeTimeKind, SbeTimeUnit,
    SbeUnitSource,
};
pub use options::SbePlanOptions;
pub use scalar::SbeScalar;

/// Nanoseconds of a day.
pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

use crate::number::{SbeByteOrder, SbeNumber};
use crate::read::SbeBlock;
use crate::schema::{SbeDataLayout, SbeDimension, SbeHeaderLayout, SbeSchema};
use crate::value::SbeValue;

/// Plan of a schema.
#[derive(Debug, Clone)]
pub struct SbePlan {
    /// Id of the schema.
    pub schema_id: u32,
    /// Version of the schema.
    pub version: u32,
    /// Byte order of all numbers.
    pub byte_order: SbeByteOrder,
    /// Layout of the header.
    pub header: SbeHeaderLayout,
    /// Templates in the order of the schema.
    pub templates: Vec<SbeTemplate>,
    /// Attributes `exponent` of the schema that have no effect, because no such field exists.
    pub warnings: Vec<SbePlanError>,
    pub(crate) by_id: HashMap<u64, usize>,
    pub(crate) by_name: HashMap<String, usize>,
}

impl SbePlan {
    /// Makes the plan of a schema.
    ///
    /// # Errors
    /// An option names a field that does not exist or does not have a suitable type.
    pub fn new(schema: &SbeSchema, options: &SbePlanOptions) -> Result<Self, SbePlanError> {
        build::plan(schema, options)
    }

    /// Returns the template of a name.
    pub fn template(&self, name: &str) -> Option<&SbeTemplate> {
        Some(&self.templates[self.position(name)?])
    }

    /// Returns the index in [`Self::templates`] of a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the index in [`Self::templates`] of a template id.
    pub fn index_of(&self, template_id: u64) -> Option<usize> {
        self.by_id.get(&template_id).copied()
    }
}

/// Plan of a message.
#[derive(Debug, Clone)]
pub struct SbeTemplate {
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
    /// Id of the schema, for the header.
    pub schema_id: u32,
    /// Version of the schema, for the header.
    pub version: u32,
    /// Layout of the header.
    pub header: SbeHeaderLayout,
    /// Fields, groups and data. Shared with the places of messages, which outlive a borrow of the plan.
    pub block: Arc<SbeBlockPlan>,
}

impl SbeTemplate {
    /// Returns whether the template has neither groups nor data: messages of one block length have the same length.
    pub fn is_fixed(&self) -> bool {
        self.block.is_flat()
    }
}

/// Plan of a block and of the elements after it: of a message, or of a group entry.
#[derive(Debug, Clone)]
pub struct SbeBlockPlan {
    /// Length of the block in bytes in the schema's version.
    pub block_length: usize,
    /// Fields in their order, also constants.
    pub fields: Vec<SbeField>,
    /// Groups in their order.
    pub groups: Vec<SbeGroup>,
    /// Variable data in their order.
    pub data: Vec<SbeData>,
    /// Layout of the dimension of groups that the schema does not know.
    pub(crate) unknown_group: Option<SbeDimension>,
    /// Layout of data that the schema does not know.
    pub(crate) unknown_data: Option<SbeDataLayout>,
    /// Version, and least length of a block of that version. Both increase.
    pub(crate) least_lengths: Vec<(u32, usize)>,
}

impl SbeBlockPlan {
    /// Returns whether only a block exists, without groups and data after it.
    pub fn is_flat(&self) -> bool {
        self.groups.is_empty() && self.data.is_empty()
    }

    /// Returns the field of a name.
    pub fn field(&self, name: &str) -> Option<&SbeField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the group of a name.
    pub fn group(&self, name: &str) -> Option<&SbeGroup> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the number of a field in a block of this plan, or `None` if the field is null or no number.
    pub fn number(&self, field: usize, block: SbeBlock<'_>) -> Option<SbeNumber> {
        match self.fields.get(field)?.value(block) {
            Ok(SbeValue::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Returns the end of the last field that exists in a version: a shorter block of this version is malformed.
    pub fn least_length(&self, version: u32) -> usize {
        let after = self
            .least_lengths
            .partition_point(|(since, _)| *since <= version);
        match after {
            0 => 0,
            _ => self.least_lengths[after - 1].1,
        }
    }
}

/// Plan of a group.
#[derive(Debug, Clone)]
pub struct SbeGroup {
    /// Name of the group.
    pub name: String,
    /// Id of the group.
    pub id: u32,
    /// Version of the schema that added the group.
    pub since_version: u32,
    /// Version of the schema that deprecated the group.
    pub deprecated: Option<u32>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Layout of the bytes before the entries.
    pub dimension: SbeDimension,
    /// Fields, groups and data of an entry.
    pub block: Arc<SbeBlockPlan>,
}

/// Plan of variable data.
#[derive(Debug, Clone)]
pub struct SbeData {
    /// Name of the data.
    pub name: String,
    /// Id of the data.
    pub id: u32,
    /// Version of the schema that added the data.
    pub since_version: u32,
    /// Version of the schema that deprecated the data.
    pub deprecated: Option<u32>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Layout of the length before the bytes, and the character set.
    pub layout: SbeDataLayout,
}
