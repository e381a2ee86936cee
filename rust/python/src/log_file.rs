//! `LogFile`: a log buffer file, for `aeron inspect`, which reads the file frame by frame and does not write to it.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length, offset as field};
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogDescription};
use aeron_memory::mapped::MappedFile;
use aeron_memory::{SharedBuffer, Words};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::argument::{self, Instance};
use crate::errors::raise;
use crate::snapshot::snapshot;

/// The log file of a publication or image.
///
/// The file is mapped read-only. Thread-safe. The end of a `with` block closes the file.
///
/// Args:
///     path: Path of the log file.
///
/// Raises:
///     OSError: If the file cannot be mapped.
///     InvalidArgumentError: If the file is not a log.
#[pyclass(frozen, module = "aeron", name = "LogFile")]
pub struct PyLogFile {
    log: RwLock<Option<LogBuffers<SharedBuffer>>>,
    description: LogDescription,
}

snapshot! {
    /// The offset of a frame, and its header as text. Immutable. Comparison and pickling use the values.
    PyLogFrame("LogFrame") {
        /// Offset of the frame in its term, in bytes.
        term_offset: usize,
        /// Length of the payload, in bytes.
        payload_length: usize,
        /// The fields of the header, as text.
        header: String,
    }

    fn __repr__(&self) -> String {
        format!(
            "<LogFrame at {}, {} bytes: {}>",
            self.term_offset, self.payload_length, self.header
        )
    }
}

#[pymethods]
impl PyLogFile {
    #[new]
    fn new(#[pyo3(from_py_with = argument::path)] path: PathBuf) -> PyResult<Self> {
        let file = MappedFile::open_private(&path)?;
        let log = LogBuffers::attach(file.buffer())
            .map_err(|error| raise("InvalidArgumentError", error.to_string()))?;
        Ok(Self {
            description: log.metadata().description(),
            log: RwLock::new(Some(log)),
        })
    }

    /// Whether the publication has subscribers.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        self.with(|log| log.metadata().is_connected())
    }

    /// Number of the active term; the first term of the stream has the number 0.
    #[getter]
    fn active_term_count(&self) -> PyResult<i32> {
        self.with(|log| log.metadata().active_term_count())
    }

    /// Position at which the stream ended, in bytes; 2**63 - 1 before its end.
    #[getter]
    fn end_of_stream_position(&self) -> PyResult<i64> {
        self.with(|log| log.metadata().end_of_stream_position())
    }

    /// Id of the stream's first term.
    #[getter]
    fn initial_term_id(&self) -> i32 {
        self.description.initial_term_id
    }

    /// Length of each of the three terms, in bytes.
    #[getter]
    fn term_length(&self) -> i32 {
        self.description.term_length
    }

    /// Length of the longest frame, in bytes.
    #[getter]
    fn mtu_length(&self) -> i32 {
        self.description.mtu_length
    }

    /// Page size in bytes. The length of the file is a multiple of the page size.
    #[getter]
    fn page_size(&self) -> i32 {
        self.description.page_size
    }

    /// The header with which the driver creates padding frames, as text.
    #[getter]
    fn default_header(&self) -> PyResult<String> {
        self.with(|log| header_text(&log.metadata().default_header(), 0))
    }

    /// The tails of the three terms: `term id << 32 | term offset`.
    #[getter]
    fn raw_tails(&self) -> PyResult<[i64; PARTITION_COUNT]> {
        self.with(|log| std::array::from_fn(|partition| log.metadata().tail(partition).0))
    }

    /// Returns the stream position of an offset in a term.
    ///
    /// Args:
    ///     term_id: Id of the term.
    ///     term_offset: Offset in the term, in bytes.
    ///
    /// Returns:
    ///     The position, in bytes.
    ///
    /// Raises:
    ///     InvalidArgumentError: If the file is closed.
    fn position(
        &self,
        #[pyo3(from_py_with = argument::term_id)] term_id: i32,
        #[pyo3(from_py_with = argument::term_offset)] term_offset: usize,
    ) -> PyResult<i64> {
        self.with(|log| log.positions().position(term_id, term_offset))
    }

    /// Returns the frames of a term.
    ///
    /// Without `scan_over_zeroes`, the list ends at the first gap or at the unused part of the term. The last
    /// item then describes all bytes from there to the end of the term.
    ///
    /// Args:
    ///     partition: Index of the term in the log: 0, 1 or 2.
    ///     scan_over_zeroes: Whether frames after a gap are included.
    ///
    /// Returns:
    ///     A list in the order of their offsets.
    ///
    /// Raises:
    ///     IndexRangeError: If `partition` is not 0, 1 or 2.
    ///     InvalidArgumentError: If the file is closed.
    #[pyo3(signature = (partition, *, scan_over_zeroes = false))]
    fn frames(
        &self,
        #[pyo3(from_py_with = argument::partition)] partition: usize,
        #[pyo3(from_py_with = argument::scan_over_zeroes)] scan_over_zeroes: bool,
    ) -> PyResult<Vec<PyLogFrame>> {
        check_partition(partition)?;
        self.with(|log| frames(log.term(partition), scan_over_zeroes))
    }

    /// Copies the payload of a frame.
    ///
    /// Args:
    ///     partition: Index of the term in the log: 0, 1 or 2.
    ///     frame: A frame that `frames` returned.
    ///     limit: Maximum number of bytes to copy.
    ///
    /// Returns:
    ///     The bytes, at most `limit`.
    ///
    /// Raises:
    ///     IndexRangeError: If `partition` is not 0, 1 or 2.
    ///     InvalidArgumentError: If the file is closed.
    fn payload<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::partition)] partition: usize,
        #[pyo3(from_py_with = argument::frame)] frame: Instance<PyLogFrame>,
        #[pyo3(from_py_with = argument::limit)] limit: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        check_partition(partition)?;
        let frame = frame.0.get();
        let payload = self.with(|log| {
            let term = log.term(partition);
            let start = frame
                .term_offset
                .saturating_add(HEADER_LENGTH)
                .min(term.len());
            let mut payload = vec![0; frame.payload_length.min(limit).min(term.len() - start)];
            term.copy_out(start, &mut payload);
            payload
        })?;
        Ok(PyBytes::new(py, &payload))
    }

    /// Unmaps the file. Idempotent.
    ///
    /// All other methods then raise `InvalidArgumentError`. So do all attributes except `initial_term_id`,
    /// `term_length`, `mtu_length` and `page_size`.
    fn close(&self) {
        self.log
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.close();
    }
}

impl PyLogFile {
    fn with<T>(&self, read: impl FnOnce(&LogBuffers<SharedBuffer>) -> T) -> PyResult<T> {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        let open = log.as_ref().map(read);
        open.ok_or_else(|| raise("InvalidArgumentError", "the log file is closed"))
    }
}

fn check_partition(partition: usize) -> PyResult<()> {
    match partition < PARTITION_COUNT {
        true => Ok(()),
        false => Err(raise(
            "IndexRangeError",
            format!("partition {partition} is not 0, 1 or 2"),
        )),
    }
}

/// Returns the frames of a term up to the first gap, and the rest of the term as one frame. With `scan_over_zeroes`,
/// returns the frames after gaps instead of the rest.
fn frames(term: &SharedBuffer, scan_over_zeroes: bool) -> Vec<PyLogFrame> {
    let mut frames = Vec::new();
    let mut offset = 0;
    while offset < term.len() {
        let length = term.load_i32_acquire(offset + field::FRAME_LENGTH);
        let is_frame = length >= HEADER_LENGTH as i32;
        let room = term.len() - offset - HEADER_LENGTH;
        let payload_length = if is_frame {
            length as usize - HEADER_LENGTH
        } else {
            room
        };
        if is_frame || !scan_over_zeroes {
            frames.push(PyLogFrame {
                term_offset: offset,
                payload_length: payload_length.min(room),
                header: header_text(term, offset),
            });
        }
        offset += match (is_frame, scan_over_zeroes) {
            (true, _) => aligned_length(length as usize),
            (false, true) => HEADER_LENGTH,
            (false, false) => break,
        };
    }
    frames
}

/// Returns a header in the form that Aeron's LogInspector prints (docs/spec/06, section 1.7).
fn header_text(words: &SharedBuffer, offset: usize) -> String {
    format!(
        "DATA Header{{frame-length={} version={} flags={:08b} type={} term-offset={} session-id={} stream-id={} term-id={} \
         reserved-value={}}}",
        words.load_i32_relaxed(offset + field::FRAME_LENGTH),
        words.load_u8_relaxed(offset + field::VERSION),
        words.load_u8_relaxed(offset + field::FLAGS),
        words.load_u16_relaxed(offset + field::TYPE),
        words.load_i32_relaxed(offset + field::TERM_OFFSET),
        words.load_i32_relaxed(offset + field::SESSION_ID),
        words.load_i32_relaxed(offset + field::STREAM_ID),
        words.load_i32_relaxed(offset + field::TERM_ID),
        words.load_i64_relaxed(offset + field::RESERVED_VALUE),
    )
}
