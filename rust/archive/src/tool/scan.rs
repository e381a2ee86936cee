//! [`scan`]: finds the values of a recording in the frames of one segment file, without a catalog entry.

use std::io;

use aeron_layout::Layout;
use aeron_layout::frame::DataHeaderLayout;
use aeron_memory::log::frame::{
    FRAME_ALIGNMENT, HEADER_LENGTH, MAX_MTU_LENGTH, aligned_length, frame_type,
};

use crate::checksum::Checksum;
use crate::storage::{BLOCK_LENGTH, StorageFile};

/// The values that the frames of a segment file have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentScan {
    /// Offset of the first frame in the file, which begins at the beginning of a term.
    pub first_offset: i64,
    /// Term id of the first frame.
    pub term_id: i32,
    pub stream_id: i32,
    /// Session id of the last frame that has one; `None` if all frames have checksums instead.
    pub session_id: Option<i32>,
    /// Length of the longest data frame, with its header.
    pub longest_frame: usize,
    /// Length of a term, if the file has the end of one.
    pub term_length: Option<i64>,
    /// The highest term offset at which a frame ends.
    pub most_term_offset: i64,
}

/// Scans the frames of a file up to the first bytes that are no frame. Returns `None` if the file has no frame.
///
/// Only the first file of a recording may have its first frame after the beginning, at the term offset of the start.
pub(super) fn scan(
    file: &impl StorageFile,
    length: u64,
    is_first: bool,
) -> io::Result<Option<SegmentScan>> {
    let mut bytes = FileWindow::new(file, length);
    let mut at = 0;
    let first = loop {
        match bytes.header(at)? {
            Some(header)
                if is_frame(&header) && i64::from(header.term_offset.get()) == at as i64 =>
            {
                break header;
            }
            Some(_) if is_first => at += FRAME_ALIGNMENT as u64,
            _ => return Ok(None),
        }
    };
    let mut scan = SegmentScan {
        first_offset: at as i64,
        term_id: first.term_id.get(),
        stream_id: first.stream_id.get(),
        session_id: None,
        longest_frame: 0,
        term_length: None,
        most_term_offset: 0,
    };
    let mut expected = (first.term_id.get(), at as i64);
    while let Some(header) = bytes.header(at)?.filter(is_frame) {
        let found = (header.term_id.get(), i64::from(header.term_offset.get()));
        if header.stream_id.get() != scan.stream_id {
            break;
        }
        if found != expected {
            if found != (expected.0.wrapping_add(1), 0) {
                break;
            }
            scan.term_length = scan.term_length.or(Some(expected.1));
        }
        let frame_length = header.header.frame_length.get() as usize;
        let aligned = aligned_length(frame_length) as u64;
        if is_padding(&header) {
            scan.session_id = Some(header.session_id.get());
        } else {
            let Some(payload) =
                bytes.bytes(at + HEADER_LENGTH as u64, aligned as usize - HEADER_LENGTH)?
            else {
                break;
            };
            let session_id = header.session_id.get();
            let is_checksum = [Checksum::Crc32, Checksum::Crc32c]
                .into_iter()
                .any(|checksum| checksum.compute(payload) == session_id);
            if !is_checksum {
                scan.session_id = Some(session_id);
            }
            scan.longest_frame = scan.longest_frame.max(frame_length);
        }
        at += aligned;
        expected = (found.0, found.1 + aligned as i64);
        scan.most_term_offset = scan.most_term_offset.max(expected.1);
    }
    Ok(Some(scan))
}

fn is_padding(header: &DataHeaderLayout) -> bool {
    header.header.frame_type.get() as u16 == frame_type::PADDING
}

fn is_frame(header: &DataHeaderLayout) -> bool {
    let most = match header.header.frame_type.get() as u16 {
        frame_type::DATA => MAX_MTU_LENGTH as i32,
        frame_type::PADDING => i32::MAX,
        _ => 0,
    };
    (HEADER_LENGTH as i32..=most).contains(&header.header.frame_length.get())
        && header.header.version == 0
        && header.term_offset.get() >= 0
}

/// Reads a file in ascending order, in large blocks.
struct FileWindow<'f, F> {
    file: &'f F,
    length: u64,
    begin: u64,
    bytes: Vec<u8>,
}

impl<'f, F: StorageFile> FileWindow<'f, F> {
    fn new(file: &'f F, length: u64) -> Self {
        Self {
            file,
            length,
            begin: 0,
            bytes: Vec::new(),
        }
    }

    fn header(&mut self, at: u64) -> io::Result<Option<DataHeaderLayout>> {
        let bytes = self.bytes(at, HEADER_LENGTH)?;
        Ok(bytes.and_then(DataHeaderLayout::first_in).copied())
    }

    /// Returns `length` bytes from `at` on; `None` if the file ends before.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        if at + length as u64 > self.length {
            return Ok(None);
        }
        let held = self.begin..self.begin + self.bytes.len() as u64;
        if at < held.start || at + length as u64 > held.end {
            let wanted = (length.max(BLOCK_LENGTH) as u64).min(self.length - at);
            self.bytes.resize(wanted as usize, 0);
            self.begin = at;
            self.file.read_exact_at(&mut self.bytes, at)?;
        }
        let offset = (at - self.begin) as usize;
        Ok(Some(&self.bytes[offset..offset + length]))
    }
}
