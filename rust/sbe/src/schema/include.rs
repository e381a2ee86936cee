//! Included files.

use crate::limits::{MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_XML_DEPTH};
use crate::schema::SbeSchemaError;
use crate::schema::element::Element;

const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";

/// Function that returns the text of an included file. The name is relative to the schema, also if a file in another
/// folder includes it.
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
        let name = resolved(self.open.last(), element.required("href")?);
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

/// Returns a name relative to the schema, from a name relative to the file that includes it.
fn resolved(including: Option<&String>, name: &str) -> String {
    let folder = including.and_then(|file| file.rsplit_once('/'));
    let is_absolute = name.starts_with('/') || name.contains("://");
    match folder {
        Some((folder, _)) if !is_absolute => without_parents(&format!("{folder}/{name}")),
        _ => name.to_owned(),
    }
}

/// Removes each `folder/..`, so that a file has one name. A `..` at the begin remains: the loader decides about it.
fn without_parents(name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/').filter(|part| *part != ".") {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_include(element: &Element) -> bool {
    element.name == "include"
        && element
            .namespace
            .as_deref()
            .is_none_or(|name| name == XINCLUDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(including: &str, href: &str) -> String {
        resolved(Some(&including.to_owned()), href)
    }

    #[test]
    fn a_name_is_relative_to_the_including_file() {
        assert_eq!(resolved(None, "sub/c.xml"), "sub/c.xml");
        assert_eq!(name("c.xml", "d.xml"), "d.xml");
        assert_eq!(name("sub/c.xml", "d.xml"), "sub/d.xml");
        assert_eq!(name("a/b/c.xml", ".././d.xml"), "a/d.xml");
        assert_eq!(name("sub/c.xml", "../../d.xml"), "../d.xml");
        assert_eq!(name("sub/c.xml", "/d.xml"), "/d.xml");
        assert_eq!(name("sub/c.xml", "http://host/d.xml"), "http://host/d.xml");
    }
}
