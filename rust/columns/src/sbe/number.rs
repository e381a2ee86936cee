//! Columns of numbers: a loop reads the number at an offset of each block.

use std::sync::Arc;

use aeron_sbe::number::{SbeByteOrder, SbeNumber, SbePrimitive};
use aeron_sbe::plan::SbeScalar;
use aeron_sbe::read::{SbeBlock, SbeBlocks, SbeWireNumber};
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::DataType;

use super::column::{BadValueOfRow, BlockColumn, Place, bad};
use crate::layout::U64_PRECISION;

/// A number as it is encoded.
pub(super) trait WireNumber: SbeWireNumber + PartialEq + Send + 'static {
    /// Returns the number; `None` if this type cannot hold it.
    fn of(number: SbeNumber) -> Option<Self>;

    /// Returns whether the number is this null value. All NaNs are the same null value.
    fn is(self, null: Self) -> bool;
}

/// An integer as it is encoded.
pub(super) trait WireInteger: WireNumber {
    /// Returns the integer, and whether the result is exact.
    fn to_i64(self) -> (i64, bool);
}

macro_rules! wire_integers {
    ($($number:ty, $as:ident;)*) => {$(
        impl WireNumber for $number {
            fn of(number: SbeNumber) -> Option<Self> {
                number.$as()?.try_into().ok()
            }

            fn is(self, null: Self) -> bool {
                self == null
            }
        }

        impl WireInteger for $number {
            fn to_i64(self) -> (i64, bool) {
                (self as i64, i64::try_from(self).is_ok())
            }
        }
    )*};
}

wire_integers! {
    i8, as_i64; i16, as_i64; i32, as_i64; i64, as_i64;
    u8, as_u64; u16, as_u64; u32, as_u64; u64, as_u64;
}

macro_rules! wire_floats {
    ($($number:ty)*) => {$(
        impl WireNumber for $number {
            fn of(number: SbeNumber) -> Option<Self> {
                Some(number.as_f64() as Self)
            }

            fn is(self, null: Self) -> bool {
                self == null || self.is_nan() && null.is_nan()
            }
        }
    )*};
}

wire_floats!(f32 f64);

/// A column of numbers.
pub(super) struct NumberColumn<A: ArrowPrimitiveType, W, F> {
    name: String,
    offset: usize,
    order: SbeByteOrder,
    null: Option<W>,
    values: Vec<A::Native>,
    nulls: NullBufferBuilder,
    data_type: DataType,
    /// Converts an encoded number. Returns the value, and whether the column can hold it.
    convert: F,
    problem: &'static str,
}

impl<A, W, F> NumberColumn<A, W, F>
where
    A: ArrowPrimitiveType,
    W: WireNumber,
    F: Fn(W) -> (A::Native, bool) + Send + 'static,
{
    /// Creates the column of a number that begins `shift` bytes after the field. `problem` describes a number that the
    /// column cannot hold.
    pub(super) fn boxed(
        place: Place<'_>,
        (scalar, shift, is_optional): (&SbeScalar, usize, bool),
        data_type: DataType,
        convert: F,
        problem: &'static str,
    ) -> Box<dyn BlockColumn> {
        let null = is_optional.then(|| W::of(scalar.null));
        Box::new(Self {
            name: place.field.name.clone(),
            offset: place.offset + shift,
            order: scalar.order,
            null: null.flatten(),
            values: Vec::new(),
            nulls: NullBufferBuilder::new(0),
            data_type,
            convert,
            problem,
        })
    }

    #[inline(always)]
    fn append_read(
        &mut self,
        blocks: &SbeBlocks<'_>,
        read: impl Fn(&[u8]) -> W,
    ) -> Result<(), BadValueOfRow> {
        let Some(slices) = blocks.values(self.offset, size_of::<W>()) else {
            self.append_nulls(blocks.len());
            return Ok(());
        };
        let (mut has_null, mut has_bad) = (false, false);
        let convert = &self.convert;
        match self.null {
            None => self.values.extend(slices.map(|bytes| {
                let (value, fits) = convert(read(bytes));
                has_bad |= !fits;
                value
            })),
            Some(null) => self.values.extend(slices.map(|bytes| {
                let number = read(bytes);
                let is_null = number.is(null);
                let (value, fits) = convert(number);
                has_null |= is_null;
                has_bad |= !fits & !is_null;
                value
            })),
        }
        let is_null = |bytes: &[u8]| self.null.is_some_and(|null| read(bytes).is(null));
        let again = || {
            blocks
                .slices(self.offset, size_of::<W>())
                .into_iter()
                .flatten()
        };
        if has_bad {
            let fits = |bytes: &[u8]| is_null(bytes) || convert(read(bytes)).1;
            let row = again().position(|bytes| !fits(bytes));
            return Err(bad(&self.name, row.unwrap_or_default(), self.problem));
        }
        match has_null {
            true => again().for_each(|bytes| self.nulls.append(!is_null(bytes))),
            false => self.nulls.append_n_non_nulls(blocks.len()),
        }
        Ok(())
    }
}

impl<A, W, F> BlockColumn for NumberColumn<A, W, F>
where
    A: ArrowPrimitiveType,
    W: WireNumber,
    F: Fn(W) -> (A::Native, bool) + Send + 'static,
{
    fn append(&mut self, blocks: &SbeBlocks<'_>, _: &[SbeBlock<'_>]) -> Result<(), BadValueOfRow> {
        match self.order {
            SbeByteOrder::Little => self.append_read(blocks, W::from_little),
            SbeByteOrder::Big => self.append_read(blocks, W::from_big),
        }
    }

    fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows);
    }

    fn append_nulls(&mut self, count: usize) {
        let length = self.values.len() + count;
        self.values.resize(length, A::Native::default());
        self.nulls.append_n_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        let values = std::mem::take(&mut self.values);
        let array = PrimitiveArray::<A>::new(values.into(), self.nulls.finish());
        Arc::new(array.with_data_type(self.data_type.clone()))
    }
}

/// Creates a column of numbers as they are. For Spark, unsigned integers become the next wider type.
pub(super) fn number_column(
    place: Place<'_>,
    scalar: &SbeScalar,
    is_optional: bool,
) -> Box<dyn BlockColumn> {
    macro_rules! plain {
        ($wire:ty => $column:ty) => {
            plain!($wire => $column, <$column as ArrowPrimitiveType>::DATA_TYPE)
        };
        ($wire:ty => $column:ty, $data_type:expr) => {
            NumberColumn::<$column, $wire, _>::boxed(
                place,
                (scalar, 0, is_optional),
                $data_type,
                |number| (number.into(), true),
                "",
            )
        };
    }
    let for_spark = place.options.for_spark;
    match scalar.primitive {
        SbePrimitive::Int8 => plain!(i8 => Int8Type),
        SbePrimitive::Int16 => plain!(i16 => Int16Type),
        SbePrimitive::Int32 => plain!(i32 => Int32Type),
        SbePrimitive::Int64 => plain!(i64 => Int64Type),
        SbePrimitive::Uint8 | SbePrimitive::Char if for_spark => plain!(u8 => Int16Type),
        SbePrimitive::Uint16 if for_spark => plain!(u16 => Int32Type),
        SbePrimitive::Uint32 if for_spark => plain!(u32 => Int64Type),
        SbePrimitive::Uint64 if for_spark => {
            plain!(u64 => Decimal128Type, DataType::Decimal128(U64_PRECISION, 0))
        }
        SbePrimitive::Uint8 | SbePrimitive::Char => plain!(u8 => UInt8Type),
        SbePrimitive::Uint16 => plain!(u16 => UInt16Type),
        SbePrimitive::Uint32 => plain!(u32 => UInt32Type),
        SbePrimitive::Uint64 => plain!(u64 => UInt64Type),
        SbePrimitive::Float => plain!(f32 => Float32Type),
        SbePrimitive::Double => plain!(f64 => Float64Type),
    }
}

/// Calls a generic function with the type of an integer's encoding.
macro_rules! by_integer {
    ($scalar:expr, $call:ident($($argument:expr),*)) => {{
        use aeron_sbe::number::SbePrimitive;
        match $scalar.primitive {
            SbePrimitive::Int8 => $call::<i8>($($argument),*),
            SbePrimitive::Int16 => $call::<i16>($($argument),*),
            SbePrimitive::Int32 => $call::<i32>($($argument),*),
            SbePrimitive::Int64 => $call::<i64>($($argument),*),
            SbePrimitive::Uint16 => $call::<u16>($($argument),*),
            SbePrimitive::Uint32 => $call::<u32>($($argument),*),
            SbePrimitive::Uint64 => $call::<u64>($($argument),*),
            // The plan gives these meanings to integers only.
            _ => $call::<u8>($($argument),*),
        }
    }};
}
pub(super) use by_integer;
