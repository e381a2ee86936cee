//! Checks of XML before it is parsed: the parser's time grows with the square of some numbers.

use crate::limits::{MAX_XML_ATTRIBUTES, MAX_XML_NAMESPACES};

/// Checks the numbers of attributes and of declared namespaces. The error is an offset in bytes, and the rule.
///
/// The check sees the same tags as the parser, up to the first error that the parser reports.
pub(super) fn check(text: &str) -> Result<(), (usize, String)> {
    let bytes = text.as_bytes();
    let (mut at, mut namespaces) = (0, 0);
    while let Some(open) = find(bytes, at, b"<") {
        let skipped: Option<(&[u8], &[u8])> = match &bytes[open..] {
            [b'<', b'!', b'-', b'-', ..] => Some((b"<!--", b"-->")),
            [b'<', b'!', b'[', ..] => Some((b"<![", b"]]>")),
            [b'<', b'?', ..] => Some((b"<?", b"?>")),
            _ => None,
        };
        at = match skipped {
            Some((begin, end)) => match find(bytes, open + begin.len(), end) {
                Some(found) => found + end.len(),
                None => return Ok(()),
            },
            None => tag(bytes, open, &mut namespaces)?,
        };
    }
    Ok(())
}

/// Checks a tag. Returns the offset after it.
fn tag(bytes: &[u8], open: usize, namespaces: &mut usize) -> Result<usize, (usize, String)> {
    let mut attributes = 0;
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'>' => return Ok(at + 1),
            b'"' | b'\'' => match find(bytes, at + 1, &[*byte]) {
                Some(end) => {
                    attributes += 1;
                    at = end;
                }
                None => return Ok(bytes.len()),
            },
            b'x' if bytes[at..].starts_with(b"xmlns") => *namespaces += 1,
            _ => {}
        }
        at += 1;
        if attributes > MAX_XML_ATTRIBUTES {
            let rule =
                format!("an element has more attributes than the limit {MAX_XML_ATTRIBUTES}");
            return Err((open, rule));
        }
        if *namespaces > MAX_XML_NAMESPACES {
            let rule = format!("more namespaces are declared than the limit {MAX_XML_NAMESPACES}");
            return Err((open, rule));
        }
    }
    Ok(at)
}

/// Returns the offset of a text at or after `from`.
fn find(bytes: &[u8], from: usize, text: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let found = rest.windows(text.len()).position(|window| window == text);
    found.map(|offset| from + offset)
}
