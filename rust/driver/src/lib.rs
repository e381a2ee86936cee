//! The media driver.
#![forbid(unsafe_code)]
