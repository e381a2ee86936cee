//! Makes a plan from a schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::number::SbeNumber;
use crate::plan::field::{
    SbeDecimal, SbeExponent, SbeField, SbeKind, SbeStruct, SbeTime, SbeTimeKind, SbeTimeUnit,
    SbeUnitSource,
};
use crate::plan::{
    SbeBlockPlan, SbeData, SbeGroup, SbePlan, SbePlanOptions, SbeScalar, SbeTemplate,
};
use crate::schema::{
    SbeBlockType, SbeComposite, SbeConstant, SbeDataType, SbeFieldType, SbeGroupType, SbeMember,
    SbeMessageType, SbePresence, SbeSchema, SbeSimpleType, SbeType,
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
    };
    let templates = schema
        .messages
        .iter()
        .map(|message| builder.template(message));
    let templates: Vec<_> = templates.collect::<Result<_, _>>()?;
    builder.check_used()?;
    let ids = templates.iter().enumerate();
    Ok(SbePlan {
        schema_id: schema.id,
        version: schema.version,
        byte_order: schema.byte_order,
        header: schema.header.clone(),
        by_id: ids
            .map(|(index, template)| (u64::from(template.id), index))
            .collect(),
        templates,
    })
}

struct Builder<'a> {
    schema: &'a SbeSchema,
    options: &'a SbePlanOptions,
    /// Keys of the options that named a field.
    used: BTreeSet<(&'static str, String)>,
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
            block: self.block(scope)?,
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
            block: self.block(scope)?,
        })
    }

    fn field(&mut self, field: &SbeFieldType, scope: Scope<'_>) -> Result<SbeField, SbePlanError> {
        let time = Meaning {
            semantic_type: field.semantic_type.as_deref(),
            time_unit: field.time_unit.as_deref(),
            epoch: field.epoch.as_deref(),
        };
        let (kind, presence) = self.kind(&field.kind, field.presence, field.null, time);
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
        self.apply_timestamp(&mut planned, scope)?;
        self.apply_exponent(&mut planned, field, scope)?;
        Ok(planned)
    }

    /// Gives an integer the meaning of a timestamp, if the options say so.
    fn apply_timestamp(
        &mut self,
        field: &mut SbeField,
        scope: Scope<'_>,
    ) -> Result<(), SbePlanError> {
        let options = self.options;
        let Some((key, unit)) = find(&options.timestamps, scope, &field.name) else {
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

    /// Gives an integer the meaning of a mantissa, if the schema or the options name the field of its exponent.
    fn apply_exponent(
        &mut self,
        field: &mut SbeField,
        declared: &SbeFieldType,
        scope: Scope<'_>,
    ) -> Result<(), SbePlanError> {
        let options = self.options;
        let (option, key, name) = match find(&options.decimals, scope, &field.name) {
            Some((key, name)) => {
                self.used.insert(("decimals", key.clone()));
                ("decimals", key.clone(), name)
            }
            None => match &declared.exponent {
                Some(name) => (
                    "exponent",
                    format!("{}.{}", scope.path, declared.name),
                    name,
                ),
                None => return Ok(()),
            },
        };
        let mantissa = match &field.kind {
            SbeKind::Number(scalar) if is_wire_integer(field, scalar) => *scalar,
            _ => {
                let reason = "the field is not an integer".to_owned();
                return Err(error(option, &key, reason));
            }
        };
        let exponent = exponent_field(scope, name)
            .ok_or_else(|| error(option, &key, format!("no integer field '{name}' exists")))?;
        field.kind = SbeKind::Decimal(SbeDecimal {
            mantissa,
            mantissa_offset: 0,
            exponent,
        });
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

    /// Returns the meaning of a type, and the presence with that of a mantissa or time.
    fn kind(
        &self,
        kind: &SbeType,
        presence: SbePresence,
        null: Option<SbeNumber>,
        meaning: Meaning<'_>,
    ) -> (SbeKind, SbePresence) {
        match kind {
            SbeType::Simple(simple) => {
                let null = null.unwrap_or(simple.null_value());
                (self.simple(simple, null, presence, meaning), presence)
            }
            SbeType::Enum(names) => {
                let scalar = SbeScalar {
                    primitive: names.primitive,
                    order: self.schema.byte_order,
                    null: null.unwrap_or(names.null),
                    min: None,
                    max: None,
                };
                let names = Arc::clone(names);
                (SbeKind::Enum { scalar, names }, presence)
            }
            SbeType::Set(choices) => {
                let scalar = SbeScalar {
                    primitive: choices.primitive,
                    order: self.schema.byte_order,
                    null: choices.primitive.default_null(),
                    min: None,
                    max: None,
                };
                let choices = Arc::clone(choices);
                (SbeKind::Set { scalar, choices }, presence)
            }
            SbeType::Composite(composite) => self.composite(composite, presence, meaning),
        }
    }

    fn simple(
        &self,
        simple: &SbeSimpleType,
        null: SbeNumber,
        presence: SbePresence,
        meaning: Meaning<'_>,
    ) -> SbeKind {
        let scalar = self.scalar(simple, null);
        let is_text = matches!(simple.constant, Some(SbeConstant::Text(_)));
        if simple.count != 1 || is_text {
            let count = simple.count;
            return match simple.character_set(self.schema.byte_order) {
                Some(character_set) => SbeKind::Text {
                    count,
                    character_set,
                },
                None if simple.primitive.length() == 1 && !simple.primitive.is_signed() => {
                    SbeKind::Bytes {
                        item: scalar,
                        count,
                    }
                }
                None => SbeKind::Numbers {
                    item: scalar,
                    count,
                },
            };
        }
        if !simple.primitive.is_integer() {
            return match simple.primitive.length() {
                1 => SbeKind::Character(scalar),
                _ => SbeKind::Number(scalar),
            };
        }
        match meaning.time() {
            Some((kind, unit)) if presence != SbePresence::Constant => SbeKind::Time(SbeTime {
                kind,
                scalar,
                offset: 0,
                unit: SbeUnitSource::Constant(unit),
            }),
            _ => SbeKind::Number(scalar),
        }
    }

    fn scalar(&self, simple: &SbeSimpleType, null: SbeNumber) -> SbeScalar {
        SbeScalar {
            primitive: simple.primitive,
            order: self.schema.byte_order,
            null,
            min: simple.min,
            max: simple.max,
        }
    }

    fn composite(
        &self,
        composite: &SbeComposite,
        presence: SbePresence,
        meaning: Meaning<'_>,
    ) -> (SbeKind, SbePresence) {
        let members = composite.members.iter();
        let members: Vec<_> = members.map(|member| self.member(member)).collect();
        let collapsed = decimal(&members)
            .map(|(decimal, optional)| (SbeKind::Decimal(decimal), optional))
            .or_else(|| {
                let (kind, unit) = meaning.time_in_composite()?;
                let (time, optional) = time(&members, kind, unit)?;
                Some((SbeKind::Time(time), optional))
            });
        match collapsed {
            Some((kind, true)) => (kind, SbePresence::Optional),
            Some((kind, false)) => (kind, presence),
            None => {
                let kind = SbeKind::Struct(Arc::new(SbeStruct {
                    name: composite.name.clone(),
                    members,
                    length: composite.length,
                }));
                (kind, presence)
            }
        }
    }

    fn member(&self, member: &SbeMember) -> SbeField {
        let (constant, stated) = match &member.kind {
            SbeType::Simple(simple) => (simple.constant.clone(), simple.presence),
            _ => (None, None),
        };
        let meaning = match &member.kind {
            SbeType::Simple(simple) => Meaning {
                semantic_type: simple.semantic_type.as_deref(),
                time_unit: simple.time_unit.as_deref(),
                epoch: simple.epoch.as_deref(),
            },
            other => Meaning {
                semantic_type: other.semantic_type(),
                time_unit: None,
                epoch: None,
            },
        };
        let presence = stated.unwrap_or(SbePresence::Required);
        let (kind, presence) = self.kind(&member.kind, presence, None, meaning);
        SbeField {
            name: member.name.clone(),
            id: None,
            offset: member.offset,
            length: member.kind.length(),
            presence,
            constant,
            since_version: 0,
            deprecated: None,
            semantic_type: member.kind.semantic_type().map(str::to_owned),
            description: member.description.clone(),
            kind,
        }
    }
}

/// The attributes that give an integer a meaning.
#[derive(Clone, Copy)]
struct Meaning<'a> {
    semantic_type: Option<&'a str>,
    time_unit: Option<&'a str>,
    epoch: Option<&'a str>,
}

impl Meaning<'_> {
    /// Returns kind and unit of a time in an integer. An integer with another epoch or an unknown unit stays one.
    fn time(self) -> Option<(SbeTimeKind, SbeTimeUnit)> {
        let (kind, unit) = self.time_in_composite()?;
        let unit = match (kind, self.time_unit) {
            (SbeTimeKind::Date, _) | (_, None) => unit,
            (_, Some(name)) => SbeTimeUnit::from_name(name)?,
        };
        Some((kind, unit))
    }

    /// Returns kind and default unit of a time.
    fn time_in_composite(self) -> Option<(SbeTimeKind, SbeTimeUnit)> {
        let is_unix = |name: &str| name.trim().eq_ignore_ascii_case("unix");
        if !self.epoch.is_none_or(is_unix) {
            return None;
        }
        match self.semantic_type?.trim().to_ascii_lowercase().as_str() {
            "utctimestamp" => Some((SbeTimeKind::Timestamp, SbeTimeUnit::Nanosecond)),
            "utctimeonly" => Some((SbeTimeKind::TimeOfDay, SbeTimeUnit::Nanosecond)),
            "utcdateonly" | "localmktdate" => Some((SbeTimeKind::Date, SbeTimeUnit::Day)),
            _ => None,
        }
    }
}

/// Returns the decimal that members are, and whether its mantissa is optional.
fn decimal(members: &[SbeField]) -> Option<(SbeDecimal, bool)> {
    let [one, two] = members else {
        return None;
    };
    let (mantissa, exponent) = match (one.name.as_str(), two.name.as_str()) {
        ("mantissa", "exponent") => (one, two),
        ("exponent", "mantissa") => (two, one),
        _ => return None,
    };
    let exponent = match (wire_integer(exponent), &exponent.constant) {
        (Some(scalar), _) => SbeExponent::Wire {
            scalar,
            offset: exponent.offset,
        },
        (None, Some(SbeConstant::Number(number))) => {
            SbeExponent::Constant(number.as_i64()?.try_into().ok()?)
        }
        _ => return None,
    };
    let decimal = SbeDecimal {
        mantissa: wire_integer(mantissa)?,
        mantissa_offset: mantissa.offset,
        exponent,
    };
    Some((decimal, mantissa.presence == SbePresence::Optional))
}

/// Returns the time that members are, and whether it is optional.
fn time(members: &[SbeField], kind: SbeTimeKind, unit: SbeTimeUnit) -> Option<(SbeTime, bool)> {
    let time = members.iter().find(|member| member.name == "time")?;
    let others = members.iter().filter(|member| member.name != "time");
    let unit = match others.collect::<Vec<_>>()[..] {
        [] => SbeUnitSource::Constant(unit),
        [member] if member.name == "unit" => match (&member.constant, &member.kind) {
            (Some(SbeConstant::Number(number)), _) => {
                SbeUnitSource::Constant(SbeTimeUnit::from_power(number.as_u64()?)?)
            }
            (None, SbeKind::Enum { scalar, .. } | SbeKind::Number(scalar)) => SbeUnitSource::Wire {
                scalar: *scalar,
                offset: member.offset,
            },
            _ => return None,
        },
        _ => return None,
    };
    let found = SbeTime {
        kind,
        scalar: wire_integer(time)?,
        offset: time.offset,
        unit,
    };
    Some((found, time.presence == SbePresence::Optional))
}

/// Returns the encoding of an integer that takes bytes.
fn wire_integer(field: &SbeField) -> Option<SbeScalar> {
    match &field.kind {
        SbeKind::Number(scalar) if is_wire_integer(field, scalar) => Some(*scalar),
        SbeKind::Time(time) if field.id.is_none() && time.offset == 0 => Some(time.scalar),
        _ => None,
    }
}

fn is_wire_integer(field: &SbeField, scalar: &SbeScalar) -> bool {
    field.presence != SbePresence::Constant && scalar.primitive.is_integer()
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

/// Finds the option of a field: by its path first, then by its name.
fn find<'o, T>(
    options: &'o std::collections::BTreeMap<String, T>,
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
