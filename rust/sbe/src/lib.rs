//! Simple Binary Encoding: from the text of a schema to a checked plan, and from the plan to values and bytes.
//!
//! * [`schema`]: the XML text of a schema, checked by the rules of SBE 1.0.
//! * [`plan`]: fields, groups and data of each template, with offsets and encodings.
//! * [`read`]: messages of bytes that may be malformed.
//! * [`mod@write`]: messages from values.
//!
//! This crate knows neither files, Arrow nor Python. It is total: any text and any bytes give a result or an error,
//! and time and memory are bounded by their length.
//!
//! Numbers such as `13-nn` in tests name rule nn of document 13 in `docs/spec`.
#![forbid(unsafe_code)]

pub mod limits;
pub mod number;
pub mod plan;
pub mod read;
pub mod schema;
pub mod value;
pub mod write;
