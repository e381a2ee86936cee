//! Errors and warnings of schemas.

/// Reason why a text is not a schema that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}line {line}: {element}: {rule}", in_file(file.as_deref()))]
pub struct SbeSchemaError {
    /// Name of the included file, or `None` for the schema itself.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: u32,
    /// The element with its name, such as `<field name="price">`.
    pub element: String,
    /// The broken rule, with the value and the limit.
    pub rule: String,
}

/// Part of a schema that is accepted, but does not have the effect that its author may expect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}line {line}: {element}: {note}", in_file(file.as_deref()))]
pub struct SbeSchemaWarning {
    /// Name of the included file, or `None` for the schema itself.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: u32,
    /// The element with its name.
    pub element: String,
    /// The part that has no effect.
    pub note: String,
}

fn in_file(file: Option<&str>) -> String {
    file.map_or(String::new(), |name| format!("{name}, "))
}
