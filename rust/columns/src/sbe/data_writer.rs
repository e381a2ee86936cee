//! [`DataWriter`]: writes a column of texts or bytes as variable data.

use std::ops::Range;

use aeron_sbe::plan::SbeData;
use aeron_sbe::schema::SbeCharacterSet;
use aeron_sbe::write::SbeEncodeError;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::block_writer::BadRow;

/// The column of variable data, and the places of the data in the messages.
pub(super) struct DataWriter<'a> {
    data: &'a SbeData,
    column: Option<(&'a ArrayRef, Values<'a>)>,
    /// Offset of the length before the data of each row.
    pub(super) places: Vec<u32>,
}

enum Values<'a> {
    Texts(Box<dyn Fn(usize) -> &'a str + 'a>, SbeCharacterSet),
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
}

impl<'a> DataWriter<'a> {
    /// Creates the writer of a column; without one, all data are empty.
    ///
    /// # Errors
    /// A reason: the column has neither texts nor bytes.
    pub(super) fn new(data: &'a SbeData, column: Option<&'a ArrayRef>) -> Result<Self, String> {
        let values = column.map(|column| Ok::<_, String>((column, values(data, column)?)));
        Ok(Self {
            data,
            column: values.transpose()?,
            places: Vec::new(),
        })
    }

    /// Returns the length of the data of a row, with the length before them, in bytes.
    pub(super) fn length(&self, row: usize) -> usize {
        let length = match &self.column {
            Some((column, values)) if column.is_valid(row) => match values {
                Values::Bytes(bytes) => bytes(row).len(),
                Values::Texts(text, set) => text_length(text(row), *set),
            },
            _ => 0,
        };
        self.data.layout.prefix + length
    }

    /// Writes the data of rows.
    pub(super) fn write(&self, rows: Range<usize>, bytes: &mut [u8]) -> Result<(), BadRow> {
        for row in rows {
            let place = &mut bytes[self.places[row] as usize..];
            let written = match &self.column {
                Some((column, values)) if column.is_valid(row) => match values {
                    Values::Bytes(value) => self.data.write(value(row), place),
                    Values::Texts(text, set) => match set.encode(text(row)) {
                        Some(encoded) => self.data.write(&encoded, place),
                        None => Err(SbeEncodeError::Unsuitable {
                            field: self.data.name.clone(),
                            reason: "a text is not in the character set of its data".to_owned(),
                        }),
                    },
                },
                _ => self.data.write(&[], place),
            };
            written.map_err(|error| BadRow { row, error })?;
        }
        Ok(())
    }
}

/// Returns the number of bytes of a text in a character set. A text with other characters has any length.
fn text_length(text: &str, set: SbeCharacterSet) -> usize {
    match set {
        SbeCharacterSet::Utf16(_) => 2 * text.encode_utf16().count(),
        SbeCharacterSet::Latin1 => text.chars().count(),
        SbeCharacterSet::Ascii | SbeCharacterSet::Utf8 => text.len(),
    }
}

fn values<'a>(data: &SbeData, column: &'a ArrayRef) -> Result<Values<'a>, String> {
    macro_rules! texts {
        ($texts:expr) => {{
            let texts = $texts;
            match data.layout.character_set {
                Some(set) => Values::Texts(Box::new(move |row| texts.value(row)), set),
                None => Values::Bytes(Box::new(move |row| texts.value(row).as_bytes())),
            }
        }};
    }
    macro_rules! bytes {
        ($bytes:expr) => {{
            let bytes = $bytes;
            Values::Bytes(Box::new(move |row| bytes.value(row)))
        }};
    }
    Ok(match column.data_type() {
        DataType::Utf8 => texts!(column.as_string::<i32>()),
        DataType::LargeUtf8 => texts!(column.as_string::<i64>()),
        DataType::Utf8View => texts!(column.as_string_view()),
        DataType::Binary => bytes!(column.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(column.as_binary::<i64>()),
        DataType::BinaryView => bytes!(column.as_binary_view()),
        other => return Err(format!("data '{}' cannot be {other}", data.name)),
    })
}
