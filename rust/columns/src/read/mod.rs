//! Rows of recordings as Arrow record batches: the frames of a range are walked once, and that walk copies every message to where
//! its column is made, fragments joined by the copy.
//!
//! [`Projection`] says which columns there are, [`RowReader`] reads the rows of a range of [`Frames`]. A message belongs to the range in
//! which it begins; fragments without a beginning and messages without an end give no row. Reading depends on nothing but the range
//! and the frames, so each attempt gives the same rows in the same record batches.

mod build;
mod frames;
mod malformed;
mod projection;
mod reader;
mod row_error;
mod staged;
mod walk;

pub use build::Recording;
pub use frames::{ArrivalTimes, Frame, Frames};
pub use malformed::{Malformed, Mode};
pub use projection::{Projection, ProjectionError, ValueFormat};
pub use reader::RowReader;
pub use row_error::RowError;

/// Messages of a record batch; in a batch of records from long messages, records.
pub const BATCH_ROWS: usize = 4096;

/// A record batch is ended by the message with which its payloads reach so many bytes.
pub const BATCH_LENGTH: usize = 1024 * 1024;
