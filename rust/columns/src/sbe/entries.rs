//! [`EntryCount`]: the number of rows of a message whose entries are rows.

use aeron_sbe::plan::SbeGroup;
use aeron_sbe::read::SbeVisitor;

/// Counts the entries of a group of the root block.
pub(super) struct EntryCount<'a> {
    pub(super) group: &'a SbeGroup,
    pub(super) count: usize,
    pub(super) depth: usize,
}

impl<'a> SbeVisitor<'a> for EntryCount<'a> {
    fn begin_group(&mut self, group: &'a SbeGroup, count: usize) {
        if self.depth == 0 && std::ptr::eq(group, self.group) {
            self.count = count;
        }
        self.depth += 1;
    }

    fn end_group(&mut self, _: &'a SbeGroup) {
        self.depth -= 1;
    }
}
