//! [`Damage`]: which bytes of a file cannot be what an archive wrote.

use aeron_layout::U32;

/// A field of a file with a value that no archive writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at offset {offset} is {value}, expected {expected}")]
pub struct Damage {
    /// The field, as the format names it.
    pub field: &'static str,
    /// Where it stands in the file, in bytes.
    pub offset: u64,
    /// What it holds.
    pub value: i64,
    /// What would have been right.
    pub expected: &'static str,
}

impl Damage {
    /// The same damage seen from the beginning of a file in which the bytes looked at stand at `base`.
    pub(crate) fn at(self, base: u64) -> Self {
        Self {
            offset: base + self.offset,
            ..self
        }
    }
}

/// Takes the text at `*offset`, u32 length first, and steps behind it.
pub(crate) fn take_text(
    bytes: &[u8],
    offset: &mut usize,
    field: &'static str,
) -> Result<String, Damage> {
    let refuse = |offset: usize, value: i64, expected| Damage {
        field,
        offset: offset as u64,
        value,
        expected,
    };
    let start = *offset + size_of::<U32>();
    let Some(length) = bytes.get(*offset..).and_then(<[u8]>::first_chunk) else {
        let left = bytes.len().saturating_sub(*offset) as i64;
        return Err(refuse(*offset, left, "4 bytes of a length"));
    };
    let length = U32::from_bytes(*length).get();
    let text = bytes[start..].get(..length as usize).ok_or_else(|| {
        refuse(
            *offset,
            length.into(),
            "a length that ends before the entry does",
        )
    })?;
    let text = str::from_utf8(text).map_err(|error| {
        let bad = error.valid_up_to();
        refuse(start + bad, text[bad].into(), "text")
    })?;
    *offset = start + text.len();
    Ok(text.to_owned())
}

/// Puts `text` behind `bytes`, u32 length first.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Longer texts are refused by their entry's or header's limit, which every caller checks.
    bytes.extend(U32::new(u32::try_from(text.len()).unwrap_or(u32::MAX)).to_bytes());
    bytes.extend(text.as_bytes());
}
