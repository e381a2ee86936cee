//! Messages of fixed templates as rows of numpy: the formats of their fields, and their blocks one after the other.

use std::sync::Arc;

use aeron_columns::write::Payloads;
use aeron_sbe::number::{SbeByteOrder, SbePrimitive};
use aeron_sbe::plan::{
    SbeExponent, SbeField, SbeKind, SbePlan, SbeScalar, SbeTemplate, SbeTime, SbeTimeKind,
    SbeTimeUnit, SbeUnitSource,
};
use aeron_sbe::read::{SbeHeader, SbeMalformed};
use aeron_sbe::schema::{SbeCharacterSet, SbeCounter, SbePresence};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt8Array};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyList};

use super::columns::{messages_of, payloads_of};
use super::errors::invalid;
use crate::arrow::value_error;
use crate::pipeline::column_batch::PyColumnBatch;

/// Format of a field: that of numpy, or those of its members with the length of the composite.
enum Format<'a> {
    Plain(String),
    Composite(&'a [SbeField], usize),
    Parts(Vec<(&'static str, usize, SbeScalar)>, usize),
}

/// Returns the name, offset and format of each field that takes bytes. The format of a composite is a list of this
/// kind and its length.
pub(super) fn formats<'py>(py: Python<'py>, fields: &[SbeField]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let encoded = fields.iter();
    let encoded = encoded.filter(|field| field.presence != SbePresence::Constant);
    for field in encoded {
        let (offset, format) = format_of(field);
        let offset = field.offset + offset;
        match format {
            Format::Plain(format) => list.append((&field.name, offset, format))?,
            Format::Composite(members, length) => {
                list.append((&field.name, offset, (formats(py, members)?, length)))?;
            }
            Format::Parts(parts, length) => {
                let parts = parts.iter();
                let parts = parts.map(|(name, offset, scalar)| (*name, *offset, number(scalar)));
                let parts: Vec<_> = parts.collect();
                list.append((&field.name, offset, (parts, length)))?;
            }
        }
    }
    Ok(list)
}

/// Returns the names, offsets and formats of the header, and its length.
pub(super) fn header_formats(plan: &SbePlan) -> (Vec<(&'static str, usize, String)>, usize) {
    let header = &plan.header;
    let row = |name, counter: &SbeCounter| {
        let format = format(counter.primitive, counter.order);
        (name, counter.offset, format)
    };
    let mut rows = vec![
        row("blockLength", &header.block_length),
        row("templateId", &header.template_id),
        row("schemaId", &header.schema_id),
        row("version", &header.version),
    ];
    let counts = [
        ("numGroups", &header.num_groups),
        ("numVarDataFields", &header.num_var_data_fields),
    ];
    for (name, counter) in counts {
        rows.extend(counter.as_ref().map(|counter| row(name, counter)));
    }
    (rows, header.length)
}

/// Returns the offset in the field, and the format.
fn format_of(field: &SbeField) -> (usize, Format<'_>) {
    let plain = |format: String| (0, Format::Plain(format));
    match &field.kind {
        SbeKind::Number(scalar) => plain(number(scalar)),
        SbeKind::Character(_) => plain("S1".to_owned()),
        SbeKind::Numbers { item, count } => plain(format!("({count},){}", number(item))),
        SbeKind::Bytes { item, count } => match item.primitive {
            SbePrimitive::Char => plain(format!("S{count}")),
            _ => plain(format!("({count},){}", number(item))),
        },
        // numpy drops zeros at the end of a text, which may be half of a character of UTF-16.
        SbeKind::Text {
            count,
            character_set: SbeCharacterSet::Utf16(_),
        } => plain(format!("V{count}")),
        SbeKind::Text { count, .. } => plain(format!("S{count}")),
        SbeKind::Enum { scalar, .. } | SbeKind::Set { scalar, .. } => plain(number(scalar)),
        SbeKind::Decimal(decimal) => match decimal.exponent {
            SbeExponent::Wire { scalar, offset } => {
                let mantissa = ("mantissa", decimal.mantissa_offset, decimal.mantissa);
                let parts = vec![mantissa, ("exponent", offset, scalar)];
                (0, Format::Parts(parts, field.length))
            }
            _ => (
                decimal.mantissa_offset,
                Format::Plain(number(&decimal.mantissa)),
            ),
        },
        SbeKind::Time(time) => match time.unit {
            SbeUnitSource::Wire { scalar, offset } => {
                let parts = vec![("time", time.offset, time.scalar), ("unit", offset, scalar)];
                (0, Format::Parts(parts, field.length))
            }
            SbeUnitSource::Constant(unit) => (time.offset, Format::Plain(time_format(time, unit))),
        },
        SbeKind::Struct(composite) => (0, Format::Composite(&composite.members, composite.length)),
    }
}

/// Returns the format of a time: `datetime64` for times since 1970 in signed integers of 64 bits, which numpy has too.
fn time_format(time: &SbeTime, unit: SbeTimeUnit) -> String {
    let is_exact =
        time.kind != SbeTimeKind::TimeOfDay && time.scalar.primitive == SbePrimitive::Int64;
    if !is_exact {
        return number(&time.scalar);
    }
    let unit = match unit {
        SbeTimeUnit::Day => "D",
        SbeTimeUnit::Second => "s",
        SbeTimeUnit::Millisecond => "ms",
        SbeTimeUnit::Microsecond => "us",
        SbeTimeUnit::Nanosecond => "ns",
    };
    format!("{}M8[{unit}]", order_letter(time.scalar.order))
}

fn number(scalar: &SbeScalar) -> String {
    format(scalar.primitive, scalar.order)
}

fn format(primitive: SbePrimitive, order: SbeByteOrder) -> String {
    let letter = match primitive {
        SbePrimitive::Float | SbePrimitive::Double => 'f',
        _ if primitive.is_signed() => 'i',
        _ => 'u',
    };
    format!("{}{letter}{}", order_letter(order), primitive.length())
}

fn order_letter(order: SbeByteOrder) -> char {
    match order {
        SbeByteOrder::Little => '<',
        SbeByteOrder::Big => '>',
    }
}

/// Returns the blocks of the messages of a template one after the other, as a column of bytes, and their number.
pub(super) fn blocks(
    plan: &SbePlan,
    template: &SbeTemplate,
    messages: &Bound<'_, PyAny>,
    skip: usize,
    drop: bool,
) -> PyResult<(PyColumnBatch, usize)> {
    let arrays = messages_of(messages)?;
    let (mut bytes, mut count, mut first) = (Vec::new(), 0, 0);
    for array in &arrays {
        let payloads = payloads_of(array)?;
        let add = || {
            let found = append_blocks(plan, template, &payloads, skip, drop, &mut bytes);
            found.map_err(|(index, reason)| format!("message {}: {reason}", first + index))
        };
        count += messages.py().detach(add).map_err(invalid)?;
        first += array.len();
    }
    let column: ArrayRef = Arc::new(UInt8Array::from(bytes));
    let batch = RecordBatch::try_from_iter([("block", column)]).map_err(value_error)?;
    Ok((PyColumnBatch::new(batch), count))
}

/// Appends the blocks of the messages of the template, and returns their number. On failure, returns the index of the
/// malformed message.
fn append_blocks(
    plan: &SbePlan,
    template: &SbeTemplate,
    payloads: &Payloads<'_>,
    skip: usize,
    drop: bool,
    blocks: &mut Vec<u8>,
) -> Result<usize, (usize, String)> {
    let mut count = 0;
    for index in 0..payloads.count() {
        let message = payloads.at(index).get(skip..).unwrap_or_default();
        let mut add = || {
            let header = SbeHeader::read(&plan.header, message)?;
            let is_of_template = header.schema_id == u64::from(plan.schema_id)
                && header.template_id == u64::from(template.id);
            if is_of_template {
                let message = template.open(message)?;
                message.check()?;
                message.append_block(blocks);
            }
            Ok(is_of_template)
        };
        let added: Result<bool, SbeMalformed> = add();
        match added {
            Ok(is_of_template) => count += usize::from(is_of_template),
            Err(_) if drop => {}
            Err(reason) => return Err((index, reason.to_string())),
        }
    }
    Ok(count)
}
