//! The columns of a template: their names, types and sources.

use std::collections::HashMap;
use std::sync::Arc;

use aeron_sbe::plan::SbeBlockPlan;
use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;

use super::constant::constant_column;
use super::decode::{Column, Source};
use super::table::Element;
use super::{SbeColumns, SbeColumnsError};

impl SbeColumns {
    /// Adds all columns.
    pub(super) fn add_all(&mut self) -> Result<(), SbeColumnsError> {
        let template = Arc::clone(&self.plan);
        let plan = &template.templates[self.template].block;
        let mut table = self.empty_table(&|_| true);
        for element in Element::all(plan) {
            if matches!(element, Element::Group(_)) && self.group.is_some() {
                continue;
            }
            if let Some(empty) = table.finish(plan, element) {
                self.add(element.name(plan), &empty, Source::Root(element));
            }
        }
        if let Some(index) = self.group
            && let Some(group) = table.group_mut(index)
        {
            let (_, entries) = group.entries(&plan.groups[index].block);
            let name = plan.groups[index].name.clone();
            for (number, field) in entries.fields().iter().enumerate() {
                let field_name = self.name_of_entry(&name, field.name());
                self.add(&field_name, entries.column(number), Source::Entry(number));
            }
        }
        self.check_names()?;
        self.defaults = self.columns.len();
        self.add_constants(plan, None);
        if let Some(index) = self.group {
            let group = &plan.groups[index];
            self.add_constants(&group.block, Some(&group.name));
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

    /// Adds the constants of a block. `group` is the name of the group whose entries are rows.
    fn add_constants(&mut self, plan: &SbeBlockPlan, group: Option<&str>) {
        for (index, field) in plan.fields.iter().enumerate() {
            let Some(empty) = constant_column(field, &self.options, 0) else {
                continue;
            };
            let (name, source) = match group {
                None => (field.name.clone(), Source::Constant(index)),
                Some(group) => {
                    let name = self.name_of_entry(group, &field.name);
                    (name, Source::EntryConstant(index))
                }
            };
            if !self.has(&name) {
                self.add(&name, &empty, source);
            }
        }
    }

    /// Returns the name of a column of entries: with the name of the group, if the message has the name already.
    fn name_of_entry(&self, group: &str, name: &str) -> String {
        match self.has(name) {
            true => format!("{group}_{name}"),
            false => name.to_owned(),
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
