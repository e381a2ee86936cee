//! The command line: a role, a directory, then `name=value` for settings that differ from the defaults.

use std::path::PathBuf;

/// The command line of a process.
pub struct Arguments {
    pub role: String,
    pub directory: PathBuf,
    /// Channel of the messages. For a subscriber: one or more channels separated by spaces, with a subscription each.
    pub channel: String,
    /// Channel for the responses of round trips. The default is `channel`.
    pub reply: String,
    /// Length of each message in bytes, at least [`crate::record::MIN_LENGTH`].
    pub length: usize,
    /// Length of the longest message in bytes, if lengths vary.
    pub max_length: usize,
    /// Duration of sending in seconds, with the warm-up.
    pub seconds: f64,
    /// Seconds at the start that do not count, in which all pages of the logs are made.
    pub warmup: f64,
    /// Nanoseconds of a busy wait for each message. It shows whether the benchmark finds a known slowness.
    pub delay_ns: f64,
    /// The two CPUs of the probe.
    pub cpus: (usize, usize),
    /// Term length in bytes for roles without a channel.
    pub term_length: usize,
    /// Number of bytes to write to files.
    pub bytes: usize,
    /// The publisher's way to send: `offer`, `claim` or `batch`.
    pub how: String,
    /// Fragment limit of a poll.
    pub limit: usize,
    /// Whether messages have several fragments.
    pub assemble: bool,
    /// Number of messages in a batch.
    pub batch: usize,
    /// Idle strategy: `spin`, `yield` or `backoff`.
    pub idle: String,
    /// Embedded driver: `invoked` by the loop of this process, or on its own `threads`. Empty if the driver is another
    /// process.
    pub driver: String,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let usage = "aeron-bench ROLE DIRECTORY [name=value...]";
        let role = words.next().ok_or(usage)?;
        let mut arguments = Self {
            idle: if role.starts_with('p') && role.ends_with("ng") {
                "spin".into()
            } else {
                "yield".into()
            },
            role,
            directory: words.next().ok_or(usage)?.into(),
            channel: "aeron:ipc".into(),
            reply: String::new(),
            length: 32,
            max_length: 0,
            seconds: 2.0,
            warmup: 0.0,
            delay_ns: 0.0,
            cpus: (0, 1),
            term_length: 16 << 20,
            bytes: 1 << 30,
            how: "offer".into(),
            limit: 256,
            assemble: false,
            batch: 256,
            driver: String::new(),
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or(usage)?;
            match name {
                "channel" => arguments.channel = value.into(),
                "reply" => arguments.reply = value.into(),
                "how" => arguments.how = value.into(),
                "idle" => arguments.idle = value.into(),
                "driver" => arguments.driver = value.into(),
                "length" => arguments.length = number(name, value)?,
                "max_length" => arguments.max_length = number(name, value)?,
                "seconds" => arguments.seconds = number(name, value)?,
                "warmup" => arguments.warmup = number(name, value)?,
                "delay_ns" => arguments.delay_ns = number(name, value)?,
                "cpus" => arguments.cpus = two_numbers(name, value)?,
                "assemble" => arguments.assemble = number(name, value)?,
                "bytes" => arguments.bytes = number(name, value)?,
                "term_length" => arguments.term_length = number(name, value)?,
                "limit" => arguments.limit = number(name, value)?,
                "batch" => arguments.batch = number(name, value)?,
                _ => return Err(format!("unknown setting {name}")),
            }
        }
        arguments.max_length = arguments.max_length.max(arguments.length);
        if arguments.reply.is_empty() {
            arguments.reply.clone_from(&arguments.channel);
        }
        Ok(arguments)
    }
}

fn two_numbers(name: &str, value: &str) -> Result<(usize, usize), String> {
    let (first, second) = value.split_once(',').unwrap_or((value, ""));
    Ok((number(name, first)?, number(name, second)?))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}={value} is not a valid value"))
}
