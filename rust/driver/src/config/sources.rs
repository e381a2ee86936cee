//! Where settings come from: the environment, `-D` definitions and properties files, later ones over earlier ones.

use std::collections::BTreeMap;

use aeron_agent::properties::{self, PropertiesError, Property};

use super::SETTINGS;
use super::download::fetch;

/// One property whose variable does not follow from its name.
const IRREGULAR: (&str, &str) = (
    "AERON_NAME_RESOLVER_THRESHOLD",
    "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
);

/// Variables and their texts.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    variables: BTreeMap<String, String>,
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
    /// The variables of this process that name settings.
    pub fn environment() -> Self {
        let mut sources = Sources::default();
        for setting in SETTINGS {
            if let Ok(text) = std::env::var(setting.variable) {
                sources.variables.insert(setting.variable.to_owned(), text);
            }
        }
        sources
    }

    /// Sets what the argument of `-D` says: `name=text` or `name:text`; an empty text removes the setting.
    pub fn define(&mut self, argument: &str) -> Result<(), SourcesError> {
        let property = properties::parse_property(argument)
            .ok_or_else(|| SourcesError::MalformedDefine(argument.to_owned()))?;
        self.overlay([property]);
        Ok(())
    }

    /// Takes over a properties file, named by its path, `file://` and its path, or an `http://` URL.
    pub fn load_file(&mut self, file: &str) -> Result<(), SourcesError> {
        let unreadable = |reason| SourcesError::File {
            file: file.to_owned(),
            reason,
        };
        let properties = if file.starts_with("http://") {
            let bytes = fetch(file).map_err(|reason| SourcesError::Download {
                file: file.to_owned(),
                reason,
            })?;
            properties::parse(&bytes)
        } else {
            properties::load(file.strip_prefix("file://").unwrap_or(file))
        };
        self.overlay(properties.map_err(unreadable)?);
        Ok(())
    }

    fn overlay(&mut self, properties: impl IntoIterator<Item = Property>) {
        properties::overlay(&mut self.variables, properties);
        if let Some(text) = self.variables.remove(IRREGULAR.0) {
            self.variables.insert(IRREGULAR.1.to_owned(), text);
        }
    }

    pub(super) fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
    }
}
