//! XML elements of a schema, with their places.

use std::fmt::Display;
use std::rc::Rc;

use roxmltree::{Document, Node, ParsingOptions};

use crate::limits::{MAX_SCHEMA_LENGTH, MAX_XML_DEPTH, MAX_XML_NODES};
use crate::schema::{SbeSchemaError, SbeSchemaWarning, prescan};

/// Names of SBE's elements. Schemas have them with any namespace.
const NAMES: [&str; 15] = [
    "messageSchema",
    "types",
    "type",
    "composite",
    "ref",
    "enum",
    "validValue",
    "set",
    "choice",
    "messages",
    "message",
    "field",
    "group",
    "data",
    "include",
];

/// An element, independent of the text from which it was parsed.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    /// Name without prefix.
    pub name: String,
    /// Namespace of the name.
    pub namespace: Option<String>,
    attributes: Vec<Attribute>,
    /// Concatenated text of the element, without the texts of its children.
    pub text: String,
    /// Child elements in their order.
    pub children: Vec<Element>,
    file: Option<Rc<str>>,
    line: u32,
}

#[derive(Debug, Clone)]
struct Attribute {
    name: String,
    has_namespace: bool,
    value: String,
}

impl Element {
    /// Parses a file. `file` is the name of an included file.
    pub fn parse(text: &str, file: Option<&str>) -> Result<Self, SbeSchemaError> {
        let at = |line: u32, rule: String| SbeSchemaError {
            file: file.map(str::to_owned),
            line,
            element: "the text".to_owned(),
            rule,
        };
        if text.len() > MAX_SCHEMA_LENGTH {
            let rule = format!(
                "{} bytes are more than the limit {MAX_SCHEMA_LENGTH}",
                text.len()
            );
            return Err(at(1, rule));
        }
        prescan::check(text).map_err(|(at_byte, rule)| {
            let before = &text.as_bytes()[..at_byte];
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
            at(line, rule)
        })?;
        let options = ParsingOptions {
            allow_dtd: false,
            nodes_limit: MAX_XML_NODES,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| at(error.pos().row, format!("not XML: {error}")))?;
        let lines = Lines::new(text);
        Self::copy(
            document.root_element(),
            &lines,
            file.map(Rc::from).as_ref(),
            1,
        )
    }

    fn copy(
        node: Node<'_, '_>,
        lines: &Lines,
        file: Option<&Rc<str>>,
        depth: usize,
    ) -> Result<Self, SbeSchemaError> {
        let attributes = node.attributes().map(|attribute| Attribute {
            name: attribute.name().to_owned(),
            has_namespace: attribute.namespace().is_some(),
            value: attribute.value().to_owned(),
        });
        let texts = node.children().filter(Node::is_text);
        let mut element = Self {
            name: node.tag_name().name().to_owned(),
            namespace: node.tag_name().namespace().map(str::to_owned),
            attributes: attributes.collect(),
            text: texts.filter_map(|text| text.text()).collect(),
            children: Vec::new(),
            file: file.cloned(),
            line: lines.line(node.range().start),
        };
        if depth > MAX_XML_DEPTH {
            return Err(element.error(format!(
                "elements are nested deeper than the limit {MAX_XML_DEPTH}"
            )));
        }
        for child in node.children().filter(Node::is_element) {
            element
                .children
                .push(Self::copy(child, lines, file, depth + 1)?);
        }
        Ok(element)
    }

    /// Removes elements such as annotations: their names are not SBE's, and their namespace is not that of the root.
    pub fn remove_foreign(&mut self, root: Option<&str>) {
        self.children.retain(|child| {
            let is_own = child.namespace.is_none() || child.namespace.as_deref() == root;
            let is_metadata = child.name == "metadata";
            NAMES.contains(&child.name.as_str()) || is_own && !is_metadata
        });
        for child in &mut self.children {
            child.remove_foreign(root);
        }
    }

    /// Returns the value of an attribute without namespace.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|attribute| attribute.name == name && !attribute.has_namespace);
        found.map(|attribute| attribute.value.as_str())
    }

    /// Returns the value of an attribute that belongs to any namespace.
    pub fn foreign_attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|attribute| attribute.name == name && attribute.has_namespace);
        found.map(|attribute| attribute.value.as_str())
    }

    /// Returns the value of an attribute that must exist.
    pub fn required(&self, name: &str) -> Result<&str, SbeSchemaError> {
        self.attribute(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| self.error(format!("the attribute '{name}' is missing")))
    }

    /// Returns the value of an attribute that is a number from 0 to `limit`.
    pub fn number(&self, name: &str, limit: u64) -> Result<Option<u64>, SbeSchemaError> {
        let Some(text) = self.attribute(name) else {
            return Ok(None);
        };
        match text.trim().parse::<u64>() {
            Ok(value) if value <= limit => Ok(Some(value)),
            _ => Err(self.error(format!("{name} '{text}' is not a number from 0 to {limit}"))),
        }
    }

    /// Returns a version or id: a number of at most 32 bits.
    pub fn number32(&self, name: &str) -> Result<Option<u32>, SbeSchemaError> {
        let value = self.number(name, u64::from(u32::MAX))?;
        Ok(value.map(|value| value as u32))
    }

    /// Returns an error of this element.
    pub fn error(&self, rule: impl Display) -> SbeSchemaError {
        SbeSchemaError {
            file: self.file.as_deref().map(str::to_owned),
            line: self.line,
            element: self.shown(),
            rule: rule.to_string(),
        }
    }

    /// Returns a warning of this element.
    pub fn warning(&self, note: impl Display) -> SbeSchemaWarning {
        SbeSchemaWarning {
            file: self.file.as_deref().map(str::to_owned),
            line: self.line,
            element: self.shown(),
            note: note.to_string(),
        }
    }

    fn shown(&self) -> String {
        match self.attribute("name") {
            Some(name) => format!("<{} name=\"{name}\">", self.name),
            None => format!("<{}>", self.name),
        }
    }
}

/// Finds lines by binary search: roxmltree's own search begins at the start of the text for each node.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(index, _)| index).collect())
    }

    fn line(&self, position: usize) -> u32 {
        self.0.partition_point(|end| *end < position) as u32 + 1
    }
}
