//! Reads the lines of properties files: comments, continuation lines, separators and escapes.

use super::{PropertiesError, Property};

const BLANKS: [char; 3] = [' ', '\t', '\x0c'];
const SEPARATORS: [char; 2] = ['=', ':'];

/// Parses the bytes of a file. Returns its properties in order.
///
/// # Errors
/// A line has no separator or no name, or an escape is not valid.
pub fn parse(bytes: &[u8]) -> Result<Vec<Property>, PropertiesError> {
    // The C driver takes the bytes as they are, usually UTF-8. Java takes Latin-1.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    };
    logical_lines(&text)
        .into_iter()
        .map(|line| property(&line.text).ok_or(PropertiesError::Malformed(line.number)))
        .collect()
}

/// A line joined with its continuation lines.
struct LogicalLine {
    /// Number of the first of the joined lines, from 1.
    number: usize,
    text: String,
}

fn logical_lines(text: &str) -> Vec<LogicalLine> {
    let mut lines = Vec::new();
    let mut continued: Option<LogicalLine> = None;
    let text = text.replace("\r\n", "\n");
    for (index, line) in text.split(['\n', '\r']).enumerate() {
        let line = line.trim_start_matches(BLANKS);
        if continued.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let mut logical = continued.take().unwrap_or(LogicalLine {
            number: index + 1,
            text: String::new(),
        });
        // Each pair of backslashes is one escaped backslash, so only an odd number continues the line.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            logical.text.push_str(&line[..line.len() - 1]);
            continued = Some(logical);
        } else {
            logical.text.push_str(line);
            lines.push(logical);
        }
    }
    lines.extend(continued);
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// Splits a line at its first separator that is not escaped. `None` if there is no separator or no name, or an escape
/// is malformed.
fn property(line: &str) -> Option<Property> {
    let mut is_escaped = false;
    let name_end = line.find(|c| {
        let ends = !is_escaped && (BLANKS.contains(&c) || SEPARATORS.contains(&c));
        is_escaped = !is_escaped && c == '\\';
        ends
    });
    let (name, rest) = line.split_at(name_end?);
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(SEPARATORS).unwrap_or(rest);
    Some(Property {
        name: unescaped(name)?,
        value: unescaped(value.trim_start_matches(BLANKS))?,
    })
}

/// Replaces the escapes in a text. `None` if `\u` is not followed by four hexadecimal digits of a character.
fn unescaped(text: &str) -> Option<String> {
    let mut units = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next() {
                Some('u') => {
                    units.push(code_unit(&mut characters)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).ok()
}

fn code_unit(characters: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits: String = characters.by_ref().take(4).collect();
    let is_valid = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_valid.then(|| u16::from_str_radix(&digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text.as_bytes())
            .unwrap()
            .into_iter()
            .map(|property| (property.name, property.value))
            .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        assert_eq!(pairs(text), expected, "{text:?}");
    }

    /// 05-48
    #[test]
    fn names_end_at_blanks_equals_signs_and_colons() {
        check(
            "a=1\n  b : 2\nc 3\n\td\t=\t4 \ne=",
            &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4 "), ("e", "")],
        );
        check(
            "url=aeron:udp?endpoint=x:1",
            &[("url", "aeron:udp?endpoint=x:1")],
        );
        check("a==1\nb=:2", &[("a", "=1"), ("b", ":2")]);
    }

    /// 05-48
    #[test]
    fn escapes_are_decoded_to_characters() {
        check(r"a\:b\=c\ d=\t\\e\q", &[("a:b=c d", "\t\\eq")]);
        check(r"snow=\u2603 \ud83d\ude00", &[("snow", "☃ 😀")]);
    }

    /// 05-48
    #[test]
    fn comments_and_blank_lines_are_skipped_and_lines_continued() {
        check(
            "# one\n  ! two\n\n \t\r\na=1\\\n   2\\\r\n\t# 3\rb=4",
            &[("a", "12# 3"), ("b", "4")],
        );
        check("a=1\\\\\nb=2\\", &[("a", "1\\"), ("b", "2")]);
    }

    /// 05-48
    #[test]
    fn bytes_are_utf_8_or_else_latin_1_and_comments_may_have_any_bytes() {
        for bytes in [&b"dir=/f\xfcr"[..], "dir=/für".as_bytes()] {
            assert_eq!(parse(bytes).unwrap()[0].value, "/für");
        }
        let properties = parse(b"# Gr\xf6\xdfe \x00\xff \\u12 \\\na=1\n! \xc3").unwrap();
        assert_eq!((properties.len(), properties[0].value.as_str()), (1, "1"));
    }

    /// 05-48
    #[test]
    fn the_error_for_a_malformed_line_has_the_line_number() {
        for text in [
            "\na=\\u12g4",
            "\na=\\u12",
            "\n\\ud83d=1",
            "\nnonsense\n",
            "a=1\n=1",
            "a=1\nb\\\nc",
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "properties file line 2 malformed");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"=:\\\n\r #!u0d".as_slice())], 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
