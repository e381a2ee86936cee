//! The malformed datagrams with the recorded reactions of the C driver, for the tests of the sender and the receiver.

const CASES: &str = include_str!("../../../protocol/tests/vectors/malformed.json");

/// The text of one case. The file has a regular layout, so a text search is enough to read a field.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a>(&'a str);

impl<'a> Case<'a> {
    /// Returns the cases for one kind of socket.
    pub fn all(target: &str) -> impl Iterator<Item = Case<'static>> {
        CASES
            .split("\n },\n")
            .map(Case)
            .filter(move |case| case.text("target") == target)
    }

    /// Returns the text of a field, if the case has the field.
    pub fn find(self, key: &str) -> Option<&'a str> {
        let name = format!("\n  \"{key}\": ");
        let rest = &self.0[self.0.find(&name)? + name.len()..];
        let end = rest.find("\n  \"").unwrap_or(rest.len());
        Some(rest[..end].trim_end().trim_end_matches(','))
    }

    pub fn field(self, key: &str) -> &'a str {
        self.find(key).expect(key)
    }

    pub fn text(self, key: &str) -> &'a str {
        self.field(key).trim_matches('"')
    }

    pub fn session_id(self) -> i32 {
        self.field("session_id").parse().expect("a session")
    }

    pub fn datagrams(self) -> Vec<Vec<u8>> {
        let quoted = self.field("hex").split('"').skip(1).step_by(2);
        quoted.map(|hex| self.filled(bytes(hex))).collect()
    }

    /// Extends the datagram with the fill byte to the total length, if the case lists only its beginning.
    fn filled(self, mut datagram: Vec<u8>) -> Vec<u8> {
        if let Some(length) = self.find("total_length") {
            let fill = bytes(self.text("fill_byte"))[0];
            datagram.resize(length.parse().expect("a length"), fill);
        }
        datagram
    }
}

/// Returns the expected change of a counter.
pub(crate) fn wanted_count(wanted: &str, name: &str) -> i64 {
    let moved = wanted
        .split("; ")
        .find_map(|part| part.strip_prefix(name)?.strip_prefix(" +"));
    moved.map_or(0, |count| count.parse().expect("a count"))
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}
