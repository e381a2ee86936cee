//! Payloads of bytes or text: each payload is one value.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::{BadValue, DecodedPayloads, PayloadDecoder, PayloadFormat};
use crate::read::staged::Message;

#[derive(Debug)]
pub(super) struct BytesFormat;

#[derive(Debug)]
pub(super) struct TextFormat;

/// Decoder without columns.
#[derive(Debug)]
struct NoValue;

/// Returns `decoder`, or a decoder that reads nothing if no column is wanted.
fn decoder_of(
    columns: &[usize],
    decoder: impl PayloadDecoder + 'static,
) -> Arc<dyn PayloadDecoder> {
    match columns.is_empty() {
        true => Arc::new(NoValue),
        false => Arc::new(decoder),
    }
}

impl PayloadFormat for BytesFormat {
    fn fields(&self) -> Vec<Field> {
        vec![Field::new("value", DataType::Binary, true)]
    }

    fn decoder(&self, columns: Vec<usize>) -> Arc<dyn PayloadDecoder> {
        decoder_of(&columns, Self)
    }
}

impl PayloadFormat for TextFormat {
    fn fields(&self) -> Vec<Field> {
        vec![Field::new("value", DataType::Utf8, true)]
    }

    fn decoder(&self, columns: Vec<usize>) -> Arc<dyn PayloadDecoder> {
        decoder_of(&columns, Self)
    }
}

impl PayloadDecoder for NoValue {
    fn reads_payloads(&self) -> bool {
        false
    }

    fn columns(
        &self,
        _: &mut Vec<u8>,
        _: Range<usize>,
        _: &[Message],
    ) -> Result<DecodedPayloads, BadValue> {
        Ok(DecodedPayloads::default())
    }
}

impl PayloadDecoder for BytesFormat {
    fn columns(
        &self,
        values: &mut Vec<u8>,
        _: Range<usize>,
        messages: &[Message],
    ) -> Result<DecodedPayloads, BadValue> {
        let values = BinaryArray::new(value_offsets(messages), take(values), None);
        Ok(one(values))
    }
}

impl PayloadDecoder for TextFormat {
    fn columns(
        &self,
        values: &mut Vec<u8>,
        _: Range<usize>,
        messages: &[Message],
    ) -> Result<DecodedPayloads, BadValue> {
        check_texts(values, messages)?;
        let values = StringArray::new(value_offsets(messages), take(values), None);
        Ok(one(values))
    }

    fn is_sound(&self, row: &[u8]) -> bool {
        std::str::from_utf8(row).is_ok()
    }
}

fn one(column: impl Array + 'static) -> DecodedPayloads {
    DecodedPayloads::from(vec![Arc::new(column) as _])
}

/// Moves all bytes into a buffer for a column, and leaves an empty vector with the same capacity.
fn take(values: &mut Vec<u8>) -> Buffer {
    let room = Vec::with_capacity(values.len());
    Buffer::from_vec(std::mem::replace(values, room))
}

/// Returns the offsets of the messages' payloads. The payloads together are shorter than 2 GiB.
fn value_offsets(messages: &[Message]) -> OffsetBuffer<i32> {
    let ends = messages.iter().map(|message| message.value_end as i32);
    let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
    OffsetBuffer::new(offsets.into())
}

fn check_texts(values: &[u8], messages: &[Message]) -> Result<(), BadValue> {
    if values.is_ascii() {
        return Ok(());
    }
    let mut begin = 0;
    for (number, message) in messages.iter().enumerate() {
        if let Err(error) = std::str::from_utf8(&values[begin..message.value_end]) {
            let at = error.valid_up_to();
            return Err(BadValue {
                message: number,
                reason: format!("not UTF-8 from byte {at} on"),
            });
        }
        begin = message.value_end;
    }
    Ok(())
}
