//! Meanings of types: numbers, texts, decimals, times and composites.

use std::sync::Arc;

use crate::number::{SbeByteOrder, SbeNumber};
use crate::plan::SbeScalar;
use crate::plan::field::{
    SbeDecimal, SbeExponent, SbeField, SbeKind, SbeStruct, SbeTime, SbeTimeKind, SbeTimeUnit,
    SbeUnitSource,
};
use crate::schema::{SbeComposite, SbeConstant, SbeMember, SbePresence, SbeSimpleType, SbeType};

/// Numbers that a field states for itself. They replace those of its type.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stated {
    pub null: Option<SbeNumber>,
    pub min: Option<SbeNumber>,
    pub max: Option<SbeNumber>,
}

/// Finds the meanings of types in a schema of a byte order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    pub order: SbeByteOrder,
}

impl Kinds {
    /// Returns the meaning of a type, and the presence with that of a mantissa or time.
    pub fn kind(
        &self,
        kind: &SbeType,
        presence: SbePresence,
        stated: Stated,
        meaning: Meaning<'_>,
    ) -> (SbeKind, SbePresence) {
        match kind {
            SbeType::Simple(simple) => (self.simple(simple, stated, presence, meaning), presence),
            SbeType::Enum(names) => {
                let scalar = SbeScalar {
                    primitive: names.primitive,
                    order: self.order,
                    null: stated.null.unwrap_or(names.null),
                    min: None,
                    max: None,
                };
                let names = Arc::clone(names);
                (SbeKind::Enum { scalar, names }, presence)
            }
            SbeType::Set(choices) => {
                let scalar = SbeScalar {
                    primitive: choices.primitive,
                    order: self.order,
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
        stated: Stated,
        presence: SbePresence,
        meaning: Meaning<'_>,
    ) -> SbeKind {
        let scalar = self.scalar(simple, stated);
        let is_text = matches!(simple.constant, Some(SbeConstant::Text(_)));
        if simple.count != 1 || is_text {
            let count = simple.count;
            return match simple.character_set(self.order) {
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

    fn scalar(&self, simple: &SbeSimpleType, stated: Stated) -> SbeScalar {
        SbeScalar {
            primitive: simple.primitive,
            order: self.order,
            null: stated.null.unwrap_or(simple.null_value()),
            min: stated.min.or(simple.min),
            max: stated.max.or(simple.max),
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
            SbeType::Enum(names) if names.is_optional => (None, Some(SbePresence::Optional)),
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
        let (kind, presence) = self.kind(&member.kind, presence, Stated::default(), meaning);
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
pub(super) struct Meaning<'a> {
    pub semantic_type: Option<&'a str>,
    pub time_unit: Option<&'a str>,
    pub epoch: Option<&'a str>,
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

pub(super) fn is_wire_integer(field: &SbeField, scalar: &SbeScalar) -> bool {
    field.presence != SbePresence::Constant && scalar.primitive.is_integer()
}
