//! [`plain`]: columns that a publication can send, from dictionary, view and narrower integer columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, LargeBinaryArray};
use arrow_schema::DataType;

/// Converts a column to bytes, text or 64-bit integers, if this loses nothing. Returns any other column as it is.
///
/// Views and dictionaries of bytes or text become bytes. Their indexes must be valid.
pub fn plain(column: &ArrayRef) -> ArrayRef {
    macro_rules! widened {
        ($type:ty) => {{
            let numbers = column.as_primitive::<$type>().iter();
            Arc::new(numbers.map(|it| it.map(i64::from)).collect::<Int64Array>())
        }};
    }
    match column.data_type() {
        DataType::BinaryView => bytes(column.as_binary_view().iter()),
        DataType::Utf8View => bytes(text(column.as_string_view().iter())),
        DataType::Dictionary(..) => {
            of_dictionary(column.as_ref()).unwrap_or_else(|| Arc::clone(column))
        }
        DataType::Int8 => widened!(Int8Type),
        DataType::Int16 => widened!(Int16Type),
        DataType::Int32 => widened!(Int32Type),
        DataType::UInt8 => widened!(UInt8Type),
        DataType::UInt16 => widened!(UInt16Type),
        DataType::UInt32 => widened!(UInt32Type),
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            let numbers = numbers.map(|it| it.map(i64::try_from).transpose());
            match numbers.collect::<Result<Int64Array, _>>() {
                Ok(numbers) => Arc::new(numbers),
                Err(_) => Arc::clone(column),
            }
        }
        _ => Arc::clone(column),
    }
}

/// Returns the values of a dictionary of bytes or text; `None` for a dictionary of other values.
fn of_dictionary(column: &dyn Array) -> Option<ArrayRef> {
    let dictionary = column.as_any_dictionary();
    let values = values_of(dictionary.values().as_ref())?;
    if values.is_empty() {
        // No key is valid, so all values are null.
        return Some(bytes((0..column.len()).map(|_| None::<&[u8]>)));
    }
    let keys = dictionary.keys();
    let places = dictionary.normalized_keys();
    let value = |(row, place): (usize, &usize)| match keys.is_null(row) {
        true => None,
        false => values.get(*place).copied().flatten(),
    };
    Some(bytes(places.iter().enumerate().map(value)))
}

/// Returns the values of a column of bytes or text; `None` for another type.
fn values_of(column: &dyn Array) -> Option<Vec<Option<&[u8]>>> {
    Some(match column.data_type() {
        DataType::Binary => column.as_binary::<i32>().iter().collect(),
        DataType::LargeBinary => column.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => column.as_binary_view().iter().collect(),
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().collect(),
        DataType::Utf8 => text(column.as_string::<i32>().iter()).collect(),
        DataType::LargeUtf8 => text(column.as_string::<i64>().iter()).collect(),
        DataType::Utf8View => text(column.as_string_view().iter()).collect(),
        _ => return None,
    })
}

fn text<'a>(
    values: impl Iterator<Item = Option<&'a str>>,
) -> impl Iterator<Item = Option<&'a [u8]>> {
    values.map(|value| value.map(str::as_bytes))
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    Arc::new(values.collect::<LargeBinaryArray>())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryViewArray, DictionaryArray, Int8Array, Int16Array, StringArray, StringViewArray,
        UInt64Array,
    };

    use super::*;

    #[test]
    fn views_and_dictionaries_of_text_become_bytes_08_67() {
        let texts = [Some("a"), None, Some("a text that is longer than a view")];
        let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
        let columns: [ArrayRef; 3] = [
            Arc::new(StringViewArray::from_iter(texts)),
            Arc::new(BinaryViewArray::from_iter(text(texts.into_iter()))),
            Arc::new(dictionary),
        ];
        let expected = LargeBinaryArray::from_iter(text(texts.into_iter()));
        for column in columns {
            assert_eq!(plain(&column).as_binary::<i64>(), &expected);
            let slice = column.slice(1, 2);
            assert_eq!(plain(&slice).as_binary::<i64>(), &expected.slice(1, 2));
        }
    }

    #[test]
    fn a_dictionary_without_values_has_only_nulls() {
        let keys = Int8Array::from(vec![None, None]);
        let column = DictionaryArray::new(keys, Arc::new(StringArray::from(Vec::<&str>::new())));
        assert_eq!(plain(&(Arc::new(column) as ArrayRef)).null_count(), 2);
    }

    #[test]
    fn integers_are_widened_if_all_of_them_fit() {
        let numbers: ArrayRef = Arc::new(Int16Array::from(vec![Some(-7), None]));
        assert_eq!(
            plain(&numbers).as_primitive(),
            &Int64Array::from(vec![Some(-7), None])
        );
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert_eq!(plain(&large).data_type(), &DataType::UInt64);
    }
}
