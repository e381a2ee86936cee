//! Metrics of drivers and archives in the text format of Prometheus.
//!
//! [`Exposition`] reads the files of drivers and archives, and is no client of a driver. Counters of the same stream
//! and client become one series, because session ids and registration ids are new after each restart.
//!
//! * `source` opens the files, again after each restart.
//! * `family` declares what a metric is: name, shape, unit and help.
//! * `members` finds the series of each counter, once in the life of the counter.
//! * `series` adds the values of the counters of a series.
//! * `streams` decides what is left out if there are too many series.
//! * `custom` reads the declarations of an application's counters.

#![forbid(unsafe_code)]

mod custom;
mod exposition;
mod facts;
mod family;
mod labels;
mod members;
mod series;
mod source;
mod streams;

pub use custom::{CustomError, CustomMetrics};
pub use exposition::{Exposition, ExpositionOptions};
pub use source::{ArchiveSource, DriverSource};
