//! Skips groups and data that the schema does not know.

use crate::limits::MAX_SKIP_DEPTH;
use crate::plan::SbeBlockPlan;
use crate::read::SbeMalformed;
use crate::read::walk::Walk;
use crate::schema::SbeDimension;

impl Walk<'_> {
    /// Skips groups after the known groups of a block.
    pub(super) fn skip_groups(
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
            self.check_entry(element, dimension.block_length.saturating_add(least))?;
            self.run(block_length, 1);
            self.skip_groups(plan, element, groups, depth + 1)?;
            self.skip_data(plan, element, data)?;
        }
        Ok(())
    }

    pub(super) fn skip_data(
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
