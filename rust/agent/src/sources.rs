//! [`Sources`]: where settings come from: the environment, `-D` definitions and properties files, later ones over earlier ones.

use std::collections::BTreeMap;

use crate::download::fetch;
use crate::properties::{self, Dialect, PropertiesError, Property};

/// Prefix of the names of all settings.
const PREFIX: &str = "AERON_";

/// The texts of settings, by their environment variables.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    variables: BTreeMap<String, String>,
    dialect: Dialect,
}

/// A definition or properties file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    /// A definition without a name or a separator.
    #[error("malformed define: {0}")]
    MalformedDefine(String),
    /// A properties file that cannot be read or parsed.
    #[error("loading properties from {file} {reason}")]
    File {
        /// The file as it was named.
        file: String,
        /// What is wrong with it.
        reason: PropertiesError,
    },
    /// A properties file that a web server does not give.
    #[error("loading properties from {file} {reason}")]
    Download {
        /// The file as it was named.
        file: String,
        /// What went wrong.
        reason: String,
    },
}

impl Sources {
    /// Returns the variables of this process that begin with `AERON_`. One that is not UTF-8 is left out.
    pub fn environment() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, text)| {
            let name = name.into_string().ok()?;
            name.starts_with(PREFIX).then_some(())?;
            Some((name, text.into_string().ok()?))
        });
        Self {
            variables: variables.collect(),
            dialect: Dialect::default(),
        }
    }

    /// Reads properties files in this dialect from now on.
    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Sets what the argument of `-D` says: `name=text` or `name:text`; an empty text removes the setting.
    ///
    /// # Errors
    /// [`SourcesError::MalformedDefine`].
    pub fn define(&mut self, argument: &str) -> Result<(), SourcesError> {
        let property = properties::parse_property(argument)
            .ok_or_else(|| SourcesError::MalformedDefine(argument.to_owned()))?;
        self.overlay([property]);
        Ok(())
    }

    /// Takes over a properties file, named by its path, `file://` and its path, or an `http://` URL.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is no property.
    pub fn load_file(&mut self, file: &str) -> Result<(), SourcesError> {
        let unreadable = |reason| SourcesError::File {
            file: file.to_owned(),
            reason,
        };
        let bytes = if file.starts_with("http://") {
            fetch(file).map_err(|reason| SourcesError::Download {
                file: file.to_owned(),
                reason,
            })?
        } else {
            properties::read(file.strip_prefix("file://").unwrap_or(file)).map_err(unreadable)?
        };
        let properties = self.dialect.parse(&bytes);
        self.overlay(properties.map_err(unreadable)?);
        Ok(())
    }

    /// The text of a variable, for instance `AERON_MTU_LENGTH`; never empty where properties set it.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
    }

    fn overlay(&mut self, properties: impl IntoIterator<Item = Property>) {
        properties::overlay(&mut self.variables, properties);
    }
}
