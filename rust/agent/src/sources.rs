//! [`Sources`]: reads settings from the environment, `-D` definitions and properties files. A later source overrides
//! earlier ones.

use std::collections::BTreeMap;

use crate::download::fetch;
use crate::properties::{self, PropertiesError, Property, environment_name};

/// Prefix of the names of all settings.
const PREFIX: &str = "AERON_";

/// The texts of settings, by environment variable.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    variables: BTreeMap<String, String>,
    /// Names of the properties that set the variables, as written.
    properties: BTreeMap<String, String>,
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
        /// The path or URL that was given.
        file: String,
        /// Cause.
        reason: PropertiesError,
    },
    /// A properties file that cannot be downloaded.
    #[error("loading properties from {file} {reason}")]
    Download {
        /// The path or URL that was given.
        file: String,
        /// Description of the error.
        reason: String,
    },
}

impl Sources {
    /// Returns the variables of this process that begin with `AERON_`. Skips a variable that is not UTF-8.
    pub fn environment() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, text)| {
            let name = name.into_string().ok()?;
            name.starts_with(PREFIX).then_some(())?;
            Some((name, text.into_string().ok()?))
        });
        Self {
            variables: variables.collect(),
            properties: BTreeMap::new(),
        }
    }

    /// Applies the argument of `-D`: `name=text` or `name:text`; an empty text removes the setting.
    ///
    /// # Errors
    /// [`SourcesError::MalformedDefine`] if the argument has no name or no separator.
    pub fn define(&mut self, argument: &str) -> Result<(), SourcesError> {
        let property = properties::parse_property(argument)
            .ok_or_else(|| SourcesError::MalformedDefine(argument.to_owned()))?;
        self.overlay([property]);
        Ok(())
    }

    /// Applies a properties file, named by its path, `file://` and its path, or an `http://` URL.
    ///
    /// # Errors
    /// The file cannot be read, or contains a line that is not a property.
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
        let properties = properties::parse(&bytes);
        self.overlay(properties.map_err(unreadable)?);
        Ok(())
    }

    /// Returns the text of a variable, for example `AERON_MTU_LENGTH`. A text from properties is never empty.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
    }

    /// Returns the variables of settings: those that begin with `AERON_`. After each variable follows the name as
    /// written: the name of the property, or of the variable itself.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.variables.keys().map(String::as_str);
        names
            .filter(|variable| variable.starts_with(PREFIX))
            .map(|variable| {
                let property = self.properties.get(variable);
                (variable, property.map_or(variable, String::as_str))
            })
    }

    fn overlay(&mut self, properties: impl IntoIterator<Item = Property>) {
        let properties = properties.into_iter().inspect(|property| {
            let variable = environment_name(&property.name);
            self.properties.insert(variable, property.name.clone());
        });
        properties::overlay(&mut self.variables, properties);
    }
}
