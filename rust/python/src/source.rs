//! Arguments of `offer_batch`: reads the messages in a Python object without a copy.

use aeron_memory::log::append::{FixedLengthMessages, MessageBatch};
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, GenericByteArray};
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySequence, PyString};

use crate::argument::{self, named, wrong_type};
use crate::arrow::array_of;
use crate::buffers::{View, has_buffer, has_objects, holds_addresses};
use crate::errors::raise;

/// Maximum number of messages of a list that are borrowed at the same time.
const CHUNK: usize = 512;

/// A receiver of messages, such as a publication.
pub trait Sink {
    /// Appends the messages from index `first` on, `length` bytes in all. Returns the number of appended messages,
    /// which is smaller if there is no room for all of them.
    fn take<M: MessageBatch + Sync>(
        &mut self,
        messages: &M,
        first: usize,
        length: usize,
    ) -> PyResult<usize>;
}

/// Passes the messages of `source` from index `start` on to `sink`. Returns the number of messages that `sink`
/// appended.
pub fn send(
    source: &Bound<'_, PyAny>,
    offsets: Option<&Bound<'_, PyAny>>,
    start: usize,
    sink: &mut impl Sink,
) -> PyResult<usize> {
    if let Some(offsets) = offsets {
        return send_slices(source, offsets, start, sink);
    }
    if let Ok(list) = source.cast::<PyList>() {
        return send_list(list, start, sink);
    }
    // `array_of` looks up an attribute. A failed lookup takes as long as appending a hundred rows, so it is avoided for
    // numpy arrays.
    if has_buffer(source) {
        return send_rows(source, start, sink);
    }
    if let Some(array) = array_of(source)? {
        return send_arrow(&array, start, sink);
    }
    match source.cast::<PySequence>() {
        Ok(sequence) if !source.is_instance_of::<PyString>() => {
            send_list(&sequence.to_list()?, start, sink)
        }
        _ => Err(unsuitable(source)),
    }
}

/// Returns whether there are messages from index `start` on. Raises if `start` is greater than `count`.
fn check_start(start: usize, count: usize) -> PyResult<bool> {
    if start > count {
        return Err(raise(
            "InvalidArgumentError",
            format!("start={start} is beyond the {count} messages"),
        ));
    }
    Ok(start < count)
}

/// Sends the rows of a two-dimensional array, or the records of a structured array.
fn send_rows(source: &Bound<'_, PyAny>, start: usize, sink: &mut impl Sink) -> PyResult<usize> {
    let view = match View::shape_of(source) {
        Ok(view) => view,
        Err(_) if has_objects(source) => return Err(holds_addresses(source)),
        Err(error) => View::shape_of(&as_opaque_records(source).map_err(|_| error)?)?,
    };
    let rows = Rows::of(&view).ok_or_else(|| unsuitable(source))?;
    // SAFETY: the object has `count` rows of `length` bytes at a distance of `stride`. The view keeps them alive.
    let bytes = unsafe { std::slice::from_raw_parts(rows.start, rows.extent) };
    let records = FixedLengthMessages::new(bytes, rows.length, rows.stride, rows.count)
        .ok_or_else(|| unsuitable(source))?;
    if !check_start(start, rows.count)? {
        return Ok(0);
    }
    sink.take(&records, start, (rows.count - start) * rows.length)
}

/// Returns a structured numpy array as records of plain bytes. Needed for arrays with fields that have no format in the
/// buffer protocol, such as dates.
fn as_opaque_records<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let item_size: usize = source
        .getattr(intern!(py, "dtype"))?
        .getattr(intern!(py, "itemsize"))?
        .extract()?;
    source.call_method1(intern!(py, "view"), (format!("V{item_size}"),))
}

/// Messages of equal length at a fixed distance.
struct Rows {
    start: *const u8,
    length: usize,
    stride: usize,
    count: usize,
    extent: usize,
}

impl Rows {
    /// Returns the rows of a view. Returns `None` if the bytes of a row are not contiguous, or if the rows are in
    /// reversed order in memory.
    fn of(view: &View<'_>) -> Option<Self> {
        let (shape, strides) = (view.shape(), view.strides());
        let (count, length, stride) = match (shape, strides) {
            ([count], [stride]) if is_record(view) => (*count, view.item_size(), *stride),
            ([count, columns], [stride, step])
                if *step == view.item_size() as isize || *columns <= 1 =>
            {
                (*count, *columns as usize * view.item_size(), *stride)
            }
            _ => return None,
        };
        let count = usize::try_from(count).ok()?;
        let stride = if count > 1 {
            usize::try_from(stride).ok()?
        } else {
            length
        };
        let extent = count
            .checked_sub(1)
            .map_or(0, |gaps| gaps * stride + length);
        let start = if extent == 0 {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            view.start().cast_mut()
        };
        Some(Self {
            start,
            length,
            stride,
            count,
            extent,
        })
    }
}

/// Whether the items of the view are records: structures, or texts or bytes of a fixed length.
fn is_record(view: &View<'_>) -> bool {
    let format = view.format().trim_start_matches(['@', '=', '<', '>', '!']);
    let is_sized = format.len() > 1 && format.ends_with(['s', 'x', 'w', 'p']);
    format.starts_with("T{") || is_sized
}

#[cold]
fn unsuitable(source: &Bound<'_, PyAny>) -> PyErr {
    let kind = "a batch of messages: offer_batch takes a list or another sequence of bytes, an array of two dimensions or a structured one \
                (each row is a message; the bytes of a row must be contiguous, and the rows must not be in reversed order in memory: \
                see numpy.ascontiguousarray), an Arrow binary array, or a buffer with offsets";
    wrong_type(source, "messages", kind)
}

/// Sends a list of bytes-like objects in chunks.
fn send_list(list: &Bound<'_, PyList>, start: usize, sink: &mut impl Sink) -> PyResult<usize> {
    let mut index = start;
    check_start(start, list.len())?;
    while index < list.len() {
        let end = list.len().min(index + CHUNK);
        let count = end - index;
        let sent = match send_chunk(list, index, end, sink) {
            // If messages were sent before the error, their number is returned. The caller then resumes after these
            // messages and gets the error.
            Err(_) if index > start => 0,
            sent => sent?,
        };
        index += sent;
        if sent < count {
            break;
        }
    }
    Ok(index - start)
}

fn send_chunk(
    list: &Bound<'_, PyList>,
    first: usize,
    end: usize,
    sink: &mut impl Sink,
) -> PyResult<usize> {
    if let Some(messages) = borrow_bytes(list, first, end)? {
        return give(&messages, |message| message.as_bytes(), sink);
    }
    let views = (first..end)
        .map(|index| View::named(&list.get_item(index)?, || format!("messages[{index}]")))
        .collect::<PyResult<Vec<_>>>()?;
    give(&views, View::bytes, sink)
}

/// Returns a part of the list if all its items are `bytes`, else `None`.
fn borrow_bytes<'py>(
    list: &Bound<'py, PyList>,
    first: usize,
    end: usize,
) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
    let mut messages = Vec::with_capacity(end - first);
    for index in first..end {
        match list.get_item(index)?.cast_into_exact::<PyBytes>() {
            Ok(message) => messages.push(message),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(messages))
}

fn give<T>(owners: &[T], bytes: impl Fn(&T) -> &[u8], sink: &mut impl Sink) -> PyResult<usize> {
    let slices: Vec<&[u8]> = owners.iter().map(bytes).collect();
    let length = slices.iter().map(|slice| slice.len()).sum();
    sink.take(&List(&slices), 0, length)
}

struct List<'a>(&'a [&'a [u8]]);

impl MessageBatch for List<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn message(&self, index: usize) -> &[u8] {
        self.0[index]
    }
}

/// Messages in one buffer. Each message ends at the offset of the next message.
struct Slices<'a, O> {
    data: &'a [u8],
    offsets: &'a [O],
}

impl<O: Copy + TryInto<usize>> Slices<'_, O> {
    fn offset(&self, index: usize) -> usize {
        // The caller has checked that every offset is within the data.
        self.offsets[index].try_into().unwrap_or_default()
    }
}

impl<O: Copy + TryInto<usize>> MessageBatch for Slices<'_, O> {
    fn count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    #[inline]
    fn message(&self, index: usize) -> &[u8] {
        &self.data[self.offset(index)..self.offset(index + 1)]
    }
}

fn send_slices(
    source: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    start: usize,
    sink: &mut impl Sink,
) -> PyResult<usize> {
    let view = View::named(source, || "messages".to_owned())?;
    let offsets = offsets_of(offsets)?;
    let data = view.bytes();
    let ascending = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    if offsets.is_empty() || !ascending || offsets.last().is_some_and(|last| *last > data.len()) {
        let reason = format!(
            "offsets must ascend to at most {}, the length of the buffer, with one offset more than messages",
            data.len()
        );
        return Err(raise("InvalidArgumentError", reason));
    }
    let slices = Slices {
        data,
        offsets: &offsets,
    };
    if !check_start(start, slices.count())? {
        return Ok(0);
    }
    sink.take(&slices, start, offsets[offsets.len() - 1] - offsets[start])
}

/// Reads offsets from a buffer of 32- or 64-bit integers, or from any iterable.
fn offsets_of(offsets: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let Ok(view) = View::bytes_of(offsets) else {
        let kind = "a buffer or an iterable of integers";
        let items = offsets.try_iter();
        let items = items.map_err(|error| named(error, offsets, "offsets", kind))?;
        return items.map(|offset| argument::offsets(&offset?)).collect();
    };
    let shape = View::shape_of(offsets)?;
    let format = shape.format().trim_start_matches(['@', '=', '<']);
    let is_signed = matches!(format, "i" | "l" | "q");
    let negative = || raise("InvalidArgumentError", "offsets must not be negative");
    let read = |bytes: &[u8]| match *bytes {
        [a, b, c, d] if is_signed => i64::from(i32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d] => i64::from(u32::from_ne_bytes([a, b, c, d])),
        // No buffer has 2^63 bytes, so a greater unsigned offset is as invalid as 2^63 - 1.
        [a, b, c, d, e, f, g, h] if !is_signed => {
            i64::try_from(u64::from_ne_bytes([a, b, c, d, e, f, g, h])).unwrap_or(i64::MAX)
        }
        [a, b, c, d, e, f, g, h] => i64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => -1,
    };
    match (shape.item_size(), format) {
        (size @ (4 | 8), "i" | "l" | "q" | "I" | "L" | "Q") => view
            .bytes()
            .chunks_exact(size)
            .map(|item| usize::try_from(read(item)).map_err(|_| negative()))
            .collect(),
        _ => Err(wrong_type(
            offsets,
            "offsets",
            "a buffer of 32- or 64-bit integers",
        )),
    }
}

fn send_arrow(array: &ArrayRef, start: usize, sink: &mut impl Sink) -> PyResult<usize> {
    if array.null_count() > 0 {
        return Err(raise(
            "InvalidArgumentError",
            "an array with nulls cannot be sent: fill or drop them first",
        ));
    }
    if !check_start(start, array.len())? {
        return Ok(0);
    }
    match array.data_type() {
        DataType::Binary => send_byte_array::<BinaryType>(array.as_bytes(), start, sink),
        DataType::LargeBinary => send_byte_array::<LargeBinaryType>(array.as_bytes(), start, sink),
        DataType::Utf8 => send_byte_array::<Utf8Type>(array.as_bytes(), start, sink),
        DataType::LargeUtf8 => send_byte_array::<LargeUtf8Type>(array.as_bytes(), start, sink),
        DataType::FixedSizeBinary(_) => send_fixed(array.as_fixed_size_binary(), start, sink),
        other => Err(raise(
            "ArgumentTypeError",
            format!(
                "an Arrow array of {other} cannot be sent: pass binary, large binary, string, large string or fixed-size binary"
            ),
        )),
    }
}

fn send_byte_array<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    start: usize,
    sink: &mut impl Sink,
) -> PyResult<usize>
where
    T::Offset: TryInto<usize> + Sync,
{
    let slices = Slices {
        data: array.value_data(),
        offsets: array.value_offsets(),
    };
    let length = slices
        .offset(slices.count())
        .saturating_sub(slices.offset(start));
    sink.take(&slices, start, length)
}

fn send_fixed(array: &FixedSizeBinaryArray, start: usize, sink: &mut impl Sink) -> PyResult<usize> {
    let length = array.value_length() as usize;
    let contradicts = || {
        let reason = "an Arrow array with fewer bytes than its values need cannot be sent";
        raise("InvalidArgumentError", reason)
    };
    let records = FixedLengthMessages::new(array.value_data(), length, length, array.len())
        .ok_or_else(contradicts)?;
    sink.take(&records, start, (array.len() - start) * length)
}
