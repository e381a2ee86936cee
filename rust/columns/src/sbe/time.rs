//! Columns of times and dates.

use std::sync::Arc;

use aeron_sbe::plan::{SbeField, SbeTime, SbeTimeKind, SbeTimeUnit, SbeUnitSource};
use aeron_sbe::read::{SbeBlock, SbeBlocks};
use arrow_array::types::{
    Date32Type, Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, TimeUnit};

use super::column::{BadValueOfRow, BlockColumn, Place, bad};
use super::number::{NumberColumn, WireInteger, by_integer};

const BEYOND: &str = "is beyond the times of its column";
const DAY_NS: i64 = 86_400_000_000_000;

/// Creates the column of a time or date.
pub(super) fn time_column(place: Place<'_>, time: &SbeTime) -> Box<dyn BlockColumn> {
    match time.unit {
        SbeUnitSource::Constant(unit) => {
            by_integer!(time.scalar, constant_unit(place, time, unit))
        }
        SbeUnitSource::Wire { .. } => Box::new(UnitColumn {
            field: place.field.clone(),
            time: time.clone(),
            offset: place.offset,
            is_optional: place.is_optional(),
            for_spark: place.options.for_spark,
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }),
    }
}

/// Returns the time times `factor`.
fn times<W: WireInteger>(number: W, factor: i64) -> (i64, bool) {
    let (number, fits) = number.to_i64();
    let (value, is_too_large) = number.overflowing_mul(factor);
    (value, fits & !is_too_large)
}

fn constant_unit<W: WireInteger>(
    place: Place<'_>,
    time: &SbeTime,
    unit: SbeTimeUnit,
) -> Box<dyn BlockColumn> {
    let number = (&time.scalar, time.offset, place.is_optional());
    let ns = unit.nanoseconds();
    macro_rules! numbers {
        ($column:ty, $data_type:expr, $convert:expr) => {
            NumberColumn::<$column, W, _>::boxed(place, number, $data_type, $convert, BEYOND)
        };
    }
    let for_spark = place.options.for_spark;
    match time.kind {
        SbeTimeKind::Date => numbers!(Date32Type, DataType::Date32, |number: W| {
            let (day, fits) = number.to_i64();
            (day as i32, fits & i32::try_from(day).is_ok())
        }),
        SbeTimeKind::TimeOfDay if for_spark => {
            numbers!(Int64Type, DataType::Int64, move |number: W| {
                let (value, fits) = times(number, ns);
                (value, fits & (0..DAY_NS).contains(&value))
            })
        }
        SbeTimeKind::TimeOfDay if unit == SbeTimeUnit::Nanosecond => {
            let data_type = DataType::Time64(TimeUnit::Nanosecond);
            numbers!(Time64NanosecondType, data_type, |number: W| {
                let (value, fits) = number.to_i64();
                (value, fits & (0..DAY_NS).contains(&value))
            })
        }
        SbeTimeKind::TimeOfDay => {
            let data_type = DataType::Time64(TimeUnit::Microsecond);
            numbers!(Time64MicrosecondType, data_type, move |number: W| {
                let (value, fits) = times(number, ns / 1000);
                (value, fits & (0..DAY_NS / 1000).contains(&value))
            })
        }
        SbeTimeKind::Timestamp if for_spark && unit == SbeTimeUnit::Nanosecond => {
            let data_type = timestamp(TimeUnit::Microsecond);
            numbers!(TimestampMicrosecondType, data_type, |number: W| {
                let (value, fits) = number.to_i64();
                (value.div_euclid(1000), fits)
            })
        }
        SbeTimeKind::Timestamp if for_spark || unit == SbeTimeUnit::Microsecond => {
            let data_type = timestamp(TimeUnit::Microsecond);
            let factor = ns / 1000;
            numbers!(TimestampMicrosecondType, data_type, move |number: W| times(
                number, factor
            ))
        }
        SbeTimeKind::Timestamp => match unit {
            SbeTimeUnit::Nanosecond => {
                let data_type = timestamp(TimeUnit::Nanosecond);
                numbers!(TimestampNanosecondType, data_type, W::to_i64)
            }
            SbeTimeUnit::Millisecond => {
                let data_type = timestamp(TimeUnit::Millisecond);
                numbers!(TimestampMillisecondType, data_type, W::to_i64)
            }
            _ => {
                let data_type = timestamp(TimeUnit::Second);
                let factor = ns / 1_000_000_000;
                numbers!(TimestampSecondType, data_type, move |number: W| times(
                    number, factor
                ))
            }
        },
    }
}

fn timestamp(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some("UTC".into()))
}

/// Times with their units in the messages, in nanoseconds.
struct UnitColumn {
    field: SbeField,
    time: SbeTime,
    offset: usize,
    is_optional: bool,
    for_spark: bool,
    values: Vec<i64>,
    nulls: NullBufferBuilder,
}

impl BlockColumn for UnitColumn {
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        let fields = blocks.slices(self.offset, self.field.length);
        let Some(fields) = fields else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        for (row, bytes) in fields.enumerate() {
            if self.is_optional && self.field.is_null(bytes) {
                self.append_nulls(1);
                continue;
            }
            let time = self.field.time(&self.time, bytes).ok();
            let is_in_day =
                |ns: &i64| self.time.kind != SbeTimeKind::TimeOfDay || (0..DAY_NS).contains(ns);
            let time = time.filter(is_in_day);
            let time = time.ok_or_else(|| bad(&self.field.name, row, BEYOND))?;
            self.values.push(time);
            self.nulls.append_non_null();
        }
        Ok(())
    }

    fn append_nulls(&mut self, count: usize) {
        self.values.resize(self.values.len() + count, 0);
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let (values, nulls) = (std::mem::take(&mut self.values), self.nulls.finish());
        match (self.time.kind, self.for_spark) {
            (SbeTimeKind::Timestamp, false) => {
                let values = PrimitiveArray::<TimestampNanosecondType>::new(values.into(), nulls);
                Arc::new(values.with_data_type(timestamp(TimeUnit::Nanosecond)))
            }
            (SbeTimeKind::Timestamp, true) => {
                let values: Vec<i64> = values.iter().map(|ns| ns.div_euclid(1000)).collect();
                let values = PrimitiveArray::<TimestampMicrosecondType>::new(values.into(), nulls);
                Arc::new(values.with_data_type(timestamp(TimeUnit::Microsecond)))
            }
            (SbeTimeKind::TimeOfDay, false) => Arc::new(
                PrimitiveArray::<Time64NanosecondType>::new(values.into(), nulls),
            ),
            _ => Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), nulls)),
        }
    }
}
