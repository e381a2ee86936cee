//! Texts in the character sets of schemas.

use std::borrow::Cow;

use crate::number::SbeByteOrder;
use crate::read::SbeMalformed;
use crate::schema::SbeCharacterSet;

impl SbeCharacterSet {
    /// Decodes a text. UTF-8 and US-ASCII are borrowed.
    ///
    /// # Errors
    /// [`SbeMalformed::Text`] with `field` if a byte is not valid in the character set.
    pub fn decode<'a>(self, bytes: &'a [u8], field: &str) -> Result<Cow<'a, str>, SbeMalformed> {
        let malformed = |offset: usize| SbeMalformed::Text {
            field: field.to_owned(),
            byte: bytes.get(offset).copied().unwrap_or_default(),
            offset,
        };
        match self {
            Self::Latin1 => match bytes.is_ascii() {
                true => Ok(String::from_utf8_lossy(bytes)),
                false => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            },
            Self::Ascii => {
                if let Some(offset) = bytes.iter().position(|byte| !byte.is_ascii()) {
                    return Err(malformed(offset));
                }
                Ok(String::from_utf8_lossy(bytes))
            }
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Borrowed(text)),
                Err(error) => Err(malformed(error.valid_up_to())),
            },
            Self::Utf16(order) => decode_utf16(bytes, order)
                .map(Cow::Owned)
                .map_err(malformed),
        }
    }

    /// Encodes a text. Returns `None` if the character set does not have one of its characters.
    pub fn encode(self, text: &str) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Utf8 => Some(Cow::Borrowed(text.as_bytes())),
            Self::Ascii => text.is_ascii().then_some(Cow::Borrowed(text.as_bytes())),
            Self::Latin1 => {
                let bytes = text.chars().map(|it| u8::try_from(u32::from(it)).ok());
                bytes.collect::<Option<Vec<u8>>>().map(Cow::Owned)
            }
            Self::Utf16(order) => {
                let units = text.encode_utf16().flat_map(|unit| match order {
                    SbeByteOrder::Little => unit.to_le_bytes(),
                    SbeByteOrder::Big => unit.to_be_bytes(),
                });
                Some(Cow::Owned(units.collect()))
            }
        }
    }

    /// Returns the part of a text of fixed length before its first NUL.
    pub fn before_nul(self, bytes: &[u8]) -> &[u8] {
        let length = match self {
            Self::Utf16(_) => {
                let nul = bytes.chunks(2).position(|unit| unit == [0, 0]);
                nul.map_or(bytes.len(), |index| 2 * index)
            }
            _ => bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len()),
        };
        &bytes[..length]
    }
}

/// Decodes UTF-16, or returns the offset of the first unit that is not valid.
fn decode_utf16(bytes: &[u8], order: SbeByteOrder) -> Result<String, usize> {
    let (units, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(bytes.len() - 1);
    }
    let units = units.iter().map(|unit| match order {
        SbeByteOrder::Little => u16::from_le_bytes(*unit),
        SbeByteOrder::Big => u16::from_be_bytes(*unit),
    });
    let mut text = String::new();
    let mut offset = 0;
    for decoded in char::decode_utf16(units) {
        let character = decoded.map_err(|_| offset)?;
        offset += 2 * character.len_utf16();
        text.push(character);
    }
    Ok(text)
}
