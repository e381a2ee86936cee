//! Properties files: `name=value` lines that set environment variables.
//!
//! [`parse`] reads one dialect for all programs. It is the format of Java's `Properties`, and it also reads files for
//! Aeron's C driver, unless a value has a backslash. Text is UTF-8. If the bytes are not UTF-8, they are Latin-1.

mod parser;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use parser::parse;

/// One `name=value`. An empty value removes the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The name as written, for instance `aeron.term.buffer.length`.
    pub name: String,
    /// The value with trailing blanks, as written.
    pub value: String,
}

/// Reason why a property file was refused. Line numbers begin at 1.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// The line has no name or no separator, or contains an escape that is not valid.
    #[error("properties file line {0} malformed")]
    Malformed(usize),
    /// The file could not be read.
    #[error("could not open properties file: {}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

/// Returns the bytes of a properties file.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, PropertiesError> {
    let path = path.as_ref();
    std::fs::read(path).map_err(|source| PropertiesError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Parses one `name=value` or `name:value`, as after `-D` on a command line.
pub fn parse_property(text: &str) -> Option<Property> {
    let (name, value) = text.split_once(['=', ':'])?;
    let name = name.trim_matches(BLANKS);
    (!name.is_empty()).then(|| Property {
        name: name.to_owned(),
        value: value.trim_start_matches(BLANKS).to_owned(),
    })
}

/// Returns the environment variable of a property: `aeron.mtu.length` is `AERON_MTU_LENGTH`.
pub fn environment_name(property_name: &str) -> String {
    let name = property_name.to_ascii_uppercase().replace('.', "_");
    if name == IRREGULAR.0 {
        return IRREGULAR.1.to_owned();
    }
    name
}

/// Applies `properties` to an environment: a later property wins, an empty value removes the variable.
pub fn overlay(
    environment: &mut BTreeMap<String, String>,
    properties: impl IntoIterator<Item = Property>,
) {
    for Property { name, value } in properties {
        let name = environment_name(&name);
        if value.is_empty() {
            environment.remove(&name);
        } else {
            environment.insert(name, value);
        }
    }
}

/// The one setting with an irregular environment variable: the variable that would follow from the name of its
/// property, and the variable that Aeron uses.
const IRREGULAR: (&str, &str) = (
    "AERON_NAME_RESOLVER_THRESHOLD",
    "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
);

const BLANKS: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn an_empty_value_removes_the_variable_05_48() {
        let mut environment = BTreeMap::from([("AERON_DIR".to_owned(), "/tmp/x".to_owned())]);
        overlay(
            &mut environment,
            parse(b"aeron.dir=\naeron.mtu.length=1408\naeron.mtu.length=8k\n").unwrap(),
        );
        assert_eq!(
            environment,
            BTreeMap::from([("AERON_MTU_LENGTH".to_owned(), "8k".to_owned())])
        );
    }

    #[test]
    fn the_error_for_a_missing_file_has_the_path() {
        let error = read("/nowhere/at.all").unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not open properties file: /nowhere/at.all"
        );
    }
}
