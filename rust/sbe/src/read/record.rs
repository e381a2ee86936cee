//! Decodes a whole message to a tree of values.

use std::borrow::Cow;

use crate::limits::MAX_DECODED_VALUES;
use crate::plan::{SbeBlockPlan, SbeData, SbeField, SbeGroup};
use crate::read::{SbeBlock, SbeBlocks, SbeMalformed, SbeMessage, SbeVisitor};
use crate::value::{SbeRecord, SbeValue};

impl<'a> SbeMessage<'a> {
    /// Decodes all fields, groups and data.
    ///
    /// # Errors
    /// The first element that is malformed, or [`SbeMalformed::Values`] if the result would be too large.
    pub fn decode(&self) -> Result<SbeRecord<'a>, SbeMalformed> {
        self.check()?;
        let mut tree = Tree {
            open: Vec::new(),
            parents: Vec::new(),
            values: 0,
            failed: None,
        };
        tree.open(&self.template.block, self.block());
        self.visit(&mut tree)?;
        debug_assert!(
            tree.failed.is_some() || tree.open.len() == 1,
            "only the root level is open after the message"
        );
        match tree.failed {
            None => Ok(tree
                .open
                .pop()
                .map(|level| level.record)
                .unwrap_or_default()),
            Some(reason) => Err(reason),
        }
    }
}

/// A block whose groups and data are not all read yet.
struct Level<'a> {
    plan: &'a SbeBlockPlan,
    block: SbeBlock<'a>,
    record: SbeRecord<'a>,
    /// Entries of the group that is being read.
    entries: Vec<SbeRecord<'a>>,
}

struct Tree<'a> {
    /// Levels from the root to the entry that is being read.
    open: Vec<Level<'a>>,
    /// Number of open levels up to the parent of each open group.
    parents: Vec<usize>,
    values: usize,
    failed: Option<SbeMalformed>,
}

impl<'a> Tree<'a> {
    fn open(&mut self, plan: &'a SbeBlockPlan, block: SbeBlock<'a>) {
        self.values += 1 + plan.fields.len() + plan.groups.len() + plan.data.len();
        if self.values > MAX_DECODED_VALUES && self.failed.is_none() {
            self.failed = Some(SbeMalformed::Values {
                limit: MAX_DECODED_VALUES,
            });
        }
        let mut level = Level {
            plan,
            block,
            record: SbeRecord::default(),
            entries: Vec::new(),
        };
        if self.failed.is_none() {
            let fields = plan.fields.iter();
            let values = fields.map(|field| self.value(field, &level));
            match values.collect() {
                Ok(values) => level.record.fields = values,
                Err(reason) => self.failed = Some(reason),
            }
        }
        self.open.push(level);
    }

    /// Returns the value of a field in a block that is not open yet.
    fn value(&self, field: &'a SbeField, level: &Level<'a>) -> Result<SbeValue<'a>, SbeMalformed> {
        field.value_with(level.block, |levels_up, index| {
            let holder = match levels_up.checked_sub(1) {
                None => Some(level),
                Some(up) => self.open.iter().rev().nth(up),
            };
            holder.and_then(|holder| holder.plan.number(index, holder.block))
        })
    }

    /// Closes the entry at a depth, if one is open, and adds it to its group.
    fn close_entry(&mut self, depth: usize) {
        if self.open.len() > depth
            && let Some(level) = self.open.pop()
            && let Some(parent) = self.open.last_mut()
        {
            parent.entries.push(level.record);
        }
    }
}

impl<'a> SbeVisitor<'a> for Tree<'a> {
    fn begin_group(&mut self, _group: &'a SbeGroup, _count: usize) {
        self.parents.push(self.open.len());
    }

    fn entries(&mut self, group: &'a SbeGroup, entries: SbeBlocks<'a>) {
        let parent = self.parents.last().copied().unwrap_or(1);
        for block in entries.iter() {
            if self.failed.is_some() {
                return;
            }
            self.close_entry(parent);
            self.open(&group.block, block);
        }
    }

    fn end_group(&mut self, _group: &'a SbeGroup) {
        let parent = self.parents.pop().unwrap_or(1);
        if self.failed.is_some() {
            return;
        }
        self.close_entry(parent);
        if let Some(level) = self.open.last_mut() {
            let entries = std::mem::take(&mut level.entries);
            level.record.groups.push(entries);
        }
    }

    fn data(&mut self, _data: &'a SbeData, bytes: Option<&'a [u8]>) {
        if let Some(level) = self.open.last_mut() {
            level.record.data.push(bytes.map(Cow::Borrowed));
        }
    }
}
