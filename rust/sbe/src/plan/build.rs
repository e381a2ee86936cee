//! Makes a plan from a schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::plan::field::{
    SbeDecimal, SbeExponent, SbeField, SbeKind, SbeTime, SbeTimeKind, SbeTimeUnit, SbeUnitSource,
};
use crate::plan::kinds::{Kinds, Meaning, Stated, is_wire_integer};
use crate::plan::{SbeBlockPlan, SbeData, SbeGroup, SbePlan, SbePlanOptions, SbeTemplate};
use crate::schema::{
    SbeBlockType, SbeDataType, SbeFieldType, SbeGroupType, SbeMessageType, SbePresence, SbeSchema,
    SbeType,
};

/// Reason why options do not suit a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option} '{field}': {reason}")]
pub struct SbePlanError {
    /// `timestamps` or `decimals`; `exponent` for an attribute of the schema.
    pub option: &'static str,
    /// The field that the option names.
    pub field: String,
    /// The problem.
    pub reason: String,
}

pub(super) fn plan(schema: &SbeSchema, options: &SbePlanOptions) -> Result<SbePlan, SbePlanError> {
    let mut builder = Builder {
        schema,
        options,
        used: BTreeSet::new(),
        warnings: Vec::new(),
    };
    let templates = schema
        .messages
        .iter()
        .map(|message| builder.template(message));
    let templates: Vec<_> = templates.collect::<Result<_, _>>()?;
    builder.check_used()?;
    let ids = templates.iter().enumerate();
    let names = ids.clone();
    Ok(SbePlan {
        schema_id: schema.id,
        version: schema.version,
        byte_order: schema.byte_order,
        header: schema.header.clone(),
        by_id: ids
            .map(|(index, template)| (u64::from(template.id), index))
            .collect(),
        by_name: names
            .map(|(index, template)| (template.name.clone(), index))
            .collect(),
        templates,
        warnings: builder.warnings,
    })
}

struct Builder<'a> {
    schema: &'a SbeSchema,
    options: &'a SbePlanOptions,
    /// Keys of the options that named a field.
    used: BTreeSet<(&'static str, String)>,
    warnings: Vec<SbePlanError>,
}

/// A block with its path, and the blocks around it.
#[derive(Clone, Copy)]
struct Scope<'a> {
    path: &'a str,
    block: &'a SbeBlockType,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Builder<'a> {
    fn template(&mut self, message: &SbeMessageType) -> Result<SbeTemplate, SbePlanError> {
        let scope = Scope {
            path: &message.name,
            block: &message.block,
            outer: None,
        };
        Ok(SbeTemplate {
            name: message.name.clone(),
            id: message.id,
            since_version: message.since_version,
            deprecated: message.deprecated,
            semantic_type: message.semantic_type.clone(),
            description: message.description.clone(),
            schema_id: self.schema.id,
            version: self.schema.version,
            header: self.schema.header.clone(),
            block: Arc::new(self.block(scope)?),
        })
    }

    fn block(&mut self, scope: Scope<'_>) -> Result<SbeBlockPlan, SbePlanError> {
        let block = scope.block;
        let fields = block.fields.iter().map(|field| self.field(field, scope));
        let fields: Vec<_> = fields.collect::<Result<_, _>>()?;
        let groups = block.groups.iter().map(|group| self.group(group, scope));
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        let last_group = block.groups.last().map(|group| group.dimension.clone());
        let last_data = block.data.last().map(|data| data.layout.clone());
        Ok(SbeBlockPlan {
            block_length: block.block_length,
            least_lengths: least_lengths(&fields),
            fields,
            groups,
            data: block.data.iter().map(data).collect(),
            unknown_group: last_group.or_else(|| self.schema.default_dimension.clone()),
            unknown_data: last_data.or_else(|| self.schema.default_data.clone()),
        })
    }

    fn group(&mut self, group: &SbeGroupType, outer: Scope<'_>) -> Result<SbeGroup, SbePlanError> {
        let scope = Scope {
            path: &format!("{}.{}", outer.path, group.name),
            block: &group.block,
            outer: Some(&outer),
        };
        Ok(SbeGroup {
            name: group.name.clone(),
            id: group.id,
            since_version: group.since_version,
            deprecated: group.deprecated,
            description: group.description.clone(),
            dimension: group.dimension.clone(),
            block: Arc::new(self.block(scope)?),
        })
    }

    fn field(&mut self, field: &SbeFieldType, scope: Scope<'_>) -> Result<SbeField, SbePlanError> {
        let time = Meaning {
            semantic_type: field.semantic_type.as_deref(),
            time_unit: field.time_unit.as_deref(),
            epoch: field.epoch.as_deref(),
        };
        let stated = Stated {
            null: field.null,
            min: field.min,
            max: field.max,
        };
        let kinds = Kinds {
            order: self.schema.byte_order,
        };
        let (kind, presence) = kinds.kind(&field.kind, field.presence, stated, time);
        let mut planned = SbeField {
            name: field.name.clone(),
            id: Some(field.id),
            offset: field.offset,
            length: field.length(),
            presence,
            constant: field.constant.clone(),
            since_version: field.since_version,
            deprecated: field.deprecated,
            semantic_type: field.semantic_type.clone(),
            description: field.description.clone(),
            kind,
        };
        self.apply_timestamp(&mut planned, field, scope)?;
        self.apply_exponent(&mut planned, field, scope)?;
        Ok(planned)
    }

    /// Gives an integer the meaning of a timestamp, if the options say so.
    fn apply_timestamp(
        &mut self,
        field: &mut SbeField,
        declared: &SbeFieldType,
        scope: Scope<'_>,
    ) -> Result<(), SbePlanError> {
        let options = self.options;
        let of_field = find(&options.timestamps, scope, &field.name);
        let of_type = || options.timestamps.get_key_value(declared.kind.name());
        let Some((key, unit)) = of_field.or_else(of_type) else {
            self.warn_of_unit(field, declared, scope);
            return Ok(());
        };
        self.used.insert(("timestamps", key.clone()));
        let scalar = match &field.kind {
            SbeKind::Number(scalar) if is_wire_integer(field, scalar) => *scalar,
            SbeKind::Time(time) if time.kind == SbeTimeKind::Timestamp && time.offset == 0 => {
                time.scalar
            }
            _ => {
                let reason = "the field is not an integer".to_owned();
                return Err(error("timestamps", key, reason));
            }
        };
        field.kind = SbeKind::Time(SbeTime {
            kind: SbeTimeKind::Timestamp,
            scalar,
            offset: 0,
            unit: SbeUnitSource::Constant(*unit),
        });
        Ok(())
    }

    /// Warns if the schema has no unit for a time, and the names of the time speak of micro- or milliseconds. Without a
    /// unit, a time is in nanoseconds, so all values would be wrong by a factor of 1,000 or more.
    fn warn_of_unit(&mut self, field: &SbeField, declared: &SbeFieldType, scope: Scope<'_>) {
        let is_assumed = matches!(
            &field.kind,
            SbeKind::Time(SbeTime {
                kind: SbeTimeKind::Timestamp | SbeTimeKind::TimeOfDay,
                unit: SbeUnitSource::Constant(SbeTimeUnit::Nanosecond),
                ..
            })
        );
        let is_integer = matches!(declared.kind, SbeType::Simple(_));
        if !is_assumed || !is_integer || declared.time_unit.is_some() {
            return;
        }
        let type_name = declared.kind.name();
        let description = declared.description.as_deref().unwrap_or_default();
        if let Some(unit) = spoken_unit([&field.name, type_name], description) {
            let path = format!("{}.{}", scope.path, field.name);
            let reason = format!(
                "the schema has no unit, so it is nanoseconds, but its names speak of {unit}: set the unit of \
                 '{type_name}'"
            );
            self.warnings.push(error("timestamps", &path, reason));
        }
    }

    /// Gives an integer the meaning of a mantissa, if the schema or the options name the field of its exponent.
    fn apply_exponent(
        &mut self,
        field: &mut SbeField,
        declared: &SbeFieldType,
        scope: Scope<'_>,
    ) -> Result<(), SbePlanError> {
        let options = self.options;
        if let Some((key, name)) = find(&options.decimals, scope, &field.name) {
            self.used.insert(("decimals", key.clone()));
            field.kind =
                mantissa(field, scope, name).map_err(|reason| error("decimals", key, reason))?;
        } else if let Some(name) = &declared.exponent {
            match mantissa(field, scope, name) {
                Ok(kind) => field.kind = kind,
                Err(reason) => {
                    let path = format!("{}.{}", scope.path, field.name);
                    self.warnings.push(error("exponent", &path, reason));
                }
            }
        }
        Ok(())
    }

    fn check_used(&self) -> Result<(), SbePlanError> {
        let keys = self
            .options
            .timestamps
            .keys()
            .map(|key| ("timestamps", key));
        let mut keys = keys.chain(self.options.decimals.keys().map(|key| ("decimals", key)));
        let unused = keys.find(|(option, key)| !self.used.contains(&(*option, (*key).clone())));
        match unused {
            Some((option, key)) => Err(error(option, key, "no such field exists".to_owned())),
            None => Ok(()),
        }
    }
}

/// Returns the decimal of an integer whose exponent is in another field, or a reason.
fn mantissa(field: &SbeField, scope: Scope<'_>, name: &str) -> Result<SbeKind, String> {
    let mantissa = match &field.kind {
        SbeKind::Number(scalar) if is_wire_integer(field, scalar) => *scalar,
        _ => return Err("the field is not an integer".to_owned()),
    };
    if name == field.name {
        return Err("the field cannot be its own exponent".to_owned());
    }
    let exponent = exponent_field(scope, name);
    let exponent = exponent.ok_or_else(|| format!("no integer field '{name}' exists"))?;
    Ok(SbeKind::Decimal(SbeDecimal {
        mantissa,
        mantissa_offset: 0,
        exponent,
    }))
}

/// Finds the field of an exponent in the block and in the blocks around it.
fn exponent_field(scope: Scope<'_>, name: &str) -> Option<SbeExponent> {
    let (mut levels_up, mut scope) = (0, Some(&scope));
    while let Some(current) = scope {
        let fields = &current.block.fields;
        if let Some(index) = fields.iter().position(|field| field.name == name) {
            let suits = match &fields[index].kind {
                SbeType::Simple(simple) => simple.count == 1 && simple.primitive.is_integer(),
                _ => false,
            };
            return suits.then_some(SbeExponent::Field { levels_up, index });
        }
        levels_up += 1;
        scope = current.outer;
    }
    None
}

/// Returns the unit other than nanoseconds of which the names of a field and its type, or its description, speak.
fn spoken_unit(names: [&str; 2], description: &str) -> Option<&'static str> {
    let description = description.to_ascii_lowercase();
    let units = [
        ("microseconds", "micros", "Us"),
        ("milliseconds", "millis", "Ms"),
    ];
    let is_spoken = |(_, word, suffix): &&(&str, &str, &str)| {
        let in_name =
            |name: &str| name.to_ascii_lowercase().contains(word) || name.ends_with(suffix);
        description.contains(word) || names.into_iter().any(in_name)
    };
    units.iter().find(is_spoken).map(|(unit, ..)| *unit)
}

/// Finds the option of a field: by its path first, then by its name.
fn find<'o, T>(
    options: &'o BTreeMap<String, T>,
    scope: Scope<'_>,
    name: &str,
) -> Option<(&'o String, &'o T)> {
    options
        .get_key_value(&format!("{}.{name}", scope.path))
        .or_else(|| options.get_key_value(name))
}

fn error(option: &'static str, field: &str, reason: String) -> SbePlanError {
    SbePlanError {
        option,
        field: field.to_owned(),
        reason,
    }
}

fn data(data: &SbeDataType) -> SbeData {
    SbeData {
        name: data.name.clone(),
        id: data.id,
        since_version: data.since_version,
        deprecated: data.deprecated,
        description: data.description.clone(),
        layout: data.layout.clone(),
    }
}

/// Returns, for each version that added fields, the end of the last field that exists in that version.
fn least_lengths(fields: &[SbeField]) -> Vec<(u32, usize)> {
    let encoded = fields
        .iter()
        .filter(|field| field.presence != SbePresence::Constant);
    let mut ends: Vec<_> = encoded
        .map(|field| (field.since_version, field.end()))
        .collect();
    ends.sort_unstable();
    let mut lengths: Vec<(u32, usize)> = Vec::new();
    for (version, end) in ends {
        match lengths.last_mut() {
            Some((last, length)) if *last == version => *length = end.max(*length),
            Some((_, length)) if *length >= end => {}
            _ => lengths.push((version, end)),
        }
    }
    lengths
}
