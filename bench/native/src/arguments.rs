//! The command line: a role, a directory, then `name=value` for what differs from the defaults.

use std::path::PathBuf;

/// What a process is to do.
pub struct Arguments {
    pub role: String,
    pub directory: PathBuf,
    pub channel: String,
    /// Bytes of each message, at least [`crate::record::MIN_LENGTH`].
    pub length: usize,
    /// How long the publisher sends, or round trips are measured.
    pub seconds: f64,
    /// `offer`, `claim` or `batch`.
    pub how: String,
    /// Fragments a poll takes at most.
    pub limit: usize,
    /// Whether messages come in several fragments.
    pub assemble: bool,
    /// Messages of one batch.
    pub batch: usize,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let usage = "aeron-bench ROLE DIRECTORY [name=value...]";
        let mut arguments = Self {
            role: words.next().ok_or(usage)?,
            directory: words.next().ok_or(usage)?.into(),
            channel: "aeron:ipc".into(),
            length: 32,
            seconds: 2.0,
            how: "offer".into(),
            limit: 256,
            assemble: false,
            batch: 256,
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or(usage)?;
            match name {
                "channel" => arguments.channel = value.into(),
                "how" => arguments.how = value.into(),
                "length" => arguments.length = number(name, value)?,
                "seconds" => arguments.seconds = number(name, value)?,
                "assemble" => arguments.assemble = number(name, value)?,
                "limit" => arguments.limit = number(name, value)?,
                "batch" => arguments.batch = number(name, value)?,
                _ => return Err(format!("unknown setting {name}")),
            }
        }
        Ok(arguments)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}={value} is not a number"))
}
