//! The test driver of several modules.

pub mod driver;
