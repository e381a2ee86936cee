//! Resolves the named types of a schema.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::{MAX_BLOCK_LENGTH, MAX_COMPOSITE_DEPTH, MAX_COMPOSITE_MEMBERS};
use crate::number::{SbeByteOrder, SbeNumber, SbePrimitive};
use crate::schema::element::Element;
use crate::schema::simple::{self, Encoding};
use crate::schema::types::{SbeComposite, SbeEnum, SbeMember, SbePresence, SbeSimpleType, SbeType};
use crate::schema::{SbeSchemaError, SbeSchemaWarning};

/// The named types of a schema. Each type is resolved when it is first needed.
pub(super) struct Types<'a> {
    elements: HashMap<&'a str, &'a Element>,
    resolved: HashMap<&'a str, SbeType>,
    /// Names of the types that are being resolved, the outermost first.
    open: Vec<&'a str>,
    pub order: SbeByteOrder,
    pub warnings: Vec<SbeSchemaWarning>,
}

impl<'a> Types<'a> {
    /// Collects the named types in the `<types>` elements.
    pub fn new(lists: &[&'a Element], order: SbeByteOrder) -> Result<Self, SbeSchemaError> {
        let mut elements = HashMap::new();
        let mut pending: Vec<&Element> = lists.iter().rev().copied().collect();
        while let Some(list) = pending.pop() {
            for element in &list.children {
                match element.name.as_str() {
                    // An included file may have <types> as its root.
                    "types" => pending.push(element),
                    "type" | "composite" | "enum" | "set" => {
                        if elements
                            .insert(element.required("name")?, element)
                            .is_some()
                        {
                            return Err(element.error("another type has this name"));
                        }
                    }
                    _ => return Err(element.error("<types> has no such element")),
                }
            }
        }
        Ok(Self {
            elements,
            resolved: HashMap::new(),
            open: Vec::new(),
            order,
            warnings: Vec::new(),
        })
    }

    /// Resolves all types, so that an error in an unused type is found.
    pub fn resolve_all(&mut self) -> Result<Vec<SbeType>, SbeSchemaError> {
        let mut named: Vec<(&str, &Element)> = Vec::new();
        named.extend(
            self.elements
                .iter()
                .map(|(name, element)| (*name, *element)),
        );
        named.sort_unstable_by_key(|(name, _)| *name);
        let types = named
            .iter()
            .map(|(name, element)| self.named(name, element));
        types.collect()
    }

    /// Returns the type of a name: one of the schema, or a primitive type. `user` is the element that names it.
    pub fn named(&mut self, name: &str, user: &Element) -> Result<SbeType, SbeSchemaError> {
        if let Some(known) = self.resolved.get(name) {
            return Ok(known.clone());
        }
        let Some((&name, &element)) = self.elements.get_key_value(name) else {
            return match SbePrimitive::from_name(name) {
                Some(primitive) => Ok(SbeType::Simple(Arc::new(SbeSimpleType::of_primitive(
                    primitive,
                )))),
                None => Err(user.error(format!("the type '{name}' does not exist"))),
            };
        };
        if self.open.contains(&name) {
            return Err(user.error(format!("the type '{name}' contains itself")));
        }
        self.check_depth(user)?;
        self.open.push(name);
        let resolved = self.of_element(element)?;
        self.open.pop();
        self.resolved.insert(name, resolved.clone());
        Ok(resolved)
    }

    fn check_depth(&self, user: &Element) -> Result<(), SbeSchemaError> {
        if self.open.len() < MAX_COMPOSITE_DEPTH {
            return Ok(());
        }
        Err(user.error(format!(
            "types are nested deeper than the limit {MAX_COMPOSITE_DEPTH}"
        )))
    }

    fn of_element(&mut self, element: &'a Element) -> Result<SbeType, SbeSchemaError> {
        Ok(match element.name.as_str() {
            "type" => {
                let referred = self.referred(element)?.map(|(number, _)| number);
                SbeType::Simple(Arc::new(simple::simple_type(element, referred)?))
            }
            "enum" => {
                let encoding = self.encoding(element)?;
                SbeType::Enum(Arc::new(simple::enumeration(element, encoding)?))
            }
            "set" => {
                let encoding = self.encoding(element)?;
                SbeType::Set(Arc::new(simple::set(element, encoding)?))
            }
            "composite" => SbeType::Composite(Arc::new(self.composite(element)?)),
            _ => return Err(element.error("a composite has no such member")),
        })
    }

    /// Returns the primitive type of an enum or set.
    fn encoding(&mut self, element: &Element) -> Result<Encoding, SbeSchemaError> {
        let name = element.required("encodingType")?;
        match self.named(name, element)? {
            SbeType::Simple(simple) if simple.count == 1 && simple.constant.is_none() => {
                Ok(Encoding {
                    primitive: simple.primitive,
                    null: simple.null,
                    is_optional: simple.presence == Some(SbePresence::Optional),
                })
            }
            _ => Err(element.error(format!("encodingType '{name}' is not a single value"))),
        }
    }

    /// Returns the value of an enum that the `valueRef` of an element names, and the enum.
    pub fn referred(
        &mut self,
        element: &Element,
    ) -> Result<Option<(SbeNumber, Arc<SbeEnum>)>, SbeSchemaError> {
        let Some(text) = element.attribute("valueRef") else {
            return Ok(None);
        };
        let (name, value) = text
            .rsplit_once('.')
            .ok_or_else(|| element.error(format!("valueRef '{text}' is not 'enum.value'")))?;
        let SbeType::Enum(names) = self.named(name, element)? else {
            return Err(element.error(format!("valueRef '{text}': '{name}' is not an enum")));
        };
        match names.value_of(value) {
            Some(number) => Ok(Some((number, names))),
            None => Err(element.error(format!("valueRef '{text}': there is no value '{value}'"))),
        }
    }

    fn composite(&mut self, element: &'a Element) -> Result<SbeComposite, SbeSchemaError> {
        let name = element.required("name")?.to_owned();
        let mut members: Vec<SbeMember> = Vec::new();
        let mut end = 0;
        let mut size = 1;
        for child in &element.children {
            let member = self.member(child, end)?;
            if members.iter().any(|other| other.name == member.name) {
                return Err(child.error("another member of the composite has this name"));
            }
            end = member.offset + member.kind.length();
            size += member.kind.size();
            if end > MAX_BLOCK_LENGTH {
                return Err(child.error(format!(
                    "the composite ends at {end}, beyond the limit {MAX_BLOCK_LENGTH}"
                )));
            }
            if size > MAX_COMPOSITE_MEMBERS {
                return Err(child.error(format!(
                    "the composite has more members than the limit {MAX_COMPOSITE_MEMBERS}"
                )));
            }
            members.push(member);
        }
        if members.is_empty() {
            return Err(element.error("a composite has no members"));
        }
        Ok(SbeComposite {
            name,
            members,
            length: end,
            semantic_type: simple::text(element, "semanticType"),
            size,
        })
    }

    fn member(&mut self, element: &'a Element, end: usize) -> Result<SbeMember, SbeSchemaError> {
        if element
            .attribute("sinceVersion")
            .is_some_and(|version| version != "0")
        {
            let note = "sinceVersion of a member is ignored: a composite cannot grow";
            self.warnings.push(element.warning(note));
        }
        let kind = if element.name == "ref" {
            self.named(element.required("type")?, element)?
        } else {
            self.check_depth(element)?;
            self.open.push("");
            let kind = self.of_element(element)?;
            self.open.pop();
            kind
        };
        let is_constant = matches!(&kind, SbeType::Simple(simple) if simple.constant.is_some());
        Ok(SbeMember {
            name: element.required("name")?.to_owned(),
            offset: match is_constant {
                true => end,
                false => offset(element, end)?,
            },
            kind,
            description: simple::text(element, "description"),
        })
    }
}

/// Returns the offset of an element: the stated one, or the end of the element before it.
pub(super) fn offset(element: &Element, end: usize) -> Result<usize, SbeSchemaError> {
    let Some(offset) = element.number("offset", MAX_BLOCK_LENGTH as u64)? else {
        return Ok(end);
    };
    let offset = offset as usize;
    if offset < end {
        return Err(element.error(format!(
            "offset {offset} overlaps the element before it, which ends at {end}"
        )));
    }
    Ok(offset)
}
