//! [`Damage`]: a field of a file with a value that no archive writes. [`NewerVersion`]: a file of later software. Also
//! reads and writes the texts in the catalog and in the mark file.

use std::io;

use aeron_layout::U32;

/// A field of a file with a value that no archive writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at offset {offset} is {value}, expected {expected}")]
pub struct Damage {
    /// Name of the field in the file format.
    pub field: &'static str,
    /// Offset of the field in the file, in bytes.
    pub offset: u64,
    /// Value of the field.
    pub value: i64,
    /// Values that would have been valid.
    pub expected: &'static str,
}

/// A file has a later version than this software reads. Such a file is never changed: later software may still need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file has version {version}, and this software reads versions up to {newest}: use the software that wrote it"
)]
pub struct NewerVersion {
    /// Version of the file.
    pub version: u32,
    /// Latest version that this software reads.
    pub newest: u32,
}

impl From<NewerVersion> for io::Error {
    fn from(error: NewerVersion) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl Damage {
    /// Returns the same damage with `base` added to its offset. `base` is the file offset of the
    /// checked bytes.
    pub(crate) fn at(self, base: u64) -> Self {
        Self {
            offset: base + self.offset,
            ..self
        }
    }
}

/// Reads the length of a text, a u32 at `*offset`, and then the text. Moves `*offset` to the end of the text.
pub(crate) fn take_text<'b>(
    bytes: &'b [u8],
    offset: &mut usize,
    field: &'static str,
) -> Result<&'b str, Damage> {
    let refuse = |offset: usize, value: i64, expected| Damage {
        field,
        offset: offset as u64,
        value,
        expected,
    };
    let start = *offset + size_of::<U32>();
    let Some(length) = bytes.get(*offset..).and_then(<[u8]>::first_chunk) else {
        let left = bytes.len().saturating_sub(*offset) as i64;
        return Err(refuse(*offset, left, "the 4 bytes of a text's length"));
    };
    let length = U32::from_bytes(*length).get();
    let text = bytes[start..].get(..length as usize).ok_or_else(|| {
        refuse(
            *offset,
            length.into(),
            "a length within the bytes that follow",
        )
    })?;
    let text = str::from_utf8(text).map_err(|error| {
        let bad = error.valid_up_to();
        refuse(start + bad, text[bad].into(), "UTF-8 text")
    })?;
    *offset = start + text.len();
    Ok(text)
}

/// Appends the length of `text` as a u32, and then `text`, to `bytes`.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // If the length does not fit into a u32, the caller later refuses the whole entry or header as too long.
    bytes.extend(U32::new(u32::try_from(text.len()).unwrap_or(u32::MAX)).to_bytes());
    bytes.extend(text.as_bytes());
}
