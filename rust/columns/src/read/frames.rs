//! What rows are read from: frames in the order of their positions, and when they came.

use std::io;

/// Frames of one stream in the order of their positions.
pub trait Frames {
    /// Why frames cannot be read.
    type Error;

    /// Position of the next frame.
    fn position(&self) -> i64;

    /// The next frame; `None` after the last.
    ///
    /// # Errors
    /// The frame cannot be read.
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Self::Error>;
}

/// A frame, on loan from where it was read.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Position at which it begins.
    pub position: i64,
    /// Position at which the next one begins.
    pub end_position: i64,
    /// Whether it is padding.
    pub is_padding: bool,
    /// Flags of the header.
    pub flags: u8,
    /// Reserved value of the header.
    pub reserved_value: i64,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// When the messages of one recording came.
pub trait ArrivalTimes {
    /// When the message that ends at `position` was complete, in microseconds since the epoch; `None` where that is not known.
    /// Positions are asked for in ascending order.
    ///
    /// # Errors
    /// The file system refuses.
    fn at(&mut self, position: i64) -> io::Result<Option<i64>>;
}
