//! Retention policies from a file, which the archive reads at its start and at each reload.
//!
//! The setting `aeron.archive.retention.file` is the path of a TOML file:
//!
//! ```toml
//! [[policy]]
//! stream_id = 1001
//! channel = "endpoint=localhost:20121"
//! max_bytes = "10g"
//! max_age_ms = 604_800_000
//! ```
//!
//! The fields are those of a request. A policy without `stream_id` and `channel` is for all recordings. The file has
//! all policies of streams and channels: the archive removes those that are not in the file. Policies of single
//! recordings are set by requests only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aeron_agent::value::parse_size;
use aeron_protocol::archive::extension::MAX_CHANNEL_FRAGMENT_LENGTH;
use toml::{Table, Value};

use crate::extensions::{RetentionPolicy, RetentionScope};

/// Why a file of retention policies cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("retention file {}: {problem}", path.display())]
pub struct RetentionFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// The problem and the remedy.
    pub problem: String,
}

/// Reads the policies of a file. A file without policies is valid.
///
/// # Errors
/// The file cannot be read, or it is not a list of policies.
pub(in crate::server) fn load_policies(
    path: &Path,
) -> Result<Vec<RetentionPolicy>, RetentionFileError> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
    text.and_then(|text| parse(&text))
        .map_err(|problem| RetentionFileError {
            path: path.to_owned(),
            problem,
        })
}

fn parse(text: &str) -> Result<Vec<RetentionPolicy>, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let listed = match table.remove("policy") {
        None => Vec::new(),
        Some(Value::Array(listed)) => listed,
        Some(_) => return Err("policy is not a list: use [[policy]] sections".to_owned()),
    };
    if let Some(other) = table.keys().next() {
        return Err(format!("{other} is not known: use [[policy]] sections"));
    }
    let mut policies = BTreeMap::new();
    for (index, section) in listed.into_iter().enumerate() {
        let number = index + 1;
        let Value::Table(section) = section else {
            return Err(format!("policy {number} is not a section"));
        };
        let policy = policy_of(section).map_err(|problem| format!("policy {number}: {problem}"))?;
        let scope = policy.scope.clone();
        if policies.insert(scope, policy).is_some() {
            return Err(format!(
                "policy {number} has the stream_id and channel of an earlier one: give each pair one section"
            ));
        }
    }
    Ok(policies.into_values().collect())
}

fn policy_of(mut section: Table) -> Result<RetentionPolicy, String> {
    let stream_id = match section.remove("stream_id") {
        None => None,
        Some(Value::Integer(id)) => {
            Some(i32::try_from(id).map_err(|_| format!("stream_id={id} does not fit in 32 bits"))?)
        }
        Some(other) => return Err(format!("stream_id={} is not a number", shown(&other))),
    };
    let channel_fragment = match section.remove("channel") {
        None => String::new(),
        Some(Value::String(text)) if text.len() <= MAX_CHANNEL_FRAGMENT_LENGTH => text,
        Some(other) => {
            return Err(format!(
                "channel={} is not a text of at most {MAX_CHANNEL_FRAGMENT_LENGTH} bytes",
                shown(&other)
            ));
        }
    };
    let max_bytes = match section.remove("max_bytes") {
        None => None,
        Some(Value::Integer(bytes @ 0..)) => Some(bytes),
        Some(Value::String(text)) => {
            Some(parse_size(&text).map_err(|error| format!("max_bytes=\"{text}\": {error}"))?)
        }
        Some(other) => {
            return Err(format!(
                "max_bytes={} is not a number of bytes or a size such as \"10g\"",
                shown(&other)
            ));
        }
    };
    let max_age_ms = match section.remove("max_age_ms") {
        None => None,
        Some(Value::Integer(age @ 0..)) => Some(age),
        Some(other) => {
            return Err(format!(
                "max_age_ms={} is not a number of milliseconds",
                shown(&other)
            ));
        }
    };
    if let Some(other) = section.keys().next() {
        return Err(format!(
            "{other} is not known: use stream_id, channel, max_bytes and max_age_ms"
        ));
    }
    if max_bytes.is_none() && max_age_ms.is_none() {
        return Err(
            "it has no limit: set max_bytes or max_age_ms, or remove the section".to_owned(),
        );
    }
    Ok(RetentionPolicy {
        scope: RetentionScope::Matching {
            stream_id,
            channel_fragment,
        },
        max_bytes,
        max_age_ms,
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        other => format!("({})", other.type_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<Vec<RetentionPolicy>, String> {
        parse(&format!("[[policy]]\n{text}"))
    }

    #[test]
    fn a_file_has_policies_of_streams_and_channels() {
        let policies =
            policy("stream_id = 7\nchannel = \"a\"\nmax_bytes = \"10k\"\nmax_age_ms = 5").unwrap();
        let scope = RetentionScope::Matching {
            stream_id: Some(7),
            channel_fragment: "a".to_owned(),
        };
        assert_eq!(
            policies,
            [RetentionPolicy {
                scope,
                max_bytes: Some(10_240),
                max_age_ms: Some(5)
            }]
        );
        assert_eq!(policy("max_bytes = 0").unwrap()[0].max_bytes, Some(0));
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_wrong_policy_is_refused_with_its_number_and_its_value() {
        for (text, problem) in [
            ("stream_id = 1", "policy 1: it has no limit"),
            ("max_bytes = -1", "max_bytes=-1 is not a number of bytes"),
            ("max_bytes = \"ten\"", "policy 1: max_bytes=\"ten\": "),
            (
                "max_age_ms = \"7d\"",
                "max_age_ms=\"7d\" is not a number of milliseconds",
            ),
            (
                "max_bytes = 1\nstream_id = 4294967296",
                "stream_id=4294967296 does not fit",
            ),
            (
                "max_bytes = 1\nrecording_id = 3",
                "recording_id is not known",
            ),
            (
                "max_bytes = 1\n[[policy]]\nmax_bytes = 2",
                "policy 2 has the stream_id and channel",
            ),
            ("max_bytes = 1\n[policies]", "policies is not known"),
            ("max_bytes = ", "TOML parse error"),
        ] {
            let error = policy(text).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
