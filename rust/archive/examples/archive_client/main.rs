//! An archive client that reads requests from stdin, one on each line. Tests use the client with archives of other
//! software.
//!
//! A request has the form `operation<TAB>name=value<TAB>...`. Its result is one line of JSON:
//! `{"ok": {...}}` or `{"error": {"type", "code", "correlation", "text"}}`. Publications, subscriptions and counters
//! are identified by their registration ids (`id`). Messages of a publication are numbered and have the pattern of the
//! interop tests, which `receive` checks.

use std::error::Error;
use std::io::{BufRead, Write};

use aeron_archive::client::ArchiveClientError;
use serde_json::{Value, json};

use peer::ArchivePeer;
use request::Request;

mod calls;
mod peer;
mod persistent;
mod request;
mod streams;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut peer = ArchivePeer::default();
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request = Request::new(&line?);
        let answer = match peer.perform(&request) {
            Ok(values) => json!({ "ok": values }),
            Err(error) => json!({ "error": error_of(error.as_ref()) }),
        };
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
    Ok(())
}

/// Returns the variant, the archive's code (0 if the archive did not refuse), the correlation id and the text of an
/// error.
fn error_of(error: &(dyn Error + 'static)) -> Value {
    let archive = error.downcast_ref::<ArchiveClientError>();
    let code = match archive {
        Some(ArchiveClientError::Refused { code, .. }) => *code,
        _ => 0,
    };
    let debug = archive.map_or_else(|| "Error".to_owned(), |error| format!("{error:?}"));
    let kind = debug.split([' ', '(']).next().unwrap_or_default();
    json!({
        "type": kind,
        "code": code,
        "correlation": archive.and_then(ArchiveClientError::correlation_id),
        "text": error.to_string(),
    })
}
