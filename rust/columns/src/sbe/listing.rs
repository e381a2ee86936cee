//! The columns of a template: their names, types and sources.

use std::collections::HashMap;
use std::iter::once;
use std::sync::Arc;

use aeron_sbe::plan::{SbeBlockPlan, SbeGroup};
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;

use super::constant::constant_column;
use super::decode::{Column, Source};
use super::group_path::groups_of;
use super::table::Element;
use super::{SbeColumns, SbeColumnsError};

impl SbeColumns {
    /// Adds all columns.
    pub(super) fn add_all(&mut self) -> Result<(), SbeColumnsError> {
        let template = Arc::clone(&self.plan);
        let root = &template.templates[self.template].block;
        let path = self.path.clone();
        let groups = groups_of(root, &path);
        let levels = once(None).chain(groups.into_iter().map(Some));
        let levels: Vec<_> = levels.enumerate().collect();
        let mut table = self.empty_table(&|_, _| true);
        for (level, group) in &levels {
            let plan = group.map_or(root, |group| &group.block);
            let Some(table) = table.at(&path[..*level]) else {
                continue;
            };
            // The entries of groups on the way are rows, or are left out.
            let is_last = *level == path.len();
            let is_column = |element: &Element| is_last || !matches!(element, Element::Group(_));
            for element in Element::all(plan).filter(is_column) {
                if let Some(empty) = table.finish(plan, element) {
                    let name = self.name_of(*group, element.name(plan));
                    self.add(&name, &empty, Source::Element(*level, element));
                }
            }
        }
        self.check_names()?;
        self.defaults = self.columns.len();
        for (level, group) in levels {
            let plan = group.map_or(root, |group| &group.block);
            self.add_constants(plan, level, group);
        }
        for (name, source) in [
            ("template_id", Source::TemplateId),
            ("schema_id", Source::SchemaId),
            ("version", Source::Version),
        ] {
            if !self.has(name) {
                self.add(name, &self.numbers(Vec::new()), source);
            }
        }
        Ok(())
    }

    /// Adds the constants of the block at a level of the path.
    fn add_constants(&mut self, plan: &SbeBlockPlan, level: usize, group: Option<&SbeGroup>) {
        for (index, field) in plan.fields.iter().enumerate() {
            let Some(empty) = constant_column(field, &self.options, 0) else {
                continue;
            };
            let name = self.name_of(group, &field.name);
            if !self.has(&name) {
                self.add(&name, &empty, Source::Constant(level, index));
            }
        }
    }

    /// Returns the name of a column: with the name of the group, if a block around the group has the name already.
    fn name_of(&self, group: Option<&SbeGroup>, name: &str) -> String {
        match group {
            Some(group) if self.has(name) => format!("{}_{name}", group.name),
            _ => name.to_owned(),
        }
    }

    /// Checks that the names of the columns differ: for Spark, also if case is ignored.
    fn check_names(&self) -> Result<(), SbeColumnsError> {
        let mut known: HashMap<String, &str> = HashMap::new();
        for column in &self.columns {
            let name = column.field.name();
            let key = match self.options.for_spark {
                true => name.to_lowercase(),
                false => name.clone(),
            };
            if let Some(other) = known.insert(key, name) {
                return Err(SbeColumnsError::SameName {
                    template: self.template().name.clone(),
                    one: other.to_owned(),
                    two: name.clone(),
                });
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.field.name().eq_ignore_ascii_case(name))
    }

    fn add(&mut self, name: &str, empty: &ArrayRef, source: Source) {
        let field = Field::new(name, empty.data_type().clone(), true);
        self.columns.push(Column { field, source });
    }
}
