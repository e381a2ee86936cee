//! [`Request`]: an operation and its parameters.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use super::Result;

/// One line of the input.
pub struct Request {
    pub operation: String,
    values: HashMap<String, String>,
}

impl Request {
    pub fn new(line: &str) -> Self {
        let mut parts = line.split('\t');
        let operation = parts.next().unwrap_or_default().to_owned();
        let values = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Self { operation, values }
    }

    pub fn text(&self, name: &str) -> Result<&str> {
        let value = self.values.get(name);
        value
            .map(String::as_str)
            .ok_or_else(|| format!("{} needs {name}", self.operation).into())
    }

    pub fn text_or(&self, name: &str, absent: &'static str) -> &str {
        self.values.get(name).map_or(absent, String::as_str)
    }

    pub fn number<T: FromStr>(&self, name: &str) -> Result<T> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| format!("{name}={text} is not a number in range").into())
    }

    pub fn number_or<T: FromStr>(&self, name: &str, absent: T) -> Result<T> {
        match self.values.contains_key(name) {
            true => self.number(name),
            false => Ok(absent),
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.text_or(name, "false") == "true"
    }

    pub fn lengths(&self) -> Result<Vec<usize>> {
        let lengths = self.text("lengths")?.split(',').map(str::parse);
        Ok(lengths.collect::<std::result::Result<_, _>>()?)
    }

    pub fn timeout(&self) -> Result<Duration> {
        Ok(Duration::from_millis(self.number_or("timeout_ms", 20_000)?))
    }
}
