//! Checks `<type>`, `<enum>` and `<set>`.

use std::collections::HashSet;

use crate::limits::MAX_BLOCK_LENGTH;
use crate::number::{SbeNumber, SbePrimitive};
use crate::schema::SbeSchemaError;
use crate::schema::element::Element;
use crate::schema::types::{
    NULL_VALUE, SbeChoice, SbeConstant, SbeEnum, SbeEnumValue, SbePresence, SbeSet, SbeSimpleType,
};

/// Returns the presence that an element states.
pub(super) fn presence(element: &Element) -> Result<Option<SbePresence>, SbeSchemaError> {
    match element.attribute("presence") {
        None => Ok(None),
        Some("required") => Ok(Some(SbePresence::Required)),
        Some("optional") => Ok(Some(SbePresence::Optional)),
        Some("constant") => Ok(Some(SbePresence::Constant)),
        Some(other) => Err(element.error(format!(
            "presence '{other}' is not required, optional or constant"
        ))),
    }
}

/// Returns a text attribute of an element.
pub(super) fn text(element: &Element, name: &str) -> Option<String> {
    element
        .attribute(name)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
}

/// Returns the stated null value of an element whose values have a primitive type.
pub(super) fn null_value(
    element: &Element,
    primitive: SbePrimitive,
) -> Result<Option<SbeNumber>, SbeSchemaError> {
    // Exchanges write 0 for the byte 0. Nobody means the character '0'.
    if primitive == SbePrimitive::Char && element.attribute("nullValue") == Some("0") {
        return Ok(Some(SbeNumber::Unsigned(0)));
    }
    number(element, "nullValue", primitive)
}

/// Returns the number in an attribute.
pub(super) fn number(
    element: &Element,
    name: &str,
    primitive: SbePrimitive,
) -> Result<Option<SbeNumber>, SbeSchemaError> {
    let Some(value) = element.attribute(name) else {
        return Ok(None);
    };
    match primitive.parse(value) {
        Some(number) => Ok(Some(number)),
        None => Err(element.error(format!("{name} '{value}' is not a value of {primitive}"))),
    }
}

/// Checks a `<type>`. `referred` is the value that its `valueRef` names.
pub(super) fn simple_type(
    element: &Element,
    referred: Option<SbeNumber>,
) -> Result<SbeSimpleType, SbeSchemaError> {
    let name = element.required("name")?.to_owned();
    let primitive_name = element.required("primitiveType")?;
    let primitive = SbePrimitive::from_name(primitive_name)
        .ok_or_else(|| element.error(format!("primitiveType '{primitive_name}' does not exist")))?;
    let presence = presence(element)?;
    let stated = element.number("length", MAX_BLOCK_LENGTH as u64)?;
    let mut count = stated.unwrap_or(1) as usize;
    if count * primitive.length() > MAX_BLOCK_LENGTH {
        return Err(element.error(format!(
            "{count} values of {primitive} are longer than the limit {MAX_BLOCK_LENGTH}"
        )));
    }
    let constant = match presence {
        Some(SbePresence::Constant) => {
            let constant = constant(element, primitive, stated, referred)?;
            if let SbeConstant::Text(text) = &constant {
                count = stated.map_or(text.len(), |length| length as usize);
            }
            Some(constant)
        }
        _ => None,
    };
    let min = number(element, "minValue", primitive)?;
    let max = number(element, "maxValue", primitive)?;
    check_limits(element, min, max)?;
    Ok(SbeSimpleType {
        name,
        primitive,
        count,
        presence,
        null: null_value(element, primitive)?,
        min,
        max,
        constant,
        character_encoding: text(element, "characterEncoding"),
        semantic_type: text(element, "semanticType"),
        time_unit: text(element, "timeUnit"),
        epoch: text(element, "epoch"),
    })
}

/// Checks that the least value is not above the greatest.
pub(super) fn check_limits(
    element: &Element,
    min: Option<SbeNumber>,
    max: Option<SbeNumber>,
) -> Result<(), SbeSchemaError> {
    match (min, max) {
        (Some(min), Some(max)) if max.is_less(min) => {
            Err(element.error(format!("minValue {min} is more than maxValue {max}")))
        }
        _ => Ok(()),
    }
}

fn constant(
    element: &Element,
    primitive: SbePrimitive,
    stated: Option<u64>,
    referred: Option<SbeNumber>,
) -> Result<SbeConstant, SbeSchemaError> {
    if let Some(number) = referred {
        if !primitive.holds(number) {
            return Err(element.error(format!("valueRef {number} does not fit {primitive}")));
        }
        return Ok(SbeConstant::Number(number));
    }
    let value = element.text.trim();
    if value.is_empty() {
        return Err(element.error("a constant has neither a value nor a valueRef"));
    }
    if primitive == SbePrimitive::Char && (value.len() > 1 || stated.is_some_and(|it| it > 1)) {
        return match stated {
            Some(length) if value.len() as u64 > length => Err(element.error(format!(
                "the constant '{value}' is longer than its length {length}"
            ))),
            _ => Ok(SbeConstant::Text(value.to_owned())),
        };
    }
    if stated.is_some_and(|length| length != 1) {
        return Err(element.error(format!(
            "a constant of {primitive} has one value, not an array"
        )));
    }
    match primitive.parse(value) {
        Some(number) => Ok(SbeConstant::Number(number)),
        None => Err(element.error(format!(
            "the constant '{value}' is not a value of {primitive}"
        ))),
    }
}

/// Primitive type of an enum or set, with null value and presence that its encoding type states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding {
    pub primitive: SbePrimitive,
    pub null: Option<SbeNumber>,
    pub is_optional: bool,
}

/// Checks an `<enum>`.
pub(super) fn enumeration(
    element: &Element,
    encoding: Encoding,
) -> Result<SbeEnum, SbeSchemaError> {
    let primitive = encoding.primitive;
    if primitive != SbePrimitive::Char && !primitive.is_integer() {
        return Err(element.error(format!(
            "encodingType {primitive} is neither char nor an integer"
        )));
    }
    let mut null = null_value(element, primitive)?.or(encoding.null);
    let mut is_optional = encoding.is_optional;
    let mut has_null_value = false;
    let mut values = Vec::new();
    let mut names = HashSet::new();
    let mut sorted = Vec::new();
    for child in children(element, "validValue")? {
        let name = child.required("name")?.to_owned();
        let value = child.text.trim();
        let number = primitive
            .parse(value)
            .ok_or_else(|| child.error(format!("value '{value}' is not a value of {primitive}")))?;
        if !names.insert(name.clone()) {
            return Err(child.error("another value of the enum has this name"));
        }
        if name == NULL_VALUE {
            has_null_value = true;
            null = Some(number);
            is_optional = true;
            continue;
        }
        sorted.push((number.as_i128().unwrap_or_default(), values.len()));
        values.push(SbeEnumValue {
            name,
            number,
            since_version: child.number32("sinceVersion")?.unwrap_or(0),
            deprecated: child.number32("deprecated")?,
            description: text(child, "description"),
        });
    }
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(element.error(format!(
            "'{}' and '{}' have the same value {}",
            values[pair[0].1].name, values[pair[1].1].name, pair[0].0
        )));
    }
    Ok(SbeEnum {
        name: element.required("name")?.to_owned(),
        primitive,
        null: null.unwrap_or(primitive.default_null()),
        is_optional,
        has_null_value,
        values,
        semantic_type: text(element, "semanticType"),
        sorted,
    })
}

/// Checks a `<set>`.
pub(super) fn set(element: &Element, encoding: Encoding) -> Result<SbeSet, SbeSchemaError> {
    let primitive = encoding.primitive;
    if !primitive.is_unsigned() {
        return Err(element.error(format!(
            "encodingType {primitive} is not an unsigned integer"
        )));
    }
    let width = 8 * primitive.length() as u32;
    let mut names = HashSet::new();
    let mut bits = HashSet::new();
    let mut choices = Vec::new();
    for child in children(element, "choice")? {
        let name = child.required("name")?.to_owned();
        let value = child.text.trim();
        let bit = value
            .parse()
            .ok()
            .filter(|bit| *bit < width)
            .ok_or_else(|| {
                child.error(format!(
                    "bit '{value}' is not a number from 0 to {}",
                    width - 1
                ))
            })?;
        if !names.insert(name.clone()) {
            return Err(child.error("another choice of the set has this name"));
        }
        if !bits.insert(bit) {
            return Err(child.error(format!("another choice of the set has the bit {bit}")));
        }
        choices.push(SbeChoice {
            name,
            bit,
            since_version: child.number32("sinceVersion")?.unwrap_or(0),
            deprecated: child.number32("deprecated")?,
            description: text(child, "description"),
        });
    }
    Ok(SbeSet {
        name: element.required("name")?.to_owned(),
        primitive,
        choices,
        semantic_type: text(element, "semanticType"),
    })
}

fn children<'a>(element: &'a Element, name: &str) -> Result<Vec<&'a Element>, SbeSchemaError> {
    let other = element.children.iter().find(|child| child.name != name);
    if let Some(other) = other {
        return Err(other.error(format!("<{}> has only <{name}>", element.name)));
    }
    if element.children.is_empty() {
        return Err(element.error(format!("there is no <{name}>")));
    }
    Ok(element.children.iter().collect())
}
