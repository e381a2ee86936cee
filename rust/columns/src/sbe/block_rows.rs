//! [`BlockRows`]: the columns of rows that become blocks, with the entries of their groups.

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup};
use arrow_array::{Array, StructArray};

use super::lists::Entries;
use super::values::check_names;

/// Columns of rows. Each row becomes a block, with groups and data after it.
pub(super) struct BlockRows<'a> {
    pub(super) plan: &'a SbeBlockPlan,
    pub(super) columns: StructArray,
    /// The entries of each group of the plan.
    pub(super) groups: Vec<GroupRows<'a>>,
}

/// Entries of a group.
pub(super) struct GroupRows<'a> {
    pub(super) group: &'a SbeGroup,
    /// Number of entries up to the end of those of each parent.
    pub(super) ends: Vec<u32>,
    pub(super) entries: BlockRows<'a>,
}

impl<'a> BlockRows<'a> {
    /// Checks the names of the columns, and finds the entries of groups. A group without a column has no entries.
    ///
    /// # Errors
    /// A reason: a column is not in the plan, or has an unsuitable type.
    pub(super) fn new(plan: &'a SbeBlockPlan, columns: StructArray) -> Result<Self, String> {
        check_names(&columns, |name| {
            let is_data = plan.data.iter().any(|data| data.name == name);
            plan.field(name).is_some() || plan.group(name).is_some() || is_data
        })?;
        let groups = plan.groups.iter();
        let groups = groups.map(|group| GroupRows::new(group, &columns));
        Ok(Self {
            plan,
            groups: groups.collect::<Result<_, _>>()?,
            columns,
        })
    }
}

impl<'a> GroupRows<'a> {
    fn new(group: &'a SbeGroup, columns: &StructArray) -> Result<Self, String> {
        let entries = match columns.column_by_name(&group.name) {
            Some(lists) => Entries::of(&group.name, lists, most_entries(&group.block))?,
            None => Entries {
                ends: vec![0; columns.len()],
                structures: StructArray::new_empty_fields(0, None),
            },
        };
        let rows = BlockRows::new(&group.block, entries.structures);
        Ok(Self {
            group,
            ends: entries.ends,
            entries: rows.map_err(|reason| format!("group '{}': {reason}", group.name))?,
        })
    }
}

/// Returns the most entries of this block that all messages of a record batch can have.
fn most_entries(block: &SbeBlockPlan) -> usize {
    let groups = block.groups.iter().map(|group| group.dimension.length);
    let data = block.data.iter().map(|data| data.layout.prefix);
    let length = block.block_length + groups.sum::<usize>() + data.sum::<usize>();
    i32::MAX as usize / length.max(1)
}
