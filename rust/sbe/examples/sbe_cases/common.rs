//! The elements that two versions of a message have.

use std::sync::Arc;

use aeron_sbe::plan::SbeBlockPlan;
use aeron_sbe::value::SbeRecord;

/// Removes the elements of `plan` that `writer` does not have. Puts the values of `writer` into the order of `plan`.
pub fn keep_common(plan: &mut SbeBlockPlan, writer: &SbeBlockPlan, record: &mut SbeRecord<'_>) {
    let mut kept = SbeRecord::default();
    plan.fields.retain(|field| {
        let place = writer
            .fields
            .iter()
            .position(|other| other.name == field.name);
        kept.fields
            .extend(place.map(|index| record.fields[index].clone()));
        place.is_some()
    });
    plan.groups.retain_mut(|group| {
        let Some(index) = writer
            .groups
            .iter()
            .position(|other| other.name == group.name)
        else {
            return false;
        };
        let mut entries = std::mem::take(&mut record.groups[index]);
        let whole = group.block.clone();
        // Without entries, the block of the group is not used.
        for entry in &mut entries {
            group.block = whole.clone();
            keep_common(
                Arc::make_mut(&mut group.block),
                &writer.groups[index].block,
                entry,
            );
        }
        kept.groups.push(entries);
        true
    });
    plan.data.retain(|data| {
        let place = writer.data.iter().position(|other| other.name == data.name);
        kept.data
            .extend(place.map(|index| record.data[index].clone()));
        place.is_some()
    });
    *record = kept;
}
