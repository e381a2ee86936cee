//! Walks over the groups and data of a message.
//!
//! Each step consumes bytes of the message, or entries of the limited number that take no bytes. So the time is
//! bounded for any bytes.

use crate::limits::MAX_EMPTY_ENTRIES;
use crate::plan::{SbeBlockPlan, SbeGroup};
use crate::read::message::check_least;
use crate::read::{SbeBlocks, SbeMalformed, SbeVisitor};
use crate::schema::{SbeDataLayout, SbeDimension};

/// Numbers of groups and data that a header or a dimension states.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub groups: Option<u64>,
    pub data: Option<u64>,
}

/// Values of a dimension.
pub(super) struct Dimension {
    pub block_length: u64,
    pub count: u64,
    pub counts: Counts,
}

/// Entries of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entries {
    pub count: usize,
    pub block_length: usize,
    pub counts: Counts,
    /// Whether no entry has groups and data, so that all have the same length.
    pub are_equal: bool,
    /// Least length of an entry with its groups and data.
    least: u64,
}

/// Elements of a block that a message has, with those that the schema does not know.
struct Present {
    unknown_groups: u64,
    unknown_data: u64,
    /// Least length of all groups and data.
    least: u64,
}

/// Position in a message.
pub(super) struct Walk<'a> {
    rest: &'a [u8],
    version: u64,
    version32: u32,
    empty_entries: u64,
}

impl<'a> Walk<'a> {
    pub fn new(rest: &'a [u8], version: u64) -> Self {
        Self {
            rest,
            version,
            version32: version.try_into().unwrap_or(u32::MAX),
            empty_entries: 0,
        }
    }

    /// Returns the number of bytes that are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Walks over the groups and data after a block.
    pub fn elements(
        &mut self,
        plan: &'a SbeBlockPlan,
        element: &str,
        counts: Counts,
        visitor: &mut impl SbeVisitor<'a>,
    ) -> Result<(), SbeMalformed> {
        self.places(plan, element, counts, visitor, &mut |_| {})
    }

    /// As [`elements`](Self::elements). Passes the number of bytes that are left before each group and data of the
    /// block to `found`, or `None` if the group or data is absent.
    pub fn places(
        &mut self,
        plan: &'a SbeBlockPlan,
        element: &str,
        counts: Counts,
        visitor: &mut impl SbeVisitor<'a>,
        found: &mut impl FnMut(Option<usize>),
    ) -> Result<(), SbeMalformed> {
        if plan.is_flat() && counts.groups.is_none() && counts.data.is_none() {
            return Ok(());
        }
        let present = self.present(plan, element, counts)?;
        for group in &plan.groups {
            if group.since_version <= self.version32 {
                found(Some(self.left()));
                self.group(group, visitor)?;
            } else {
                found(None);
                visitor.begin_group(group, 0);
                visitor.end_group(group);
            }
        }
        self.skip_groups(plan, element, present.unknown_groups, 0)?;
        for data in &plan.data {
            let is_present = data.since_version <= self.version32;
            found(is_present.then_some(self.left()));
            let bytes = match is_present {
                true => Some(self.data(&data.name, &data.layout)?),
                false => None,
            };
            visitor.data(data, bytes);
        }
        self.skip_data(plan, element, present.unknown_data)
    }

    fn present(
        &self,
        plan: &SbeBlockPlan,
        element: &str,
        counts: Counts,
    ) -> Result<Present, SbeMalformed> {
        let groups = plan.groups.iter();
        let groups = groups.filter(|group| group.since_version <= self.version32);
        let (known_groups, groups_length) = sum(groups.map(|group| group.dimension.length));
        let data = plan.data.iter();
        let data = data.filter(|data| data.since_version <= self.version32);
        let (known_data, data_length) = sum(data.map(|data| data.layout.prefix));
        let unknown_groups = self.unknown(element, "numGroups", counts.groups, known_groups)?;
        let unknown_data = self.unknown(element, "numVarDataFields", counts.data, known_data)?;
        let dimension = plan.unknown_group.as_ref().map_or(0, |it| it.length as u64);
        let prefix = plan.unknown_data.as_ref().map_or(0, |it| it.prefix as u64);
        let least = (groups_length + data_length)
            .saturating_add(unknown_groups.saturating_mul(dimension))
            .saturating_add(unknown_data.saturating_mul(prefix));
        Ok(Present {
            unknown_groups,
            unknown_data,
            least,
        })
    }

    fn unknown(
        &self,
        element: &str,
        what: &'static str,
        stated: Option<u64>,
        known: usize,
    ) -> Result<u64, SbeMalformed> {
        let count = stated.unwrap_or(known as u64);
        count
            .checked_sub(known as u64)
            .ok_or_else(|| SbeMalformed::Counts {
                element: element.to_owned(),
                what,
                count,
                known,
                version: self.version,
            })
    }

    fn group(
        &mut self,
        group: &'a SbeGroup,
        visitor: &mut impl SbeVisitor<'a>,
    ) -> Result<(), SbeMalformed> {
        let entries = self.begin_group(group)?;
        visitor.begin_group(group, entries.count);
        if entries.are_equal {
            let blocks = self.run(entries.block_length, entries.count);
            if !blocks.is_empty() {
                visitor.entries(group, blocks);
            }
        } else {
            for _ in 0..entries.count {
                self.entry(group, &entries, visitor)?;
            }
        }
        visitor.end_group(group);
        Ok(())
    }

    /// Walks to the first entry of a group.
    pub fn begin_group(&mut self, group: &SbeGroup) -> Result<Entries, SbeMalformed> {
        let name = &group.name;
        let dimension = self.dimension(name, &group.dimension)?;
        let present = self.present(&group.block, name, dimension.counts)?;
        let count = self.check_entries(name, &dimension, present.least)?;
        if count > 0 {
            check_least(&group.block, name, dimension.block_length, self.version)?;
        }
        let unknown = present.unknown_groups > 0 || present.unknown_data > 0;
        Ok(Entries {
            count,
            block_length: dimension.block_length as usize,
            counts: dimension.counts,
            are_equal: group.block.is_flat() && !unknown,
            least: dimension.block_length.saturating_add(present.least),
        })
    }

    /// Walks over an entry with its groups and data.
    pub fn entry(
        &mut self,
        group: &'a SbeGroup,
        entries: &Entries,
        visitor: &mut impl SbeVisitor<'a>,
    ) -> Result<(), SbeMalformed> {
        // The check of all entries did not know the lengths of the data and groups of the entries before.
        self.check_entry(&group.name, entries.least)?;
        visitor.entries(group, self.run(entries.block_length, 1));
        self.elements(&group.block, &group.name, entries.counts, visitor)
    }

    /// Takes entries, whose bytes are checked to be left.
    pub(super) fn run(&mut self, block_length: usize, count: usize) -> SbeBlocks<'a> {
        let (bytes, rest) = self.rest.split_at(block_length * count);
        self.rest = rest;
        SbeBlocks::new(bytes, block_length, block_length, count, self.version32)
            .unwrap_or(SbeBlocks::none(self.version32))
    }

    pub(super) fn dimension(
        &mut self,
        group: &str,
        layout: &SbeDimension,
    ) -> Result<Dimension, SbeMalformed> {
        let left = self.left();
        let read = || {
            let (bytes, rest) = self.rest.split_at_checked(layout.length)?;
            let counter = |counter: &Option<crate::schema::SbeCounter>| {
                counter.as_ref().and_then(|counter| counter.stated(bytes))
            };
            let dimension = Dimension {
                block_length: layout.block_length.read(bytes)?,
                count: layout.num_in_group.read(bytes)?,
                counts: Counts {
                    groups: counter(&layout.num_groups),
                    data: counter(&layout.num_var_data_fields),
                },
            };
            Some((dimension, rest))
        };
        let (dimension, rest) = read().ok_or_else(|| SbeMalformed::Dimension {
            group: group.to_owned(),
            left,
            dimension: layout.length,
        })?;
        self.rest = rest;
        Ok(dimension)
    }

    /// Checks the number of entries against the bytes that are left. Returns the number.
    pub(super) fn check_entries(
        &mut self,
        group: &str,
        dimension: &Dimension,
        least_after_block: u64,
    ) -> Result<usize, SbeMalformed> {
        let entry = dimension.block_length.saturating_add(least_after_block);
        let (count, left) = (dimension.count, self.left());
        if entry == 0 {
            self.empty_entries = self.empty_entries.saturating_add(count);
            if self.empty_entries > MAX_EMPTY_ENTRIES as u64 {
                return Err(SbeMalformed::EmptyEntries {
                    group: group.to_owned(),
                    count: self.empty_entries,
                    limit: MAX_EMPTY_ENTRIES,
                });
            }
        } else if count.checked_mul(entry).is_none_or(|all| all > left as u64) {
            return Err(SbeMalformed::Entries {
                group: group.to_owned(),
                count,
                entry,
                left,
            });
        }
        Ok(count as usize)
    }

    pub(super) fn check_entry(&self, group: &str, entry: u64) -> Result<(), SbeMalformed> {
        if entry <= self.left() as u64 {
            return Ok(());
        }
        Err(SbeMalformed::Entries {
            group: group.to_owned(),
            count: 1,
            entry,
            left: self.left(),
        })
    }

    pub fn data(&mut self, name: &str, layout: &SbeDataLayout) -> Result<&'a [u8], SbeMalformed> {
        let left = self.left();
        let prefix = self.rest.split_at_checked(layout.prefix);
        let read = prefix.and_then(|(bytes, rest)| Some((layout.length.read(bytes)?, rest)));
        let Some((length, rest)) = read else {
            return Err(SbeMalformed::DataLength {
                data: name.to_owned(),
                left,
                prefix: layout.prefix,
            });
        };
        if length == layout.length.null {
            return Err(SbeMalformed::NullLength {
                data: name.to_owned(),
                length,
            });
        }
        let taken = usize::try_from(length).ok();
        let Some((bytes, rest)) = taken.and_then(|length| rest.split_at_checked(length)) else {
            return Err(SbeMalformed::Data {
                data: name.to_owned(),
                length,
                left: rest.len(),
            });
        };
        self.rest = rest;
        Ok(bytes)
    }
}

/// Returns the number of lengths and their sum.
fn sum(lengths: impl Iterator<Item = usize>) -> (usize, u64) {
    lengths.fold((0, 0), |(count, sum), length| {
        (count + 1, sum + length as u64)
    })
}
