//! The arguments of an interceptor: `key=value` pairs with `|` between them.

use std::str::FromStr;

/// Arguments as text, and the variable they come from.
#[derive(Debug)]
pub struct Arguments<'a> {
    variable: &'static str,
    text: &'a str,
}

impl<'a> Arguments<'a> {
    /// The content `text` of `variable`.
    pub fn new(variable: &'static str, text: &'a str) -> Self {
        Arguments { variable, text }
    }

    /// Refuses pairs without `=` and keys other than `known`.
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

    /// The text of `key`, `None` without it.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs()
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The value of `key`, `None` without it.
    pub fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        self.get(key)
            .map(|text| self.accept(text.parse().ok()))
            .transpose()
    }

    /// A value that could be read, or the refusal of all arguments.
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
