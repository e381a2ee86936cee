//! Layouts of headers, of dimensions and of lengths, found by the names of members.

use crate::number::{SbeByteOrder, SbeNumber, SbePrimitive};
use crate::schema::types::{SbeCharacterSet, SbeComposite, SbePresence, SbeType};

/// An unsigned number in a header, in a dimension or before variable data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SbeCounter {
    /// Offset in its composite, in bytes.
    pub offset: usize,
    /// Unsigned integer type.
    pub primitive: SbePrimitive,
    /// Byte order of the schema.
    pub order: SbeByteOrder,
    /// The value that means null: no count and no length.
    pub null: u64,
    /// Least value on encoding: the schema's `minValue`, or 0.
    pub min: u64,
    /// Greatest value on encoding: the schema's `maxValue`, or one less than the maximum of the type.
    pub max: u64,
}

impl SbeCounter {
    /// Reads the number from the bytes of its composite. Returns `None` if they are too short.
    pub fn read(&self, bytes: &[u8]) -> Option<u64> {
        self.primitive
            .read(bytes.get(self.offset..)?, self.order)?
            .as_u64()
    }

    /// Reads a count that may be null. Returns `None` if it is.
    pub fn stated(&self, bytes: &[u8]) -> Option<u64> {
        self.read(bytes).filter(|count| *count != self.null)
    }

    /// Writes the number into the bytes of its composite. Returns whether it fits.
    pub fn write(&self, bytes: &mut [u8], value: u64) -> bool {
        bytes.get_mut(self.offset..).is_some_and(|place| {
            self.primitive
                .write(SbeNumber::Unsigned(value), self.order, place)
        })
    }

    /// Finds a member of a composite. Returns a reason if the member is missing or not an unsigned integer.
    fn find(composite: &SbeComposite, name: &str, order: SbeByteOrder) -> Result<Self, String> {
        Self::find_optional(composite, name, order)?
            .ok_or_else(|| format!("composite '{}' has no member '{name}'", composite.name))
    }

    fn find_optional(
        composite: &SbeComposite,
        name: &str,
        order: SbeByteOrder,
    ) -> Result<Option<Self>, String> {
        let Some(member) = composite.member(name) else {
            return Ok(None);
        };
        match &member.kind {
            SbeType::Simple(simple)
                if simple.primitive.is_unsigned()
                    && simple.count == 1
                    && simple.presence != Some(SbePresence::Constant) =>
            {
                let null = simple.null_value().as_u64().unwrap_or(u64::MAX);
                let default = simple.primitive.default_null().as_u64();
                let most = default.unwrap_or(u64::MAX) - 1;
                Ok(Some(Self {
                    offset: member.offset,
                    primitive: simple.primitive,
                    order,
                    null,
                    min: simple.min.and_then(SbeNumber::as_u64).unwrap_or(0),
                    max: simple.max.and_then(SbeNumber::as_u64).unwrap_or(most),
                }))
            }
            _ => Err(format!(
                "member '{name}' of composite '{}' is not an unsigned integer",
                composite.name
            )),
        }
    }
}

/// Layout of the header of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct SbeHeaderLayout {
    /// Length in bytes.
    pub length: usize,
    /// Length of the root block.
    pub block_length: SbeCounter,
    /// Id of the template.
    pub template_id: SbeCounter,
    /// Id of the schema.
    pub schema_id: SbeCounter,
    /// Version of the schema with which the message was written.
    pub version: SbeCounter,
    /// Number of groups in the message, if the schema has this member.
    pub num_groups: Option<SbeCounter>,
    /// Number of variable data in the message, if the schema has this member.
    pub num_var_data_fields: Option<SbeCounter>,
}

impl SbeHeaderLayout {
    pub(crate) fn find(composite: &SbeComposite, order: SbeByteOrder) -> Result<Self, String> {
        let find = |name: &str| SbeCounter::find(composite, name, order);
        let find_optional = |name: &str| SbeCounter::find_optional(composite, name, order);
        Ok(Self {
            length: composite.length,
            block_length: find("blockLength")?,
            template_id: find("templateId")?,
            schema_id: find("schemaId")?,
            version: find("version")?,
            num_groups: find_optional("numGroups")?,
            num_var_data_fields: find_optional("numVarDataFields")?,
        })
    }
}

/// Layout of the bytes before the entries of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct SbeDimension {
    /// Length in bytes.
    pub length: usize,
    /// Length of the block of each entry.
    pub block_length: SbeCounter,
    /// Number of entries.
    pub num_in_group: SbeCounter,
    /// Number of groups in each entry, if the schema has this member.
    pub num_groups: Option<SbeCounter>,
    /// Number of variable data in each entry, if the schema has this member.
    pub num_var_data_fields: Option<SbeCounter>,
}

impl SbeDimension {
    pub(crate) fn find(composite: &SbeComposite, order: SbeByteOrder) -> Result<Self, String> {
        let find_optional = |name: &str| SbeCounter::find_optional(composite, name, order);
        Ok(Self {
            length: composite.length,
            block_length: SbeCounter::find(composite, "blockLength", order)?,
            num_in_group: SbeCounter::find(composite, "numInGroup", order)?,
            num_groups: find_optional("numGroups")?,
            num_var_data_fields: find_optional("numVarDataFields")?,
        })
    }
}

/// Layout of variable data: a length, then bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct SbeDataLayout {
    /// Length of the bytes, in bytes.
    pub length: SbeCounter,
    /// Number of bytes before the data.
    pub prefix: usize,
    /// Character set of a text, or `None` for binary data.
    pub character_set: Option<SbeCharacterSet>,
}

impl SbeDataLayout {
    pub(crate) fn find(composite: &SbeComposite, order: SbeByteOrder) -> Result<Self, String> {
        let name = &composite.name;
        // The standard has both names.
        let member = composite.member("varData").or(composite.member("data"));
        let Some(member) = member else {
            return Err(format!("composite '{name}' has no member 'varData'"));
        };
        let simple = match &member.kind {
            // The standard says length 0. Schemas without a length mean the same.
            SbeType::Simple(simple) if simple.primitive.length() == 1 && simple.count <= 1 => {
                simple
            }
            _ => {
                return Err(format!(
                    "member 'varData' of composite '{name}' is not of length 0 and of bytes"
                ));
            }
        };
        let last = composite.members.last();
        if last.is_none_or(|last| last.name != member.name) {
            return Err(format!(
                "member 'varData' of composite '{name}' is not the last one"
            ));
        }
        Ok(Self {
            length: SbeCounter::find(composite, "length", order)?,
            prefix: member.offset,
            character_set: simple.character_set(order),
        })
    }
}
