//! `MemoryNetwork`, shared with the driver's unit tests.

pub use aeron_driver::media::transport;

#[allow(dead_code)]
#[path = "../../../src/media/testing.rs"]
pub mod testing;
