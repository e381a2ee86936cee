//! Columns of texts and bytes.

use std::sync::Arc;

use aeron_sbe::plan::{SbeField, SbeScalar};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::schema::SbeCharacterSet;
use arrow_array::{ArrayRef, BinaryArray, FixedSizeBinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer};

use super::column::{BadValueOfRow, BlockColumn, Place, bad};

/// Texts or bytes of any length, one after the other.
pub(super) struct SliceBuilder {
    ends: Vec<i32>,
    values: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl SliceBuilder {
    pub(super) fn new() -> Self {
        Self {
            ends: vec![0],
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Appends a value. The error is a reason: all values together must be shorter than 2 GiB.
    #[inline]
    pub(super) fn push(&mut self, value: &[u8]) -> Result<(), &'static str> {
        self.values.extend_from_slice(value);
        let end = i32::try_from(self.values.len());
        self.ends
            .push(end.map_err(|_| "makes its column longer than 2 GiB")?);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn append_nulls(&mut self, count: usize) {
        let last = self.ends.last().copied().unwrap_or_default();
        self.ends.resize(self.ends.len() + count, last);
        self.nulls.append_n_nulls(count);
    }

    fn offsets(&mut self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(std::mem::replace(&mut self.ends, vec![0]).into())
    }

    /// Returns the values as texts. All of them must be UTF-8.
    pub(super) fn finish_texts(&mut self) -> ArrayRef {
        let (offsets, nulls) = (self.offsets(), self.nulls.finish());
        let values = Buffer::from_vec(std::mem::take(&mut self.values));
        Arc::new(StringArray::new(offsets, values, nulls))
    }

    pub(super) fn finish_bytes(&mut self) -> ArrayRef {
        let (offsets, nulls) = (self.offsets(), self.nulls.finish());
        let values = Buffer::from_vec(std::mem::take(&mut self.values));
        Arc::new(BinaryArray::new(offsets, values, nulls))
    }
}

/// Texts of a fixed or a variable length.
pub(super) struct TextColumn {
    name: String,
    offset: usize,
    length: usize,
    character_set: SbeCharacterSet,
    is_optional: bool,
    texts: SliceBuilder,
}

impl TextColumn {
    /// Creates the column of a field.
    pub(super) fn of_field(
        place: Place<'_>,
        length: usize,
        character_set: SbeCharacterSet,
    ) -> Self {
        Self {
            name: place.field.name.clone(),
            offset: place.offset,
            length,
            character_set,
            is_optional: place.is_optional(),
            texts: SliceBuilder::new(),
        }
    }

    /// Creates the column of variable data.
    pub(super) fn of_data(name: &str, character_set: SbeCharacterSet) -> Self {
        Self {
            name: name.to_owned(),
            offset: 0,
            length: 0,
            character_set,
            is_optional: false,
            texts: SliceBuilder::new(),
        }
    }

    /// Appends a text of any length.
    #[inline]
    pub(super) fn push(&mut self, row: usize, bytes: &[u8]) -> Result<(), BadValueOfRow> {
        // The columns are UTF-8, which ASCII is in all character sets of one byte.
        if !matches!(self.character_set, SbeCharacterSet::Utf16(_)) && bytes.is_ascii() {
            let pushed = self.texts.push(bytes);
            return pushed.map_err(|problem| bad(&self.name, row, problem));
        }
        let decoded = self.character_set.decode(bytes, &self.name);
        let text = decoded.map_err(|malformed| BadValueOfRow {
            row,
            reason: malformed.to_string(),
        })?;
        let pushed = self.texts.push(text.as_bytes());
        pushed.map_err(|problem| bad(&self.name, row, problem))
    }
}

impl BlockColumn for TextColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(fields) = blocks.slices(self.offset, self.length) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for (row, bytes) in fields.enumerate() {
            let text = self.character_set.before_nul(bytes);
            match self.is_optional && text.is_empty() {
                true => self.append_nulls(1),
                false => self.push(row, text)?,
            }
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.texts.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        self.texts.finish_texts()
    }
}

/// Single characters. A NUL in a required field is the empty text, as in texts of fixed length.
pub(super) struct CharacterColumn {
    name: String,
    offset: usize,
    /// The null value of an optional field.
    null: Option<u8>,
    texts: SliceBuilder,
}

impl CharacterColumn {
    pub(super) fn new(place: Place<'_>, scalar: &SbeScalar) -> Self {
        let null = scalar
            .null
            .as_u64()
            .and_then(|null| u8::try_from(null).ok());
        Self {
            name: place.field.name.clone(),
            offset: place.offset,
            null: null.filter(|_| place.is_optional()),
            texts: SliceBuilder::new(),
        }
    }
}

impl BlockColumn for CharacterColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(fields) = blocks.slices(self.offset, 1) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for (row, bytes) in fields.enumerate() {
            let byte = bytes.first().copied().unwrap_or_default();
            if self.null == Some(byte) {
                self.append_nulls(1);
                continue;
            }
            let mut text = [0; 4];
            let text: &str = match byte {
                0 => "",
                byte => char::from(byte).encode_utf8(&mut text),
            };
            let pushed = self.texts.push(text.as_bytes());
            pushed.map_err(|problem| bad(&self.name, row, problem))?;
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.texts.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        self.texts.finish_texts()
    }
}

/// Bytes of a fixed length. Spark has bytes of any length only.
pub(super) struct ByteColumn {
    field: SbeField,
    offset: usize,
    length: usize,
    is_optional: bool,
    for_spark: bool,
    values: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl ByteColumn {
    pub(super) fn new(place: Place<'_>, length: usize) -> Self {
        Self {
            field: place.field.clone(),
            offset: place.offset,
            length,
            is_optional: place.is_optional(),
            for_spark: place.options.for_spark,
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }
}

impl BlockColumn for ByteColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(fields) = blocks.slices(self.offset, self.length) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for bytes in fields {
            self.values.extend_from_slice(bytes);
            self.nulls
                .append(!self.is_optional || !self.field.is_null(bytes));
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        let length = self.values.len() + count * self.length;
        self.values.resize(length, 0);
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let count = self.nulls.len();
        let nulls = self.nulls.finish();
        let values = Buffer::from_vec(std::mem::take(&mut self.values));
        if self.for_spark {
            let offsets = OffsetBuffer::from_repeated_length(self.length, count);
            return Arc::new(BinaryArray::new(offsets, values, nulls));
        }
        let length = i32::try_from(self.length).unwrap_or(i32::MAX);
        Arc::new(FixedSizeBinaryArray::new(length, values, nulls))
    }
}
