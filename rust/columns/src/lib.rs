//! Messages to columns and back in one pass: record layouts, frames as Arrow record batches, and record batches as messages.
//!
//! Frames and arrival times are handed in, so this crate knows neither files nor archives, and neither clients nor Spark.
#![forbid(unsafe_code)]

pub mod layout;
pub mod read;
pub mod write;
