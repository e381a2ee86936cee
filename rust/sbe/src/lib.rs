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
//! ```
//! use aeron_sbe::plan::{SbePlan, SbePlanOptions};
//! use aeron_sbe::schema::SbeSchema;
//! use aeron_sbe::value::{SbeRecord, SbeValue};
//!
//! let schema = SbeSchema::parse(
//!     r#"<messageSchema id="1" version="0">
//!         <types><composite name="messageHeader">
//!             <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
//!             <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
//!         </composite></types>
//!         <message name="Tick" id="7"><field name="price" id="1" type="int32"/></message>
//!     </messageSchema>"#,
//! )?;
//! let plan = SbePlan::new(&schema, &SbePlanOptions::default())?;
//! let tick = plan.template("Tick").expect("the schema has this message");
//! let mut message = Vec::new();
//! let values = SbeRecord { fields: vec![SbeValue::from(5i64)], ..SbeRecord::default() };
//! tick.encode(&values, &mut message)?;
//! assert_eq!(message, [4, 0, 7, 0, 1, 0, 0, 0, 5, 0, 0, 0]);
//! assert_eq!(tick.open(&message)?.decode()?, values);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
