//! What the unit tests of several modules use.

pub mod driver;
