//! Columns of enums and sets.

use std::sync::Arc;

use aeron_sbe::plan::SbeScalar;
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use aeron_sbe::schema::{SbeEnum, SbeSet};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, ListArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::column::{BadValueOfRow, BlockColumn, Place, bad};
use super::number::number_column;
use super::options::{SbeColumnOptions, SbeSetColumn};
use super::text::SliceBuilder;

/// Key of a number that the schema does not know.
const UNKNOWN: i32 = -1;
/// Key of the null value.
const NULL: i32 = -2;

/// Names of an enum's values: a dictionary, and texts for Spark.
pub(super) struct EnumColumn {
    name: String,
    offset: usize,
    scalar: SbeScalar,
    is_optional: bool,
    refuses_unknown: bool,
    for_spark: bool,
    names: Arc<SbeEnum>,
    /// Names of the values. A required field has `nullValue` too, because its null value is a value.
    texts: Vec<String>,
    /// The key of each number of one byte; empty for longer numbers.
    keys_of_bytes: Vec<i32>,
    /// Indexes of values.
    keys: Vec<i32>,
    nulls: NullBufferBuilder,
    unknown: u64,
}

impl EnumColumn {
    pub(super) fn new(place: Place<'_>, scalar: SbeScalar, names: &Arc<SbeEnum>) -> Self {
        let values = names.values.iter().map(|value| value.name.clone());
        let null = names.name_of(names.null).filter(|_| !place.is_optional());
        let null = null.filter(|_| names.has_null_value).map(str::to_owned);
        let mut column = Self {
            texts: values.chain(null).collect(),
            name: place.field.name.clone(),
            offset: place.offset,
            scalar,
            is_optional: place.is_optional(),
            refuses_unknown: place.options.refuses_unknown,
            for_spark: place.options.for_spark,
            names: Arc::clone(names),
            keys_of_bytes: Vec::new(),
            keys: Vec::new(),
            nulls: NullBufferBuilder::new(0),
            unknown: 0,
        };
        if scalar.length() == 1 {
            let bytes = 0..=u8::MAX;
            column.keys_of_bytes = bytes.map(|byte| column.key(&[byte])).collect();
        }
        column
    }

    /// Returns the key of an encoded number.
    fn key(&self, bytes: &[u8]) -> i32 {
        let Some(number) = self.scalar.read(bytes) else {
            return NULL;
        };
        // In a required field, a null value without a name is an unknown number.
        if self.is_optional && self.scalar.is_null(number) {
            return NULL;
        }
        match self.names.index_of(number) {
            Some(index) => index as i32,
            None if !self.is_optional && self.names.name_of(number).is_some() => {
                self.names.values.len() as i32
            }
            None => UNKNOWN,
        }
    }
}

impl BlockColumn for EnumColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(fields) = blocks.slices(self.offset, self.scalar.length()) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        let begin = self.keys.len();
        match &self.keys_of_bytes[..] {
            [] => {
                let keys: Vec<i32> = fields.map(|bytes| self.key(bytes)).collect();
                self.keys.extend(keys);
            }
            keys => self.keys.extend(fields.map(|bytes| {
                let byte = bytes.first().copied().unwrap_or_default();
                keys[usize::from(byte)]
            })),
        }
        let keys = &mut self.keys[begin..];
        if keys.iter().all(|key| *key >= 0) {
            self.nulls.append_n_non_nulls(keys.len());
            return Ok(());
        }
        for (row, key) in keys.iter_mut().enumerate() {
            if *key == UNKNOWN {
                if self.refuses_unknown {
                    let mut bytes = blocks.slices(self.offset, self.scalar.length());
                    let bytes = bytes.as_mut().and_then(|bytes| bytes.nth(row));
                    let number = bytes.and_then(|bytes| self.scalar.read(bytes));
                    let number = number.map_or(String::new(), |number| number.to_string());
                    let problem =
                        format!("has the number {number}, which the schema does not know");
                    return Err(bad(&self.name, row, &problem));
                }
                self.unknown += 1;
            }
            self.nulls.append(*key >= 0);
            *key = (*key).max(0);
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.keys.resize(self.keys.len() + count, 0);
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let (keys, nulls) = (std::mem::take(&mut self.keys), self.nulls.finish());
        let names = self.texts.iter().map(String::as_str);
        if self.for_spark {
            let names: Vec<&str> = names.collect();
            let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let texts = keys.iter().enumerate();
            let texts = texts.map(|(row, key)| is_valid(row).then(|| names[*key as usize]));
            return Arc::new(texts.collect::<StringArray>());
        }
        let keys = Int32Array::new(keys.into(), nulls);
        let names = Arc::new(StringArray::from_iter_values(names));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, names))
    }

    fn unknown(&self) -> u64 {
        self.unknown
    }
}

/// Creates the column of a set.
pub(super) fn set_column(
    place: Place<'_>,
    scalar: SbeScalar,
    choices: &Arc<SbeSet>,
) -> Box<dyn BlockColumn> {
    let bits = Bits::new(place, scalar, choices);
    match place.options.sets {
        SbeSetColumn::Integer => number_column(place, &scalar, false),
        SbeSetColumn::Names => Box::new(NameListColumn {
            bits,
            options: *place.options,
            ends: vec![0],
            names: SliceBuilder::new(),
            nulls: NullBufferBuilder::new(0),
        }),
        SbeSetColumn::Booleans => Box::new(FlagColumn {
            flags: choices
                .choices
                .iter()
                .map(|_| BooleanBufferBuilder::new(0))
                .collect(),
            bits,
            nulls: NullBufferBuilder::new(0),
        }),
    }
}

/// The encoding of a set.
struct Bits {
    name: String,
    offset: usize,
    scalar: SbeScalar,
    choices: Arc<SbeSet>,
    /// The bits of all choices.
    known: u64,
    refuses_unknown: bool,
    /// Number of sets with other bits.
    unknown: u64,
}

impl Bits {
    fn new(place: Place<'_>, scalar: SbeScalar, choices: &Arc<SbeSet>) -> Self {
        let bits = choices.choices.iter();
        let bits = bits.map(|choice| 1_u64.checked_shl(choice.bit).unwrap_or_default());
        Self {
            name: place.field.name.clone(),
            offset: place.offset,
            scalar,
            choices: Arc::clone(choices),
            known: bits.fold(0, |all, bit| all | bit),
            refuses_unknown: place.options.refuses_unknown,
            unknown: 0,
        }
    }

    /// Returns the integer of each block; `None` if the blocks do not have it. Bits without a choice are counted.
    fn read(&mut self, blocks: &SbeBlocks<'_>) -> Result<Option<Vec<u64>>, BadValueOfRow> {
        let scalar = self.scalar;
        let Some(fields) = blocks.slices(self.offset, scalar.length()) else {
            return Ok(None);
        };
        let bits = fields.map(|bytes| {
            let bits = scalar.read(bytes).and_then(|number| number.as_u64());
            bits.unwrap_or_default()
        });
        let bits: Vec<u64> = bits.collect();
        let is_unknown = |bits: &u64| bits & !self.known != 0;
        if let Some(row) = bits.iter().position(is_unknown) {
            if self.refuses_unknown {
                let problem = format!(
                    "has the bits {}, of which the schema does not know all",
                    bits[row]
                );
                return Err(bad(&self.name, row, &problem));
            }
            self.unknown += bits[row..].iter().filter(|bits| is_unknown(bits)).count() as u64;
        }
        Ok(Some(bits))
    }
}

fn has_bit(bits: u64, bit: u32) -> bool {
    bits.checked_shr(bit).is_some_and(|bits| bits & 1 == 1)
}

struct NameListColumn {
    bits: Bits,
    options: SbeColumnOptions,
    ends: Vec<i32>,
    names: SliceBuilder,
    nulls: NullBufferBuilder,
}

impl BlockColumn for NameListColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(sets) = self.bits.read(blocks)? else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for (row, bits) in sets.into_iter().enumerate() {
            let mut end = self.ends.last().copied().unwrap_or_default();
            for choice in &self.bits.choices.choices {
                if has_bit(bits, choice.bit) {
                    let pushed = self.names.push(choice.name.as_bytes());
                    pushed.map_err(|problem| bad(&choice.name, row, problem))?;
                    end += 1;
                }
            }
            self.ends.push(end);
            self.nulls.append_non_null();
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        let end = self.ends.last().copied().unwrap_or_default();
        self.ends.resize(self.ends.len() + count, end);
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let item = self.options.item(&DataType::Utf8);
        let offsets = OffsetBuffer::new(ends.into());
        let names = self.names.finish_texts();
        Arc::new(ListArray::new(item, offsets, names, self.nulls.finish()))
    }

    fn unknown(&self) -> u64 {
        self.bits.unknown
    }
}

struct FlagColumn {
    bits: Bits,
    flags: Vec<BooleanBufferBuilder>,
    nulls: NullBufferBuilder,
}

impl BlockColumn for FlagColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let Some(sets) = self.bits.read(blocks)? else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for bits in sets {
            for (choice, flags) in self.bits.choices.choices.iter().zip(&mut self.flags) {
                flags.append(has_bit(bits, choice.bit));
            }
            self.nulls.append_non_null();
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        for flags in &mut self.flags {
            flags.append_n(count, false);
        }
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let count = self.nulls.len();
        let choices = self.bits.choices.choices.iter();
        let fields: Fields = choices
            .map(|choice| Field::new(&choice.name, DataType::Boolean, true))
            .collect();
        let flags = self.flags.iter_mut();
        let flags: Vec<ArrayRef> = flags
            .map(|flags| Arc::new(BooleanArray::new(flags.finish(), None)) as ArrayRef)
            .collect();
        let nulls = self.nulls.finish();
        match flags.is_empty() {
            true => Arc::new(StructArray::new_empty_fields(count, nulls)),
            false => Arc::new(StructArray::new(fields, flags, nulls)),
        }
    }

    fn unknown(&self) -> u64 {
        self.bits.unknown
    }
}
