//! Describes datagrams as text, so that a developer can follow the events of a schedule.

use std::fmt::Write;

use aeron_protocol::frame::{ControlFrame, DataFrame};

use super::SentDatagram;

/// Describes a sent datagram in one line.
pub fn describe(passing: SentDatagram<'_>) -> String {
    let SentDatagram { from, to, bytes } = passing;
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
