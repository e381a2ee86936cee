//! Labels of a series, as the text between its braces.

use std::fmt::Write as _;

use aeron_protocol::uri::ChannelUri;

/// Parameters that remain in the label of a channel. They stay the same after a restart.
const KEPT_PARAMETERS: [&str; 3] = ["endpoint", "control", "interface"];

/// The labels of a series, written in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    text: String,
}

impl Labels {
    /// Appends a label.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(name);
        self.text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
        self
    }

    /// Appends a label with a number.
    pub fn with_number(mut self, name: &str, value: i64) -> Self {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        let _ = write!(self.text, "{name}=\"{value}\"");
        self
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns a channel without the parameters that differ between two runs of a program, such as tags and session ids.
/// A channel that cannot be parsed stays as it is. Of a channel that is not complete, the last parameter is left out:
/// half an address would look like another address.
pub fn stable_channel(channel: &str, is_complete: bool) -> String {
    let channel = match channel.rsplit_once('|') {
        Some((before, _)) if !is_complete => before,
        _ => channel,
    };
    let Ok(parsed) = ChannelUri::parse(channel) else {
        return channel.to_owned();
    };
    let prefix = if parsed.is_spy() { "aeron-spy:" } else { "" };
    let mut stable = format!("{prefix}aeron:{}", parsed.media().as_str());
    let kept = KEPT_PARAMETERS
        .iter()
        .filter_map(|key| Some((key, parsed.get(key)?)));
    for (index, (key, value)) in kept.enumerate() {
        let separator = if index == 0 { '?' } else { '|' };
        let _ = write!(stable, "{separator}{key}={value}");
    }
    stable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_backslashes_and_line_ends_are_escaped() {
        let labels = Labels::default().with("a", "x\"\\\n").with_number("b", -1);
        assert_eq!(labels.into_text(), r#"a="x\"\\\n",b="-1""#);
    }

    #[test]
    fn a_channel_keeps_its_addresses_in_one_order() {
        let written = "aeron:udp?control=h:2|tags=1,2|session-id=7|interface=lo|endpoint=h:1";
        assert_eq!(
            stable_channel(written, true),
            "aeron:udp?endpoint=h:1|control=h:2|interface=lo"
        );
        assert_eq!(
            stable_channel("aeron-spy:aeron:udp?endpoint=h:1|alias=a", true),
            "aeron-spy:aeron:udp?endpoint=h:1"
        );
        assert_eq!(
            stable_channel("aeron:ipc?term-length=64k|alias=a", true),
            "aeron:ipc"
        );
    }

    #[test]
    fn half_an_address_is_no_label() {
        let cut = "aeron:udp?control=h:2|endpoint=localho";
        assert_eq!(stable_channel(cut, false), "aeron:udp?control=h:2");
    }

    #[test]
    fn a_text_that_is_no_channel_stays() {
        for text in ["", "aeron:udp?endpo", "of\nanother program"] {
            assert_eq!(stable_channel(text, true), text);
        }
    }
}
