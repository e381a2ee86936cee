//! Checks `<message>`, `<group>`, `<field>` and `<data>`.

use std::collections::HashSet;
use std::sync::Arc;

use crate::limits::{MAX_BLOCK_LENGTH, MAX_GROUP_DEPTH, MAX_SCHEMA_FIELDS, MAX_TEMPLATE_FIELDS};
use crate::number::{SbeNumber, SbePrimitive};
use crate::plan::SbeTimeUnit;
use crate::schema::SbeSchemaError;
use crate::schema::element::Element;
use crate::schema::messages::{
    SbeBlockType, SbeDataType, SbeFieldType, SbeGroupType, SbeMessageType,
};
use crate::schema::resolve::{Types, offset};
use crate::schema::simple::{self, null_value, number, presence, text};
use crate::schema::types::{SbeConstant, SbePresence, SbeSimpleType, SbeType};
use crate::schema::wire::{SbeCounter, SbeDataLayout, SbeDimension};

/// Checks the messages of a schema of a version.
pub(super) struct Blocks<'t, 'a> {
    pub types: &'t mut Types<'a>,
    pub version: u32,
    /// Fields of the message so far, with the members of composites.
    size: usize,
    /// Messages so far, and the fields of all of them.
    all: usize,
}

impl<'t, 'a> Blocks<'t, 'a> {
    pub fn new(types: &'t mut Types<'a>, version: u32) -> Self {
        Self {
            types,
            version,
            size: 0,
            all: 0,
        }
    }

    pub fn message(&mut self, element: &Element) -> Result<SbeMessageType, SbeSchemaError> {
        self.size = 0;
        self.count_all(1, element)?;
        symbolic(element, self.types)?;
        Ok(SbeMessageType {
            name: element.required("name")?.to_owned(),
            id: required_id(element)?,
            since_version: self.since(element)?,
            deprecated: element.number32("deprecated")?,
            semantic_type: text(element, "semanticType"),
            description: text(element, "description"),
            block: self.block(element, 0)?,
        })
    }

    fn block(&mut self, element: &Element, depth: usize) -> Result<SbeBlockType, SbeSchemaError> {
        let mut block = SbeBlockType::default();
        let mut names = HashSet::new();
        let mut ids = HashSet::new();
        for child in &element.children {
            match child.name.as_str() {
                "field" if block.groups.is_empty() && block.data.is_empty() => {
                    let field = self.field(child, block.block_length)?;
                    if field.presence != SbePresence::Constant {
                        block.block_length = field.offset + field.length();
                    }
                    block.fields.push(field);
                }
                "field" => return Err(child.error("a field is after a group or after data")),
                "group" if block.data.is_empty() => block.groups.push(self.group(child, depth)?),
                "group" => return Err(child.error("a group is after data")),
                "data" => block.data.push(self.data(child)?),
                _ => {
                    return Err(child.error(format!("<{}> has no such element", element.name)));
                }
            }
            symbolic(child, self.types)?;
            if !names.insert(child.required("name")?) {
                return Err(child.error("another element of the block has this name"));
            }
            let id = required_id(child)?;
            if !ids.insert(id) {
                return Err(child.error(format!("another element of the block has the id {id}")));
            }
        }
        if let Some(stated) = element.number("blockLength", MAX_BLOCK_LENGTH as u64)? {
            let stated = stated as usize;
            if stated < block.block_length {
                return Err(element.error(format!(
                    "blockLength {stated} is less than the end {} of the last field",
                    block.block_length
                )));
            }
            block.block_length = stated;
        }
        Ok(block)
    }

    fn group(&mut self, element: &Element, depth: usize) -> Result<SbeGroupType, SbeSchemaError> {
        if depth == MAX_GROUP_DEPTH {
            return Err(element.error(format!(
                "groups are nested deeper than the limit {MAX_GROUP_DEPTH}"
            )));
        }
        self.count(1, element)?;
        let name = element
            .attribute("dimensionType")
            .unwrap_or("groupSizeEncoding");
        let SbeType::Composite(composite) = self.types.named(name, element)? else {
            return Err(element.error(format!("dimensionType '{name}' is not a composite")));
        };
        let dimension = SbeDimension::find(&composite, self.types.order)
            .map_err(|reason| element.error(format!("dimensionType: {reason}")))?;
        let block = self.block(element, depth + 1)?;
        if dimension.block_length.max < block.block_length as u64 {
            return Err(element.error(format!(
                "the block of {} bytes does not fit the blockLength of '{name}'",
                block.block_length
            )));
        }
        check_counts(
            element,
            &block,
            &dimension.num_groups,
            &dimension.num_var_data_fields,
        )?;
        Ok(SbeGroupType {
            name: element.required("name")?.to_owned(),
            id: required_id(element)?,
            since_version: self.since(element)?,
            deprecated: element.number32("deprecated")?,
            dimension,
            description: text(element, "description"),
            block,
        })
    }

    fn data(&mut self, element: &Element) -> Result<SbeDataType, SbeSchemaError> {
        self.count(1, element)?;
        let name = element.required("type")?;
        let SbeType::Composite(composite) = self.types.named(name, element)? else {
            return Err(element.error(format!("the type '{name}' of data is not a composite")));
        };
        let layout = SbeDataLayout::find(&composite, self.types.order)
            .map_err(|reason| element.error(reason))?;
        Ok(SbeDataType {
            name: element.required("name")?.to_owned(),
            id: required_id(element)?,
            since_version: self.since(element)?,
            deprecated: element.number32("deprecated")?,
            layout,
            semantic_type: text(element, "semanticType"),
            description: text(element, "description"),
        })
    }

    fn field(&mut self, element: &Element, end: usize) -> Result<SbeFieldType, SbeSchemaError> {
        let kind = self.types.named(element.required("type")?, element)?;
        self.count(kind.size(), element)?;
        let mut presence = field_presence(element, &kind)?;
        if presence == SbePresence::Optional && !kind.has_null() {
            let note = "presence optional is ignored: the type has no null value";
            self.types.warnings.push(element.warning(note));
            presence = SbePresence::Required;
        }
        let constant = self.constant(element, &kind, presence)?;
        let length = match presence {
            SbePresence::Constant => 0,
            _ => kind.length(),
        };
        if length == 0 && is_empty(&kind, presence) {
            return Err(element.error(format!("the type '{}' has the length 0", kind.name())));
        }
        let offset = match presence {
            SbePresence::Constant => end,
            _ => offset(element, end)?,
        };
        if offset + length > MAX_BLOCK_LENGTH {
            return Err(element.error(format!(
                "the field ends at {}, beyond the limit {MAX_BLOCK_LENGTH}",
                offset + length
            )));
        }
        let simple = match &kind {
            SbeType::Simple(simple) => Some(simple),
            _ => None,
        };
        let least = limit(element, "minValue", simple)?;
        let most = limit(element, "maxValue", simple)?;
        simple::check_limits(
            element,
            least.or(simple.and_then(|simple| simple.min)),
            most.or(simple.and_then(|simple| simple.max)),
        )?;
        self.warn_of_unit(element);
        Ok(SbeFieldType {
            name: element.required("name")?.to_owned(),
            id: required_id(element)?,
            offset,
            presence,
            null: field_null(element, &kind)?,
            min: least,
            max: most,
            constant,
            since_version: self.since(element)?,
            deprecated: element.number32("deprecated")?,
            semantic_type: text(element, "semanticType")
                .or_else(|| kind.semantic_type().map(str::to_owned)),
            time_unit: text(element, "timeUnit")
                .or_else(|| simple.and_then(|simple| simple.time_unit.clone())),
            epoch: text(element, "epoch")
                .or_else(|| simple.and_then(|simple| simple.epoch.clone())),
            exponent: element.foreign_attribute("exponent").map(str::to_owned),
            description: text(element, "description"),
            kind,
        })
    }

    /// Warns of a unit of time that no reader knows: the integer stays one.
    fn warn_of_unit(&mut self, element: &Element) {
        if let Some(name) = element.attribute("timeUnit")
            && SbeTimeUnit::from_name(name).is_none()
        {
            let note = format!("timeUnit '{name}' is unknown: the value stays an integer");
            self.types.warnings.push(element.warning(note));
        }
    }

    /// Returns the value of a constant field.
    fn constant(
        &mut self,
        element: &Element,
        kind: &SbeType,
        presence: SbePresence,
    ) -> Result<Option<SbeConstant>, SbeSchemaError> {
        if presence != SbePresence::Constant {
            return Ok(None);
        }
        let referred = self.types.referred(element)?;
        match (kind, referred) {
            (SbeType::Enum(names), Some((number, referred))) => {
                // The number may have no name in the field's own enum.
                if names.name != referred.name && names.index_of(number).is_none() {
                    return Err(element.error(format!(
                        "valueRef has the value {number}, which the enum '{}' does not have",
                        names.name
                    )));
                }
                Ok(Some(SbeConstant::Number(number)))
            }
            (SbeType::Simple(simple), Some((number, _))) => {
                if !simple.primitive.holds(number) || simple.count > 1 {
                    return Err(element.error(format!(
                        "valueRef has the value {number}, which the type '{}' cannot hold",
                        simple.name
                    )));
                }
                Ok(Some(SbeConstant::Number(number)))
            }
            (SbeType::Simple(simple), None) if simple.constant.is_some() => {
                Ok(simple.constant.clone())
            }
            (SbeType::Simple(_) | SbeType::Enum(_), None) => {
                Err(element.error("a constant has neither a value nor a valueRef"))
            }
            _ => Err(element.error("only a simple type or an enum can be constant")),
        }
    }

    fn since(&self, element: &Element) -> Result<u32, SbeSchemaError> {
        let since = element.number32("sinceVersion")?.unwrap_or(0);
        if since > self.version {
            return Err(element.error(format!(
                "sinceVersion {since} is later than the version {} of the schema",
                self.version
            )));
        }
        Ok(since)
    }

    fn count(&mut self, size: usize, element: &Element) -> Result<(), SbeSchemaError> {
        self.size += size;
        if self.size > MAX_TEMPLATE_FIELDS {
            return Err(element.error(format!(
                "the message has more fields than the limit {MAX_TEMPLATE_FIELDS}"
            )));
        }
        self.count_all(size, element)
    }

    fn count_all(&mut self, size: usize, element: &Element) -> Result<(), SbeSchemaError> {
        self.all += size;
        if self.all > MAX_SCHEMA_FIELDS {
            return Err(element.error(format!(
                "the schema has more messages and fields than the limit {MAX_SCHEMA_FIELDS}"
            )));
        }
        Ok(())
    }
}

/// Warns of a name that the standard does not allow.
fn symbolic(element: &Element, types: &mut Types<'_>) -> Result<(), SbeSchemaError> {
    let name = element.required("name")?;
    let is_letter = |character: char| character.is_ascii_alphabetic() || character == '_';
    let is_symbolic = name.starts_with(is_letter)
        && name
            .chars()
            .all(|character| is_letter(character) || character.is_ascii_digit());
    if !is_symbolic {
        let note = "the name is not symbolic: letters, digits and '_', not first a digit";
        types.warnings.push(element.warning(note));
    }
    Ok(())
}

fn required_id(element: &Element) -> Result<u32, SbeSchemaError> {
    element.required("id")?;
    Ok(element.number32("id")?.unwrap_or_default())
}

/// Returns the presence of a field: its own, or that of its type. Two explicit presences must be equal.
fn field_presence(element: &Element, kind: &SbeType) -> Result<SbePresence, SbeSchemaError> {
    let own = presence(element)?;
    let inherited = match kind {
        SbeType::Simple(simple) => simple.presence,
        // The standard's example of an optional Boolean has no presence. Exchanges state it for the encoding type.
        SbeType::Enum(names) if own.is_none() && names.is_optional => Some(SbePresence::Optional),
        _ => None,
    };
    match (own, inherited) {
        (Some(one), Some(two)) if one != two => Err(element.error(format!(
            "presence {} contradicts the presence {} of the type '{}'",
            one.name(),
            two.name(),
            kind.name()
        ))),
        (one, two) => Ok(one.or(two).unwrap_or(SbePresence::Required)),
    }
}

/// Returns the null value that a field states. It must be the one that its type states, if there is one.
fn field_null(element: &Element, kind: &SbeType) -> Result<Option<SbeNumber>, SbeSchemaError> {
    if element.attribute("nullValue").is_none() {
        return Ok(None);
    }
    let (primitive, inherited): (SbePrimitive, _) = match kind {
        SbeType::Simple(simple) => (simple.primitive, simple.null),
        SbeType::Enum(names) => (names.primitive, None),
        _ => {
            return Err(element.error(format!(
                "nullValue: the type '{}' has no null value of its own",
                kind.name()
            )));
        }
    };
    let own = null_value(element, primitive)?;
    match (own, inherited) {
        (Some(one), Some(two)) if one != two => Err(element.error(format!(
            "nullValue {one} contradicts the nullValue {two} of the type '{}'",
            kind.name()
        ))),
        _ => Ok(own),
    }
}

/// Returns a limit that a field of a simple type states.
fn limit(
    element: &Element,
    name: &str,
    simple: Option<&Arc<SbeSimpleType>>,
) -> Result<Option<SbeNumber>, SbeSchemaError> {
    simple.map_or(Ok(None), |simple| number(element, name, simple.primitive))
}

/// Checks that the numbers of groups and data fit the members that count them.
pub(super) fn check_counts(
    element: &Element,
    block: &SbeBlockType,
    groups: &Option<SbeCounter>,
    data: &Option<SbeCounter>,
) -> Result<(), SbeSchemaError> {
    for (count, counter, name) in [
        (block.groups.len(), groups, "numGroups"),
        (block.data.len(), data, "numVarDataFields"),
    ] {
        if counter.is_some_and(|counter| count as u64 > counter.max) {
            return Err(element.error(format!("{count} elements do not fit {name}")));
        }
    }
    Ok(())
}

/// Returns whether a type that takes no bytes is not a constant.
fn is_empty(kind: &SbeType, presence: SbePresence) -> bool {
    match kind {
        SbeType::Simple(simple) => simple.count == 0 && presence != SbePresence::Constant,
        _ => false,
    }
}
