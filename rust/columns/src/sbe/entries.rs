//! [`EntryCount`]: the number of rows of a message whose entries are rows.

use aeron_sbe::plan::SbeGroup;
use aeron_sbe::read::SbeVisitor;

/// Counts the entries of a group, in all entries of the groups around it.
pub(super) struct EntryCount<'a> {
    /// The groups from the root block to the counted one.
    path: Vec<&'a SbeGroup>,
    pub(super) count: usize,
    /// Number of groups that have begun and not ended.
    depth: usize,
    /// Number of these groups, from the root, that are on the path.
    on_path: usize,
}

impl<'a> EntryCount<'a> {
    pub(super) fn new(path: Vec<&'a SbeGroup>) -> Self {
        Self {
            path,
            count: 0,
            depth: 0,
            on_path: 0,
        }
    }
}

impl<'a> SbeVisitor<'a> for EntryCount<'a> {
    fn begin_group(&mut self, group: &'a SbeGroup, count: usize) {
        let next = self.path.get(self.depth);
        if self.on_path == self.depth && next.is_some_and(|next| std::ptr::eq(*next, group)) {
            self.on_path += 1;
            if self.on_path == self.path.len() {
                self.count += count;
            }
        }
        self.depth += 1;
    }

    fn end_group(&mut self, _: &'a SbeGroup) {
        self.depth -= 1;
        self.on_path = self.on_path.min(self.depth);
    }
}
