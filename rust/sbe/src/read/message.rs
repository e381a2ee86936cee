//! A message with a sound header and root block.

use crate::plan::{SbeBlockPlan, SbeData, SbeGroup, SbeTemplate};
use crate::read::walk::{Counts, Walk};
use crate::read::{SbeBlock, SbeBlocks, SbeHeader, SbeMalformed};

/// A message with a sound header and root block. The groups and data after the block are not checked yet.
#[derive(Debug, Clone, Copy)]
pub struct SbeMessage<'a> {
    /// The template with which the message is read.
    pub template: &'a SbeTemplate,
    /// The header.
    pub header: SbeHeader,
    block: SbeBlock<'a>,
    pub(super) rest: &'a [u8],
}

/// Receives groups and data of a message, in their order.
///
/// Each group and each data of the plan is reported exactly once for each parent, also if it is absent.
pub trait SbeVisitor<'a> {
    /// A group with its number of entries begins. The number is 0 if the group is absent.
    fn begin_group(&mut self, _group: &'a SbeGroup, _count: usize) {}

    /// Entries of the group that began last and has not ended.
    ///
    /// A group without groups and data has all of its entries in one call, or in several calls. Another group has one
    /// entry in each call, and the entry's groups and data follow.
    fn entries(&mut self, _group: &'a SbeGroup, _entries: SbeBlocks<'a>) {}

    /// A group ends.
    fn end_group(&mut self, _group: &'a SbeGroup) {}

    /// The bytes of variable data, or `None` if the data are absent.
    fn data(&mut self, _data: &'a SbeData, _bytes: Option<&'a [u8]>) {}
}

/// Ignores all elements: only the checks are made.
impl SbeVisitor<'_> for () {}

impl SbeTemplate {
    /// Reads header and root block of a message of this template.
    ///
    /// The template id and the schema id of the header are not compared: [`crate::plan::SbePlan::index_of`] finds the
    /// template of a header.
    ///
    /// # Errors
    /// The message is too short for the header or the block, or the block is too short for its version.
    pub fn open<'a>(&'a self, message: &'a [u8]) -> Result<SbeMessage<'a>, SbeMalformed> {
        let header = SbeHeader::read(&self.header, message)?;
        let body = &message[self.header.length..];
        let length = usize::try_from(header.block_length).unwrap_or(usize::MAX);
        let Some((block, rest)) = body.split_at_checked(length) else {
            return Err(SbeMalformed::Block {
                block: header.block_length,
                left: body.len(),
            });
        };
        check_least(&self.block, &self.name, header.block_length, header.version)?;
        Ok(SbeMessage {
            template: self,
            header,
            block: SbeBlock {
                bytes: block,
                version: header.version32(),
            },
            rest,
        })
    }
}

impl<'a> SbeMessage<'a> {
    /// Returns the root block.
    pub fn block(&self) -> SbeBlock<'a> {
        self.block
    }

    /// Checks all groups and data. Allocates nothing.
    ///
    /// Returns the number of bytes after the last known element.
    ///
    /// # Errors
    /// The first element that is malformed.
    pub fn check(&self) -> Result<usize, SbeMalformed> {
        self.visit(&mut ())
    }

    /// Passes all groups and data to a visitor, and checks each before it is passed.
    ///
    /// Returns the number of bytes after the last known element. The time is bounded by the length of the message and
    /// [`crate::limits::MAX_EMPTY_ENTRIES`].
    ///
    /// # Errors
    /// The first element that is malformed. The elements before it were passed to the visitor: call [`Self::check`]
    /// first if the visitor must not see a part of a malformed message.
    pub fn visit(&self, visitor: &mut impl SbeVisitor<'a>) -> Result<usize, SbeMalformed> {
        let counts = Counts {
            groups: self.header.num_groups,
            data: self.header.num_var_data_fields,
        };
        let mut walk = Walk::new(self.rest, self.header.version);
        let template = self.template;
        walk.elements(&template.block, &template.name, counts, visitor)?;
        Ok(walk.left())
    }
}

/// Checks that a block has all fields of its version.
pub(super) fn check_least(
    plan: &SbeBlockPlan,
    element: &str,
    block: u64,
    version: u64,
) -> Result<(), SbeMalformed> {
    let least = plan.least_length(version.try_into().unwrap_or(u32::MAX));
    if block >= least as u64 {
        return Ok(());
    }
    Err(SbeMalformed::ShortBlock {
        element: element.to_owned(),
        block,
        least,
        version,
    })
}
