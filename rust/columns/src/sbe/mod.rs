//! SBE messages as columns and back: one table for a template.
//!
//! [`SbeColumns`] has the columns of a template and decodes messages. With
//! [`ValueFormat::sbe`](crate::read::ValueFormat::sbe), a [`RowReader`](crate::read::RowReader) has the same columns.

mod block_rows;
mod block_writer;
mod budget;
mod column;
mod constant;
mod data_writer;
mod decimal;
mod decimal_text;
mod decode;
mod encode;
mod entries;
mod fast;
mod field_writer;
mod fill;
mod group_path;
mod listing;
mod lists;
mod names;
mod nested;
mod number;
mod options;
mod payload;
mod repeat;
mod select;
mod sound;
mod table;
mod text;
mod time;
mod time_types;
mod values;

pub use decode::{SbeBadMessage, SbeColumns, SbeColumnsError, SbeDecoded};
pub use encode::SbeEncoder;
pub use options::{SbeColumnOptions, SbeDecimalColumn, SbeEnumColumn, SbeSetColumn};
pub use select::{SbeSelected, messages_of_templates};
