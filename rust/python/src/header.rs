//! [`PyHeader`]: the header of the message that a handler gets.
//!
//! All messages of a poll use the same header object. It contains copies of the values, so it cannot dangle. After the
//! poll, the header's attributes raise.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use aeron_client::Header;
use pyo3::prelude::*;

use crate::errors::raise;

/// The header of the message that a handler gets.
///
/// The header is valid only until the handler returns. Until then it is thread-safe.
#[pyclass(frozen, module = "aeron", name = "Header")]
#[derive(Default)]
pub struct PyHeader {
    is_valid: AtomicBool,
    position: AtomicI64,
    reserved_value: AtomicI64,
    /// This field and the next four contain two 32-bit values each. The first value is in the low half.
    session_and_stream: AtomicI64,
    term_id_and_offset: AtomicI64,
    lengths: AtomicI64,
    flags_and_type: AtomicI64,
    initial_term_id_and_shift: AtomicI64,
}

fn pair(low: i32, high: i32) -> i64 {
    i64::from(high) << 32 | i64::from(low as u32)
}

impl PyHeader {
    /// Replaces the values by the values of `header`, and makes them readable.
    #[inline]
    pub fn show(&self, header: &Header<'_>) {
        let store = |field: &AtomicI64, value| field.store(value, Ordering::Relaxed);
        store(&self.position, header.position());
        store(&self.reserved_value, header.reserved_value());
        store(
            &self.session_and_stream,
            pair(header.session_id(), header.stream_id()),
        );
        store(
            &self.term_id_and_offset,
            pair(header.term_id(), header.term_offset()),
        );
        store(
            &self.lengths,
            pair(header.frame_length(), header.fragmented_frame_length()),
        );
        store(
            &self.flags_and_type,
            pair(header.flags().into(), header.frame_type().into()),
        );
        store(
            &self.initial_term_id_and_shift,
            pair(
                header.initial_term_id(),
                header.position_bits_to_shift() as i32,
            ),
        );
        self.is_valid.store(true, Ordering::Release);
    }

    /// Makes all attributes raise, because the poll is over.
    pub fn expire(&self) {
        self.is_valid.store(false, Ordering::Release);
    }

    #[inline]
    fn long(&self, field: &AtomicI64) -> PyResult<i64> {
        if !self.is_valid.load(Ordering::Acquire) {
            return Err(raise(
                "AeronError",
                "a header is valid only inside the handler it was given to",
            ));
        }
        Ok(field.load(Ordering::Relaxed))
    }

    fn low(&self, field: &AtomicI64) -> PyResult<i32> {
        self.long(field).map(|value| value as i32)
    }

    fn high(&self, field: &AtomicI64) -> PyResult<i32> {
        self.long(field).map(|value| (value >> 32) as i32)
    }
}

#[pymethods]
impl PyHeader {
    fn __repr__(&self) -> PyResult<String> {
        if !self.is_valid.load(Ordering::Acquire) {
            return Ok("<Header, valid in its handler only>".to_owned());
        }
        Ok(format!(
            "<Header of session {} stream {}, position {}, {} bytes>",
            self.session_id()?,
            self.stream_id()?,
            self.position()?,
            self.frame_length()?,
        ))
    }

    /// Stream position after the message, in bytes.
    #[getter]
    fn position(&self) -> PyResult<i64> {
        self.long(&self.position)
    }

    /// Reserved value of the first frame, a 64-bit integer; 0 unless the publisher set one.
    #[getter]
    fn reserved_value(&self) -> PyResult<i64> {
        self.long(&self.reserved_value)
    }

    /// Session id of the message's publisher.
    #[getter]
    fn session_id(&self) -> PyResult<i32> {
        self.low(&self.session_and_stream)
    }

    /// Stream id of the message.
    #[getter]
    fn stream_id(&self) -> PyResult<i32> {
        self.high(&self.session_and_stream)
    }

    /// Id of the term of the first frame.
    #[getter]
    fn term_id(&self) -> PyResult<i32> {
        self.low(&self.term_id_and_offset)
    }

    /// Offset of the first frame in its term, in bytes.
    #[getter]
    fn term_offset(&self) -> PyResult<i32> {
        self.high(&self.term_id_and_offset)
    }

    /// Offset of the next frame in the term, in bytes.
    #[getter]
    fn next_term_offset(&self) -> PyResult<i32> {
        const FRAME_ALIGNMENT: i32 = 32;
        let framed = match self.fragmented_frame_length()? {
            -1 => self.frame_length()?.saturating_add(FRAME_ALIGNMENT - 1) & !(FRAME_ALIGNMENT - 1),
            framed => framed,
        };
        Ok(self.term_offset()?.saturating_add(framed))
    }

    /// Length of header and payload, in bytes.
    #[getter]
    fn frame_length(&self) -> PyResult<i32> {
        self.low(&self.lengths)
    }

    /// Length in the log of all fragments of an assembled message, in bytes; -1 if the message is one fragment.
    #[getter]
    fn fragmented_frame_length(&self) -> PyResult<i32> {
        self.high(&self.lengths)
    }

    /// Flags: 0x80 marks the first and 0x40 the last fragment of a message. A whole message has 0xC0.
    #[getter]
    fn flags(&self) -> PyResult<i32> {
        self.low(&self.flags_and_type)
    }

    /// Type of the frame; 1 is data.
    #[getter]
    fn r#type(&self) -> PyResult<i32> {
        self.high(&self.flags_and_type)
    }

    /// Id of the stream's first term.
    #[getter]
    fn initial_term_id(&self) -> PyResult<i32> {
        self.low(&self.initial_term_id_and_shift)
    }

    /// Base-two logarithm of the term length.
    #[getter]
    fn position_bits_to_shift(&self) -> PyResult<i32> {
        self.high(&self.initial_term_id_and_shift)
    }
}
