//! Reads recordings as Arrow record batches. One pass over the frames of a range copies each message to its column and
//! joins its fragments.
//!
//! [`Projection`] determines the columns, and [`RowReader`] reads the rows of a range of [`Frames`]. A message belongs
//! to the range in which it begins. For fragments without a beginning and messages without an end, no row is returned.
//! The result depends only on the range and the frames. So reading a range again, for example in a retried task,
//! returns the same rows in the same record batches.

mod build;
mod format;
mod frames;
mod kept;
mod malformed;
mod projection;
mod reader;
mod row_error;
mod staged;
mod walk;

pub use build::Recording;
pub use format::ValueFormat;
pub(crate) use format::{BadValue, DecodedPayloads, PayloadDecoder, PayloadFormat};
pub use frames::{ArrivalTimes, Frame, Frames};
pub(crate) use kept::MixedRows;
pub use malformed::{CORRUPT_RECORD, Malformed, Mode, RowCounts};
pub use projection::{Projection, ProjectionError};
pub use reader::RowReader;
pub use row_error::RowReadError;
pub(crate) use staged::Message;

/// A record batch ends with the first message at which the batch has this many rows or more. A row is a message; for
/// payloads with records, it is a record.
pub const BATCH_ROWS: usize = 4096;

/// A record batch ends with the first message at which the payloads in the batch have this many bytes or more.
pub const BATCH_LENGTH: usize = 1024 * 1024;
