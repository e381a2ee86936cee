//! SBE messages as columns: one table for a template.
//!
//! [`SbeColumns`] has the columns of a template and decodes messages. [`SbeRows`] also makes them the payloads of a
//! [`RowReader`](crate::read::RowReader).

mod column;
mod decimal;
mod decode;
mod names;
mod nested;
mod number;
mod options;
mod payload;
mod table;
mod text;
mod time;

pub use decode::{SbeBadMessage, SbeColumns, SbeColumnsError, SbeDecoded};
pub use options::{SbeColumnOptions, SbeDecimalColumn, SbeSetColumn};
