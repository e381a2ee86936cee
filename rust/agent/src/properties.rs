//! Property files: `name=value` lines that set environment variables.
//!
//! [`parse`] reads the dialect of Aeron's C media driver: `=` or `:` as separator, `#` and `!` comments, no escapes. A
//! `\` at the end of a line continues the line. Each line, including the last one, must end with LF or CRLF. A line and
//! a joined property must be shorter than 2048 bytes. [`Dialect::Java`] is the dialect of the Java programs.

mod java;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Limit for a line, and for a property joined from several lines, in bytes.
pub const MAX_PROPERTY_LENGTH: usize = 2048;

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
    /// The line does not have the form `name=value`, or contains bytes or escapes that are not valid in the dialect.
    #[error("properties file line {0} malformed")]
    Malformed(usize),
    /// The line, or the property joined up to this line, is not shorter than [`MAX_PROPERTY_LENGTH`]. Or the line is
    /// the last one and does not end with a line break.
    #[error("properties file line {0} too long or does not end with newline")]
    TooLong(usize),
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

/// Dialects of properties files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect of Aeron's C media driver.
    #[default]
    C,
    /// The dialect of Java's `Properties`: with escapes such as `\u00fc`, in Latin-1. The last line may end without a
    /// line break.
    Java,
}

impl Dialect {
    /// Parses the bytes of a file. Returns its properties in order.
    ///
    /// # Errors
    /// The file has a line that is not a property of this dialect.
    pub fn parse(self, bytes: &[u8]) -> Result<Vec<Property>, PropertiesError> {
        match self {
            Self::C => parse(bytes),
            Self::Java => java::parse(bytes),
        }
    }
}

/// Returns the bytes of a properties file.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, PropertiesError> {
    let path = path.as_ref();
    std::fs::read(path).map_err(|source| PropertiesError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Parses the bytes of a file. Returns its properties in order.
pub fn parse(bytes: &[u8]) -> Result<Vec<Property>, PropertiesError> {
    let mut properties = Vec::new();
    let mut joined = String::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let line = trim_line(line, number)?;
        if is_comment(line) {
            continue;
        }
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        joined.push_str(part);
        if joined.len() >= MAX_PROPERTY_LENGTH {
            return Err(PropertiesError::TooLong(number));
        }
        if !goes_on && !joined.is_empty() {
            properties.push(parse_property(&joined).ok_or(PropertiesError::Malformed(number))?);
            joined.clear();
        }
    }
    if joined.is_empty() {
        Ok(properties)
    } else {
        Err(PropertiesError::Malformed(
            bytes.split(|byte| *byte == b'\n').count() - 1,
        ))
    }
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

/// Returns the line without its line break and its leading blanks.
fn trim_line(line: &[u8], number: usize) -> Result<&str, PropertiesError> {
    let Some(line) = line
        .strip_suffix(b"\n")
        .filter(|line| line.len() < MAX_PROPERTY_LENGTH)
    else {
        return Err(PropertiesError::TooLong(number));
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| PropertiesError::Malformed(number))?;
    Ok(line.trim_start_matches(BLANKS))
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', '!'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text.as_bytes())
            .unwrap()
            .into_iter()
            .map(|property| (property.name, property.value))
            .collect()
    }

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    fn owned<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn both_separators_are_read_and_blanks_around_them_dropped_05_48() {
        let text = "a=1\n  b : 2\n\tc\t=\t3 \nurl=aeron:udp?endpoint=x:1\n";
        assert_eq!(
            pairs(text),
            owned([
                ("a", "1"),
                ("b", "2"),
                ("c", "3 "),
                ("url", "aeron:udp?endpoint=x:1")
            ])
        );
    }

    #[test]
    fn comments_and_blank_lines_are_skipped_05_48() {
        assert_eq!(pairs("# one\n\n   ! two\n \t\na=1\n"), owned([("a", "1")]));
    }

    #[test]
    fn a_backslash_continues_a_line_even_past_a_comment_05_48() {
        assert_eq!(
            pairs("a=1\\\n   2\\\n# between\n\t3\nb=4\n"),
            owned([("a", "123"), ("b", "4")])
        );
    }

    #[test]
    fn lines_may_end_with_crlf_05_48() {
        assert_eq!(
            pairs("a=1\r\nb=2\\\r\n 3\r\n"),
            owned([("a", "1"), ("b", "23")])
        );
    }

    #[test]
    fn a_last_line_without_a_newline_is_refused_05_48() {
        assert_eq!(
            refusal("a=1\nb=2"),
            "properties file line 2 too long or does not end with newline"
        );
        assert_eq!(refusal("a=1\\\n"), "properties file line 1 malformed");
    }

    #[test]
    fn the_error_for_a_malformed_line_has_the_line_number_05_48() {
        assert_eq!(
            refusal("a=1\n\nnonsense\n"),
            "properties file line 3 malformed"
        );
        assert_eq!(refusal("=1\n"), "properties file line 1 malformed");
        assert!(matches!(
            parse(b"a=\xff\n"),
            Err(PropertiesError::Malformed(1))
        ));
    }

    #[test]
    fn lines_and_joined_properties_of_2048_bytes_are_refused() {
        let fits = format!("a={}\n", "x".repeat(2045));
        assert_eq!(pairs(&fits).len(), 1);
        let too_long = format!("a={}\n", "x".repeat(2046));
        assert_eq!(
            refusal(&too_long),
            "properties file line 1 too long or does not end with newline"
        );
        let joined_too_long = format!("a={}\\\n{}\n", "x".repeat(2000), "y".repeat(100));
        assert_eq!(
            refusal(&joined_too_long),
            "properties file line 2 too long or does not end with newline"
        );
    }

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

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"=:\\\n\r #!a".as_slice())], 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
