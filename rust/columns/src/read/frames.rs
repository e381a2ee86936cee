//! The input of a [`RowReader`](super::RowReader): frames in the order of their positions, and arrival times.

use std::io;

/// Frames of one stream in the order of their positions.
pub trait Frames {
    /// Error of [`next_frame`](Self::next_frame).
    type Error;

    /// Returns the position of the next frame.
    fn position(&self) -> i64;

    /// Returns the next frame; `None` after the last frame.
    ///
    /// # Errors
    /// The frame cannot be read.
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Self::Error>;
}

/// A frame, borrowed from the buffer that it was read into.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Position of the frame.
    pub position: i64,
    /// Position of the next frame.
    pub end_position: i64,
    /// Whether the frame is padding.
    pub is_padding: bool,
    /// Flags of the header.
    pub flags: u8,
    /// Reserved value of the header.
    pub reserved_value: i64,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// The arrival times of one recording's messages.
pub trait ArrivalTimes {
    /// Returns the time at which the message that ends at `position` was complete, in microseconds since the epoch;
    /// `None` if the time is not known.
    ///
    /// The caller passes positions in ascending order.
    ///
    /// # Errors
    /// The file system returns an error.
    fn at(&mut self, position: i64) -> io::Result<Option<i64>>;
}
