//! Random values, in the form in which a message is decoded.

use std::borrow::Cow;

use aeron_sbe::number::{SbeNumber, SbePrimitive};
use aeron_sbe::plan::{
    SbeBlockPlan, SbeDecimal, SbeExponent, SbeField, SbeKind, SbeScalar, SbeTime, SbeTimeKind,
};
use aeron_sbe::schema::{SbeCharacterSet, SbePresence};
use aeron_sbe::value::{SbeRecord, SbeValue};

use super::Choices;

/// Returns values for a message or group entry. No value of a number is the null value of its field.
pub fn record<'p>(choices: &mut Choices<'_>, plan: &'p SbeBlockPlan) -> SbeRecord<'p> {
    let fields = plan.fields.iter().map(|field| value(choices, field));
    let fields = fields.collect();
    let groups = plan.groups.iter().map(|group| {
        let count = choices.below(4);
        (0..count).map(|_| record(choices, &group.block)).collect()
    });
    let groups = groups.collect();
    let data = plan.data.iter().map(|data| {
        let length = choices.below(20);
        let bytes = (0..length).map(|_| match data.layout.character_set {
            Some(_) => b'a' + choices.below(26) as u8,
            None => choices.below(256) as u8,
        });
        Some(Cow::Owned(bytes.collect()))
    });
    SbeRecord {
        fields,
        groups,
        data: data.collect(),
    }
}

fn value<'p>(choices: &mut Choices<'_>, field: &'p SbeField) -> SbeValue<'p> {
    if let Some(constant) = field.constant_value() {
        return constant;
    }
    if field.presence == SbePresence::Optional && choices.once_in(4) {
        return SbeValue::Null;
    }
    match &field.kind {
        SbeKind::Number(scalar) => SbeValue::Number(number(choices, scalar)),
        SbeKind::Numbers { item, count } => {
            let items = (0..*count).map(|_| SbeValue::Number(number(choices, item)));
            SbeValue::List(items.collect())
        }
        SbeKind::Bytes { count, .. } => {
            let bytes = (0..*count).map(|_| choices.below(255) as u8);
            SbeValue::Bytes(Cow::Owned(bytes.collect()))
        }
        SbeKind::Character(_) => SbeValue::Text(Cow::Owned(letter(choices).to_string())),
        SbeKind::Text {
            count,
            character_set,
        } => text(choices, *count, *character_set),
        SbeKind::Enum { names, .. } => {
            let value = &names.values[choices.below(names.values.len())];
            SbeValue::Symbol {
                number: value.number,
                name: Some(&value.name),
            }
        }
        SbeKind::Set { choices: set, .. } => {
            let bits = set.choices.iter().fold(0, |bits, choice| {
                bits | (choices.below(2) as u64) << choice.bit
            });
            SbeValue::Number(SbeNumber::Unsigned(bits))
        }
        SbeKind::Decimal(decimal) => decimal_value(choices, decimal),
        SbeKind::Time(time) => SbeValue::Number(time_value(choices, time)),
        SbeKind::Struct(composite) => {
            let members = composite.members.iter();
            let values: Vec<_> = members.map(|member| value(choices, member)).collect();
            let first = composite
                .members
                .iter()
                .zip(&values)
                .find(|(member, _)| member.length > 0);
            let is_null = first.is_some_and(|(member, value)| reads_as_null(member, value));
            match field.presence {
                SbePresence::Optional if is_null => SbeValue::Null,
                _ => SbeValue::Struct(values),
            }
        }
    }
}

/// Returns whether a first member makes an optional composite null.
fn reads_as_null(member: &SbeField, value: &SbeValue<'_>) -> bool {
    match (&member.kind, value) {
        (_, SbeValue::Null) => true,
        (SbeKind::Struct(composite), SbeValue::Struct(values)) => composite
            .members
            .iter()
            .zip(values)
            .find(|(member, _)| member.length > 0)
            .is_some_and(|(member, value)| reads_as_null(member, value)),
        _ => false,
    }
}

fn number(choices: &mut Choices<'_>, scalar: &SbeScalar) -> SbeNumber {
    if let (Some(min), Some(max)) = (scalar.min, scalar.max) {
        let (min, max) = (min.as_i64().unwrap(), max.as_i64().unwrap());
        return SbeNumber::Signed(min + choices.below((max - min) as usize) as i64);
    }
    let bits = choices.bits();
    let unused = 64 - 8 * scalar.length() as u32;
    let number = match scalar.primitive {
        SbePrimitive::Float | SbePrimitive::Double => {
            SbeNumber::Float(f64::from(bits as i32) / 16.0).rounded(scalar.primitive)
        }
        primitive if primitive.is_signed() => SbeNumber::Signed((bits << unused) as i64 >> unused),
        _ => SbeNumber::Unsigned(bits >> unused),
    };
    match scalar.is_null(number) {
        true => SbeNumber::Unsigned(1),
        false => number,
    }
}

trait Rounded {
    fn rounded(self, primitive: SbePrimitive) -> Self;
}

impl Rounded for SbeNumber {
    /// Returns a float with the precision of a primitive type.
    fn rounded(self, primitive: SbePrimitive) -> Self {
        match primitive {
            SbePrimitive::Float => SbeNumber::Float(f64::from(self.as_f64() as f32)),
            _ => self,
        }
    }
}

fn letter(choices: &mut Choices<'_>) -> char {
    char::from(b'a' + choices.below(26) as u8)
}

fn text<'p>(
    choices: &mut Choices<'_>,
    count: usize,
    character_set: SbeCharacterSet,
) -> SbeValue<'p> {
    let length = 1 + choices.below(count);
    let letters = (0..length).map(|_| match character_set {
        SbeCharacterSet::Latin1 => choices.one_of(&['a', 'z', '\u{e9}']),
        _ => letter(choices),
    });
    SbeValue::Text(Cow::Owned(letters.collect()))
}

fn decimal_value<'p>(choices: &mut Choices<'_>, decimal: &SbeDecimal) -> SbeValue<'p> {
    let mantissa = number(choices, &decimal.mantissa).as_i128().unwrap();
    let exponent = match decimal.exponent {
        SbeExponent::Constant(exponent) => exponent,
        SbeExponent::Wire { .. } => choices.below(19) as i32 - 9,
        SbeExponent::Field { .. } => unreachable!("the generator has no such decimals"),
    };
    SbeValue::Decimal { mantissa, exponent }
}

fn time_value(choices: &mut Choices<'_>, time: &SbeTime) -> SbeNumber {
    let day = 86_400_000_000_000 / i128::from(time.unit().nanoseconds());
    let is_suitable =
        |value: &i128| time.kind != SbeTimeKind::TimeOfDay || (0..day).contains(value);
    let value = number(choices, &time.scalar).as_i128();
    match value.filter(is_suitable) {
        Some(value) if i64::try_from(value).is_ok() => SbeNumber::Signed(value as i64),
        _ => SbeNumber::Signed(1),
    }
}
