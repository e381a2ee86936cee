//! Included files.

use crate::limits::{MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_XML_DEPTH};
use crate::schema::SbeSchemaError;
use crate::schema::element::Element;

const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";

/// Function that returns the text of an included file, by its name in the schema.
pub type SbeLoader<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// Replaces each `include` by the root of the file that it names.
pub(super) struct Includes<'a, 'b> {
    pub loader: &'a mut SbeLoader<'b>,
    /// Files that are being included, the outermost first.
    open: Vec<String>,
    count: usize,
}

impl<'a, 'b> Includes<'a, 'b> {
    pub fn new(loader: &'a mut SbeLoader<'b>) -> Self {
        Self {
            loader,
            open: Vec::new(),
            count: 0,
        }
    }

    /// Expands the includes below an element. `depth` is the depth of the element itself.
    pub fn expand(&mut self, element: &mut Element, depth: usize) -> Result<(), SbeSchemaError> {
        if depth > MAX_XML_DEPTH {
            return Err(element.error(format!(
                "elements are nested deeper than the limit {MAX_XML_DEPTH}"
            )));
        }
        for child in &mut element.children {
            if is_include(child) {
                let name = self.enter(child)?;
                let text = (self.loader)(&name)
                    .map_err(|reason| child.error(format!("cannot load '{name}': {reason}")))?;
                *child = Element::parse(&text, Some(&name))?;
                self.expand(child, depth + 1)?;
                self.open.pop();
            } else {
                self.expand(child, depth + 1)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, element: &Element) -> Result<String, SbeSchemaError> {
        let name = element.required("href")?.to_owned();
        if self.open.contains(&name) {
            return Err(element.error(format!("'{name}' includes itself")));
        }
        self.count += 1;
        if self.count > MAX_INCLUDES {
            return Err(element.error(format!("more than {MAX_INCLUDES} files are included")));
        }
        if self.open.len() == MAX_INCLUDE_DEPTH {
            return Err(element.error(format!(
                "included files are nested deeper than the limit {MAX_INCLUDE_DEPTH}"
            )));
        }
        self.open.push(name.clone());
        Ok(name)
    }
}

fn is_include(element: &Element) -> bool {
    element.name == "include"
        && element
            .namespace
            .as_deref()
            .is_none_or(|name| name == XINCLUDE)
}
