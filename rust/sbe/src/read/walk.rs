//! Walks over the groups and data of a message.
//!
//! Each step consumes bytes of the message, or entries of the limited number that take no bytes. So the time is
//! bounded for any bytes.

use crate::limits::{MAX_EMPTY_ENTRIES, MAX_SKIP_DEPTH};
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
struct Dimension {
    block_length: u64,
    count: u64,
    counts: Counts,
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
        if plan.is_flat() && counts.groups.is_none() && counts.data.is_none() {
            return Ok(());
        }
        let present = self.present(plan, element, counts)?;
        for group in &plan.groups {
            if group.since_version <= self.version32 {
                self.group(group, visitor)?;
            } else {
                visitor.begin_group(group, 0);
                visitor.end_group(group);
            }
        }
        self.skip_groups(plan, element, present.unknown_groups, 0)?;
        for data in &plan.data {
            let bytes = match data.since_version <= self.version32 {
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
        let name = &group.name;
        let dimension = self.dimension(name, &group.dimension)?;
        let present = self.present(&group.block, name, dimension.counts)?;
        let count = self.check_entries(name, &dimension, present.least)?;
        if count > 0 {
            check_least(&group.block, name, dimension.block_length, self.version)?;
        }
        visitor.begin_group(group, count);
        let unknown = present.unknown_groups > 0 || present.unknown_data > 0;
        if group.block.is_flat() && !unknown {
            let entries = self.run(dimension.block_length as usize, count);
            if !entries.is_empty() {
                visitor.entries(group, entries);
            }
        } else {
            for _ in 0..count {
                // The check of all entries did not know the lengths of the data and groups of the entries before.
                self.check_entry(name, &dimension, present.least)?;
                visitor.entries(group, self.run(dimension.block_length as usize, 1));
                self.elements(&group.block, name, dimension.counts, visitor)?;
            }
        }
        visitor.end_group(group);
        Ok(())
    }

    /// Takes entries, whose bytes are checked to be left.
    fn run(&mut self, block_length: usize, count: usize) -> SbeBlocks<'a> {
        let (bytes, rest) = self.rest.split_at(block_length * count);
        self.rest = rest;
        SbeBlocks::new(bytes, block_length, block_length, count, self.version32)
            .unwrap_or(SbeBlocks::none(self.version32))
    }

    fn dimension(&mut self, group: &str, layout: &SbeDimension) -> Result<Dimension, SbeMalformed> {
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
    fn check_entries(
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

    fn check_entry(
        &self,
        group: &str,
        dimension: &Dimension,
        least_after_block: u64,
    ) -> Result<(), SbeMalformed> {
        let entry = dimension.block_length.saturating_add(least_after_block);
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

    fn data(&mut self, name: &str, layout: &SbeDataLayout) -> Result<&'a [u8], SbeMalformed> {
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

    /// Skips groups after the known groups of a block.
    fn skip_groups(
        &mut self,
        plan: &SbeBlockPlan,
        element: &str,
        count: u64,
        depth: usize,
    ) -> Result<(), SbeMalformed> {
        if count == 0 {
            return Ok(());
        }
        let layout = plan.unknown_group.as_ref();
        let layout = layout.ok_or_else(|| unknown(element, "group"))?;
        if depth == MAX_SKIP_DEPTH {
            return Err(SbeMalformed::Depth {
                element: element.to_owned(),
                limit: MAX_SKIP_DEPTH,
            });
        }
        // Each group takes the bytes of its dimension, so a large count ends with the message.
        for _ in 0..count {
            self.skip_group(plan, element, layout, depth)?;
        }
        Ok(())
    }

    fn skip_group(
        &mut self,
        plan: &SbeBlockPlan,
        element: &str,
        layout: &SbeDimension,
        depth: usize,
    ) -> Result<(), SbeMalformed> {
        let dimension = self.dimension(element, layout)?;
        let groups = dimension.counts.groups.unwrap_or(0);
        let data = dimension.counts.data.unwrap_or(0);
        let prefix = plan.unknown_data.as_ref().map_or(0, |it| it.prefix as u64);
        let least = groups.saturating_mul(layout.length as u64);
        let least = least.saturating_add(data.saturating_mul(prefix));
        let count = self.check_entries(element, &dimension, least)?;
        let block_length = dimension.block_length as usize;
        if groups == 0 && data == 0 {
            self.run(block_length, count);
            return Ok(());
        }
        for _ in 0..count {
            self.check_entry(element, &dimension, least)?;
            self.run(block_length, 1);
            self.skip_groups(plan, element, groups, depth + 1)?;
            self.skip_data(plan, element, data)?;
        }
        Ok(())
    }

    fn skip_data(
        &mut self,
        plan: &SbeBlockPlan,
        element: &str,
        count: u64,
    ) -> Result<(), SbeMalformed> {
        if count == 0 {
            return Ok(());
        }
        let layout = plan.unknown_data.as_ref();
        let layout = layout.ok_or_else(|| unknown(element, "data"))?;
        for _ in 0..count {
            self.data(element, layout)?;
        }
        Ok(())
    }
}

fn unknown(element: &str, what: &'static str) -> SbeMalformed {
    SbeMalformed::Unknown {
        element: element.to_owned(),
        what,
    }
}

/// Returns the number of lengths and their sum.
fn sum(lengths: impl Iterator<Item = usize>) -> (usize, u64) {
    lengths.fold((0, 0), |(count, sum), length| {
        (count + 1, sum + length as u64)
    })
}
