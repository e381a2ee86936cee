//! Writes values of fields.

use crate::number::{SbeNumber, SbePrimitive};
use crate::plan::{SbeExponent, SbeField, SbeKind, SbeScalar, SbeStruct, SbeUnitSource};
use crate::schema::{SbeCharacterSet, SbeEnum, SbePresence, SbeSet};
use crate::value::SbeValue;
use crate::write::SbeEncodeError;

impl SbeField {
    /// Writes the value of the field into a block of the plan's length. The rest of the field becomes zero.
    ///
    /// A decimal whose exponent is in another field takes the number of its mantissa. A time is a number in the
    /// field's unit. An enum takes a name or a number, a set takes names or its bits.
    ///
    /// # Errors
    /// The value is missing, does not suit the field, or is out of range. The block may then be written in part.
    pub fn put(&self, block: &mut [u8], value: &SbeValue<'_>) -> Result<(), SbeEncodeError> {
        if self.presence == SbePresence::Constant {
            return self.check_constant(value);
        }
        let length = block.len();
        let Some(bytes) = block.get_mut(self.offset..self.end()) else {
            return Err(SbeEncodeError::Buffer {
                needed: self.end(),
                available: length,
            });
        };
        bytes.fill(0);
        match value {
            SbeValue::Null if self.presence == SbePresence::Optional => self.put_null(bytes),
            SbeValue::Null => {
                return Err(SbeEncodeError::Missing {
                    field: self.name.clone(),
                });
            }
            value => {
                self.put_value(bytes, value)?;
                self.check_not_null(bytes, value)?;
            }
        }
        Ok(())
    }

    /// Refuses a value of an optional field that a reader takes for null.
    fn check_not_null(&self, bytes: &[u8], value: &SbeValue<'_>) -> Result<(), SbeEncodeError> {
        // NaN is the usual null of floats. An empty text in an optional field is read as null: no content is lost.
        let is_same = match (&self.kind, value) {
            (SbeKind::Number(scalar), _) => !scalar.primitive.is_integer(),
            (SbeKind::Text { .. } | SbeKind::Character(_) | SbeKind::Bytes { .. }, _) => true,
            (SbeKind::Numbers { item, .. }, _) => !item.primitive.is_integer(),
            _ => false,
        };
        if self.presence == SbePresence::Optional && !is_same && self.is_null(bytes) {
            return Err(SbeEncodeError::IsNull {
                field: self.name.clone(),
                value: shown(value),
            });
        }
        Ok(())
    }

    fn check_constant(&self, value: &SbeValue<'_>) -> Result<(), SbeEncodeError> {
        let constant = self.constant_value();
        let is_same = match (&constant, value) {
            (_, SbeValue::Null) => true,
            (Some(SbeValue::Symbol { name, .. }), SbeValue::Text(text)) => *name == Some(text),
            (Some(SbeValue::Symbol { number, .. }), SbeValue::Number(other)) => number == other,
            (Some(constant), value) => constant == value,
            (None, _) => false,
        };
        match is_same {
            true => Ok(()),
            false => Err(SbeEncodeError::Constant {
                field: self.name.clone(),
                constant: constant.as_ref().map_or(String::new(), shown),
                found: shown(value),
            }),
        }
    }

    /// Writes the null value into bytes that are zero. Members of a composite that have no null value remain zero.
    pub(crate) fn put_null(&self, bytes: &mut [u8]) {
        let put = |scalar: &SbeScalar, offset: usize, bytes: &mut [u8]| {
            scalar
                .primitive
                .write(scalar.null, scalar.order, &mut bytes[offset..]);
        };
        match &self.kind {
            SbeKind::Number(scalar) | SbeKind::Character(scalar) | SbeKind::Enum { scalar, .. } => {
                put(scalar, 0, bytes);
            }
            SbeKind::Set { .. } | SbeKind::Text { .. } => {}
            SbeKind::Numbers { item, count } | SbeKind::Bytes { item, count } => {
                if item.primitive != SbePrimitive::Char {
                    (0..*count).for_each(|index| put(item, index * item.length(), bytes));
                }
            }
            SbeKind::Decimal(decimal) => {
                put(&decimal.mantissa, decimal.mantissa_offset, bytes);
                if let SbeExponent::Wire { scalar, offset } = &decimal.exponent {
                    put(scalar, *offset, bytes);
                }
            }
            SbeKind::Time(time) => {
                put(&time.scalar, time.offset, bytes);
                if let SbeUnitSource::Wire { scalar, offset } = &time.unit {
                    put(scalar, *offset, bytes);
                }
            }
            SbeKind::Struct(composite) => {
                for member in &composite.members {
                    if member.presence != SbePresence::Constant {
                        member.put_null(&mut bytes[member.offset..member.end()]);
                    }
                }
            }
        }
    }

    fn put_value(&self, bytes: &mut [u8], value: &SbeValue<'_>) -> Result<(), SbeEncodeError> {
        match (&self.kind, value) {
            (SbeKind::Number(scalar), SbeValue::Number(number)) => {
                self.put_number(scalar, *number, bytes)
            }
            (SbeKind::Number(scalar), SbeValue::Decimal { mantissa, exponent }) => {
                let number = self.number_of(scalar, *mantissa, *exponent)?;
                self.put_number(scalar, number, bytes)
            }
            (SbeKind::Character(scalar), value) => self.put_character(scalar, value, bytes),
            (SbeKind::Numbers { item, count }, SbeValue::List(items)) => {
                self.check_length(items.len(), *count)?;
                for (index, item_value) in items.iter().enumerate() {
                    let SbeValue::Number(number) = item_value else {
                        return Err(self.kind_error("a list of numbers", item_value));
                    };
                    self.put_number(item, *number, &mut bytes[index * item.length()..])?;
                }
                Ok(())
            }
            (SbeKind::Bytes { .. }, SbeValue::Bytes(value)) => self.put_bytes(value, bytes),
            (SbeKind::Text { character_set, .. }, SbeValue::Text(text)) => {
                self.put_text(*character_set, text, bytes)
            }
            (SbeKind::Enum { scalar, names }, value) => self.put_enum(scalar, names, value, bytes),
            (SbeKind::Set { scalar, choices }, value) => {
                self.put_set(scalar, choices, value, bytes)
            }
            (SbeKind::Decimal(decimal), value) => self.put_decimal(decimal, value, bytes),
            (SbeKind::Time(time), SbeValue::Number(number)) => self.put_time(time, *number, bytes),
            (SbeKind::Struct(composite), SbeValue::Struct(values)) => {
                self.put_struct(composite, values, bytes)
            }
            (kind, value) => Err(self.kind_error(expected(kind), value)),
        }
    }

    fn put_character(
        &self,
        scalar: &SbeScalar,
        value: &SbeValue<'_>,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let number = match value {
            SbeValue::Number(number) => *number,
            SbeValue::Text(text) => {
                let mut characters = text.chars();
                let code = characters.next().map_or(0, u32::from);
                self.check_length(1 + characters.count(), 1)?;
                SbeNumber::Unsigned(code.into())
            }
            other => return Err(self.kind_error("a character", other)),
        };
        self.put_number(scalar, number, bytes)
    }

    /// Returns a decimal as the number of an integer or float field.
    fn number_of(
        &self,
        scalar: &SbeScalar,
        mantissa: i128,
        exponent: i32,
    ) -> Result<SbeNumber, SbeEncodeError> {
        if scalar.primitive.is_integer() {
            return self.integer_of(scalar, self.rescale(mantissa, exponent, 0)?);
        }
        let float = format!("{mantissa}e{exponent}").parse();
        Ok(SbeNumber::Float(float.unwrap_or(f64::NAN)))
    }

    fn put_bytes(&self, value: &[u8], bytes: &mut [u8]) -> Result<(), SbeEncodeError> {
        let limit = bytes.len();
        match bytes.get_mut(..value.len()) {
            Some(place) => {
                place.copy_from_slice(value);
                Ok(())
            }
            None => Err(SbeEncodeError::Length {
                field: self.name.clone(),
                length: value.len(),
                limit,
            }),
        }
    }

    fn put_text(
        &self,
        character_set: SbeCharacterSet,
        text: &str,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        match character_set.encode(text) {
            Some(encoded) if !text.contains('\0') => self.put_bytes(&encoded, bytes),
            _ => Err(SbeEncodeError::Text {
                field: self.name.clone(),
                text: text.to_owned(),
            }),
        }
    }

    fn put_enum(
        &self,
        scalar: &SbeScalar,
        names: &SbeEnum,
        value: &SbeValue<'_>,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let number = match value {
            SbeValue::Symbol { number, .. } | SbeValue::Number(number) => *number,
            SbeValue::Text(name) => names
                .value_of(name)
                .ok_or_else(|| self.name_error(&names.name, name))?,
            other => return Err(self.kind_error("a name or number of an enum", other)),
        };
        self.put_number(scalar, number, bytes)
    }

    fn put_set(
        &self,
        scalar: &SbeScalar,
        choices: &SbeSet,
        value: &SbeValue<'_>,
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        let number = match value {
            SbeValue::Number(number) => *number,
            SbeValue::List(items) => {
                let mut bits = 0;
                for item in items {
                    let SbeValue::Text(name) = item else {
                        return Err(self.kind_error("names of choices", item));
                    };
                    let bit = choices.bit_of(name);
                    bits |= bit.ok_or_else(|| self.name_error(&choices.name, name))?;
                }
                SbeNumber::Unsigned(bits)
            }
            other => return Err(self.kind_error("names of choices, or bits", other)),
        };
        self.put_number(scalar, number, bytes)
    }

    fn put_struct(
        &self,
        composite: &SbeStruct,
        values: &[SbeValue<'_>],
        bytes: &mut [u8],
    ) -> Result<(), SbeEncodeError> {
        self.check_length(values.len(), composite.members.len())?;
        let members = composite.members.iter().zip(values);
        for (member, value) in members {
            member.put(bytes, value)?;
        }
        Ok(())
    }

    fn check_length(&self, length: usize, limit: usize) -> Result<(), SbeEncodeError> {
        if length == limit {
            return Ok(());
        }
        Err(SbeEncodeError::Length {
            field: self.name.clone(),
            length,
            limit,
        })
    }

    pub(super) fn kind_error(
        &self,
        expected: &'static str,
        value: &SbeValue<'_>,
    ) -> SbeEncodeError {
        SbeEncodeError::Kind {
            field: self.name.clone(),
            expected,
            found: shown(value),
        }
    }

    fn name_error(&self, type_name: &str, name: &str) -> SbeEncodeError {
        SbeEncodeError::Name {
            field: self.name.clone(),
            type_name: type_name.to_owned(),
            name: name.to_owned(),
        }
    }
}

fn expected(kind: &SbeKind) -> &'static str {
    match kind {
        SbeKind::Number(_) | SbeKind::Time(_) => "a number",
        SbeKind::Numbers { .. } => "a list of numbers",
        SbeKind::Bytes { .. } => "bytes",
        SbeKind::Character(_) => "a character",
        SbeKind::Text { .. } => "a text",
        SbeKind::Enum { .. } => "a name or number of an enum",
        SbeKind::Set { .. } => "names of choices, or bits",
        SbeKind::Decimal(_) => "a decimal or a finite number",
        SbeKind::Struct(_) => "values of the members",
    }
}

/// Returns a short text of a value for error messages.
fn shown(value: &SbeValue<'_>) -> String {
    let text = match value {
        SbeValue::Null => "null".to_owned(),
        SbeValue::Symbol {
            name: Some(name), ..
        } => format!("{name:?}"),
        SbeValue::Number(number) | SbeValue::Symbol { number, .. } => number.to_string(),
        SbeValue::Decimal {
            mantissa,
            exponent: 0,
        } => mantissa.to_string(),
        SbeValue::Decimal { mantissa, exponent } => format!("{mantissa}e{exponent}"),
        SbeValue::Text(text) => format!("{text:?}"),
        SbeValue::Bytes(bytes) => format!("{} bytes", bytes.len()),
        SbeValue::List(items) => format!("a list of {} items", items.len()),
        SbeValue::Struct(_) => "a structure".to_owned(),
    };
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
