//! The items of lists: their ranges, and the entries of groups in the order of their parents.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray, UInt64Array};
use arrow_schema::DataType;

use super::repeat::lengths;

/// Entries of a group in the order of their parents.
pub(super) struct Entries {
    /// Number of entries up to the end of those of each parent.
    pub(super) ends: Vec<u32>,
    /// The entries.
    pub(super) structures: StructArray,
}

impl Entries {
    /// Returns the entries of the lists of all rows. Lists that are null have no entries.
    ///
    /// # Errors
    /// A reason: the column does not have lists of structures, or all lists have more than `limit` entries. Lists may
    /// overlap, so their items are no limit.
    pub(super) fn of(group: &str, lists: &ArrayRef, limit: usize) -> Result<Self, String> {
        let items = items_of(lists).and_then(|items| items.as_struct_opt());
        let items =
            items.ok_or_else(|| format!("group '{group}' is no column of lists of structures"))?;
        let mut ends = Vec::with_capacity(lists.len());
        let mut count = 0;
        let (mut first, mut is_dense) = (None, true);
        for row in 0..lists.len() {
            if lists.is_valid(row) {
                let range = list_range(lists.as_ref(), row);
                if !range.is_empty() {
                    let begin = *first.get_or_insert(range.start);
                    is_dense &= range.start == begin + count;
                    count += range.len();
                }
            }
            if count > limit {
                return Err(format!(
                    "group '{group}' has more than {limit} entries: all messages are longer than 2 GiB"
                ));
            }
            ends.push(count as u32);
        }
        let structures = match is_dense {
            true => items.slice(first.unwrap_or_default(), count),
            false => ordered(group, lists, items)?,
        };
        Ok(Self { ends, structures })
    }
}

/// Returns the entries of lists that overlap, that are not in the order of the rows, or that have others between them.
///
/// # Errors
/// A reason: the entries take more than 2 GiB, because lists overlap.
fn ordered(group: &str, lists: &ArrayRef, items: &StructArray) -> Result<StructArray, String> {
    let valid = (0..lists.len()).filter(|row| lists.is_valid(*row));
    let indexes = valid.flat_map(|row| list_range(lists.as_ref(), row));
    let lengths = lengths(items);
    let copied = indexes.clone().map(|index| lengths[index]);
    if copied.fold(0, usize::saturating_add) > i32::MAX as usize {
        return Err(format!(
            "the overlapping lists of group '{group}' take more than 2 GiB: pass fewer rows at once"
        ));
    }
    let indexes = UInt64Array::from_iter_values(indexes.map(|index| index as u64));
    let taken = arrow_select::take::take(items, &indexes, None);
    Ok(taken
        .map_err(|error| error.to_string())?
        .as_struct()
        .clone())
}

/// Returns the items of all lists; `None` if the column has no lists.
pub(super) fn items_of(lists: &ArrayRef) -> Option<&ArrayRef> {
    Some(match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().values(),
        DataType::LargeList(_) => lists.as_list::<i64>().values(),
        DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
        DataType::ListView(_) => lists.as_list_view::<i32>().values(),
        DataType::LargeListView(_) => lists.as_list_view::<i64>().values(),
        _ => return None,
    })
}

/// Returns the indexes of the items of a list. The row is not null.
pub(super) fn list_range(lists: &dyn Array, row: usize) -> Range<usize> {
    match lists.data_type() {
        DataType::LargeList(_) => {
            let offsets = lists.as_list::<i64>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        DataType::FixedSizeList(..) => {
            let lists = lists.as_fixed_size_list();
            let begin = lists.value_offset_at(row);
            begin..begin + lists.value_length() as usize
        }
        DataType::ListView(_) => {
            let lists = lists.as_list_view::<i32>();
            let begin = lists.value_offset(row) as usize;
            begin..begin + lists.value_size(row) as usize
        }
        DataType::LargeListView(_) => {
            let lists = lists.as_list_view::<i64>();
            let begin = lists.value_offset(row) as usize;
            begin..begin + lists.value_size(row) as usize
        }
        _ => {
            let offsets = lists.as_list::<i32>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
    }
}
