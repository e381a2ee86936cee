//! Datagrams as text, for whoever wants to know what happened in a schedule.

use std::fmt::Write;

use aeron_protocol::frame::{ControlFrame, DataFrame};

use super::Passing;

/// Says in a line what a host sends.
pub fn describe(passing: Passing<'_>) -> String {
    let Passing { from, to, bytes } = passing;
    let mut line = format!("{from} -> {to} {} bytes: ", bytes.len());
    let written = match (DataFrame::decode(bytes), ControlFrame::decode(bytes)) {
        (Ok(Some(DataFrame::Data(data))), _) => write!(
            line,
            "{} {:#04x} session {} term {} offset {}",
            if data.is_heartbeat(bytes.len()) {
                "heartbeat"
            } else {
                "data"
            },
            data.flags,
            data.session_id,
            data.term_id,
            data.term_offset
        ),
        (Ok(Some(frame)), _) => write!(line, "{frame:?}"),
        (_, Ok(Some(frame))) => write!(line, "{frame:?}"),
        _ => write!(line, "something else"),
    };
    written.expect("writing to a string does not fail");
    line
}
