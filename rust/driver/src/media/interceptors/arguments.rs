//! [`Arguments`]: parses the arguments of an interceptor, `key=value` pairs separated by `|`.

use std::str::FromStr;

/// The text of the arguments, and the environment variable that contains it.
#[derive(Debug)]
pub struct Arguments<'a> {
    variable: &'static str,
    text: &'a str,
}

impl<'a> Arguments<'a> {
    /// Creates the arguments with the content `text` of `variable`.
    pub fn new(variable: &'static str, text: &'a str) -> Self {
        Arguments { variable, text }
    }

    /// Returns an error for a pair without `=` and for a key that is not in `known`.
    pub fn check_keys(&self, known: &[&str]) -> Result<(), String> {
        let is_known = |pair: &str| {
            pair.split_once('=')
                .is_some_and(|(key, _)| known.contains(&key))
        };
        match self.pairs().all(is_known) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    /// Returns the text for `key`; `None` if the key is missing.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs()
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Returns the number for `key`; `None` if the key is missing.
    pub fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        self.get(key)
            .map(|text| self.accept(text.parse().ok()))
            .transpose()
    }

    /// Returns the value, or the error for the whole text if the value is `None`.
    pub fn accept<T>(&self, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| self.refusal())
    }

    fn pairs(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text.split('|').filter(|pair| !pair.is_empty())
    }

    fn refusal(&self) -> String {
        format!(
            "WARNING: {}={} is invalid, nothing is lost",
            self.variable, self.text
        )
    }
}
