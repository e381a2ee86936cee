//! Paths of groups: the names from the root block to the group that gives the rows.

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup, SbeTemplate};

use super::SbeColumnsError;

/// Returns the index of each group of a path such as `legs.fills`. The path may begin with the name of the template.
///
/// # Errors
/// The template has no such group.
pub(super) fn path_of(template: &SbeTemplate, name: &str) -> Result<Vec<usize>, SbeColumnsError> {
    let of_template = name.strip_prefix(&template.name);
    let of_template = of_template.and_then(|rest| rest.strip_prefix('.'));
    indexes(&template.block, name)
        .or_else(|| indexes(&template.block, of_template?))
        .ok_or_else(|| {
            let mut existing = Vec::new();
            add_paths(&template.block, "", &mut existing);
            SbeColumnsError::Group {
                template: template.name.clone(),
                name: name.to_owned(),
                existing: existing.join(", "),
            }
        })
}

/// Returns the groups with these indexes, from the root block.
pub(super) fn groups_of<'a>(root: &'a SbeBlockPlan, path: &[usize]) -> Vec<&'a SbeGroup> {
    let mut plan = root;
    let group = |index: &usize| {
        let group = plan.groups.get(*index)?;
        plan = &group.block;
        Some(group)
    };
    path.iter().map_while(group).collect()
}

fn indexes(root: &SbeBlockPlan, path: &str) -> Option<Vec<usize>> {
    let mut plan = root;
    let index = |name: &str| {
        let index = plan.groups.iter().position(|group| group.name == name)?;
        plan = &plan.groups[index].block;
        Some(index)
    };
    path.split('.').map(index).collect()
}

fn add_paths(plan: &SbeBlockPlan, before: &str, paths: &mut Vec<String>) {
    for group in &plan.groups {
        let path = format!("{before}{}", group.name);
        paths.push(path.clone());
        add_paths(&group.block, &format!("{path}."), paths);
    }
}
