//! Parses the port range for sockets without a fixed port.

use std::ops::RangeInclusive;

/// Parses `low high`, two ports from 1 to 65535. Returns `None` for `0 0`: the system then chooses the port.
///
/// # Errors
/// The reason why the text is invalid.
pub(super) fn parse_port_range(text: &str) -> Result<Option<RangeInclusive<u16>>, &'static str> {
    let mut ports = text.split_whitespace().map(|port| port.parse().ok());
    let low = ports
        .next()
        .flatten()
        .ok_or("failed to parse first part of port range")?;
    let high = ports
        .next()
        .flatten()
        .ok_or("failed to parse second part of port range")?;
    match (low, high) {
        _ if ports.next().is_some() => Err("port range has more than two parts"),
        (low, high) if low > high => Err("low port should be less than or equal to high port"),
        (0, 1..) => Err("port range must not begin with 0"),
        (0, 0) => Ok(None),
        (low, high) => Ok(Some(low..=high)),
    }
}
