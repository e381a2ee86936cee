//! Parses the text of a record layout.

use std::collections::HashSet;
use std::str::FromStr;

use super::{
    DEC64_PRECISION, FieldType, LayoutError, LayoutField, MAX_RECORD_LENGTH, RecordLayout,
};

/// Types without a parameter.
pub(super) const PLAIN_TYPES: [(&str, FieldType); 14] = [
    ("i8", FieldType::I8),
    ("i16", FieldType::I16),
    ("i32", FieldType::I32),
    ("i64", FieldType::I64),
    ("u8", FieldType::U8),
    ("u16", FieldType::U16),
    ("u32", FieldType::U32),
    ("u64", FieldType::U64),
    ("f32", FieldType::F32),
    ("f64", FieldType::F64),
    ("bool", FieldType::Bool),
    ("ts_ms", FieldType::TimestampMs),
    ("ts_us", FieldType::TimestampUs),
    ("ts_ns", FieldType::TimestampNs),
];

impl RecordLayout {
    /// Parses a text in the notation that the [module](super) describes.
    ///
    /// # Errors
    /// The text has no field. A field has an unknown type, or a length or scale that is out of range. Two fields
    /// overlap or have the same name, ignoring case. The record is longer than [`MAX_RECORD_LENGTH`]. The error names
    /// the field.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut parser = Parser::default();
        for item in text.split(',') {
            parser.item(item)?;
        }
        parser.finish()
    }
}

impl FromStr for RecordLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        Self::parse(text)
    }
}

#[derive(Default)]
struct Parser {
    fields: Vec<LayoutField>,
    /// Names in lower case, because Spark ignores case in column names.
    names: HashSet<String>,
    next_offset: usize,
    record_length: Option<usize>,
}

impl Parser {
    /// Parses the text between two commas: an optional `@offset`, a field, and an optional `=length`. If the item has
    /// an offset or a length, the field may be missing.
    fn item(&mut self, item: &str) -> Result<(), LayoutError> {
        let mut tokens: Vec<&str> = item.split_whitespace().collect();
        if self.record_length.is_some() {
            return self.refuse(item, "nothing may follow the record length '=n'");
        }
        let mut has_directive = false;
        if let Some(offset) = tokens.first().and_then(|token| token.strip_prefix('@')) {
            self.next_offset = self.number(tokens[0], offset, 0)?;
            tokens.remove(0);
            has_directive = true;
        }
        if let Some(length) = tokens.last().and_then(|token| token.strip_prefix('=')) {
            self.record_length = Some(self.number(tokens[tokens.len() - 1], length, 1)?);
            tokens.pop();
            has_directive = true;
        }
        match tokens[..] {
            [name, kind] => self.field(name, kind),
            [] if has_directive => Ok(()),
            _ => self.refuse(item, "expected 'name type', as in 'price f64'"),
        }
    }

    fn field(&mut self, name: &str, kind: &str) -> Result<(), LayoutError> {
        self.check_name(name)?;
        let (is_big_endian, kind) = match kind.strip_prefix('>') {
            Some(kind) => (true, kind),
            None => (false, kind),
        };
        let kind = self.kind(name, kind)?;
        let field = LayoutField {
            name: name.to_owned(),
            kind,
            is_big_endian: is_big_endian && kind.has_byte_order(),
            offset: self.next_offset,
            keeps_nanoseconds: false,
        };
        if field.end() > MAX_RECORD_LENGTH {
            let reason = format!(
                "ends at {}, but a record has at most {MAX_RECORD_LENGTH} bytes",
                field.end()
            );
            return self.refuse(name, reason);
        }
        self.next_offset = field.end();
        self.fields.push(field);
        Ok(())
    }

    fn check_name(&mut self, name: &str) -> Result<(), LayoutError> {
        let is_name_character = |character: char| character.is_alphanumeric() || character == '_';
        if !name.chars().all(is_name_character)
            || name.starts_with(|first: char| first.is_numeric())
        {
            let reason = "a name has letters, digits and '_', and does not begin with a digit";
            return self.refuse(name, reason);
        }
        match self.names.insert(name.to_lowercase()) {
            true => Ok(()),
            false => self.refuse(name, "the name is there twice (case does not matter)"),
        }
    }

    fn kind(&self, name: &str, kind: &str) -> Result<FieldType, LayoutError> {
        if let Some((_, plain)) = PLAIN_TYPES.iter().find(|(known, _)| *known == kind) {
            return Ok(*plain);
        }
        let within = |prefix| kind.strip_prefix(prefix)?.strip_suffix(']');
        if let Some(length) = within("char[") {
            return Ok(FieldType::Char(self.number(name, length, 1)?));
        }
        if let Some(length) = within("bytes[") {
            return Ok(FieldType::Bytes(self.number(name, length, 1)?));
        }
        if let Some(scale) = kind.strip_prefix("dec64:") {
            let scale = digits(scale).and_then(|scale| u8::try_from(scale).ok());
            return match scale.filter(|scale| *scale <= DEC64_PRECISION) {
                Some(scale) => Ok(FieldType::Dec64(scale)),
                None => {
                    let reason = format!("'{kind}' needs 0 to {DEC64_PRECISION} decimal places");
                    self.refuse(name, reason)
                }
            };
        }
        let known: Vec<&str> = PLAIN_TYPES.iter().map(|(name, _)| *name).collect();
        let known = known.join(" ");
        self.refuse(
            name,
            format!("unknown type '{kind}'; there are {known} char[n] bytes[n] dec64:s"),
        )
    }

    /// Parses a number of bytes between `least` and [`MAX_RECORD_LENGTH`].
    fn number(&self, place: &str, text: &str, least: usize) -> Result<usize, LayoutError> {
        match digits(text).filter(|number| (least..=MAX_RECORD_LENGTH).contains(number)) {
            Some(number) => Ok(number),
            None => {
                let reason =
                    format!("'{text}' is not a number from {least} to {MAX_RECORD_LENGTH}");
                self.refuse(place, reason)
            }
        }
    }

    fn finish(self) -> Result<RecordLayout, LayoutError> {
        if self.fields.is_empty() {
            return self.refuse("", "a layout needs a field");
        }
        check_overlap(&self.fields)?;
        let end = self.fields.iter().map(LayoutField::end).max().unwrap_or(0);
        let record_length = self.record_length.unwrap_or(end);
        if let Some(field) = self.fields.iter().find(|field| field.end() > record_length) {
            let end = field.end();
            return Err(LayoutError {
                field: field.name.clone(),
                offset: field.offset,
                reason: format!("ends at {end}, beyond the record length {record_length}"),
            });
        }
        Ok(RecordLayout {
            fields: self.fields,
            record_length,
        })
    }

    fn refuse<T>(&self, field: &str, reason: impl Into<String>) -> Result<T, LayoutError> {
        Err(LayoutError {
            field: field.trim().to_owned(),
            offset: self.next_offset,
            reason: reason.into(),
        })
    }
}

/// Parses decimal digits without a sign and without blanks.
fn digits(text: &str) -> Option<usize> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn check_overlap(fields: &[LayoutField]) -> Result<(), LayoutError> {
    let mut by_offset: Vec<&LayoutField> = fields.iter().collect();
    by_offset.sort_by_key(|field| field.offset);
    for pair in by_offset.windows(2) {
        let [before, field] = pair else { continue };
        if before.end() > field.offset {
            let (name, from, to) = (&before.name, before.offset, before.end());
            return Err(LayoutError {
                field: field.name.clone(),
                offset: field.offset,
                reason: format!(
                    "overlaps '{name}', which has the bytes {from} to {}",
                    to - 1
                ),
            });
        }
    }
    Ok(())
}
