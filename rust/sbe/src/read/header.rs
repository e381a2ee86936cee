//! The header of a message.

use crate::read::SbeMalformed;
use crate::schema::SbeHeaderLayout;

/// Values of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SbeHeader {
    /// Length of the root block in bytes.
    pub block_length: u64,
    /// Id of the template.
    pub template_id: u64,
    /// Id of the schema.
    pub schema_id: u64,
    /// Version of the schema with which the message was written.
    pub version: u64,
    /// Number of groups in the message, if the header states it.
    pub num_groups: Option<u64>,
    /// Number of variable data in the message, if the header states it.
    pub num_var_data_fields: Option<u64>,
}

impl SbeHeader {
    /// Reads the header at the start of a message.
    ///
    /// # Errors
    /// [`SbeMalformed::Header`] if the message is shorter than its header.
    pub fn read(layout: &SbeHeaderLayout, message: &[u8]) -> Result<Self, SbeMalformed> {
        Self::read_checked(layout, message).ok_or(SbeMalformed::Header {
            length: message.len(),
            header: layout.length,
        })
    }

    fn read_checked(layout: &SbeHeaderLayout, message: &[u8]) -> Option<Self> {
        let bytes = message.get(..layout.length)?;
        let stated = |counter: &Option<crate::schema::SbeCounter>| {
            counter.as_ref().and_then(|counter| counter.stated(bytes))
        };
        Some(Self {
            block_length: layout.block_length.read(bytes)?,
            template_id: layout.template_id.read(bytes)?,
            schema_id: layout.schema_id.read(bytes)?,
            version: layout.version.read(bytes)?,
            num_groups: stated(&layout.num_groups),
            num_var_data_fields: stated(&layout.num_var_data_fields),
        })
    }

    /// Returns the version as a number of 32 bits. A version beyond them is newer than all schemas.
    pub fn version32(&self) -> u32 {
        self.version.try_into().unwrap_or(u32::MAX)
    }
}
