//! The XML text of a schema, checked by the rules of SBE 1.0.

mod blocks;
mod drafts;
mod element;
mod error;
mod include;
mod messages;
mod prescan;
mod resolve;
mod simple;
mod types;
mod wire;

use std::collections::HashSet;

pub use error::{SbeSchemaError, SbeSchemaWarning};
pub use include::SbeLoader;
pub use messages::{SbeBlockType, SbeDataType, SbeFieldType, SbeGroupType, SbeMessageType};
pub use types::{
    SbeCharacterSet, SbeChoice, SbeComposite, SbeConstant, SbeEnum, SbeEnumValue, SbeMember,
    SbePresence, SbeSet, SbeSimpleType, SbeType,
};
pub use wire::{SbeCounter, SbeDataLayout, SbeDimension, SbeHeaderLayout};

use crate::limits::MAX_BLOCK_LENGTH;
use crate::number::SbeByteOrder;
use blocks::Blocks;
use element::Element;
use include::Includes;
use resolve::Types;

/// A schema that follows the rules.
#[derive(Debug, Clone)]
pub struct SbeSchema {
    /// Package of the schema, or an empty text.
    pub package: String,
    /// Id of the schema.
    pub id: u32,
    /// Version of the schema.
    pub version: u32,
    /// Version for people.
    pub semantic_version: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Byte order of all numbers.
    pub byte_order: SbeByteOrder,
    /// Layout of the header.
    pub header: SbeHeaderLayout,
    /// Layout of unknown groups' dimensions: that of the type `groupSizeEncoding`, or of the first group.
    pub default_dimension: Option<SbeDimension>,
    /// Layout of unknown data: that of the type `varDataEncoding`, or of the first data.
    pub default_data: Option<SbeDataLayout>,
    /// Named types, sorted by name.
    pub types: Vec<SbeType>,
    /// Messages in the order of the schema.
    pub messages: Vec<SbeMessageType>,
    /// Parts without the effect that the author may expect.
    pub warnings: Vec<SbeSchemaWarning>,
}

impl SbeSchema {
    /// Parses and checks a schema that includes no other files.
    ///
    /// # Errors
    /// The first broken rule, with its line and element.
    pub fn parse(text: &str) -> Result<Self, SbeSchemaError> {
        Self::parse_with(text, &mut |_| {
            Err("this schema must not include files".to_owned())
        })
    }

    /// Parses and checks a schema. `loader` returns the text of an included file, or a reason.
    ///
    /// # Errors
    /// The first broken rule, with its file, line and element.
    pub fn parse_with(text: &str, loader: &mut SbeLoader<'_>) -> Result<Self, SbeSchemaError> {
        let mut root = Element::parse(text, None)?;
        if root.name != "messageSchema" {
            return Err(root.error("the root is not <messageSchema>"));
        }
        Includes::new(loader).expand(&mut root, 1)?;
        let namespace = root.namespace.clone();
        root.remove_foreign(namespace.as_deref());
        Self::check(&root)
    }

    /// Returns the message of a name.
    pub fn message(&self, name: &str) -> Option<&SbeMessageType> {
        self.messages.iter().find(|message| message.name == name)
    }

    fn check(root: &Element) -> Result<Self, SbeSchemaError> {
        drafts::refuse(root)?;
        let byte_order = match root.attribute("byteOrder") {
            None | Some("littleEndian") => SbeByteOrder::Little,
            Some("bigEndian") => SbeByteOrder::Big,
            Some(other) => {
                return Err(root.error(format!(
                    "byteOrder '{other}' is neither littleEndian nor bigEndian"
                )));
            }
        };
        let (lists, elements) = parts(root)?;
        let mut types = Types::new(&lists, byte_order)?;
        let all = types.resolve_all()?;
        let header = header(root, &mut types)?;
        let version = root.number32("version")?.unwrap_or(0);
        let messages = messages(&elements, &mut Blocks::new(&mut types, version), &header)?;
        let id = root.number32("id")?.unwrap_or(0);
        for name in ["id", "version"] {
            if root.attribute(name).is_none() {
                let note = format!("the attribute '{name}' is missing: it is taken to be 0");
                types.warnings.push(root.warning(note));
            }
        }
        for (name, value, counter) in [
            ("id", id, &header.schema_id),
            ("version", version, &header.version),
        ] {
            if u64::from(value) > counter.max {
                return Err(root.error(format!("{name} {value} does not fit the header")));
            }
        }
        Ok(Self {
            package: root.attribute("package").unwrap_or_default().to_owned(),
            id,
            version,
            semantic_version: simple::text(root, "semanticVersion"),
            description: simple::text(root, "description"),
            byte_order,
            default_dimension: default_dimension(&all, &messages, byte_order),
            default_data: default_data(&all, &messages, byte_order),
            header,
            types: all,
            messages,
            warnings: types.warnings,
        })
    }
}

/// Returns the lists of types, and the messages.
fn parts(root: &Element) -> Result<(Vec<&Element>, Vec<&Element>), SbeSchemaError> {
    let (mut lists, mut messages) = (Vec::new(), Vec::new());
    let mut pending: Vec<&Element> = root.children.iter().rev().collect();
    while let Some(element) = pending.pop() {
        match element.name.as_str() {
            "types" => lists.push(element),
            "message" => messages.push(element),
            // Drafts collect messages. An included file may be a schema itself.
            "messages" | "messageSchema" => pending.extend(element.children.iter().rev()),
            _ => return Err(element.error("<messageSchema> has no such element")),
        }
    }
    Ok((lists, messages))
}

fn header(root: &Element, types: &mut Types<'_>) -> Result<SbeHeaderLayout, SbeSchemaError> {
    let name = root.attribute("headerType").unwrap_or("messageHeader");
    let SbeType::Composite(composite) = types.named(name, root)? else {
        return Err(root.error(format!("headerType '{name}' is not a composite")));
    };
    SbeHeaderLayout::find(&composite, types.order)
        .map_err(|reason| root.error(format!("headerType: {reason}")))
}

fn messages(
    elements: &[&Element],
    blocks: &mut Blocks<'_, '_>,
    header: &SbeHeaderLayout,
) -> Result<Vec<SbeMessageType>, SbeSchemaError> {
    let mut messages = Vec::new();
    let (mut names, mut ids) = (HashSet::new(), HashSet::new());
    for element in elements {
        let message = blocks.message(element)?;
        if !names.insert(message.name.clone()) {
            return Err(element.error("another message has this name"));
        }
        if !ids.insert(message.id) {
            return Err(element.error(format!("another message has the id {}", message.id)));
        }
        if u64::from(message.id) > header.template_id.max {
            return Err(element.error(format!("the id {} does not fit the header", message.id)));
        }
        let length = message.block.block_length;
        debug_assert!(
            length <= MAX_BLOCK_LENGTH,
            "a block is checked when it is read"
        );
        if length as u64 > header.block_length.max {
            return Err(element.error(format!(
                "the block of {length} bytes does not fit the header's blockLength"
            )));
        }
        let (groups, data) = (&header.num_groups, &header.num_var_data_fields);
        blocks::check_counts(element, &message.block, groups, data)?;
        messages.push(message);
    }
    Ok(messages)
}

fn default_dimension(
    types: &[SbeType],
    messages: &[SbeMessageType],
    order: SbeByteOrder,
) -> Option<SbeDimension> {
    let named = composite(types, "groupSizeEncoding");
    let found = named.and_then(|composite| SbeDimension::find(composite, order).ok());
    let mut groups = messages.iter().flat_map(|message| &message.block.groups);
    found.or_else(|| groups.next().map(|group| group.dimension.clone()))
}

fn default_data(
    types: &[SbeType],
    messages: &[SbeMessageType],
    order: SbeByteOrder,
) -> Option<SbeDataLayout> {
    let named = composite(types, "varDataEncoding");
    let found = named.and_then(|composite| SbeDataLayout::find(composite, order).ok());
    let mut data = messages.iter().flat_map(|message| &message.block.data);
    found.or_else(|| data.next().map(|data| data.layout.clone()))
}

fn composite<'a>(types: &'a [SbeType], name: &str) -> Option<&'a SbeComposite> {
    types.iter().find_map(|kind| match kind {
        SbeType::Composite(composite) if composite.name == name => Some(&**composite),
        _ => None,
    })
}
