//! Places: offsets by which the elements of a message are read later, without a borrow of its bytes.
//!
//! The bytes may change between two reads. So each read checks all offsets again, and any bytes give a value or an
//! error.

use crate::plan::{SbeBlockPlan, SbeGroup, SbeTemplate};
use crate::read::walk::{Counts, Entries, Walk};
use crate::read::{SbeBlock, SbeMalformed};

/// Offset of a group or data that is newer than its message.
const ABSENT: usize = usize::MAX;

/// Place of a block in a message, with the groups and data after the block.
///
/// All functions take the bytes of the message from its header on, and the plan of the block.
#[derive(Debug, Clone)]
pub struct SbePlace {
    offset: usize,
    length: usize,
    version: u64,
    /// Offsets of the dimension of each group and of the length of each data; empty if the plan has neither.
    after: Box<[usize]>,
}

impl SbePlace {
    /// Checks a message with all its groups and data. Returns the place of the root block.
    ///
    /// The template id and the schema id of the header are not compared.
    ///
    /// # Errors
    /// The first element that is malformed. Texts and other values of fields are not checked.
    pub fn of_message(template: &SbeTemplate, message: &[u8]) -> Result<Self, SbeMalformed> {
        let opened = template.open(message)?;
        let header = opened.header;
        let counts = Counts {
            groups: header.num_groups,
            data: header.num_var_data_fields,
        };
        let mut walk = Walk::new(opened.rest, header.version);
        Ok(Self {
            offset: template.header.length,
            length: opened.block().bytes.len(),
            version: header.version,
            after: after(&mut walk, &template.block, &template.name, counts, message)?,
        })
    }

    /// Returns the version of the message.
    pub fn version(&self) -> u32 {
        self.version.try_into().unwrap_or(u32::MAX)
    }

    /// Returns the block.
    ///
    /// # Errors
    /// [`SbeMalformed::Changed`] if the message is now too short.
    #[inline]
    pub fn block<'a>(&self, message: &'a [u8]) -> Result<SbeBlock<'a>, SbeMalformed> {
        let from_start = message.get(self.offset..);
        match from_start.and_then(|bytes| bytes.get(..self.length)) {
            Some(bytes) => Ok(SbeBlock {
                bytes,
                version: self.version(),
            }),
            None => Err(changed(message, self.offset.saturating_add(self.length))),
        }
    }

    /// Returns the entries of a group of the plan. A group that is absent from the message or the plan has no entries.
    ///
    /// The time is that of a walk over the group.
    ///
    /// # Errors
    /// The first element of the group that is malformed now.
    pub fn entries(
        &self,
        plan: &SbeBlockPlan,
        index: usize,
        message: &[u8],
    ) -> Result<SbeEntries, SbeMalformed> {
        let (Some(group), Some(mut walk)) = (plan.groups.get(index), self.walk(index, message)?)
        else {
            return Ok(SbeEntries::none(self.version));
        };
        let entries = walk.begin_group(group)?;
        let first = message.len() - walk.left();
        let mut offsets = Vec::new();
        if !entries.are_equal {
            offsets.reserve_exact(entries.count);
            for _ in 0..entries.count {
                offsets.push(message.len() - walk.left());
                walk.entry(group, &entries, &mut ())?;
            }
        }
        Ok(SbeEntries {
            entries,
            version: self.version,
            first,
            offsets: offsets.into_boxed_slice(),
        })
    }

    /// Returns the bytes of variable data of the plan, or `None` if the data are absent from the message or the plan.
    ///
    /// # Errors
    /// The data are malformed now.
    pub fn data<'a>(
        &self,
        plan: &SbeBlockPlan,
        index: usize,
        message: &'a [u8],
    ) -> Result<Option<&'a [u8]>, SbeMalformed> {
        let walk = self.walk(plan.groups.len().saturating_add(index), message)?;
        match (plan.data.get(index), walk) {
            (Some(data), Some(mut walk)) => walk.data(&data.name, &data.layout).map(Some),
            _ => Ok(None),
        }
    }

    fn walk<'a>(
        &self,
        element: usize,
        message: &'a [u8],
    ) -> Result<Option<Walk<'a>>, SbeMalformed> {
        match self.after.get(element).copied().unwrap_or(ABSENT) {
            ABSENT => Ok(None),
            offset => match message.get(offset..) {
                Some(rest) => Ok(Some(Walk::new(rest, self.version))),
                None => Err(changed(message, offset)),
            },
        }
    }
}

/// Places of the entries of a group.
#[derive(Debug, Clone)]
pub struct SbeEntries {
    entries: Entries,
    version: u64,
    /// Offset of the first entry.
    first: usize,
    /// Offset of each entry; empty if all entries have the same length.
    offsets: Box<[usize]>,
}

impl SbeEntries {
    fn none(version: u64) -> Self {
        Self {
            entries: Entries::default(),
            version,
            first: 0,
            offsets: Box::default(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.count
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the place of an entry, or `None` if the index is not below [`Self::len`].
    ///
    /// The time is that of a walk over the entry.
    ///
    /// # Errors
    /// The first element of the entry that is malformed now.
    pub fn get(
        &self,
        group: &SbeGroup,
        index: usize,
        message: &[u8],
    ) -> Result<Option<SbePlace>, SbeMalformed> {
        let Entries {
            count,
            block_length,
            counts,
            ..
        } = self.entries;
        if index >= count {
            return Ok(None);
        }
        let offset = match self.offsets.get(index) {
            Some(offset) => *offset,
            None => self.first + index * block_length,
        };
        let end = offset.saturating_add(block_length);
        let rest = message.get(end..).ok_or_else(|| changed(message, end))?;
        let mut walk = Walk::new(rest, self.version);
        Ok(Some(SbePlace {
            offset,
            length: block_length,
            version: self.version,
            after: after(&mut walk, &group.block, &group.name, counts, message)?,
        }))
    }
}

/// Walks over the groups and data after a block, and returns their offsets.
fn after<'a>(
    walk: &mut Walk<'a>,
    plan: &'a SbeBlockPlan,
    element: &str,
    counts: Counts,
    message: &[u8],
) -> Result<Box<[usize]>, SbeMalformed> {
    let mut offsets = Vec::with_capacity(plan.groups.len() + plan.data.len());
    walk.places(plan, element, counts, &mut (), &mut |left| {
        offsets.push(left.map_or(ABSENT, |left| message.len() - left));
    })?;
    Ok(offsets.into_boxed_slice())
}

fn changed(message: &[u8], end: usize) -> SbeMalformed {
    SbeMalformed::Changed {
        length: message.len(),
        end,
    }
}
